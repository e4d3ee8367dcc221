"""What every run has, whatever it learns by: its folder, checkpoints, callbacks and trackers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.callbacks import Callback
from tetrathlon.algos.collect import Collector
from tetrathlon.algos.learner import NotFinite
from tetrathlon.algos.run import Run
from tetrathlon.algos.tracking import Tracker
from tetrathlon.envs.episode import Episode

_SAMPLE_EPISODES = 64


class Learning(Protocol):
    """What turns episodes into better weights, and goes on after a kill; ``state["policy"]`` are the weights."""

    round: int
    """Updates that are done."""
    updates: int | None
    """How many there will be, over which schedules run."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that an update depends on."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        ...


L = TypeVar("L", bound=Learning)


class Trainer(ABC, Generic[L]):
    """Plays a policy and lets it learn, update after update; an algorithm says what one update does.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        kwargs: Constructor arguments of the environment.
        run: Folder of the run; None keeps nothing.
        resume: Whether to go on with the run in that folder.
        checkpoint_every: Updates from one checkpoint to the next.
        trackers: Where metrics go beside the folder.
        callbacks: Called between updates, in this order; see :class:`~tetrathlon.algos.callbacks.Callback`.
        name: What the run's configuration calls the policy, so that ``run:DIR`` can make it again.
        arguments: With which arguments the policy of that name was made.
        **options: Fields of :class:`Options`.

    Raises:
        TypeError: There is no such option.
        ValueError: An option is out of range, or weights that learn have 16 bits, or nothing learns.
        RunError: The folder holds another run.
    """

    Options: type[Any]
    """The settings of the algorithm: a frozen dataclass."""

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        *,
        kwargs: Mapping[str, Any] | None = None,
        run: str | Path | None = None,
        resume: bool = False,
        checkpoint_every: int = 10,
        trackers: Sequence[Tracker] = (),
        callbacks: Sequence[Callback] = (),
        name: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if checkpoint_every < 1:
            raise ValueError(f"checkpoint_every must be at least 1, got {checkpoint_every!r}")
        self.options = type(self).Options(**options)
        self.policy, self.checkpoint_every = policy, checkpoint_every
        self.trackers, self.callbacks = trackers, callbacks
        self.collector = self._collector(env_id, kwargs)
        config = {
            "algorithm": type(self).__name__,
            "policy": name,
            "policy_arguments": dict(arguments or {}),
            "env": self.collector.env_id,
            "kwargs": self.collector.kwargs,
            "options": asdict(self.options),
            "checkpoint_every": checkpoint_every,
            **self._more_config(),
        }
        self.run = None if run is None else Run(run, config, resume=resume)
        self._learning: L | None = None

    @abstractmethod
    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        """Return who plays; raise where the policy cannot learn."""

    @abstractmethod
    def _learner(self) -> L:
        """Return what learns, as it is before the first update."""

    @abstractmethod
    def _update(self, learner: L) -> tuple[dict[str, float], list[Episode] | None]:
        """Do an update.

        Returns:
            What to watch; and episodes of which samples are kept at a checkpoint, None to keep those that are there.

        Raises:
            NotFinite: A loss or a gradient is not finite.
        """

    def _more_config(self) -> dict[str, Any]:
        """Return what else the run's configuration says."""
        return {}

    def learn(self, updates: int) -> list[dict[str, float]]:
        """Improve the policy until ``updates`` updates are done, those of a resumed run and of earlier calls included.

        Returns:
            The metrics of the updates that were done now.

        Raises:
            NotFinite: A loss or a gradient is not finite. The run's folder holds the batch.
            ValueError: Checkpoints are all damaged.
        """
        learner = self._learning = self._learning or self._learner()
        learner.updates = updates
        if self.run is not None:
            if (found := self.run.checkpoints.load()) is not None:
                self._restore(learner, found[1])
            self.run.begin(learner.round, updates)
        if learner.round == 0:
            self._before()
        history: list[dict[str, float]] = []
        stop = False
        while learner.round < updates and not stop:
            number = learner.round
            try:
                metrics, played = self._update(learner)
            except NotFinite as error:
                if self.run is None:
                    raise
                path = self.run.keep_failed(number, error.batch)
                raise NotFinite(f"{error}; the batch is in {path}", error.batch) from error
            history.append(metrics)
            answers = [callback(number, metrics) for callback in self.callbacks]
            stop = any(answers)
            is_last = stop or learner.round == updates
            if is_last:
                for callback in self.callbacks:
                    if (last := getattr(callback, "last", None)) is not None:
                        last(number, metrics)
            self._note(number, metrics)
            if self.run is not None and (is_last or learner.round % self.checkpoint_every == 0):
                self.run.checkpoints.save(learner.round, self._state(learner))
                self.collector.restart()
                if played is not None:
                    self.run.keep(played[:_SAMPLE_EPISODES])
        return history

    def _before(self) -> None:
        """Let callbacks look at the start, and note what they saw."""
        seen: dict[str, float] = {}
        for callback in self.callbacks:
            if (before := getattr(callback, "before", None)) is not None:
                before(seen)
        if seen:
            self._note(-1, seen)

    def _note(self, number: int, metrics: Mapping[str, float]) -> None:
        if self.run is not None:
            self.run.note(number, metrics)
        for tracker in self.trackers:
            tracker.log(number, metrics)

    def _state(self, learner: L) -> dict[str, Any]:
        """Return all that a run depends on; what is too large for every checkpoint is written beside them."""
        return {
            "learner": learner.state_dict(),
            "starts": self.collector.starts.state_dict(),
            "callbacks": [
                (_kind(callback), callback.state_dict())
                for callback in self.callbacks
                if hasattr(callback, "state_dict")
            ],
        }

    def _restore(self, learner: L, state: dict[str, Any]) -> None:
        learner.load_state_dict(state["learner"])
        self.collector.starts.load_state_dict(state["starts"])
        self.collector.restart()  # its environments are seeded as those of the run that went on from here
        # By kind: a run may go on with other callbacks than it began with.
        saved = list(state["callbacks"])
        for callback in self.callbacks:
            at = next((i for i, (kind, _) in enumerate(saved) if kind == _kind(callback)), None)
            if at is not None and hasattr(callback, "load_state_dict"):
                callback.load_state_dict(saved.pop(at)[1])

    def close(self) -> None:
        """Close the environments and the trackers."""
        self.collector.close()
        for tracker in self.trackers:
            tracker.close()


def _kind(callback: Callback) -> str:
    """Return what tells a callback from others of a run."""
    return f"{type(callback).__name__}({getattr(callback, 'metric', '')})"
