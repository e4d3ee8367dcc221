"""A policy that is cloned from an environment's expert when it is first shown something: ``bc:N``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.imitation import BC

_UPDATES, _STEPS = 20, 100  # the learning rate falls from one update to the next
_LR = 1e-3
_NUMBERS: dict[str, Any] = {"hidden": [256, 256], "activation": "relu", "normalize_observations": True}


class ClonedPolicy:
    """Does what the environment's expert would do, as far as it learnt that from episodes of the train split.

    Before its first action it lets the expert play ``episodes`` episodes, and takes 2,000 optimizer steps of 64
    decisions (:class:`~tetrathlon.algos.imitation.BC`).

    Args:
        policy: What learns.
        env_id: Where.
        kwargs: Constructor arguments of the environment, without the split.
        episodes: How many the expert plays.
        seed: Of what it plays, and of the order in which it is learnt.
    """

    def __init__(
        self, policy: TrainablePolicy, env_id: str, kwargs: dict[str, Any], *, episodes: int, seed: int
    ) -> None:
        self.policy = policy
        self._learn: partial[BC] | None = partial(
            BC, policy, env_id, kwargs=kwargs, episodes=episodes, steps=_STEPS, lr=_LR, decay="cosine", seed=seed
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
                trainer.learn(_UPDATES)
            self._learn = None
            self.policy.eval()
        return self.policy.act(observations, memory, infos=infos, greedy=greedy, forced=forced)


def cloned_policy(episodes: str, env: Any, *, seed: int = 0, temperature: float = 1.0) -> ClonedPolicy:
    """Return a policy that will be cloned: ``control``, or ``vla`` where an instruction is part of what is seen.

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
    try:
        policy = make_policy("control", env, seed=seed, arguments=_NUMBERS)
    except PolicyError:
        try:
            policy = make_policy("vla", env, seed=seed)
        except PolicyError as error:
            raise PolicyError(f"{told} clones control: {error}") from error
    kwargs = {key: value for key, value in env.spec.kwargs.items() if key not in ("split", "render_mode")}
    return ClonedPolicy(cast(TrainablePolicy, policy), env.spec.id, kwargs, episodes=int(episodes), seed=seed)
