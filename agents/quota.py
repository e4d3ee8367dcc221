"""So much a minute: a limit that requests wait for, in the order in which they came."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Taken:
    """What one request took of a quota."""

    amount: float
    """In the quota's unit."""
    at: float = 0.0
    """When."""


class Quota:
    """At most ``most`` in any stretch of ``seconds``: a sliding window, so no minute ever holds two bursts.

    All calls come from one event loop.

    Args:
        most: The limit, above 0.
        seconds: The length of the window.
    """

    def __init__(self, most: float, seconds: float = 60.0) -> None:
        self.most, self.seconds = most, seconds
        self._window: deque[Taken] = deque()
        self._used = 0.0
        self._turn = asyncio.Lock()  # first come, first served: a large request is not overtaken for ever

    async def take(self, amount: float) -> Taken:
        """Wait until ``amount`` is left, and take it; more than there can ever be waits for an empty window."""
        taken = Taken(min(amount, self.most))
        async with self._turn:
            while (pause := self._pause(taken.amount)) > 0:
                await asyncio.sleep(pause)
            taken.at = time.monotonic()
            self._window.append(taken)
            self._used += taken.amount
        return taken

    def settle(self, taken: Taken, amount: float) -> None:
        """Put what a request really used in place of what it took."""
        if any(entry is taken for entry in self._window):
            self._used += amount - taken.amount
            taken.amount = amount

    def _pause(self, amount: float) -> float:
        """Return how long to wait before it is worth looking again; 0: there is room."""
        now = time.monotonic()
        while self._window and self._window[0].at + self.seconds <= now:
            self._used -= self._window.popleft().amount
        if not self._window or self._used + amount <= self.most:
            return 0.0
        return max(self._window[0].at + self.seconds - now, 0.001)
