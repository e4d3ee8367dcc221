"""On-policy learning: one loop over decisions that knows no domain, and the algorithms that are settings of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import options as update
from tetrathlon.algos.callbacks import Callback
from tetrathlon.algos.collect import Collector, Play, Scorer
from tetrathlon.algos.denominators import Reduction
from tetrathlon.algos.learner import Learner, NotFinite, Rows, learnable
from tetrathlon.algos.options import Advantage
from tetrathlon.algos.run import Run
from tetrathlon.algos.segments import Level
from tetrathlon.algos.tracking import Tracker

_SAMPLE_EPISODES = 64


def train(
    policy: TrainablePolicy,
    collect: Callable[[], Rows],
    options: update.Options,
    updates: int,
    after: Callback | None = None,
) -> None:
    """Improve ``policy`` by ``updates`` rounds of collecting and optimising: :class:`OnPolicy` without its folder.

    Args:
        policy: What learns; its ``critic`` is trained too where advantages are ``gae``.
        collect: Returns B rows of fresh episodes.
        options: See :class:`tetrathlon.algos.options.Options`.
        updates: Rounds.
        after: See :class:`~tetrathlon.algos.callbacks.Callback`; only called.

    Raises:
        TypeError: Advantages are ``gae`` and the policy has no critic.
        ValueError: The policy decided nothing in what was collected.
        FloatingPointError: A loss is not finite.
    """
    learner = Learner(policy, options, updates)
    for number in range(updates):
        metrics = learner.update(collect())
        if after is not None and after(number, metrics):
            return


class OnPolicy:
    """Plays a policy in an environment and learns from what it did, again and again.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        kwargs: Constructor arguments of the environment.
        scorers: Rewards that need a model, by name.
        run: Folder of the run; None keeps nothing.
        resume: Whether to go on with the run in that folder.
        checkpoint_every: Updates from one checkpoint to the next.
        trackers: Where metrics go beside the folder.
        callbacks: Called between updates, in this order; see :class:`~tetrathlon.algos.callbacks.Callback`.
        name: What the run's configuration calls the policy, so that ``run:DIR`` can make it again.
        arguments: With which arguments the policy of that name was made.
        **options: Fields of :class:`Options`.

    Raises:
        TypeError: There is no such option, or the advantages need a critic that the policy has not.
        ValueError: An option is out of range, or weights that learn have 16 bits, or nothing learns.
        RunError: The folder holds another run.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(update.Options, Play):
        """What is played, and what is learnt from it."""

        def __post_init__(self) -> None:
            Play.__post_init__(self)
            update.Options.__post_init__(self)
            if self.group_size == 1 and self.advantage in ("group", "leave_one_out"):
                raise ValueError(
                    f"advantage={self.advantage!r} compares episodes of a group; group_size must be at least 2, got 1"
                )
            if self.max_staleness and self.importance_cap is None:
                raise ValueError(
                    f"max_staleness={self.max_staleness} lets old episodes in; give importance_cap, which corrects them"
                )

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        *,
        kwargs: Mapping[str, Any] | None = None,
        scorers: Mapping[str, Scorer] | None = None,
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
        if self.options.advantage == "gae" and getattr(policy, "critic", None) is None:
            if not callable(add := getattr(policy, "add_critic", None)):
                raise TypeError(
                    f"{type(self).__name__} needs a policy with a critic; {type(policy).__name__} has no module "
                    "'critic' that gives values"
                )
            add()
        learnable(policy)
        self.collector = Collector(policy, env_id, self.options, kwargs=kwargs, scorers=scorers)
        config = {
            "algorithm": type(self).__name__,
            "policy": name,
            "policy_arguments": dict(arguments or {}),
            "env": self.collector.env_id,
            "kwargs": self.collector.kwargs,
            "options": asdict(self.options),
            "checkpoint_every": checkpoint_every,
        }
        self.run = None if run is None else Run(run, config, resume=resume)
        self._learner: Learner | None = None

    def learn(self, updates: int) -> list[dict[str, float]]:
        """Improve the policy until ``updates`` updates are done, those of a resumed run and of earlier calls included.

        Returns:
            The metrics of the updates that were done now.

        Raises:
            NotFinite: A loss or a gradient is not finite. The run's folder holds the batch.
            ValueError: Checkpoints are all damaged.
        """
        learner = self._learner = self._learner or Learner(self.policy, self.options)
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
            start = time.perf_counter()
            collected = self.collector.collect(number)
            played = time.perf_counter() - start
            try:
                learnt = learner.update(collected.rows, collected.versions)
            except NotFinite as error:
                if self.run is None:
                    raise
                path = self.run.keep_failed(number, error.batch)
                raise NotFinite(f"{error}; the batch is in {path}", error.batch) from error
            metrics = {**collected.metrics, **learnt, "seconds_play": played}
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
                self.run.keep(collected.played[:_SAMPLE_EPISODES])
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

    def _state(self, learner: Learner) -> dict[str, Any]:
        """Return all that a run depends on."""
        return {
            "learner": learner.state_dict(),
            "starts": self.collector.starts.state_dict(),
            "callbacks": [
                (_kind(callback), callback.state_dict())
                for callback in self.callbacks
                if hasattr(callback, "state_dict")
            ],
        }

    def _restore(self, learner: Learner, state: dict[str, Any]) -> None:
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


class GRPO(OnPolicy):
    """Group relative policy optimisation (Shao et al., 2024, DeepSeekMath, section 4.1).

    One optimizer step a batch, with the divergence from the start left out, as is usual with verifiable rewards.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(OnPolicy.Options):
        """GRPO's settings."""

        advantage: Advantage = "group"
        reduction: Reduction = "episode_mean"
        epochs: int = 1
        minibatches: int = 1


class DrGRPO(GRPO):
    """GRPO without the two divisions that favour short right and long wrong answers (Liu et al., 2025)."""

    @dataclass(frozen=True, kw_only=True)
    class Options(GRPO.Options):
        """GRPO's settings, but for these."""

        scale: Any = "none"
        reduction: Reduction = "decision_mean"


class DAPO(GRPO):
    """GRPO with Clip-Higher, dynamic sampling, a token mean and overlong filtering (Yu et al., 2025)."""

    @dataclass(frozen=True, kw_only=True)
    class Options(GRPO.Options):
        """GRPO's settings, but for these."""

        clip_high: float = 0.28
        reduction: Reduction = "decision_mean"
        mask_cut: bool = True
        resample: int = 3


class GSPO(GRPO):
    """GRPO with the ratio of a whole answer, its length taken out (Zheng et al., 2025)."""

    @dataclass(frozen=True, kw_only=True)
    class Options(GRPO.Options):
        """GRPO's settings, but for these."""

        ratio: Level = "episode"
        clip_low: float = 3e-4
        clip_high: float = 4e-4


class RLOO(OnPolicy):
    """REINFORCE with the mean of the other answers as baseline (Ahmadian et al., 2024, eq. 8)."""

    @dataclass(frozen=True, kw_only=True)
    class Options(OnPolicy.Options):
        """RLOO's settings."""

        advantage: Advantage = "leave_one_out"
        epochs: int = 1
        minibatches: int = 1


class REINFORCE(OnPolicy):
    """The score less a moving mean of the past times the score function (Williams, 1992)."""

    @dataclass(frozen=True, kw_only=True)
    class Options(OnPolicy.Options):
        """REINFORCE's settings."""

        advantage: Advantage = "moving_average"
        groups: int = 64
        group_size: int = 1
        epochs: int = 1
        minibatches: int = 1


class PPO(OnPolicy):
    """Proximal policy optimisation with a critic (Schulman et al., 2017), for language and control alike.

    For control give ``horizon``, and ``groups`` slots that play.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(OnPolicy.Options):
        """PPO's settings."""

        advantage: Advantage = "gae"
        groups: int = 64
        group_size: int = 1
        normalize: bool = True


ALGORITHMS: Mapping[str, type[OnPolicy]] = {
    algorithm.__name__.lower(): algorithm for algorithm in (GRPO, DrGRPO, DAPO, GSPO, RLOO, REINFORCE, PPO)
}
"""By the names of the command line."""
