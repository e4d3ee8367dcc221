"""Pieces of rows: what is dealt to minibatches where a row is too long a run of like decisions."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from torch import Tensor
from torch.nn import functional

from tetrathlon.agents.decisions import Decisions


def pieces(batch: Decisions, length: int, *, keep: Tensor | None = None) -> Decisions:
    """Cut the rows of a batch into pieces, each a row and a group of its own; those without a decision are left out.

    Args:
        batch: With all that needs whole rows done: returns, advantages. Its inputs are a dict of [B, T, ...].
        length: Positions of a piece; the last one of a row may be padded.
        keep: bool [B, T]: pieces without such a position are left out; None: the decisions.

    Raises:
        ValueError: ``length`` is below 1.
    """
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")
    positions = batch.mask.shape[1]
    count = -(-positions // length)

    def cut(column: Tensor) -> Tensor:
        padding = [0, 0] * (column.ndim - 2) + [0, count * length - positions]
        padded = functional.pad(column, padding) if padding[-1] else column
        return padded.reshape(len(batch) * count, length, *column.shape[2:])

    columns = {
        column.name: cut(value) if value.ndim > 1 else value.repeat_interleave(count)
        for column in fields(batch)
        if column.name != "inputs" and (value := getattr(batch, column.name)) is not None
    }
    columns["group"] = torch.arange(len(columns["mask"]), device=batch.mask.device)
    columns["cost"] = torch.full_like(columns["cost"], length)
    whole = replace(batch, **columns, inputs={name: cut(value) for name, value in batch.inputs.items()})
    return whole.select((whole.mask if keep is None else cut(keep)).any(dim=1))
