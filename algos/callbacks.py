"""What is done between updates: look at the test split, stop in time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.result import Result
from tetrathlon.agents.trainable import TrainablePolicy

_MOST_SLOTS = 64


class Callback(Protocol):
    """Called after each update with its number and its metrics, to which it may add; a true answer stops the run.

    It may also have ``before(metrics)``, called before the first update of a run; ``last(number, metrics)``, called
    after the last one; and ``state_dict()`` and ``load_state_dict(state)``, for what has to go on with a run.
    """

    def __call__(self, number: int, metrics: dict[str, float], /) -> bool | None:
        """Look at an update."""
        ...


class Evaluate:
    """Plays instances of the test split: before the first update, from time to time, and after the last.

    Metrics ``test/success``, ``test/low`` and ``test/high`` (its Wilson interval at 95 %) where the environment tells
    success, and ``test/reward``. What the policy draws in training is not disturbed by it.

    Args:
        policy: What learns.
        env_id: Where.
        kwargs: Constructor arguments of the environment.
        every: Updates from one look to the next; 0: only before and after.
        episodes: How many instances; always the same.
        greedy: Whether the likeliest actions are taken.
        split: Which instances, where the environment has splits.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        *,
        kwargs: Mapping[str, Any] | None = None,
        every: int = 10,
        episodes: int = 64,
        greedy: bool = False,
        split: str = "test",
    ) -> None:
        for name, value, low in (("every", every, 0), ("episodes", episodes, 1)):
            if value < low:
                raise ValueError(f"{name} must be at least {low}, got {value!r}")
        self.policy, self.env_id, self.every, self.episodes, self.greedy = policy, env_id, every, episodes, greedy
        self.kwargs = {**(kwargs or {})}
        self.kwargs.pop("split", None)
        self.split = split

    def before(self, metrics: dict[str, float]) -> None:
        """Look at the start."""
        self._look(metrics)

    def __call__(self, number: int, metrics: dict[str, float], /) -> None:
        """Look where it is time."""
        if self.every and (number + 1) % self.every == 0:
            self._look(metrics)

    def last(self, number: int, metrics: dict[str, float]) -> None:
        """Look at the end, if that has not just been done."""
        if "test/reward" not in metrics:
            self._look(metrics)

    def _look(self, metrics: dict[str, float]) -> Result:
        result = self._play({})
        found = result.success
        if found["mean"] is not None:
            metrics |= {"test/success": found["mean"], "test/low": found["low"], "test/high": found["high"]}
        metrics["test/reward"] = result.reward["mean"] if result.reward["mean"] is not None else math.nan
        return result

    def _play(self, more: Mapping[str, Any]) -> Result:
        """Play the instances, with more constructor arguments; the policy's streams of samples stay where they are."""
        state = self.policy.state_dict()
        streams = {name: value for name, value in state.items() if name.endswith("_extra_state")}
        result = evaluate(
            self.policy,
            self.env_id,
            kwargs={**self.kwargs, **more},
            episodes=self.episodes,
            greedy=self.greedy,
            split=self.split,
            slots=min(self.episodes, _MOST_SLOTS),
        )
        if streams:
            self.policy.load_state_dict(streams, strict=False)
        return result


class EarlyStop:
    """Stops when a metric has not got better for some time, or is good enough.

    Args:
        metric: Which; updates without it do not count.
        patience: How many times it may fail to get better; None: for ever.
        target: At which value the run has reached its aim; None: none.
        mode: Whether more or less of it is better.

    Raises:
        ValueError: ``patience`` is below 1, or neither it nor ``target`` is given.
    """

    def __init__(
        self,
        metric: str = "test/success",
        *,
        patience: int | None = None,
        target: float | None = None,
        mode: Literal["max", "min"] = "max",
    ) -> None:
        if patience is None and target is None:
            raise ValueError("EarlyStop needs a patience or a target, got neither")
        if patience is not None and patience < 1:
            raise ValueError(f"patience must be at least 1, got {patience!r}")
        if mode not in ("max", "min"):
            raise ValueError(f"mode must be 'max' or 'min', got {mode!r}")
        self.metric, self.patience, self.target = metric, patience, target
        self._sign = 1.0 if mode == "max" else -1.0
        self._best, self._failed = -math.inf, 0

    def before(self, metrics: dict[str, float]) -> None:
        """Take the start as what has to be beaten."""
        if self.metric in metrics and not math.isnan(metrics[self.metric]):
            self._best = self._sign * metrics[self.metric]

    def __call__(self, number: int, metrics: dict[str, float], /) -> bool:
        """Say whether the run is to stop."""
        if self.metric not in metrics:
            return False
        value = self._sign * metrics[self.metric]
        self._failed = 0 if value > self._best else self._failed + 1
        self._best = max(self._best, value)
        if self.target is not None and value >= self._sign * self.target:
            return True
        return self.patience is not None and self._failed >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """Return the best so far, and for how long nothing was better."""
        return {"best": self._best, "failed": self._failed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._best, self._failed = state["best"], state["failed"]


class Guard:
    """Stops when a metric leaves its range: the entropy that collapses, the divergence that explodes.

    Args:
        metric: Which; updates without it do not count.
        low: Least value.
        high: Largest value.
        patience: How many updates in a row it may be outside before the run stops.

    Raises:
        ValueError: Neither bound is given, or ``patience`` is below 1.
    """

    def __init__(self, metric: str, *, low: float | None = None, high: float | None = None, patience: int = 3) -> None:
        if low is None and high is None:
            raise ValueError(f"Guard({metric!r}) needs low or high, got neither")
        if patience < 1:
            raise ValueError(f"patience must be at least 1, got {patience!r}")
        self.metric, self.patience = metric, patience
        self.low, self.high = -math.inf if low is None else low, math.inf if high is None else high
        self._outside = 0

    def __call__(self, number: int, metrics: dict[str, float], /) -> bool:
        """Say whether the run is to stop."""
        if self.metric not in metrics:
            return False
        self._outside = 0 if self.low <= metrics[self.metric] <= self.high else self._outside + 1
        return self._outside >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """Return for how long the metric has been outside."""
        return {"outside": self._outside}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._outside = state["outside"]
