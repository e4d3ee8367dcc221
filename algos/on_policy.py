"""On-policy learning: one loop over decisions that knows no domain, and the algorithms that are settings of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import options as update
from tetrathlon.algos.callbacks import Callback
from tetrathlon.algos.collect import Collector, Play, Scorer
from tetrathlon.algos.denominators import Reduction
from tetrathlon.algos.learner import Learner, Rows, learnable
from tetrathlon.algos.options import Advantage
from tetrathlon.algos.segments import Level
from tetrathlon.algos.trainer import Trainer
from tetrathlon.envs.episode import Episode


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


class OnPolicy(Trainer[Learner]):
    """Plays a policy in an environment and learns from what it did, again and again.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        scorers: Rewards that need a model, by name.
        **others: Arguments of :class:`~tetrathlon.algos.trainer.Trainer`, and fields of :class:`Options`.

    Raises:
        TypeError: There is no such option, or the advantages need a critic that the policy has not, or it gives no
            log-probabilities.
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
            if self.pair_reward and len(self.variants) < 2:
                raise ValueError(
                    f"pair_reward pays for being right in several variants; variants must name two or more, got "
                    f"{self.variants!r}"
                )
            if self.max_staleness and self.importance_cap is None:
                raise ValueError(
                    f"max_staleness={self.max_staleness} lets old episodes in; give importance_cap, which corrects them"
                )

    def __init__(
        self, policy: TrainablePolicy, env_id: str, *, scorers: Mapping[str, Scorer] | None = None, **others: Any
    ) -> None:
        self._scorers = scorers
        super().__init__(policy, env_id, **others)

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        if not self.policy.has_density:
            raise TypeError(
                f"{type(self).__name__} needs log-probabilities, and this {type(self.policy).__name__} decides "
                "without a density: train it by BC or DAgger"
            )
        if self.options.advantage == "gae" and getattr(self.policy, "critic", None) is None:
            if not callable(add := getattr(self.policy, "add_critic", None)):
                raise TypeError(
                    f"{type(self).__name__} needs a policy with a critic; {type(self.policy).__name__} has no module "
                    "'critic' that gives values"
                )
            add()
        learnable(self.policy)
        return Collector(self.policy, env_id, self.options, kwargs=kwargs, scorers=self._scorers)

    def _more_config(self) -> dict[str, Any]:
        return {"scorers": sorted(self._scorers)} if self._scorers else {}

    def _learner(self) -> Learner:
        return Learner(self.policy, self.options)

    def _update(self, learner: Learner) -> tuple[dict[str, float], list[Episode]]:
        start = time.perf_counter()
        collected = self.collector.collect(learner.round)
        played = time.perf_counter() - start
        learnt = learner.update(collected.rows, collected.versions)
        return {**collected.metrics, **learnt, "seconds_play": played}, collected.played


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
