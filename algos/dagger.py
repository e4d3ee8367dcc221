"""DAgger: the expert says what should have been done where the learner got to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import cloner
from tetrathlon.algos.cloner import Cloner, is_cut
from tetrathlon.algos.collect import Collector, Play
from tetrathlon.algos.dataset import Dataset
from tetrathlon.algos.demonstrations import Demonstrations, labelled, read
from tetrathlon.algos.imitation import Imitation
from tetrathlon.algos.teacher import Asking, Expert, Teacher
from tetrathlon.envs.episode import Episode, scorable


class DAgger(Imitation):
    """Data set aggregation (Ross, Gordon and Bagnell, 2011, algorithm 3.1).

    In each update the learner plays, an expert labels states that it visits, and the learner clones all labels so far.
    In the first update the expert acts itself, in later ones as far as ``beta`` says: by default not at all, which is
    what the paper found best.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        expert: Who labels, and acts; None: ``expert_action`` of the environment.
        proxy: A cheap stand-in of the expert, for the query ``disagree``.
        demonstrations: What the data set begins with, as :class:`~tetrathlon.algos.imitation.BC` takes them; with
            ``beta=0`` the learner then plays from the first update on.
        **others: Arguments of :class:`~tetrathlon.algos.trainer.Trainer`, and fields of :class:`Options`.

    Raises:
        TypeError: There is no such option, or the environment has no expert and none is given, or ``horizon`` cuts
            episodes that the policy needs whole.
        ValueError: An option is out of range, or weights that learn have 16 bits, or nothing learns.
        RunError: The folder holds another run.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(cloner.Options, Asking):
        """What is played, who acts, when the expert is asked, and how its labels are learnt."""

        episodes: int = 16
        """Episodes an update; with ``horizon`` the slots that play."""
        horizon: int = 0
        """Environment steps a slot and update; 0: whole episodes. What is not finished is learnt from too, and goes on
        in the next update, but for a checkpoint, which begins all episodes anew."""
        vector: Literal["auto", "no"] = "auto"
        """Whether an environment is played in its own batch, where it has one; without ``horizon`` that must start a
        slot from a seed."""
        beta: float = 1.0
        """How often the expert acts in the first update, as a share of steps or episodes (``mix``)."""
        beta_decay: float = 0.0
        """By what that is multiplied from one update to the next; 0: the expert acts in the first update alone."""
        beta_updates: int = 0
        """Instead of ``beta_decay``: over how many updates it falls to 0 on a line."""
        refit: bool = False
        """Whether each update learns from the weights of the start, not from those of the last update."""

        def __post_init__(self) -> None:
            cloner.Options.__post_init__(self)
            Asking.__post_init__(self)
            for name in ("beta", "beta_decay"):
                if not 0 <= getattr(self, name) <= 1:
                    raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)!r}")
            for name in ("horizon", "beta_updates"):
                if getattr(self, name) < 0:
                    raise ValueError(f"{name} must be at least 0, got {getattr(self, name)!r}")
            if self.beta_decay and self.beta_updates:
                raise ValueError(
                    f"beta falls by beta_decay={self.beta_decay!r} or over beta_updates={self.beta_updates!r}, not both"
                )

        def beta_at(self, update: int) -> float:
            """Return the share of the expert in an update."""
            if self.beta_updates:
                return self.beta * max(1 - update / self.beta_updates, 0.0)
            return self.beta * self.beta_decay**update  # 0 ** 0 is 1

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        *,
        expert: Expert | None = None,
        proxy: Expert | None = None,
        demonstrations: Demonstrations | None = None,
        **others: Any,
    ) -> None:
        self.proxy = proxy
        given = Dataset("label")
        if demonstrations is not None:
            given.add(map(labelled, read(demonstrations, policy, env_id)))
        self._given = given.digest if len(given) else None
        super().__init__(policy, env_id, expert=expert, **others)
        self.dataset.add(given.episodes)

    def _more_config(self) -> dict[str, Any]:
        return super()._more_config() | {"demonstrations": self._given}

    def _teacher(self) -> Teacher:
        return Teacher(self.policy, self.options, self.expert, self.proxy, seed=self.options.seed)

    def _play(self) -> Play:
        return replace(super()._play(), horizon=self.options.horizon, vector=self.options.vector)

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        if self.options.horizon and not is_cut(self.policy):
            raise TypeError(
                f"horizon={self.options.horizon} cuts episodes, and {type(self.policy).__name__} needs what came "
                "before a decision; play whole episodes (horizon 0)"
            )
        return super()._collector(env_id, kwargs)

    def _learner(self) -> Cloner:
        return Cloner(self.policy, self.options, refit=self.options.refit)

    def _update(self, learner: Cloner) -> tuple[dict[str, float], list[Episode]]:
        self.teacher.beta = self.options.beta_at(learner.round)
        collected, metrics = self._collect(learner)
        return metrics | _alone(collected.played) | self._fit(learner), collected.played


def _alone(episodes: list[Episode]) -> dict[str, float]:
    """Return how the learner did in the episodes in which the expert did not act."""
    own = [each for each in scorable(episodes) if all(step.record is not None for step in each.steps)]
    if not own:
        return {}
    told = {"own_reward": float(np.mean([episode.total_reward for episode in own]))}
    if rated := [episode.is_success for episode in own if episode.last_info.get("is_success") is not None]:
        told["own_success"] = float(np.mean(rated))
    return told
