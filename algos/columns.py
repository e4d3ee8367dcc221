"""Columns of decisions: the few operations that every formula is made of.

Shapes: B rows, T positions, K the most that a row keeps. Masks select, they never multiply: what stands outside a
mask may be NaN, and neither it nor its gradient gets anywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor


def floating(x: Tensor) -> Tensor:
    """Return ``x`` in float32 at least: a bfloat16 count stops at 256, and gamma .999 rounds to 1."""
    return x if x.dtype == torch.float64 else x.float()


def select(x: Tensor, mask: Tensor) -> Tensor:
    """Return ``x`` with 0 where ``mask`` is False; gradients there are exactly 0, whatever ``x`` was."""
    return torch.where(mask, x, torch.zeros((), dtype=x.dtype, device=x.device))


def compact(keep: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the kept positions of each row are.

    Args:
        keep: bool [B, T].

    Returns:
        index: int [B, K], the kept positions in order, 0 where a row has fewer than K.
        valid: bool [B, K], which of them are there.
    """
    count = keep.sum(dim=1)
    longest = int(count.max()) if count.numel() else 0
    order = torch.argsort((~keep).to(torch.int8), dim=1, stable=True)[:, :longest]
    valid = torch.arange(longest, device=keep.device) < count[:, None]
    return torch.where(valid, order, 0), valid


def scatter(compacted: Tensor, index: Tensor, valid: Tensor, shape: torch.Size) -> Tensor:
    """Put compacted columns back in their places, with 0 elsewhere.

    Args:
        compacted: float [B, K].
        index: int [B, K], as :func:`compact` gives it.
        valid: bool [B, K], which of them to put back.
        shape: (B, T).

    Returns:
        float [B, T].
    """
    full = compacted.new_zeros(shape)
    rows = torch.arange(shape[0], device=index.device)[:, None].expand_as(index)
    full[rows[valid], index[valid]] = compacted[valid]
    return full
