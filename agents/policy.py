"""What acts: the protocol that every policy keeps, and the policies that need no network."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces

from tetrathlon.envs.spaces import stack, unstack

EXPERT_KEY = "expert_action"
"""Where a rollout that asks the expert puts its action in the infos that it hands to ``Policy.act``."""
STATE_KEY = "env_state"
"""Where it puts what ``get_state`` of the environment returns, for a policy that needs it."""


@dataclass(slots=True)
class Acted:
    """What a policy did for the N slots that it was shown."""

    actions: Any
    """Batched as a Gymnasium ``VectorEnv`` batches them: an array with leading N, a tuple of N strings, ..."""
    memory: list[Any]
    """One entry a slot, handed back at that slot's next step."""
    records: list[dict[str, Any] | None]
    """One note a slot for the policy's own ``collate``: arrays by name; None where it decided nothing."""
    stops: list[str | None] = field(default_factory=list)
    """Why a slot's generation stopped, one a slot: ``"eos"``, ``"length"`` (the token limit of a turn),
    ``"episode_length"`` (that of all turns together) or ``"context"``; None or an empty list where that says nothing.
    All but ``eos`` end the episode."""


@runtime_checkable
class Policy(Protocol):
    """Anything that maps observations to actions.

    A policy that wants the expert's action in its infos has a true attribute ``asks``, one that wants the exact state
    of its environment there a true ``needs_state``; one that executes K actions a decision has ``chunk = K``.
    """

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """Choose actions for N slots.

        Args:
            observations: N observations, batched as a Gymnasium ``VectorEnv`` batches them.
            memory: One entry a slot, None where an episode starts. None: all N start.
            infos: One info a slot, as the environment gave it.
            greedy: Take the most likely action instead of sampling.
            forced: One action a slot to take instead of the policy's own, so that its memory stays right; None
                where the policy decides itself. A forced action is no decision: its record is None.
        """
        ...


class RandomPolicy:
    """Samples the action space.

    Args:
        action_space: The space of a single action.
        seed: Seed of the samples.
    """

    def __init__(self, action_space: spaces.Space[Any], seed: int | None = 0) -> None:
        self.action_space = action_space
        self._rng_space = _seeded_copy(action_space, seed)

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`Policy.act`; ``infos`` tells how many slots there are."""
        n = slots_of(observations, memory, infos)
        actions = [self._rng_space.sample() for _ in range(n)]
        return acted(self.action_space, actions, forced)


class ExpertPolicy:
    """Does what the environment's ``expert_action`` says; needs a rollout that asks it.

    Args:
        action_space: The space of a single action.
    """

    asks = True

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.action_space = action_space

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`Policy.act`.

        Raises:
            TypeError: An info holds no expert action.
        """
        if infos is None or any(EXPERT_KEY not in info for info in infos):
            raise TypeError(
                f"ExpertPolicy needs infos with {EXPERT_KEY!r}; run it in a rollout with ask=True on an "
                "environment that has expert_action"
            )
        return acted(self.action_space, [info[EXPERT_KEY] for info in infos], forced)


class ActionError(TypeError):
    """A policy's function returned what is no action of its environment."""


class FunctionPolicy:
    """A plain function ``observation -> action``, called once a slot.

    Args:
        function: Takes one observation; returns one action.
        observation_space: The space of a single observation.
        action_space: The space of a single action.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
    ) -> None:
        self.function = function
        self.observation_space = observation_space
        self.action_space = action_space

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`Policy.act`.

        Raises:
            ActionError: The environment takes text, and the function returned something else.
        """
        n = slots_of(observations, memory, infos)
        actions = [self.function(item) for item in unstack(self.observation_space, observations, n)]
        if isinstance(self.action_space, spaces.Text):
            for action in actions:
                if not isinstance(action, str):  # as text it would be graded wrong, each time and without a word
                    name = getattr(self.function, "__name__", type(self.function).__name__)
                    raise ActionError(
                        f"policy {name!r} must return a str for an environment that takes text, "
                        f"got {type(action).__name__} {action!r:.80}"
                    )
        return acted(self.action_space, actions, forced)


def acted(space: spaces.Space[Any], actions: list[Any], forced: Sequence[Any] | None) -> Acted:
    """Return what a policy without memory or records did: its own actions, but where others are forced.

    Args:
        space: Of a single action.
        actions: One a slot.
        forced: See :meth:`Policy.act`.
    """
    if forced is not None:
        actions = [own if other is None else other for own, other in zip(actions, forced, strict=True)]
    return Acted(stack(space, actions), [()] * len(actions), [None] * len(actions))


def slots_of(observations: Any, memory: Sequence[Any] | None, infos: Sequence[Any] | None) -> int:
    """Return how many slots a call of :meth:`Policy.act` is about."""
    for per_slot in (infos, memory):
        if per_slot is not None:
            return len(per_slot)
    while isinstance(observations, Mapping):
        observations = next(iter(observations.values()))
    return len(observations)


def _seeded_copy(space: spaces.Space[Any], seed: int | None) -> spaces.Space[Any]:
    twin = copy.deepcopy(space)
    twin.seed(seed)
    return twin
