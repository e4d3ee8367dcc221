"""What a chunk of actions is drawn from, or said by: the heads of a vision-language-action policy.

Shapes: N slots or any leading dimensions, K actions of a chunk, A numbers of an action, D = K A, P parameters that a
network gives.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from tetrathlon.agents.distributions import Distribution, Gaussian, bounds_of, flat_rows, frame_of, refuse_rows
from tetrathlon.agents.networks import perceptron

Head = Literal["gaussian", "bins", "l1", "flow"]
"""How a chunk is decided. ``gaussian``: a normal distribution a number; ``bins``: a choice among bins a number; both
have log-probabilities. ``l1``: a regression (ACT: Zhao et al., 2023); ``flow``: flow matching (pi0: Black et al.,
2024); both only imitate."""


class Chunk(Distribution):
    """K actions, each by itself: what one is drawn from, K times, with parameters of their own.

    Args:
        of: What one action is drawn from.
        space: Of a chunk, [K, A], or of an action alone.
        length: K.
    """

    def __init__(self, of: Distribution, space: spaces.Box, length: int) -> None:
        super().__init__()
        self.of, self.space, self.chunk = of, space, length
        self.size, self.log_unit = self.chunk * of.size, self.chunk * of.log_unit

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`."""
        return self.of.sample(self._each(outputs), generator).flatten(-2)

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return self.of.mode(self._each(outputs)).flatten(-2)

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Return the log-probability of each action of the chunks, [..., K]."""
        return self.of.log_prob(self._each(outputs), self._each(actions))

    def entropy(self, outputs: Tensor) -> Tensor:
        """Return the entropy of each action of the chunks, [..., K]."""
        return self.of.entropy(self._each(outputs))

    def evaluate(self, outputs: Tensor, actions: Tensor, executed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of what was executed, and the entropies, both [...].

        Args:
            outputs: [..., P].
            actions: [..., D].
            executed: int [...], how many actions of each chunk count, from the first on; None: all.
        """
        columns = self.log_prob(outputs, actions), self.entropy(outputs)
        if executed is None:
            return columns[0].sum(-1), columns[1].sum(-1)
        counts = torch.arange(self.chunk, device=executed.device) < executed[..., None]
        return columns[0].where(counts, 0.0).sum(-1), columns[1].where(counts, 0.0).sum(-1)

    def _each(self, flat: Tensor) -> Tensor:
        return flat.unflatten(-1, (self.chunk, -1))

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        return self.of.numbers(self._each(actions)).flatten(-2)

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        return self.of.to_env(actions.reshape(len(actions) * self.chunk, -1)).reshape(-1, *self.space.shape)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`."""
        flat = flat_rows(actions, self.space, "fiu")
        return self.of.from_env(flat.reshape(len(flat) * self.chunk, -1)).reshape(len(flat), -1)


class Bins(Distribution):
    """Of a bounded ``Box``: a choice among equal bins a number (RT-1: Brohan et al., 2022), whose centre is done.

    The network gives an embedding a number, which all share the way from to logits. That begins as cosines, so that
    neighbouring bins are alike before anything is learnt.

    Args:
        space: Of an action.
        bins: How many bins there are between the bounds.
        width: Size of an embedding.

    Raises:
        ValueError: The space has no finite bounds, or there are fewer than 2 bins.
    """

    def __init__(self, space: spaces.Box, bins: int = 256, width: int = 32) -> None:
        super().__init__()
        if bins < 2:
            raise ValueError(f"bins must be at least 2, got {bins!r}")
        self.space, self.bins = space, bins
        self._low, self._half = bounds_of(space, "bins need")
        self.size = math.prod(space.shape) * width
        self._width = width
        self.logits = nn.Linear(width, bins)
        centres = (torch.arange(bins) + 0.5) / bins
        with torch.no_grad():
            self.logits.weight.copy_(torch.cos(math.pi * centres[:, None] * torch.arange(1, width + 1)))
            self.logits.bias.zero_()

    def _logp(self, outputs: Tensor) -> Tensor:
        """Return log-probabilities [..., D, bins]."""
        return self.logits(outputs.unflatten(-1, (-1, self._width))).log_softmax(-1)

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`; the largest logit after Gumbel noise is a draw."""
        logp = self._logp(outputs)
        noise = torch.empty(logp.shape, dtype=logp.dtype).exponential_(generator=generator)
        return (logp - noise.log_().to(logp.device)).argmax(-1)

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return self._logp(outputs).argmax(-1)

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.log_prob`."""
        return self._logp(outputs).gather(-1, actions[..., None])[..., 0].sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.entropy`; of the choice, not of the number."""
        logp = self._logp(outputs)
        return -(logp.exp() * logp).sum((-1, -2))

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        return (2 * actions + 1) / self.bins - 1

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`."""
        flat = self._low + self._half * (2 * actions + 1) / self.bins
        return flat.astype(self.space.dtype).reshape(-1, *self.space.shape)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`; what is outside the bounds goes into the last bin."""
        flat = flat_rows(actions, self.space, "fiu").astype(np.float64)
        refuse_rows(actions, ~np.isfinite(flat), self.space)
        bins = np.floor((flat - self._low) / self._half * self.bins / 2)
        return bins.clip(0, self.bins - 1).astype(np.int64)


class _Direct(Distribution):
    """What says a chunk without a density; bounded numbers are brought to -1 to 1 inside."""

    has_density: ClassVar[bool] = False
    name: ClassVar[str]
    reach: Tensor

    def __init__(self, space: spaces.Box) -> None:
        super().__init__()
        self.space = space
        self._middle, self._half, reach = frame_of(space)
        self.register_buffer("reach", torch.tensor(reach, dtype=torch.float32), persistent=False)

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Refuse: there is no density.

        Raises:
            TypeError: Always.
        """
        raise self._refusal()

    def entropy(self, outputs: Tensor) -> Tensor:
        """Refuse: there is no density.

        Raises:
            TypeError: Always.
        """
        raise self._refusal()

    def _refusal(self) -> TypeError:
        return TypeError(
            f"head={self.name!r} has no density, so there are no log-probabilities to learn by: train it by BC or "
            "DAgger, or take head='gaussian' or 'bins'"
        )

    def numbers(self, actions: Tensor) -> Tensor:
        """See :meth:`Distribution.numbers`."""
        return actions.clamp(-self.reach, self.reach)

    def to_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.to_env`; what is outside the bounds is clipped."""
        flat = self._middle + self._half * actions.astype(np.float64)
        shaped = flat.astype(self.space.dtype).reshape(-1, *self.space.shape)
        return shaped.clip(self.space.low, self.space.high)

    def from_env(self, actions: np.ndarray) -> np.ndarray:
        """See :meth:`Distribution.from_env`; outside its bounds an action is learnt as it is."""
        flat = flat_rows(actions, self.space, "fiu")
        refuse_rows(actions, ~np.isfinite(flat), self.space)
        return ((flat - self._middle) / self._half).astype(np.float32)


class L1(_Direct):
    """The median of a chunk, number by number, by absolute errors (ACT: Zhao et al., 2023, without its latent)."""

    name = "l1"

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space)
        self.size = math.prod(space.shape)

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """Return what is said: there is nothing to draw."""
        return outputs

    def mode(self, outputs: Tensor) -> Tensor:
        """See :meth:`Distribution.mode`."""
        return outputs

    def loss(self, outputs: Tensor, actions: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean absolute error, [...]."""
        return (outputs - actions).abs().mean(-1)


class Flow(_Direct):
    r"""Chunks that flow from noise to what is done (flow matching: Lipman et al., 2023; pi0: Black et al., 2024, IV).

    A network learns the velocity of straight ways, :math:`v(x_t, t) = a - \epsilon` at
    :math:`x_t = (1 - t) \epsilon + t a` for t from 0 to 1 alike; a draw follows it from noise in Euler's steps.

    Args:
        space: Of a chunk.
        steps: Euler's steps of a draw.
        width: P, size of what the velocity is told of the observation, and of its layers.

    Raises:
        ValueError: There is no step.
    """

    name = "flow"
    _draws = 4  # times and noises a chunk and loss: the velocity costs little beside what sees
    _waves = 4  # sines and cosines that tell the time

    def __init__(self, space: spaces.Box, steps: int = 10, width: int = 256) -> None:
        super().__init__(space)
        if steps < 1:
            raise ValueError(f"flow_steps must be at least 1, got {steps!r}")
        self.steps, self.size = steps, width
        self._count = math.prod(space.shape)
        sizes = [width + self._count + 2 * self._waves, width, width, self._count]
        self.velocity = perceptron(sizes, gain=1.0, activation="silu")

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See :meth:`Distribution.sample`."""
        noise = torch.randn((*outputs.shape[:-1], self._count), dtype=outputs.dtype, generator=generator)
        return self._flown(noise.to(outputs.device), outputs)

    def mode(self, outputs: Tensor) -> Tensor:
        """Return where the middle of the noise flows to."""
        return self._flown(outputs.new_zeros(*outputs.shape[:-1], self._count), outputs)

    def _flown(self, x: Tensor, outputs: Tensor) -> Tensor:
        for step in range(self.steps):
            x = x + self._velocity(x, x.new_full((*x.shape[:-1], 1), step / self.steps), outputs) / self.steps
        return x

    def _velocity(self, x: Tensor, time: Tensor, outputs: Tensor) -> Tensor:
        angles = time * math.pi * torch.arange(1, self._waves + 1, device=x.device)
        return self.velocity(torch.cat([outputs, x, angles.sin(), angles.cos()], dim=-1))

    def loss(self, outputs: Tensor, actions: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean squared error of the velocity, [...]."""
        shape = (self._draws, *actions.shape)
        noise = torch.randn(shape, generator=generator).to(actions)
        time = torch.rand((*shape[:-1], 1), generator=generator).to(actions)
        told = outputs.expand(self._draws, *outputs.shape)
        found = self._velocity((1 - time) * noise + time * actions, time, told)
        return F.mse_loss(found, actions - noise, reduction="none").mean((0, -1))


def head_of(
    space: spaces.Space[Any], head: Head, *, log_std: float, state_std: bool, bins: int, flow_steps: int
) -> Distribution:
    """Return what chunks of ``space`` are drawn from, or said by.

    Args:
        space: ``Box`` of floats: [K, A], or [A], which is a chunk of one.
        head: See :data:`Head`.
        log_std: See :class:`~tetrathlon.agents.distributions.Gaussian`.
        state_std: See there.
        bins: See :class:`Bins`.
        flow_steps: See :class:`Flow`.

    Raises:
        TypeError: The space is no such ``Box``, or its actions have different bounds.
        ValueError: An option is out of range, or bins need bounds.
    """
    if not (isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and 1 <= len(space.shape) <= 2):
        raise TypeError(f"actions must be a Box of floats, [A] or in chunks [K, A]; got {space}")
    if head == "l1":
        return L1(space)
    if head == "flow":
        return Flow(space, flow_steps)
    low, high = (bound.reshape(-1, space.shape[-1]) for bound in (space.low, space.high))
    if (low != low[0]).any() or (high != high[0]).any():
        raise TypeError(f"the actions of a chunk must have the same bounds; got {space}")
    one = spaces.Box(low[0], high[0], dtype=space.dtype.type)
    return Chunk(Bins(one, bins) if head == "bins" else Gaussian(one, log_std, state_std=state_std), space, len(low))
