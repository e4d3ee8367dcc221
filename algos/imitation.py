"""Imitation: learning to do what somebody else did, or says should be done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tetrathlon.agents.decisions import Decisions, Learn
from tetrathlon.agents.naming import policy_name
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import cloner
from tetrathlon.algos.cloner import Cloner, is_cut, lessons
from tetrathlon.algos.collect import Collected, Collector, Play
from tetrathlon.algos.dataset import Dataset
from tetrathlon.algos.demonstrations import Demonstrations, read
from tetrathlon.algos.learner import learnable
from tetrathlon.algos.teacher import Asking, Expert, Teacher
from tetrathlon.algos.trainer import Trainer
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.registry import make

_DATASET = "dataset"


def clone(
    policy: TrainablePolicy,
    episodes: Sequence[Episode],
    *,
    steps: int,
    learn: Learn = "action",
    rows: int = 64,
    lr: float = 1e-3,
    max_grad_norm: float = 1.0,
    seed: int = 0,
    after: Callable[[int, float], bool | None] | None = None,
) -> None:
    """Raise the likelihood of what was done: :class:`BC` without a run (supervised fine-tuning where it is text).

    Args:
        policy: What learns.
        episodes: Demonstrations.
        steps: Optimizer steps.
        learn: ``"action"``: what was done; ``"label"``: what the expert said, in the states that were visited.
        rows: Rows a step, drawn anew in each pass over all; see :class:`~tetrathlon.algos.cloner.Options`.
        lr: Learning rate (AdamW).
        max_grad_norm: Largest gradient norm.
        seed: Seed of the order of rows.
        after: Called with the number of the step and its loss, the mean of -log p over decisions; a true answer stops.

    Raises:
        ValueError: There is nothing to learn in the episodes.
        NotFinite: A loss or a gradient is not finite.
    """
    options = cloner.Options(steps=steps, batch_size=rows, lr=lr, max_grad_norm=max_grad_norm, seed=seed)
    Cloner(policy, options).update(lessons(policy, episodes, learn), after)


class Imitation(Trainer[Cloner]):
    """What imitators share: an expert, and a data set that only grows.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        expert: Who is imitated; None: ``expert_action`` of the environment.
        **others: Arguments of :class:`~tetrathlon.algos.trainer.Trainer`, and fields of
            :class:`~tetrathlon.algos.cloner.Options`.

    Raises:
        TypeError: There is no such option, or the environment has no expert and none is given.
        ValueError: An option is out of range, or weights that learn have 16 bits, or nothing learns.
        RunError: The folder holds another run.
    """

    Options = cloner.Options

    def __init__(self, policy: TrainablePolicy, env_id: str, *, expert: Expert | None = None, **others: Any) -> None:
        self.expert = expert
        super().__init__(policy, env_id, **others)
        self.dataset = Dataset("label", None if self.run is None else self.run.folder / _DATASET)

    def _teacher(self) -> Teacher:
        """Return who labels what the policy meets."""
        teacher = Teacher(self.policy, Asking(), self.expert, seed=self.options.seed)
        teacher.beta = 1.0
        return teacher

    def _play(self) -> Play:
        """Return what is played for an update."""
        options = self.options
        return Play(groups=options.episodes, group_size=1, slots=options.slots, split=options.split, seed=options.seed)

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        learnable(self.policy)
        self.teacher = self._teacher()
        collector = Collector(self.policy, env_id, self._play(), kwargs=kwargs, teacher=self.teacher)
        if self.expert is None and self._asks_expert():
            probe = make(collector.env_id, **collector.kwargs)
            has_expert = probe.has_wrapper_attr("expert_action")
            probe.close()
            if not has_expert:
                collector.close()
                raise TypeError(f"{collector.env_id} has no expert_action; give an expert that says what to do")
        return collector

    def _more_config(self) -> dict[str, Any]:
        return {"expert": None if self.expert is None else policy_name(self.expert)}

    def _learner(self) -> Cloner:
        return Cloner(self.policy, self.options)

    def _asks_expert(self) -> bool:
        """Return whether anybody will be asked."""
        return True

    def _collect(self, learner: Cloner) -> tuple[Collected, dict[str, float]]:
        """Play, and add what was labelled; return what was played, and what to watch."""
        start = time.perf_counter()
        asked, acted = self.teacher.asked, self.teacher.acted
        collected = self.collector.collect(learner.round)
        episodes = [episode for row in collected.rows for episode in row]
        self.dataset.add(map(self._lesson, episodes))
        told = [step for episode in episodes for step in episode.steps if step.label is not None]
        own = [self.teacher.agrees(step.action, step.label) for step in told if step.record is not None]
        metrics = {
            **collected.metrics,
            "queries": float(self.teacher.asked),
            "labels": float(self.teacher.asked - asked),
            "interventions": float(self.teacher.acted - acted),
            "beta": self.teacher.beta,
            "seconds_play": time.perf_counter() - start,
        }
        return collected, metrics | ({"agreement": sum(own) / len(own)} if own else {})

    def _lesson(self, episode: Episode) -> Episode:
        """Return what is kept of an episode: all of it where a decision needs those before it."""
        if not is_cut(self.policy):
            return episode
        return replace(episode, steps=[replace(s, record=None) for s in episode.steps if s.label is not None])

    def _fit(self, learner: Cloner) -> dict[str, float]:
        """Learn from the data set; return what to watch."""
        start = time.perf_counter()
        data = self.dataset
        batch = self._lessons() if len(data) else None
        prepared = time.perf_counter()
        learnt = learner.update(batch)
        return {
            **learnt,
            "dataset": float(len(data)),
            "dataset_digest": float(int(data.digest[:12], 16)),
            "seconds_prepare": prepared - start,
            "seconds_optimize": time.perf_counter() - prepared,
        }

    def _lessons(self) -> Decisions:
        """Return the rows of the data set."""
        return lessons(self.policy, self.dataset.episodes, self.dataset.learn)

    def _state(self, learner: Cloner) -> dict[str, Any]:
        self.dataset.save(learner.round)
        state = {"dataset": self.dataset.state_dict(), "teacher": self.teacher.state_dict()}
        return super()._state(learner) | state

    def _restore(self, learner: Cloner, state: dict[str, Any]) -> None:
        super()._restore(learner, state)
        self.teacher.load_state_dict(state["teacher"])
        self.dataset.load_state_dict(state["dataset"])


class BC(Imitation):
    """Behaviour cloning: the likelihood of what an expert did is raised (supervised fine-tuning where it is text).

    It learns from the demonstrations that it is given, or else from ``episodes`` episodes that the expert plays before
    the first update.

    Args:
        policy: What learns.
        env_id: Where; its train split.
        demonstrations: Episodes, or a folder of them, as ``tetrathlon record`` writes it; for a policy that decides
            chunks they may be of single actions.
        **others: As :class:`Imitation` takes them.

    Raises:
        ValueError: There is nothing in the demonstrations, or they are of another environment, or an expert is given
            beside them.
        OSError: They cannot be read.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        *,
        demonstrations: Demonstrations | None = None,
        **others: Any,
    ) -> None:
        if demonstrations is not None and others.get("expert") is not None:
            raise ValueError("BC learns from demonstrations or from an expert that plays; give one of them, not both")
        self._given: Dataset | None = None
        if demonstrations is not None:
            self._given = Dataset("action")
            self._given.add(read(demonstrations, policy, env_id))
        super().__init__(policy, env_id, **others)
        if self._given is not None:
            self.dataset = self._given
        self._shown = None if self._given is None else self._given.episodes
        self._rows: Decisions | None = None

    def _more_config(self) -> dict[str, Any]:
        return super()._more_config() | {"demonstrations": None if self._given is None else self._given.digest}

    def _asks_expert(self) -> bool:
        return self._given is None

    def _lessons(self) -> Decisions:
        if self._rows is None:  # nothing is ever added to what was shown
            self._rows = super()._lessons()
        return self._rows

    def _play(self) -> Play:
        # Nothing is played where there are demonstrations: one environment says what is wrong with its arguments.
        return super()._play() if self._given is None else replace(super()._play(), groups=1)

    def _update(self, learner: Cloner) -> tuple[dict[str, float], list[Episode] | None]:
        metrics: dict[str, float] = {}
        if not len(self.dataset):
            collected, metrics = self._collect(learner)
            self._shown = collected.played
        return metrics | self._fit(learner), self._shown
