"""What an action of a control policy is drawn from, one class a kind of action space.

Shapes: N slots or any leading dimensions, P parameters that a network gives, D components of an action.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn


class Distribution(nn.Module):
    """A family of distributions over the actions of a space.

    Actions inside are tensors [..., D], as they were drawn; :meth:`to_env` makes of them what an environment takes.

    Attributes:
        size: P, how many numbers the network gives for an action.
    """

    size: int

    @abstractmethod
    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """Draw actions [..., D] for outputs [..., P]; the noise comes from a generator on the CPU."""

    @abstractmethod
    def mode(self, outputs: Tensor) -> Tensor:
        """Return the most likely actions [..., D]."""

    @abstractmethod
    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of ``actions`` and the entropies, both [...], in nats."""

    @abstractmethod
    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """Return actions [N, D] as a ``VectorEnv`` batches them."""

    @abstractmethod
    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """Undo :meth:`to_env`, for what somebody else did.

        Raises:
            ValueError: Something in it is no action of the space.
        """


class Categorical(Distribution):
    """Of ``Discrete`` (D = 1) and ``MultiDiscrete``: each component independent, a logit a choice."""

    def __init__(self, space: spaces.Discrete | spaces.MultiDiscrete) -> None:
        super().__init__()
        self.space = space
        self.sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel().tolist()
        self.start = np.atleast_1d(space.start).ravel()
        self.size = sum(self.sizes)

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`; the largest logit after Gumbel noise is a draw."""
        noise = torch.empty(outputs.shape, dtype=outputs.dtype).exponential_(generator=generator)
        return self.mode(outputs - noise.log_().to(outputs.device))

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return torch.stack([logits.argmax(-1) for logits in outputs.split(self.sizes, -1)], -1)

    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`Distribution.evaluate`."""
        logps, entropies = [], []
        for logits, action in zip(outputs.split(self.sizes, -1), actions.split(1, -1), strict=True):
            logp = logits.log_softmax(-1)
            logps.append(logp.gather(-1, action)[..., 0])
            entropies.append(-(logp.exp() * logp).sum(-1))
        return sum(logps[1:], logps[0]), sum(entropies[1:], entropies[0])

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        return (actions + self.start).astype(self.space.dtype).reshape(-1, *(self.space.shape or ()))

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`."""
        flat = _flat(actions, self.space, "iu") - self.start
        _refuse(actions, (flat < 0) | (flat >= self.sizes), self.space)
        return flat.astype(np.int64)


class Bernoulli(Distribution):
    """Of ``MultiBinary``: each of D switches independent, a logit a switch."""

    def __init__(self, space: spaces.MultiBinary) -> None:
        super().__init__()
        self.space = space
        self.size = math.prod(space.shape)

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`."""
        noise = torch.rand(outputs.shape, dtype=outputs.dtype, generator=generator)
        return (noise.to(outputs.device) < outputs.sigmoid()).long()

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return (outputs > 0).long()

    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`Distribution.evaluate`."""
        normaliser = F.softplus(outputs)
        logp = (actions * outputs - normaliser).sum(-1)
        return logp, (normaliser - outputs * outputs.sigmoid()).sum(-1)

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        return actions.astype(self.space.dtype).reshape(-1, *self.space.shape)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`."""
        flat = _flat(actions, self.space, "iub")
        _refuse(actions, (flat != 0) & (flat != 1), self.space)
        return flat.astype(np.int64)


class Gaussian(Distribution):
    """Of ``Box``: a normal distribution a component, its standard deviation learnt and the same in every state.

    What is drawn may lie outside the space: it is clipped on its way to the environment, and its log-probability is
    that of the draw.

    Args:
        space: The space.
        log_std: The first logarithm of the standard deviation.
    """

    def __init__(self, space: spaces.Box, log_std: float = 0.0) -> None:
        super().__init__()
        self.space = space
        self.size = math.prod(space.shape)
        self.log_std = nn.Parameter(torch.full((self.size,), log_std))

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`."""
        noise = torch.randn(outputs.shape, dtype=outputs.dtype, generator=generator)
        return outputs + self.log_std.exp() * noise.to(outputs.device)

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return outputs

    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`Distribution.evaluate`; the entropy is the same everywhere, and may be negative."""
        distance = (actions - outputs) * (-self.log_std).exp()
        logp = -0.5 * distance.square().sum(-1) - (self.log_std + 0.5 * math.log(2 * math.pi)).sum()
        return logp, (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum().expand(logp.shape)

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        shaped = actions.astype(self.space.dtype).reshape(-1, *self.space.shape)
        return shaped.clip(self.space.low, self.space.high)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`; outside its bounds an action is learnt as it is."""
        flat = _flat(actions, self.space, "fiu")
        _refuse(actions, ~np.isfinite(flat), self.space)
        return flat.astype(np.float32)


def distribution_of(space: spaces.Space[Any], *, log_std: float = 0.0) -> Distribution:
    """Return what actions of ``space`` are drawn from.

    Args:
        space: ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a ``Box`` of floats.
        log_std: See :class:`Gaussian`.

    Raises:
        TypeError: The space is none of those.
    """
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return Categorical(space)
    if isinstance(space, spaces.MultiBinary):
        return Bernoulli(space)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return Gaussian(space, log_std)
    raise TypeError(f"actions must be Discrete, MultiDiscrete, MultiBinary or a Box of floats, got {space}")


def _flat(actions: np.ndarray, space: spaces.Space[Any], kinds: str) -> np.ndarray:
    size = math.prod(space.shape or ())
    array = np.asarray(actions)
    if array.dtype.kind not in kinds or array.shape[1:] != space.shape:
        raise ValueError(
            f"actions must be those of {space}, batched; got an array of {array.dtype} with the shape {array.shape}"
        )
    return array.reshape(-1, size)


def _refuse(actions: np.ndarray, wrong: np.ndarray, space: spaces.Space[Any]) -> None:
    if (rows := wrong.any(axis=-1)).any():
        raise ValueError(f"{np.asarray(actions)[rows.argmax()]!r} is no action of {space}")
