"""No stretch of the window's length ever holds more than the limit."""

from __future__ import annotations

import asyncio
import time

import pytest

from tetrathlon.agents.quota import Quota


def grants(amounts: list[float], most: float, seconds: float) -> list[float]:
    async def play() -> list[float]:
        quota, times = Quota(most, seconds), [0.0] * len(amounts)
        began = time.monotonic()

        async def one(i: int) -> None:
            await quota.take(amounts[i])
            times[i] = time.monotonic() - began

        await asyncio.gather(*(one(i) for i in range(len(amounts))))
        return times

    return asyncio.run(play())


@pytest.mark.parametrize("amounts", [[1.0] * 11, [2, 1, 3, 1, 1, 3, 2], [3, 3, 3]])
def test_no_window_holds_more(amounts: list[float]) -> None:
    times = grants(amounts, 3, 0.1)
    assert times == sorted(times)  # first come, first served
    for at in times:
        assert sum(a for a, t in zip(amounts, times, strict=True) if at <= t < at + 0.0999) <= 3
    least = (sum(amounts) - 3) / 3 // 1 * 0.1
    assert least <= times[-1] < least + 0.5


def test_more_than_there_can_be_waits_for_an_empty_window() -> None:
    times = grants([1, 50, 1], 3, 0.1)
    assert times[0] < 0.05 and times[1] >= 0.1 and times[2] >= times[1] + 0.1


def test_what_was_not_used_is_free_again() -> None:
    async def play() -> tuple[float, float]:
        quota = Quota(10, 100.0)
        first = await quota.take(9)
        quota.settle(first, 2)
        await asyncio.wait_for(quota.take(8), 1)
        used = quota._used
        quota.settle(first, 30)  # it may also have been more
        return used, quota._used

    assert asyncio.run(play()) == (10, 38)


def test_settling_what_left_the_window_changes_nothing() -> None:
    async def play() -> float:
        quota = Quota(10, 0.02)
        old = await quota.take(9)
        await asyncio.sleep(0.03)
        await quota.take(1)
        quota.settle(old, 500)
        return quota._used

    assert asyncio.run(play()) == 1
