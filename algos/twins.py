"""Whether what is learnt is learnt from pictures: looks at pairs of test instances that differ in what decides."""

from __future__ import annotations

from typing import Any

from tetrathlon.agents.dependence import both_right
from tetrathlon.agents.result import Result
from tetrathlon.algos.callbacks import Evaluate

SHORTCUT = "test/shortcut"


class EvaluateTwins(Evaluate):
    """Looks at the test split as :class:`Evaluate` does, and at the twin of each instance, whose answer is another.

    Metrics ``test/twin``, the success on the twins; ``test/pair``, the share of instances right on both; and
    ``test/shortcut``: 1 where success has risen since the first look beyond both intervals, and pairs have not risen a
    quarter as much, else 0. What is right for a picture and wrong for its twin was no look at it.
    """

    _first: tuple[float, float, float] | None = None

    def _look(self, metrics: dict[str, float]) -> Result:
        full = super()._look(metrics)
        twin = self._play({"variant": "twin"})
        pair = both_right(full.episodes_played, twin.episodes_played)
        if pair is None or "test/success" not in metrics or twin.success["mean"] is None:
            return full
        success = metrics["test/success"]
        if self._first is None:
            self._first = (success, metrics["test/high"], pair)
        start, high, pair_start = self._first
        risen = success - start
        is_shortcut = metrics["test/low"] > high and pair - pair_start < risen / 4
        metrics |= {"test/twin": twin.success["mean"], "test/pair": pair, SHORTCUT: float(is_shortcut)}
        return full

    def state_dict(self) -> dict[str, Any]:
        """Return what the first look saw."""
        return {"first": self._first}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._first = state["first"]
