"""What a causal language model says of given ids: log-probability, entropy and hidden state at chosen positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from tetrathlon.agents.head import is_bare, output_layer
from tetrathlon.agents.intake import Intake
from tetrathlon.agents.picture import Picture
from tetrathlon.agents.sight import Sight
from tetrathlon.agents.trees import Trees, plant

_CELLS = {"cpu": 6_000_000}
"""Logits that are looked at in one go. 24 MB is what a CPU's allocator still keeps for the next of them: a
page that is given back costs more to get again than to compute with."""
_CELLS_ELSEWHERE = 100_000_000


class TokenStatistics(torch.autograd.Function):
    """Log-probabilities of ids and entropies of their distributions, out of hidden states or logits.

    The output layer is part of it: beside the probabilities there is never an array of the size of all logits, and
    none is passed over that need not be. A distribution that several ids are drawn from is computed once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        source: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        rows: Tensor,
        ids: Tensor,
        temperature: float,
        keep: bool,
    ) -> tuple[Tensor, Tensor]:
        """Compute in float32, also under autocast.

        Args:
            ctx: Of autograd.
            source: float [U, H], hidden states before the output layer; or [U, V], logits, where there is no weight.
            weight: float [V, H] of the output layer, or None.
            bias: float [V] of the output layer, or None.
            rows: int [N]: which of the U distributions an id was drawn from.
            ids: int [N].
            temperature: Divides the logits.
            keep: Whether there will be a backward pass.

        Returns:
            Log-probabilities [N] of the ids, and entropies [N] of their distributions.
        """
        logp, entropy = (
            source.new_empty(len(ids), dtype=torch.float32),
            source.new_empty(len(source), dtype=torch.float32),
        )
        wide = None if weight is None else weight.float()
        kept = []
        with torch.autocast(source.device.type, enabled=False):
            for part in _parts(source, weight):
                logits = source[part].float()
                # Either way a fresh array: what follows is done in place.
                logits = logits / temperature if wide is None else torch.mm(logits, wide.t())
                if bias is not None:
                    logits += bias
                if wide is not None and temperature != 1:
                    logits /= temperature
                logits -= logits.amax(-1, keepdim=True)
                here = ((rows >= part.start) & (rows < part.stop)).nonzero()[:, 0]
                chosen = logits[rows[here] - part.start, ids[here]]
                p = logits.softmax(-1)
                rest = p.amax(-1).log()  # less the logarithm of the sum of what is exponentiated
                logp[here] = chosen + rest[rows[here] - part.start]
                # A forbidden token (-inf) has probability 0 and no share in the entropy.
                entropy[part] = -rest - logits.clamp_(min=torch.finfo(torch.float32).min).mul_(p).sum(-1)
                if keep:
                    kept.append(p)
        ctx.save_for_backward(source, weight, rows, ids, entropy, *kept)
        ctx.set_materialize_grads(False)
        ctx.temperature = temperature
        return logp, entropy[rows]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """With p the softmax and H the entropy: d logp_i = 1[i] - p, d H = -p (log p + H)."""
        source, weight, rows, ids, entropy, *kept = ctx.saved_tensors
        of_logp, of_entropy = grads
        wide = None if weight is None else weight.float()
        of_source = torch.empty_like(source, dtype=torch.float32)
        of_weight = torch.zeros_like(wide) if wide is not None and ctx.needs_input_grad[1] else None
        of_bias = None
        for part, p in zip(_parts(source, weight), kept, strict=True):
            here = ((rows >= part.start) & (rows < part.stop)).nonzero()[:, 0]
            of_row = entropy.new_zeros(len(p))
            if of_logp is not None:
                of_row.index_add_(0, rows[here] - part.start, of_logp[here])
            slope = p * of_row.neg_()[:, None]
            if of_logp is not None:
                slope.index_put_((rows[here] - part.start, ids[here]), of_logp[here], accumulate=True)
            if of_entropy is not None:
                of_row = of_row.zero_().index_add_(0, rows[here] - part.start, of_entropy[here])
                slope -= (torch.special.xlogy(p, p) + p * entropy[part, None]) * of_row[:, None]
            if ctx.temperature != 1:
                slope /= ctx.temperature
            if wide is None:
                of_source[part] = slope
                continue
            torch.mm(slope, wide, out=of_source[part])
            if of_weight is not None:
                of_weight.addmm_(slope.t(), source[part].float())
            if ctx.needs_input_grad[2]:
                of_bias = slope.sum(0) if of_bias is None else of_bias + slope.sum(0)
        found = (of_source.to(source.dtype), None if of_weight is None else of_weight.to(weight.dtype), of_bias)
        return *found, None, None, None, None


def _parts(source: Tensor, weight: Tensor | None) -> list[slice]:
    """Cut the U distributions into runs of rows."""
    count, width = len(source), (source if weight is None else weight.t()).shape[1]
    step = max(1, _CELLS.get(source.device.type, _CELLS_ELSEWHERE) // width)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


class Scorer:
    """Reads rows of ids with gradients.

    What rows begin with alike (the prompt of G answers, the system prompt of all) is read once, and short rows stand
    beside each other in one: see :mod:`~tetrathlon.agents.trees`. So do all that a model with full attention in
    every layer allows; other models read each row as it is.

    Args:
        model: A transformers causal language model.
        sight: How it takes pictures; None: it takes none.
    """

    def __init__(self, model: Any, sight: Sight | None = None) -> None:
        self.model = model
        self.sight = sight
        self._takes = Intake.of(model)
        text = model.config.get_text_config(decoder=True)
        layers = DynamicCache(config=model.config).layers
        self._can_share = (
            bool(layers)
            and all(type(layer) is DynamicLayer for layer in layers)
            and self._takes.positions
            and getattr(text, "_attn_implementation", None) in ("sdpa", "eager")  # which take a mask of pairs
            and not getattr(text, "alibi", False)  # distances that are read off a mask of tokens
        )
        self._pair_cost = 1 / (3 * text.hidden_size)
        self._is_bare: bool | None = None

    def __call__(
        self,
        ids: Tensor,
        mask: Tensor,
        final: Tensor | None = None,
        *,
        temperature: float = 1.0,
        pictures: Sequence[Picture] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the model says of N chosen positions.

        Args:
            ids: int [B, T]; whatever stands behind the last chosen position of a row is not looked at. A
                picture stands in them by its codes, by number.
            mask: bool [B, T], the chosen positions, none of them the first of a row.
            final: bool [B, T], positions of which the hidden state alone is wanted.
            temperature: Divides the logits.
            pictures: By number.

        Returns:
            Log-probabilities [N] and entropies [N] of the ids at ``mask``, in the order of ``mask.nonzero()``, and the
            hidden states [M, H] before the positions of ``mask | final``.

        Raises:
            ValueError: A first position is chosen.
        """
        read = mask if final is None else mask | final
        if bool(read[:, 0].any()):
            raise ValueError("the first position of a row has nothing before it to be read from")
        trees, nodes, sequences = self._planted(ids, read)
        used, at = nodes.unique(return_inverse=True)
        if self._is_bare is None:
            self._is_bare = is_bare(self.model)
        options: dict[str, Any] = {"use_cache": False}
        if trees.mask is not None:
            kind = next(self.model.parameters()).dtype
            seen = trees.mask.to(ids.device)
            options["attention_mask"] = torch.zeros(seen.shape, dtype=kind, device=ids.device).masked_fill_(
                ~seen, torch.finfo(kind).min
            )
            options["position_ids"] = trees.places.to(ids.device)
        shown = trees.ids.to(ids.device)
        if self.sight is not None:
            shown, more = self.sight.read(shown, pictures)
            options |= more
            if (axes := self.sight.positions(sequences, pictures)) is not None:
                options["position_ids"] = _parted(trees, axes).to(ids.device)
        with output_layer(self.model, used, skip=self._is_bare) as hidden:
            out = self.model(input_ids=shown, **options)
        head = self.model.get_output_embeddings() if self._is_bare else None
        weight, bias = (None, None) if head is None else (head.weight, head.bias)
        logp, entropy = TokenStatistics.apply(
            out.logits, weight, bias, at[mask[read]], ids[mask], temperature, torch.is_grad_enabled()
        )
        return logp, entropy, hidden[0][at]

    def _planted(self, ids: Tensor, read: Tensor) -> tuple[Trees, Tensor, list[tuple[int, ...]]]:
        """Return the trees of what has to be read, the node before each chosen position, and the sequences."""
        rows = read.any(dim=1).nonzero()[:, 0].tolist()
        chosen = read.cpu().numpy()
        sequences = []
        for b, row in zip(rows, ids[rows].tolist(), strict=True):
            sequences.append(tuple(row[: int(chosen[b].nonzero()[0][-1])]))
        trees = plant(sequences, self._pair_cost if self._can_share else None)
        found = [path[chosen[b].nonzero()[0] - 1] for b, path in zip(rows, trees.nodes, strict=True)]
        return trees, torch.from_numpy(np.concatenate(found)).to(ids.device), sequences


def _parted(trees: Trees, axes: Sequence[Tensor]) -> Tensor:
    """Return positions of A parts, int [A, R, W], of those of each sequence, [A, L]."""
    rows, width = trees.ids.shape
    places = trees.places.flatten().repeat(len(axes[0]), 1)
    for path, own in zip(trees.nodes, axes, strict=True):
        places[:, path] = own.to(places)
    return places.view(len(places), rows, width)
