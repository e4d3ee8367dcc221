"""The best that can be done without looking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from tetrathlon.agents.policy import Acted, acted


class BlindPolicy:
    """Answers questions about pictures from the question alone, as well as any such policy can.

    Its success is the ``blind_floor`` of its environment: what a policy that looks has to beat.

    Args:
        env: A vision task, made; of it its ``blind_action`` is used, and the space of its actions.

    Raises:
        TypeError: The environment knows no best blind answer.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        answer: Callable[[str], str] | None = getattr(env.unwrapped, "blind_action", None)
        if answer is None:
            raise TypeError(f"{type(env.unwrapped).__name__} is no vision task: it has no blind_action")
        self.answer, self.action_space = answer, env.action_space

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
        return acted(self.action_space, [self.answer(text) for text in observations["text"]], forced)
