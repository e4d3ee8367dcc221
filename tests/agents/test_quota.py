"""No stretch of a window's length ever holds more than its limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import pytest

from tetrathlon.agents import quota as quota_module
from tetrathlon.agents.quota import Quota, Window


def grants(amounts: list[float], most: float, seconds: float) -> list[float]:
    async def play() -> list[float]:
        quota, window, times = Quota(), Window(most, seconds), [0.0] * len(amounts)
        began = time.monotonic()

        async def one(i: int) -> None:
            await quota.take((None, 1), (window, amounts[i]))
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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time, which passes only where somebody sleeps."""
    now = [1000.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(quota_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(quota_module.asyncio, "sleep", sleep)
    yield now


def played(clock: list[float], wanted: Sequence[Sequence[tuple[Window, float]]]) -> list[float]:
    async def play() -> list[float]:
        quota, times = Quota(), []
        for one in wanted:
            await quota.take(*one)
            times.append(clock[0] - 1000)
        return times

    return asyncio.run(play())


@pytest.mark.parametrize(("most", "times"), [(0.5, [0, 120, 240]), (1, [0, 60, 120]), (2.5, [0, 0, 60]), (3, [0] * 3)])
def test_requests_a_minute_to_the_second(clock: list[float], most: float, times: list[float]) -> None:
    window = Window(most)
    assert played(clock, [[(window, 1)]] * 3) == pytest.approx(times)


def test_two_windows_are_taken_from_at_one_moment(clock: list[float]) -> None:
    """What waits for a request must not have its tokens counted in an earlier minute."""
    requests, tokens = Window(20), Window(1000)
    small, large = [(requests, 1.0), (tokens, 0.0)], [(requests, 1.0), (tokens, 100.0)]
    wanted = [small] * 20 + [large] * 25
    times = played(clock, wanted)
    for at in times:
        within = [one for one, t in zip(wanted, times, strict=True) if at <= t < at + 59.99]
        assert len(within) <= 20 and sum(one[1][1] for one in within) <= 1000
    assert times[-1] == pytest.approx(180)


def test_what_was_not_used_is_free_again(clock: list[float]) -> None:
    window = Window(10, 100.0)
    first = window.take(9)
    window.settle(first, 2)
    assert window.pause(8) == 0 and window.pause(9) == pytest.approx(100)
    window.settle(first, 30)  # it may also have been more
    assert window.used == 30 and window.pause(1) == pytest.approx(100)


def test_settling_what_left_the_window_changes_nothing(clock: list[float]) -> None:
    window = Window(10)
    old = window.take(9)
    clock[0] += 61
    assert window.pause(1) == 0
    window.take(1)
    window.settle(old, 500)
    assert window.used == 1
