"""The expert of a learner: when it is asked, how often it may be, and when it acts itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch

from tetrathlon.agents.policy import Policy
from tetrathlon.agents.rollout import with_states
from tetrathlon.agents.trainable import TrainablePolicy, still
from tetrathlon.envs.slots import Lost, Ready, SlotsLike
from tetrathlon.envs.spaces import stack, unstack

Expert = Policy | Callable[[Any], Any]
"""A policy, which is asked as at the start of an episode; or a function of N observations, batched as a Gymnasium
``VectorEnv`` batches them, that returns N actions batched alike (with a policy that acts in chunks, N chunks)."""

Query = Literal["always", "every", "disagree"]
"""At which steps of the learner the expert is asked: all; one in so many; or those where a stand-in disagrees."""

Mix = Literal["step", "episode"]
"""Whether it is drawn anew at each step who acts, or once an episode."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """When the expert is asked.

    Raises:
        ValueError: A value is out of range.
    """

    query: Query = "always"
    """At which of the learner's steps the expert is asked: ``always``; ``every`` so many; or ``disagree``: where
    ``proxy`` would do something else than what the learner finds most likely. Where the expert acts it is asked
    anyway."""
    every: int = 4
    """With query ``every``: of how many steps of the learner in a slot one is asked for; slots begin staggered."""
    queries: int | None = None
    """How often the expert may be asked in the whole run, once a label; then the learner goes on with what it has.
    None: there is no limit."""
    mix: Mix = "step"
    """Whether it is drawn for each ``step`` or each ``episode`` who acts: the expert or the learner."""
    tolerance: float = 0.1
    """How far a component of an action that is no choice may be off and still count as agreement."""

    def __post_init__(self) -> None:
        for name, known in (("query", get_args(Query)), ("mix", get_args(Mix))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {getattr(self, name)!r}")
        if self.every < 1:
            raise ValueError(f"every must be at least 1, got {self.every!r}")
        if self.queries is not None and self.queries < 0:
            raise ValueError(f"queries must be at least 0, or None for no limit, got {self.queries!r}")
        if not self.tolerance >= 0:
            raise ValueError(f"tolerance must be at least 0, got {self.tolerance!r}")


class Teacher:
    """Labels the states that a learner visits, and acts in some of them (Ross et al., 2011, section 3.1).

    Args:
        policy: The learner.
        asking: See :class:`Asking`.
        expert: Who is asked; None: ``expert_action`` of the environment.
        proxy: With query ``disagree``: a cheap stand-in of the expert, whose answers cost nothing (an ensemble's other
            member, an older policy, a rule). What it does not doubt is not asked for.
        seed: Of the draws of who acts.

    Attributes:
        beta: Share of the steps, or the episodes, in which the expert acts.
        asked: How many labels it gave.
        acted: How many steps it took itself: interventions.

    Raises:
        ValueError: The query is ``disagree`` and there is no proxy.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        asking: Asking,
        expert: Expert | None = None,
        proxy: Expert | None = None,
        seed: int = 0,
    ) -> None:
        if (asking.query == "disagree") != (proxy is not None):
            raise ValueError(
                f"query='disagree' and proxy belong together: the expert is asked where the proxy disagrees; got "
                f"query={asking.query!r} and proxy={proxy!r}"
            )
        self.policy, self.asking, self.expert, self.proxy = policy, asking, expert, proxy
        self.beta = 0.0
        self.asked = self.acted = 0
        self._chunk = getattr(policy, "chunk", 1)
        self._generator = torch.Generator().manual_seed(seed)
        self._acting: set[int] = set()  # slots in which the expert acts now
        self.restart()

    def restart(self) -> None:
        """Forget what is under way in the slots; their episodes begin anew."""
        self._seen: dict[int, Ready] = {}
        self._turns: dict[int, bool] = {}
        self._steps: dict[int, int] = {}

    def beside(self, slots: SlotsLike) -> SlotsLike:
        """Return ``slots`` in which this teacher is asked for the expert's actions."""
        self._space = slots.action_space
        return _Taught(slots, self)

    def force(self, slot: int, label: Any) -> Any:
        """Return the expert's action where the expert acts, else None; a rollout's ``force``."""
        if slot not in self._acting or label is None:
            return None
        self.acted += 1
        return self._action(label)

    def agrees(self, action: Any, label: Any) -> bool:
        """Return whether an action is what a label says, or what a chunk of labels begins with."""
        return _alike(action, self._action(label), self.asking.tolerance)

    def saw(self, answer: Ready) -> None:
        """Note what a slot shows."""
        self._seen[answer.id] = answer
        if answer.started and self.asking.mix == "episode":
            self._turns[answer.id] = self._draw()

    def labels(self, slots: SlotsLike, ids: Sequence[int], k: int) -> list[Any]:
        """Return a label for each of ``ids``, None where the expert is not asked."""
        left = len(ids) if self.asking.queries is None else self.asking.queries - self.asked
        turns = {i: self._turns[i] if self.asking.mix == "episode" else self._draw() for i in ids}
        due = self._due(slots, [i for i in ids if not turns[i]]) if left > 0 else set()
        wanted = [i for i in ids if turns[i] or i in due][: max(left, 0)]
        answers = self._ask(slots, wanted, k) if wanted else []
        self.asked += sum(answer is not None and not isinstance(answer, Lost) for answer in answers)
        self._acting = {i for i in wanted if turns[i]}
        given = dict(zip(wanted, answers, strict=True))
        return [given.get(i) for i in ids]

    def _draw(self) -> bool:
        return float(torch.rand((), generator=self._generator)) < self.beta

    def _due(self, slots: SlotsLike, ids: Sequence[int]) -> set[int]:
        """Return the slots whose learner is to be told."""
        if self.asking.query == "every":
            for i in ids:
                self._steps[i] = self._steps.get(i, i - 1) + 1
            return {i for i in ids if self._steps[i] % self.asking.every == 0}
        if self.asking.query == "disagree" and ids:
            with still(self.policy):  # only a look: nothing is counted by it
                own = self._answers(self.policy, slots, ids, chunk=1)
            assert self.proxy is not None
            other = self._answers(self.proxy, slots, ids, chunk=1)
            return {i for i, one, two in zip(ids, own, other, strict=True) if not self.agrees(one, two)}
        return set(ids)

    def _ask(self, slots: SlotsLike, ids: Sequence[int], k: int) -> list[Any]:
        if self.expert is None:
            return slots.expert(ids, k)
        return self._answers(self.expert, slots, ids, chunk=k)

    def _answers(self, who: Any, slots: SlotsLike, ids: Sequence[int], chunk: int) -> list[Any]:
        """Return what somebody would do in each of ``ids``: an action, or a chunk of them."""
        observations = stack(slots.observation_space, [self._seen[i].observation for i in ids])
        if (asked := getattr(who, "act", None)) is None:
            actions = who(observations)
        else:
            infos = with_states(who, slots, ids, [self._seen[i].info for i in ids])
            actions = asked(observations, infos=infos, greedy=True).actions
        return list(actions) if chunk > 1 else unstack(slots.action_space, actions, len(ids))

    def _action(self, label: Any) -> Any:
        """Return what is done of a label: all of it, or the first action of a chunk that is played step by step."""
        return label[0] if self._chunk > 1 and np.shape(label) != self._space.shape else label

    def state_dict(self) -> dict[str, Any]:
        """Return what the next labels depend on."""
        return {"asked": self.asked, "acted": self.acted, "generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.asked, self.acted = state["asked"], state["acted"]
        self._generator.set_state(state["generator"])


class _Taught:
    """Slots whose expert is a teacher; everything else is theirs."""

    def __init__(self, slots: SlotsLike, teacher: Teacher) -> None:
        self._slots, self._teacher = slots, teacher
        self.observation_space, self.action_space = slots.observation_space, slots.action_space
        self.lockstep, self.seeded = slots.lockstep, slots.seeded
        self.reset, self.send, self.drop = slots.reset, slots.send, slots.drop
        self.get_state, self.set_state, self.close = slots.get_state, slots.set_state, slots.close

    def __len__(self) -> int:
        return len(self._slots)

    def ready(self, block: bool = True) -> list[Ready]:
        answers = self._slots.ready(block)
        for answer in answers:
            self._teacher.saw(answer)
        return answers

    def expert(self, ids: Sequence[int], k: int = 1) -> list[Any]:
        return self._teacher.labels(self._slots, ids, k)


def _alike(one: Any, other: Any, tolerance: float) -> bool:
    first, second = np.asarray(one), np.asarray(other)
    if "f" in (first.dtype.kind, second.dtype.kind):
        return first.shape == second.shape and bool((np.abs(first - second) <= tolerance).all())
    return bool(np.array_equal(first, second))
