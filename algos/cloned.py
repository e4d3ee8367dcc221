"""A policy that is cloned from an environment's expert when it is first shown something: ``bc:N``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.observed import is_visual
from tetrathlon.agents.policy import Acted, Policy
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.imitation import BC

_STEPS = 100
_CONTROL: dict[str, Any] = {"updates": 20, "lr": 1e-3}  # the learning rate falls from one update to the next
_LANGUAGE: dict[str, Any] = {"updates": 4, "lr": 2e-3}
_VISUAL: dict[str, Any] = {"updates": 2, "lr": 1e-3}
_CONTEXT = 512
_NUMBERS: dict[str, Any] = {"hidden": [256, 256], "activation": "relu", "normalize_observations": True}


class ClonedPolicy:
    """Does what the environment's expert would do, as far as it learnt that from episodes of the train split.

    Before its first action it lets the expert play ``episodes`` episodes, and takes ``updates`` times 100 optimizer
    steps of 64 rows (:class:`~tetrathlon.algos.imitation.BC`): decisions of control, or turns.

    Args:
        policy: What learns.
        env_id: Where.
        kwargs: Constructor arguments of the environment, without the split.
        episodes: How many the expert plays.
        updates: How often 100 steps are taken.
        lr: Learning rate of the first of them; it falls to 0.
        seed: Of what it plays, and of the order in which it is learnt.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        env_id: str,
        kwargs: dict[str, Any],
        *,
        episodes: int,
        updates: int,
        lr: float,
        seed: int,
    ) -> None:
        self.policy = policy
        self._updates = updates
        self._learn: partial[BC] | None = partial(
            BC, policy, env_id, kwargs=kwargs, episodes=episodes, steps=_STEPS, lr=lr, decay="cosine", seed=seed
        )

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`."""
        if self._learn is not None:
            with contextlib.closing(self._learn()) as trainer:
                trainer.learn(self._updates)
            self._learn = None
            self.policy.eval()
        return self.policy.act(observations, memory, infos=infos, greedy=greedy, forced=forced)


def cloned_policy(episodes: str, env: Any, *, seed: int = 0, temperature: float = 1.0) -> ClonedPolicy:
    """Return a policy that will be cloned.

    It is ``control``; ``vla`` where an instruction is part of what is seen; ``tiny-vlm`` where pictures are shown
    beside text and text is answered; or ``char`` where the task is in text and has words that a small model may read
    and say whole.

    Args:
        episodes: How many the expert plays.
        env: Where it will act.
        seed: Of everything.
        temperature: Not used.

    Raises:
        PolicyError: ``episodes`` is no number, or the environment has no expert or takes other actions.
    """
    told = f"policy 'bc:{episodes}'"
    if not episodes.isdecimal() or not int(episodes):
        raise PolicyError(f"{told}: write the number of episodes that the expert plays, as in bc:100")
    if not env.has_wrapper_attr("expert_action"):
        raise PolicyError(f"{told}: {env.spec.id} has no expert_action to be cloned")
    policy, how = _starting(env, told, seed)
    kwargs = {key: value for key, value in env.spec.kwargs.items() if key not in ("split", "render_mode")}
    return ClonedPolicy(cast(TrainablePolicy, policy), env.spec.id, kwargs, episodes=int(episodes), seed=seed, **how)


def _starting(env: Any, told: str, seed: int) -> tuple[Policy, dict[str, Any]]:
    """Return what will learn, and how."""
    if is_visual(env.observation_space, env.action_space):
        return make_policy("tiny-vlm", env, seed=seed), _VISUAL
    if getattr(env.unwrapped, "words", ()):
        return make_policy("char", env, seed=seed, arguments={"context": _CONTEXT}), _LANGUAGE
    try:
        return make_policy("control", env, seed=seed, arguments=_NUMBERS), _CONTROL
    except PolicyError:
        try:
            return make_policy("vla", env, seed=seed), _CONTROL
        except PolicyError as error:
            raise PolicyError(f"{told} clones control, and tasks in text that have words: {error}") from error
