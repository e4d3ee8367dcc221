"""An actor and a critic for control: networks over numbers and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium import spaces

from tetrathlon.agents.actor_critic import ActorCritic, seeded
from tetrathlon.agents.distributions import distribution_of
from tetrathlon.agents.features import Features
from tetrathlon.agents.networks import (
    CNN,
    Activation,
    Channels,
    Critic,
    Encoder,
    Trunk,
    check_choices,
    check_sizes,
    perceptron,
)


class ControlPolicy(ActorCritic):
    """A multi-layer perceptron that acts, and another one that is its critic.

    Weights are orthogonal, scaled by sqrt 2, and by 0.01 and 1 in the last layer of the actor and of the critic, as is
    usual for PPO (Huang et al., 2022, The 37 implementation details of PPO, 2).

    Images go through a CNN, as values from 0 to 1, and stand beside the numbers. A memory is the state of a GRU, one a
    slot, which begins with each episode; what it was before each decision is noted, so that an update begins where
    acting began.

    ``Discrete``, ``MultiDiscrete`` and ``MultiBinary`` actions have independent components. A ``Box`` is a normal
    distribution; see :mod:`tetrathlon.agents.distributions`.

    A record holds ``action`` (int64 or float32 [D], as drawn), ``logp`` (float32) and, of a policy with a memory,
    ``state`` (float32 [H] or [2 H]). Samples depend on ``seed`` and the sequence of calls; the stream is part of the
    policy's state.

    Args:
        observation_space: Of a single observation: ``Box``, ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a
            ``Dict`` of those. It is flattened, a choice as a one-hot; a ``Box`` of uint8 with three dimensions is an
            image.
        action_space: Of a single action: ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a ``Box`` of floats.
        hidden: Widths of the hidden layers, of the actor and of the critic alike.
        activation: See :data:`~tetrathlon.agents.networks.Activation`.
        log_std: The first logarithm of the standard deviation of ``Box`` actions.
        state_std: Whether that deviation depends on the state; else it is the same in all.
        squash: Whether ``Box`` actions go through tanh; else they are clipped.
        normalize_observations: Whether numbers are brought to mean 0 and deviation 1, and clipped at 10; the
            statistics are part of the policy's state. Images never are.
        cnn: See :data:`~tetrathlon.agents.networks.CNN`.
        channels: See :data:`~tetrathlon.agents.networks.Channels`.
        memory: H, the size of the memory; 0: none.
        shared: Whether the critic sees by the CNN and the memory of the actor; else by its own.
        ignore_text: Whether observations may have parts that are text, which are not read.
        seed: Seed of the weights, and of the samples.

    Raises:
        TypeError: A space is none of those, or an option does not go with it.
        ValueError: An option is out of range, or there is no such choice.
    """

    critic: Critic

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        log_std: float = 0.0,
        state_std: bool = False,
        squash: bool = False,
        normalize_observations: bool = False,
        cnn: CNN = "nature",
        channels: Channels = "last",
        memory: int = 0,
        shared: bool = False,
        ignore_text: bool = False,
        seed: int = 0,
    ) -> None:
        check_sizes(hidden, memory)
        check_choices(activation=activation, cnn=cnn, channels=channels)
        distribution = distribution_of(action_space, log_std=log_std, squash=squash, state_std=state_std)
        features = Features(observation_space, text="ignore" if ignore_text else "refuse")
        with seeded(seed):
            trunk, own = (Trunk(Encoder(features, cnn=cnn, channels=channels), memory=memory) for _ in range(2))
            sizes = [trunk.size, *hidden]
            actor = perceptron([*sizes, distribution.size], gain=0.01, activation=activation)
            critic = Critic(None if shared else own, perceptron([*sizes, 1], gain=1.0, activation=activation))
        super().__init__(
            observation_space,
            action_space,
            features=features,
            distribution=distribution,
            trunk=trunk,
            actor=actor,
            critic=critic,
            normalize_observations=normalize_observations,
            seed=seed,
        )
