"""A vision-language-action policy: pictures, an instruction and numbers make a chunk of actions."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from gymnasium import spaces
from torch import Tensor

from tetrathlon.agents.actor_critic import ActorCritic, seeded
from tetrathlon.agents.chunks import Chunk, Head, head_of
from tetrathlon.agents.features import Features
from tetrathlon.agents.networks import Channels, Critic, Trunk, check_sizes, perceptron
from tetrathlon.agents.vision_language import VisionLanguage

CriticKind = Literal["own", "shared"]


class VLAPolicy(ActorCritic):
    """Sees, reads, and says the next K actions at once.

    A small network from scratch: it looks in each picture for what words of the instruction name, see
    :class:`~tetrathlon.agents.vision_language.Gazes`; where that is, the instruction and the numbers go through a
    perceptron that gives a chunk of K actions. An environment takes it as one action, [K, A]: made with ``chunk=K``, or
    wrapped in :class:`~tetrathlon.envs.action_chunk.ActionChunk`.

    ``head`` says what a chunk is: see :data:`~tetrathlon.agents.chunks.Head`. The log-probability of a chunk is that of
    the actions that were executed: a success may end it, or the environment executes fewer.

    A record is that of :class:`~tetrathlon.agents.actor_critic.ActorCritic`, with ``logp`` float32 [K], one an action.

    Args:
        observation_space: Of a single observation: a ``Dict``, or one of its parts alone. A ``Box`` of uint8 with three
            dimensions is a picture, ``Text`` is read, all else are numbers.
        action_space: Of a single action: ``Box`` of floats, [K, A], or [A] for single actions.
        head: How a chunk is decided.
        hidden: Widths of the hidden layers, of the actor and of the critic alike.
        log_std: The first logarithm of the standard deviation of ``gaussian``.
        state_std: Whether that deviation depends on what is seen.
        bins: How many of them there are a number, for ``bins``.
        flow_steps: Euler's steps of a draw, for ``flow``.
        memory: H, the size of the state of a GRU; 0: none. A goal that is shown only at first needs one.
        critic: ``"own"``: one that sees by a copy of the trunk; ``"shared"``: by the actor's; None: there is none until
            an algorithm adds it.
        normalize_observations: Whether numbers are brought to mean 0 and deviation 1, and clipped at 10.
        channels: See :data:`~tetrathlon.agents.networks.Channels`.
        seed: Seed of the weights, and of the samples.

    Raises:
        TypeError: A space is none of those, or the actions of a chunk have different bounds.
        ValueError: An option is out of range, or there is no such choice.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        head: Head = "gaussian",
        hidden: Sequence[int] = (256, 256),
        log_std: float = -0.5,
        state_std: bool = False,
        bins: int = 256,
        flow_steps: int = 10,
        memory: int = 0,
        critic: CriticKind | None = None,
        normalize_observations: bool = True,
        channels: Channels = "last",
        seed: int = 0,
    ) -> None:
        check_sizes(hidden, memory)
        for name, value, known in (("head", head, get_args(Head)), ("channels", channels, get_args(Channels))):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
        features = Features(observation_space, text="words")
        with seeded(seed):
            distribution = head_of(
                action_space, head, log_std=log_std, state_std=state_std, bins=bins, flow_steps=flow_steps
            )
            trunk = Trunk(VisionLanguage(features, channels=channels), memory=memory)
            actor = perceptron([trunk.size, *hidden, distribution.size], gain=0.01, activation="relu")
        super().__init__(
            observation_space,
            action_space,
            features=features,
            distribution=distribution,
            trunk=trunk,
            actor=actor,
            critic=None,
            normalize_observations=normalize_observations,
            seed=seed,
        )
        self._hidden, self._seed = list(hidden), seed
        if critic is not None:
            self.add_critic(critic)

    def add_critic(self, kind: CriticKind = "own") -> None:
        """Add a critic; see the class.

        Raises:
            ValueError: There is no such kind.
        """
        if kind not in get_args(CriticKind):
            raise ValueError(f"critic must be 'own', 'shared' or None, got {kind!r}")
        with seeded(self._seed):
            head = perceptron([self.trunk.size, *self._hidden, 1], gain=1.0, activation="relu")
        self.critic = Critic(copy.deepcopy(self.trunk) if kind == "own" else None, head).to(self._like)

    def _judged(self, outputs: Tensor, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        if isinstance(self.distribution, Chunk):
            return self.distribution.evaluate(outputs, inputs["action"], inputs["executed"])
        return super()._judged(outputs, inputs)
