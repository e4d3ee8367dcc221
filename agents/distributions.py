"""What an action of a control policy is drawn from, one class a kind of action space.

Shapes: N slots or any leading dimensions, P parameters that a network gives, D components of an action.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

_LOG_STD = (-20.0, 2.0)
_ROUNDING = 1e-6


class Distribution(nn.Module):
    """A family of distributions over the actions of a space.

    Actions inside are tensors [..., D], as they were drawn; :meth:`to_env` makes of them what an environment takes.

    What is no distribution but says what to do all the same (a regression, a flow) has no density: it gives a
    :meth:`loss` instead, by which it imitates.

    Attributes:
        size: P, how many numbers the network gives for an action.
        has_density: Whether there are log-probabilities.
        log_unit: What a log-density grows by where actions are told by their :meth:`numbers`.
        chunk: K, of a chunk of K actions, whose log-probabilities and entropies are [..., K]; 0: an action is one.
    """

    size: int
    log_unit: float = 0.0
    has_density: ClassVar[bool] = True
    chunk: int = 0

    @abstractmethod
    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """Draw actions [..., D] for outputs [..., P]; the noise comes from a generator on the CPU."""

    @abstractmethod
    def mode(self, outputs: Tensor) -> Tensor:
        """Return the most likely actions [..., D]."""

    @abstractmethod
    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Return the log-probabilities of ``actions``, [...], in nats."""

    @abstractmethod
    def entropy(self, outputs: Tensor) -> Tensor:
        """Return the entropies, [...], in nats."""

    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of ``actions`` and the entropies, both [...], in nats."""
        return self.log_prob(outputs, actions), self.entropy(outputs)

    def loss(self, outputs: Tensor, actions: Tensor, generator: torch.Generator) -> Tensor:
        """Return how far what is said is from ``actions`` [..., D], as [...]; the noise comes from a generator."""
        raise TypeError(f"{type(self).__name__} imitates by its log-probabilities")

    @abstractmethod
    def numbers(self, actions: Tensor) -> Tensor:
        """Return what the environment will take of actions [..., D], as a critic reads it: float [..., E].

        A choice is a one-hot; numbers with bounds are brought to -1 to 1. Where draws have a gradient, so has this.
        """

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

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.log_prob`."""
        parts = zip(outputs.split(self.sizes, -1), actions.split(1, -1), strict=True)
        logps = [logits.log_softmax(-1).gather(-1, action)[..., 0] for logits, action in parts]
        return sum(logps[1:], logps[0])

    def entropy(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.entropy`."""
        logps = [logits.log_softmax(-1) for logits in outputs.split(self.sizes, -1)]
        entropies = [-(logp.exp() * logp).sum(-1) for logp in logps]
        return sum(entropies[1:], entropies[0])

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        choices = zip(actions.unbind(-1), self.sizes, strict=True)
        return torch.cat([F.one_hot(chosen, size) for chosen, size in choices], dim=-1).float()

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        return (actions + self.start).astype(self.space.dtype).reshape(-1, *(self.space.shape or ()))

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`."""
        flat = flat_rows(actions, self.space, "iu") - self.start
        refuse_rows(actions, (flat < 0) | (flat >= self.sizes), self.space)
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

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.log_prob`."""
        return (actions * outputs - F.softplus(outputs)).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.entropy`."""
        return (F.softplus(outputs) - outputs * outputs.sigmoid()).sum(-1)

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        return actions.float()

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        return actions.astype(self.space.dtype).reshape(-1, *self.space.shape)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`."""
        flat = flat_rows(actions, self.space, "iub")
        refuse_rows(actions, (flat != 0) & (flat != 1), self.space)
        return flat.astype(np.int64)


class Gaussian(Distribution):
    """Of ``Box``: a normal distribution a component.

    What is drawn may lie outside the space: it is clipped on its way to the environment, and its log-probability is
    that of the draw.

    Args:
        space: The space.
        log_std: The first logarithm of the standard deviation.
        state_std: Whether the network gives the standard deviation, too, within e**-20 and e**2 (as in SAC: Haarnoja
            et al., 2018); else it is learnt and the same in every state.
    """

    log_std: Tensor
    middles: Tensor
    halves: Tensor
    reach: Tensor

    def __init__(self, space: spaces.Box, log_std: float = 0.0, *, state_std: bool = False) -> None:
        super().__init__()
        self.space = space
        self.state_std = state_std
        components = math.prod(space.shape)
        for name, constant in zip(("middles", "halves", "reach"), frame_of(space), strict=True):
            self.register_buffer(name, torch.tensor(constant, dtype=torch.float32), persistent=False)
        self.log_unit = float(self.halves.log().sum())
        self.size = 2 * components if state_std else components
        first = torch.full((components,), float(log_std))
        if state_std:
            self.register_buffer("log_std", first, persistent=False)
        else:
            self.log_std = nn.Parameter(first)

    def parameters_of(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means, [..., D], and the logarithms of the standard deviations, [D] or [..., D]."""
        if not self.state_std:
            return outputs, self.log_std
        mean, log_std = outputs.chunk(2, dim=-1)
        return mean, (self.log_std + log_std).clamp(*_LOG_STD)

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`."""
        mean, log_std = self.parameters_of(outputs)
        noise = torch.randn(mean.shape, dtype=mean.dtype, generator=generator)
        return mean + log_std.exp() * noise.to(mean.device)

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return self.parameters_of(outputs)[0]

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.log_prob`."""
        mean, log_std = self.parameters_of(outputs)
        distance = (actions - mean) * (-log_std).exp()
        return -0.5 * distance.square().sum(-1) - (log_std + 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.entropy`; it may be negative."""
        _, log_std = self.parameters_of(outputs)
        return (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1).expand(outputs.shape[:-1])

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        return ((actions - self.middles) / self.halves).clamp(-self.reach, self.reach)

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        shaped = actions.astype(self.space.dtype).reshape(-1, *self.space.shape)
        return shaped.clip(self.space.low, self.space.high)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`; outside its bounds an action is learnt as it is."""
        flat = flat_rows(actions, self.space, "fiu")
        refuse_rows(actions, ~np.isfinite(flat), self.space)
        return flat.astype(np.float32)


class SquashedGaussian(Gaussian):
    """Of a bounded ``Box``: the hyperbolic tangent of a normal draw, brought to the bounds (Haarnoja et al., 2018, C).

    Actions inside are the normal draws u: where tanh has rounded to 1 they cannot be had back from what it gave. The
    density is that of the action in the environment, low + (high - low) (tanh u + 1) / 2; the mode is that of the
    normal distribution, which becomes the median.

    The entropy has no closed form; it is that of the normal distribution and the mean of the logarithm of the slope,
    by Gauss-Hermite quadrature with 16 nodes a component, which draws nothing and has a gradient.

    Args:
        space: The space.
        log_std: See :class:`Gaussian`.
        state_std: See there.

    Raises:
        ValueError: The space has no finite bounds, or a component has but one value.
    """

    nodes: Tensor
    weights: Tensor

    def __init__(self, space: spaces.Box, log_std: float = 0.0, *, state_std: bool = False) -> None:
        super().__init__(space, log_std, state_std=state_std)
        self._low, self._half = bounds_of(space, "a squashed action needs")
        nodes, weights = np.polynomial.hermite_e.hermegauss(16)
        constants = {"nodes": nodes, "weights": weights / weights.sum()}
        for name, values in constants.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32), persistent=False)

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.log_prob`."""
        return super().log_prob(outputs, actions) - self._log_slope(actions).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.entropy`."""
        mean, log_std = self.parameters_of(outputs)
        points = mean[..., None, :] + log_std.exp()[..., None, :] * self.nodes[:, None]  # [..., nodes, D]
        return super().entropy(outputs) + (self._log_slope(points).sum(-1) * self.weights).sum(-1)

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        return actions.tanh()

    def _log_slope(self, u: Tensor) -> Tensor:
        """Return log(half_width (1 - tanh(u)**2)), finite and with a gradient for every u."""
        return self.halves.log() + 2 * (math.log(2) - u - F.softplus(-2 * u))

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        flat = self._low + self._half * (np.tanh(actions.astype(np.float64)) + 1)
        shaped = flat.astype(self.space.dtype).reshape(-1, *self.space.shape)
        return shaped.clip(self.space.low, self.space.high)  # what rounding took out

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`; what is at a bound is taken for the action just inside."""
        flat = flat_rows(actions, self.space, "fiu")
        inside = (flat - self._low) / self._half - 1
        refuse_rows(actions, ~(np.abs(inside) <= 1 + _ROUNDING), self.space)
        return np.arctanh(inside.clip(-1 + _ROUNDING, 1 - _ROUNDING)).astype(np.float32)


def distribution_of(
    space: spaces.Space[Any], *, log_std: float = 0.0, squash: bool = False, state_std: bool = False
) -> Distribution:
    """Return what actions of ``space`` are drawn from.

    Args:
        space: ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a ``Box`` of floats.
        log_std: See :class:`Gaussian`.
        squash: Whether it is a :class:`SquashedGaussian`.
        state_std: See :class:`Gaussian`.

    Raises:
        TypeError: The space is none of those, or an option is of a ``Box`` and the space is another.
        ValueError: A squashed space has no bounds.
    """
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return (SquashedGaussian if squash else Gaussian)(space, log_std, state_std=state_std)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        if squash or state_std:
            raise TypeError(f"squash={squash} and state_std={state_std} are of a Box of floats, got {space}")
        return Bernoulli(space) if isinstance(space, spaces.MultiBinary) else Categorical(space)
    raise TypeError(f"actions must be Discrete, MultiDiscrete, MultiBinary or a Box of floats, got {space}")


def bounds_of(space: spaces.Box, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower bounds and half the widths of a space, float64 [D].

    Args:
        space: The space.
        what: Who needs them, for the message.

    Raises:
        ValueError: The bounds are not finite, or a number has but one value.
    """
    low = space.low.astype(np.float64).ravel()
    half = (space.high.astype(np.float64).ravel() - low) / 2
    if not (np.isfinite(low) & np.isfinite(half) & (half > 0)).all():
        raise ValueError(f"{what} finite bounds, low below high; got {space}")
    return low, half


def frame_of(space: spaces.Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what brings the numbers of a space to -1 to 1.

    Returns:
        Middles, half widths, and 1 each; where there are no bounds 0, 1 and infinity. All float64 [D].
    """
    low, high = (bound.astype(np.float64).ravel() for bound in (space.low, space.high))
    is_bounded = np.isfinite(low) & np.isfinite(high) & (high > low)
    low, high = np.where(is_bounded, low, -1.0), np.where(is_bounded, high, 1.0)
    return (low + high) / 2, (high - low) / 2, np.where(is_bounded, 1.0, np.inf)


def flat_rows(actions: np.ndarray, space: spaces.Space[Any], kinds: str) -> np.ndarray:
    """Return actions of a space, batched, as [N, D].

    Args:
        actions: N actions.
        space: Of one.
        kinds: Which kinds of numbers they may be, as the letters that NumPy has for them.

    Raises:
        ValueError: They are of another kind or shape.
    """
    size = math.prod(space.shape or ())
    array = np.asarray(actions)
    if array.dtype.kind not in kinds or array.shape[1:] != space.shape:
        raise ValueError(
            f"actions must be those of {space}, batched; got an array of {array.dtype} with the shape {array.shape}"
        )
    return array.reshape(-1, size)


def refuse_rows(actions: np.ndarray, wrong: np.ndarray, space: spaces.Space[Any]) -> None:
    """Raise where something is no action of a space.

    Args:
        actions: N actions.
        wrong: bool [N, D].
        space: Of one.

    Raises:
        ValueError: ``wrong`` is true somewhere.
    """
    if (rows := wrong.any(axis=-1)).any():
        raise ValueError(f"{np.asarray(actions)[rows.argmax()]!r} is no action of {space}")
