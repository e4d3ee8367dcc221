"""Segments: the decisions of one turn or of one episode, taken together.

Ratios, credit and means all ask for a level; this is the one place that says which decisions a level joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from tetrathlon.algos.columns import floating

Level = Literal["decision", "turn", "episode"]
"""What is taken as one: each decision, the decisions of a turn, those of an episode."""


@dataclass(frozen=True, slots=True)
class Segments:
    """A partition of the decisions of a batch into S segments."""

    mask: Tensor
    """bool [B, T], where there are decisions."""
    index: Tensor
    """int [N], the segment of each of the N decisions, in the order of ``mask``."""
    count: int
    """S."""

    @classmethod
    def of(cls, level: Level, mask: Tensor, *, episode: Tensor, turn: Tensor, source: Tensor | None = None) -> Segments:
        """Return the segments of a level.

        Args:
            level: See :data:`Level`.
            mask: bool [B, T].
            episode: int [B, T], which episode of its row; read at ``mask``.
            turn: int [B, T], which turn of its episode; read at ``mask``.
            source: int [B]: rows of one source hold parts of the same episodes, numbered alike; default: each row
                is a source of its own. A turn lies in one row.

        Raises:
            ValueError: The level is unknown.
        """
        row, position = mask.nonzero(as_tuple=True)
        if level == "decision":
            return cls(mask, torch.arange(len(row), device=mask.device), len(row))
        if level == "episode":
            name = _join(row if source is None else source[row], episode[row, position])
        elif level == "turn":
            name = _join(_join(row, episode[row, position]), turn[row, position])
        else:
            raise ValueError(f"level must be 'decision', 'turn' or 'episode', got {level!r}")
        found, index = torch.unique(name, return_inverse=True)
        return cls(mask, index, len(found))

    @property
    def size(self) -> Tensor:
        """How many decisions each segment holds, int [S]; never 0."""
        return torch.bincount(self.index, minlength=self.count)

    @property
    def first(self) -> Tensor:
        """Where the first decision of each segment is, bool [B, T]."""
        place = torch.arange(len(self.index), device=self.index.device)
        chosen = place.new_zeros(self.count).scatter_reduce(0, self.index, place, "amin", include_self=False)
        return self.mask.new_zeros(self.mask.shape).masked_scatter(self.mask, chosen[self.index] == place)

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum of ``x``, float [B, T] read at ``mask``, over each segment: float [S]."""
        x = floating(x)
        chosen = x[self.mask].double()  # added one by one: in float32 a long episode loses digits
        return chosen.new_zeros(self.count).index_add(0, self.index, chosen).to(x.dtype)

    def any(self, x: Tensor) -> Tensor:
        """Return whether ``x``, bool [B, T] read at ``mask``, holds anywhere in each segment: bool [S]."""
        return self.sum(x) > 0

    def spread(self, y: Tensor) -> Tensor:
        """Return ``y`` [S] at every decision of its segment: [B, T], 0 (False) where there is no decision."""
        return y.new_zeros(self.mask.shape).masked_scatter(self.mask, y[self.index])


def _join(outer: Tensor, inner: Tensor) -> Tensor:
    """Return one number, 0 or above, for each pair of numbers, both int [N] and 0 or above."""
    return outer * (int(inner.max()) + 1) + inner if len(inner) else outer
