"""An actor and a critic for control: small networks over a state of numbers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.distributions import distribution_of
from tetrathlon.agents.features import feature_count, features
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.steps import Record, collate_steps
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.spaces import stack


class ControlPolicy(TrainablePolicy):
    """A multi-layer perceptron that acts, and another one that is its critic.

    Both have tanh layers with orthogonal weights, scaled by sqrt 2, and by 0.01 and 1 in the last layer of the actor
    and of the critic, as is usual for PPO (Huang et al., 2022, The 37 implementation details of PPO, 2).

    ``Discrete``, ``MultiDiscrete`` and ``MultiBinary`` actions have independent components. A ``Box`` is a normal
    distribution with a standard deviation of its own a component, learnt and the same in every state; a draw outside
    the space is clipped on its way to the environment, and its log-probability is that of the draw.

    A record holds ``action`` (int64 or float32 [D], as drawn) and ``logp`` (float32). Samples depend on ``seed`` and
    the sequence of calls; the stream is part of the policy's state.

    Args:
        observation_space: Of a single observation: ``Box``, ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a
            ``Dict`` of those. It is flattened, a choice as a one-hot.
        action_space: Of a single action: ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a ``Box`` of floats.
        hidden: Widths of the hidden layers, of the actor and of the critic alike.
        log_std: The first logarithm of the standard deviation of ``Box`` actions.
        seed: Seed of the weights, and of the samples.

    Raises:
        TypeError: A space is none of those.
        ValueError: A width is below 1.
    """

    default_lr = 3e-4
    """What trainers take as learning rate where none is given (Schulman et al., 2017, table 3)."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        hidden: Sequence[int] = (64, 64),
        log_std: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(hidden, Sequence) or not all(isinstance(width, Integral) and width >= 1 for width in hidden):
            raise ValueError(f"hidden must be a list of widths of at least 1, got {hidden!r}")
        self.observation_space, self.action_space = observation_space, action_space
        self.distribution = distribution_of(action_space, log_std=log_std)
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = _perceptron([feature_count(observation_space), *hidden, self.distribution.size], gain=0.01)
            self.critic = _perceptron([feature_count(observation_space), *hidden, 1], gain=1.0)

    @torch.no_grad()
    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`; it has no memory."""
        outputs = self.actor(self._tensor(features(self.observation_space, observations)))
        distribution = self.distribution
        drawn = distribution.mode(outputs) if greedy else distribution.sample(outputs, self.generator)
        logp = distribution.evaluate(outputs, drawn)[0].cpu().numpy()
        raw = drawn.cpu().numpy()
        records: list[Record | None] = [{"action": a, "logp": p} for a, p in zip(raw, logp, strict=True)]
        actions = distribution.to_env(raw)
        for i, other in enumerate(forced or ()):
            if other is not None:
                actions[i], records[i] = other, None
        return Acted(actions, [()] * len(records), records)

    def collate(self, rows: Sequence[Sequence[Episode]], *, learn: Learn = "own", last: Last = "open") -> Decisions:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.collate`; a step is a decision.

        Raises:
            ValueError: A label or somebody else's action is none of the space.
        """
        return collate_steps(rows, self._observed, self._decided, learn=learn, last=last)

    def evaluate(self, decisions: Decisions) -> Evaluation:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.evaluate`."""
        observation = self._tensor(decisions.inputs["observation"])
        logp, entropy = self.distribution.evaluate(self.actor(observation), decisions.inputs["action"])
        return Evaluation(logp, entropy, self.critic(observation)[..., 0])

    def snapshot(self) -> ControlPolicy:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.snapshot`."""
        return copy.deepcopy(self).requires_grad_(False)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the stream of samples, so that a loaded policy goes on with it."""
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_extra_state` returned."""
        self.generator.set_state(state["generator"].cpu())

    def _tensor(self, observation: np.ndarray | Tensor) -> Tensor:
        return torch.as_tensor(observation).to(next(self.critic.parameters()))

    def _observed(self, observations: list[Any]) -> dict[str, np.ndarray]:
        return {"observation": features(self.observation_space, stack(self.observation_space, observations))}

    def _decided(self, actions: list[Any], records: list[Record | None]) -> dict[str, np.ndarray]:
        """Return what was drawn; an action without a record is taken for a draw."""
        foreign = [np.asarray(action) for action, record in zip(actions, records, strict=True) if record is None]
        others = iter(self.distribution.from_env(np.stack(foreign)) if foreign else ())
        return {"action": np.stack([next(others) if record is None else record["action"] for record in records])}


def _perceptron(sizes: Sequence[int], gain: float) -> nn.Sequential:
    """Return tanh layers; ``gain`` scales the weights of the last."""
    layers: list[nn.Module] = []
    for position, (inputs, outputs) in enumerate(pairwise(sizes)):
        layer = nn.Linear(inputs, outputs)
        nn.init.orthogonal_(layer.weight, gain if position == len(sizes) - 2 else 2**0.5)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])
