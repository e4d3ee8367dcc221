"""Rows whose past was written anew on the way, as what a model reads: one row a context."""

from __future__ import annotations

import torch
from torch import Tensor


def contexts(fresh: Tensor, *columns: Tensor) -> tuple[Tensor, ...]:
    """Cut rows where a context begins, so that no position is read after what is not before it.

    The positions of all contexts, in order, are those of the rows, in order: what is read at chosen ones needs no
    sorting.

    Args:
        fresh: bool [B, T], where a context begins, beside the first position of each row.
        *columns: [B, T].

    Returns:
        The columns as [C, L], one row a context, with 0 behind its end.
    """
    rows, length = fresh.shape
    begins = fresh.clone()
    begins[:, 0] = True
    row, start = begins.nonzero(as_tuple=True)
    flat = row * length + start
    end = torch.cat([flat[1:], flat.new_tensor([rows * length])])
    place = torch.arange(int((end - flat).max()), device=fresh.device)
    at = flat[:, None] + place
    inside = at < end[:, None]
    at = at.clamp(max=rows * length - 1)
    return tuple(column.flatten()[at].masked_fill(~inside, 0) for column in columns)
