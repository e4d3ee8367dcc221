"""So much a minute: limits that requests wait for, in the order in which they came."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Taken:
    """What one request took of a window."""

    amount: float
    """In the window's unit."""
    at: float
    """When."""


class Window:
    """At most ``most`` in any stretch of ``seconds``: it slides, so no minute ever holds two bursts.

    Args:
        most: The limit, above 0; one below 1 is a limit of 1 in a stretch that is as much longer.
        seconds: The length of the stretch.
    """

    def __init__(self, most: float, seconds: float = 60.0) -> None:
        self.most, self.seconds = max(most, 1.0), seconds / min(most, 1.0)
        self.used = 0.0
        """What the present stretch holds."""
        self._held: deque[Taken] = deque()

    def pause(self, amount: float) -> float:
        """Return how long to wait before it is worth asking again; 0: there is room for ``amount``.

        More than there can ever be waits for an empty stretch.
        """
        now = time.monotonic()
        while self._held and self._held[0].at + self.seconds <= now:
            self.used -= self._held.popleft().amount
        if not self._held or self.used + min(amount, self.most) <= self.most:
            return 0.0
        return max(self._held[0].at + self.seconds - now, 0.001)

    def take(self, amount: float) -> Taken:
        """Take ``amount`` now."""
        taken = Taken(min(amount, self.most), time.monotonic())
        self._held.append(taken)
        self.used += taken.amount
        return taken

    def settle(self, taken: Taken, amount: float) -> None:
        """Put what a request really used in place of what it took."""
        if any(entry is taken for entry in self._held):
            self.used += amount - taken.amount
            taken.amount = amount


class Quota:
    """The queue before one or more windows. All calls come from one event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # first come, first served: a large request is not overtaken for ever

    async def take(self, *wanted: tuple[Window | None, float]) -> list[Taken]:
        """Wait until every window has room, and take all at that moment; None is no limit.

        Taken one after the other, the first amount would be out of its window by the time the last is there.
        """
        async with self._turn:
            limits = [(window, amount) for window, amount in wanted if window is not None]
            while (pause := max((window.pause(amount) for window, amount in limits), default=0.0)) > 0:
                await asyncio.sleep(pause)
            return [window.take(amount) for window, amount in limits]
