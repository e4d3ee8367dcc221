"""Runs that learn from a log: one that is given, or one that the policy makes itself before it learns."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.collect import Collector, Play
from tetrathlon.algos.dataset import Dataset
from tetrathlon.algos.demonstrations import Demonstrations, read
from tetrathlon.algos.offline import learner
from tetrathlon.algos.offline.learner import OfflineLearner
from tetrathlon.algos.replay import Replay
from tetrathlon.algos.trainer import Learning, Trainer
from tetrathlon.envs.episode import Episode

_DATASET = "dataset"
L = TypeVar("L", bound=Learning)


class FromLog(Trainer[L]):
    """What learners from a log share: the log.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        log: Episodes, or a folder of them, as ``tetrathlon record`` writes it, by whomever they were played; for a
            policy that decides chunks they may be of single actions. None: the policy plays ``episodes`` of them
            before the first update, and they are kept in the run's folder.
        **others: Arguments of :class:`~tetrathlon.algos.trainer.Trainer`, and fields of :class:`Options`.

    Raises:
        TypeError: There is no such option.
        ValueError: An option is out of range, or the log is of another environment or empty; or weights that learn
            have 16 bits, or nothing learns.
        OSError: The log cannot be read.
        RunError: The folder holds another run.
    """

    def __init__(
        self, policy: TrainablePolicy, env_id: str, *, log: Demonstrations | None = None, **others: Any
    ) -> None:
        self._given: Dataset | None = None
        if log is not None:
            self._given = Dataset("action")
            self._given.add(read(log, policy, env_id))
        super().__init__(policy, env_id, **others)
        folder = None if self.run is None else self.run.folder / _DATASET
        self.dataset = Dataset("action", folder) if self._given is None else self._given

    def _more_config(self) -> dict[str, Any]:
        return {"log": None if self._given is None else self._given.digest}

    def _play(self) -> Play:
        """Return what is played before the first update."""
        options = self.options
        # Nothing is played where there is a log: one environment says what is wrong with its arguments.
        groups = options.episodes if self._given is None else 1
        return Play(groups=groups, group_size=1, slots=options.slots, split=options.split, seed=options.seed)

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        return Collector(self.policy, env_id, self._play(), kwargs=kwargs)

    @abstractmethod
    def _fit(self, learner: L) -> dict[str, float]:
        """Learn from the log; return what to watch."""

    def _update(self, learner: L) -> tuple[dict[str, float], list[Episode] | None]:
        start = time.perf_counter()
        metrics: dict[str, float] = {}
        if not len(self.dataset):
            collected = self.collector.collect(learner.round)
            self.dataset.add(episode for row in collected.rows for episode in row)
            metrics = collected.metrics
        played = time.perf_counter()
        learnt = self._fit(learner)
        return {
            **metrics,
            **learnt,
            "dataset": float(len(self.dataset)),
            "seconds_play": played - start,
            "seconds_prepare": 0.0,
            "seconds_optimize": time.perf_counter() - played,
        }, self.dataset.episodes

    def _state(self, learner: L) -> dict[str, Any]:
        self.dataset.save(learner.round)
        return super()._state(learner) | {"dataset": self.dataset.state_dict()}

    def _restore(self, learner: L, state: dict[str, Any]) -> None:
        super()._restore(learner, state)
        self.dataset.load_state_dict(state["dataset"])


class Offline(FromLog[OfflineLearner]):
    """Offline reinforcement learning: critics say what was good in a log, and the policy does more of it.

    Args:
        policy: What learns; its critic is made anew.
        env_id: Where; its train split.
        **others: Arguments of :class:`FromLog`, and fields of :class:`Options`.
    """

    Options: type[Any] = learner.Options
    Learner: ClassVar[type[OfflineLearner]]
    """What learns."""

    def __init__(self, policy: TrainablePolicy, env_id: str, **others: Any) -> None:
        super().__init__(policy, env_id, **others)
        self._replay: Replay | None = None

    def _learner(self) -> OfflineLearner:
        return self.Learner(self.policy, self.options)

    def _fit(self, learner: OfflineLearner) -> dict[str, float]:
        if self._replay is None:  # nothing is ever added to a log
            options = self.options
            self._replay = Replay(
                self.policy,
                self.dataset.episodes,
                reward_scale=options.reward_scale,
                reward_shift=options.reward_shift,
            )
        return learner.update(self._replay)
