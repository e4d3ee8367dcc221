"""The output layer of a language model: in float32, and only where its logits are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@contextmanager
def output_layer(model: Any, select: Tensor | None = None, *, skip: bool = False) -> Iterator[list[Tensor]]:
    """Change how a model computes its logits, for the time of the context.

    The output layer of a 16-bit model, and any under autocast, is computed in float32: bfloat16 logits near 20 are
    0.1 apart. Only a plain linear layer is; one that LoRA or quantisation changed stays as it is.

    Args:
        model: A transformers causal language model.
        select: int [N]: the logits at these of the B * L positions alone are computed, as [N, V]; what the model does
            with them afterwards (scaling, capping) is done to these. None: of all that the model asks for.
        skip: Hand the hidden states on in place of the logits, in float32.

    Yields:
        A list that receives the hidden states which the layer reads, of each forward pass.
    """
    head: Any = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None:
        if select is not None:
            raise TypeError(f"{type(model).__name__} has no output layer that get_output_embeddings() gives")
        yield []
        return
    is_narrow = is_plain(head) and head.weight.dtype in (torch.bfloat16, torch.float16)
    read: list[Tensor] = []
    own = vars(head).get("forward")  # another hook's, on the instance
    forward = head.forward
    wide = _widened(head) if is_narrow and not torch.is_grad_enabled() else None  # once for a whole generation

    def compute(hidden: Tensor) -> Tensor:
        if select is not None:
            hidden = hidden.flatten(0, 1)[select]
        read.append(hidden)
        if skip:
            return hidden.float()
        if not is_plain(head):
            return forward(hidden)
        with torch.autocast(hidden.device.type, enabled=False):
            return F.linear(hidden.float(), *(wide or _widened(head)))

    vars(head)["forward"] = compute
    try:
        yield read
    finally:
        del vars(head)["forward"]
        if own is not None:
            vars(head)["forward"] = own


def is_plain(head: Any) -> bool:
    """Whether an output layer is a linear one that nothing was wrapped around."""
    return type(head) is nn.Linear


@torch.no_grad()
def is_bare(model: Any) -> bool:
    """Whether the logits of a model are those of a plain output layer, with nothing done to them afterwards.

    The model itself is asked: where the hidden state of a token comes out in place of its logits, nothing is.
    """
    if not is_plain(model.get_output_embeddings()):
        return False
    token = torch.ones(1, 1, dtype=torch.long, device=next(model.parameters()).device)
    with output_layer(model, token.new_zeros(1), skip=True) as read:
        out = model(input_ids=token, use_cache=False)
    return torch.equal(out.logits.float(), read[0].float())


def _widened(head: nn.Linear) -> tuple[Tensor, Tensor | None]:
    return head.weight.float(), None if head.bias is None else head.bias.float()
