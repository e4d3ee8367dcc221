"""Numbers brought to mean 0 and deviation 1 by what was seen of them so far."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_EPS = 1e-8


class RunningNorm(nn.Module):
    """Normalises rows of numbers by their running mean and variance.

    Statistics are those of all rows that were gathered, exact and in float64: sums of squares about the mean, joined
    as in Chan et al., 1979. What is gathered waits until :meth:`fold`, so that whoever draws actions and evaluates
    them later does both by the same statistics. All of it is part of the state.

    Args:
        size: F, how many numbers a row has.
        clip: Largest magnitude of what comes out.

    Attributes:
        due: bool, whether an update has begun since the last :meth:`fold`: time for another before the next action.
        settled: bool, whether the statistics are those of :meth:`settle`.
    """

    due: Tensor
    settled: Tensor
    count: Tensor
    mean: Tensor
    squares: Tensor
    shift: Tensor
    scale: Tensor
    new_count: Tensor
    new_mean: Tensor
    new_squares: Tensor

    def __init__(self, size: int, clip: float = 10.0) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("due", torch.zeros((), dtype=torch.bool))
        self.register_buffer("settled", torch.zeros((), dtype=torch.bool))
        for prefix in ("", "new_"):
            self.register_buffer(f"{prefix}count", torch.zeros((), dtype=torch.float64))
            for name in ("mean", "squares"):
                self.register_buffer(prefix + name, torch.zeros(size, dtype=torch.float64))
        self.register_buffer("shift", torch.zeros(size))  # in the precision of the network, made anew by fold
        self.register_buffer("scale", torch.ones(size))

    def forward(self, rows: Tensor) -> Tensor:
        """Return ``rows``, float [..., F], normalised; before the first :meth:`fold` only clipped."""
        return ((rows - self.shift) * self.scale).clamp_(-self.clip, self.clip)

    @torch.no_grad()
    def gather(self, rows: Tensor) -> None:
        """Take note of ``rows``, [N, F]."""
        if not len(rows):
            return
        wide = rows.to(self.new_mean)
        mean = wide.mean(dim=0)
        found = (torch.full_like(self.count, len(rows)), mean, (wide - mean).square().sum(dim=0))
        _put((self.new_count, self.new_mean, self.new_squares), found)

    def settle(self, rows: Tensor) -> None:
        """Let the statistics be those of ``rows``, [N, F], whatever was gathered before."""
        for value in (self.count, self.mean, self.squares, self.new_count, self.new_mean, self.new_squares):
            value.zero_()
        self.gather(rows)
        self.fold()
        self.settled.fill_(True)

    @torch.no_grad()
    def fold(self) -> None:
        """Let what was gathered count."""
        self.due.fill_(False)
        if not self.new_count:
            return
        _put((self.count, self.mean, self.squares), (self.new_count, self.new_mean, self.new_squares))
        for waiting in (self.new_count, self.new_mean, self.new_squares):
            waiting.zero_()
        self.shift.copy_(self.mean)
        self.scale.copy_((self.squares / self.count + _EPS).rsqrt())


def _put(known: tuple[Tensor, Tensor, Tensor], more: tuple[Tensor, Tensor, Tensor]) -> None:
    """Join two samples, each of which is told by count, mean and squares about it, into the first."""
    count, mean, squares = known
    other_count, other_mean, other_squares = more
    total = count + other_count
    apart = other_mean - mean
    mean += apart * (other_count / total)
    squares += other_squares + apart.square() * (count * other_count / total)
    count.copy_(total)
