"""What a causal language model says of given ids: log-probability, entropy and hidden state at chosen positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from tetrathlon.agents.head import output_layer
from tetrathlon.agents.intake import Intake

_WORTH_SHARING = 0.2
"""Share of all tokens that must be saved before common prompts are read apart."""


class TokenStatistics(torch.autograd.Function):
    """Log-probability of an id and entropy of its distribution, keeping one array of the size of the logits."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Return log-probabilities [N] and entropies [N], in float32, of logits [N, V] and ids [N]."""
        logp = (logits.float() / temperature).log_softmax(-1)
        entropy = torch.special.entr(logp.exp()).sum(-1)
        ctx.save_for_backward(logp, ids, entropy)
        ctx.temperature, ctx.dtype = temperature, logits.dtype
        return logp.gather(-1, ids[:, None])[:, 0], entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """With p the softmax and H the entropy: d logp_i = 1[i] - p, d H = -p (log p + H)."""
        logp, ids, entropy = ctx.saved_tensors
        of_logp, of_entropy = grads
        p = logp.exp()
        # A token of probability 0 (log p = -inf) moves nothing.
        slope = torch.where(p > 0, logp, 0.0).add_(entropy[:, None]).mul_(of_entropy[:, None]).add_(of_logp[:, None])
        gradient = slope.mul_(p).neg_()
        gradient.scatter_add_(1, ids[:, None], of_logp[:, None])
        return (gradient / ctx.temperature).to(ctx.dtype), None, None


class Scorer:
    """Reads rows of ids with gradients.

    Rows that begin alike (the G answers to one prompt) have their prompt read once: its keys and values are shared
    through the cache, and gradients flow back through them. So do all that a model with full attention in every
    layer allows; other models read each row as it is.

    Args:
        model: A transformers causal language model.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._takes = Intake.of(model)
        layers = DynamicCache(config=model.config).layers
        self._can_share = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)

    def __call__(self, ids: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and hidden states before N chosen positions.

        Args:
            ids: int [B, T]; whatever stands behind the last chosen position of a row is not looked at.
            read: bool [B, T], the chosen positions, none of them the first of a row.

        Returns:
            Float32 logits [N, V] of what comes at each position, and the hidden states [N, H] that gave them, in the
            order of ``read.nonzero()``.
        """
        if bool(read[:, 0].any()):
            raise ValueError("the first position of a row has nothing before it to be read from")
        rows = read.any(dim=1)
        if not bool(rows.all()):
            ids, read = ids[rows], read[rows]
        positions = torch.arange(read.shape[1], device=read.device)
        length = torch.where(read, positions, 0).amax(dim=1)  # tokens that a row has to read
        first = torch.where(read, positions, read.shape[1]).amin(dim=1)
        prompts = [tuple(row[: start - 1]) for row, start in zip(ids.tolist(), first.tolist(), strict=True)]
        unique = dict.fromkeys(prompts)
        saved = sum(map(len, prompts)) - sum(map(len, unique))
        if self._shares() and saved > _WORTH_SHARING * int(length.sum()):
            return self._shared(ids, read, first, length, prompts)
        width = int(length.max())
        return self._forward(ids[:, :width], read[:, 1 : width + 1], {"use_cache": False})

    def _shares(self) -> bool:
        names = ("is_activation_checkpointing", "is_gradient_checkpointing")  # the first since transformers 5
        checkpointing = next((getattr(self.model, name) for name in names if hasattr(self.model, name)), False)
        checkpointing = checkpointing and self.model.training
        return self._can_share and self._takes.positions and not checkpointing  # which keeps no cache

    def _shared(
        self, ids: Tensor, read: Tensor, first: Tensor, length: Tensor, prompts: list[tuple[int, ...]]
    ) -> tuple[Tensor, Tensor]:
        """Read each prompt once, but for its last token, and then every row from there on."""
        device = ids.device
        number = {prompt: i for i, prompt in enumerate(dict.fromkeys(prompts))}
        longest = max(map(len, number))
        padded = torch.tensor([(0,) * (longest - len(p)) + p for p in number], device=device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in number], device=device)
        cache = DynamicCache(config=self.model.config)
        if longest:
            nothing = torch.zeros(padded.shape, dtype=torch.bool, device=device)
            places = (mask.cumsum(1) - 1).clamp(min=0)
            self._forward(padded, nothing, {self._takes.cache: cache, "use_cache": True}, mask, places)
            pick = torch.tensor([number[prompt] for prompt in prompts], device=device)
            cache.reorder_cache(pick)  # type: ignore[arg-type]  # a long tensor is one
            mask = mask[pick]
        else:
            mask = mask.new_zeros(len(prompts), 0)
        start = first - 1
        steps = torch.arange(int((length - start).max()), device=device)
        places = start[:, None] + steps  # [B, C]
        real = steps < (length - start)[:, None]
        places_read = places.clamp(max=ids.shape[1] - 1)
        rest = torch.where(real, ids.gather(1, places_read), 0)
        select = real & read.gather(1, (places_read + 1).clamp(max=ids.shape[1] - 1))
        mask = torch.cat([mask, real.to(mask.dtype)], dim=1)
        return self._forward(rest, select, {self._takes.cache: cache, "use_cache": True}, mask, places)

    def _forward(
        self,
        ids: Tensor,
        select: Tensor,
        options: dict[str, Any],
        mask: Tensor | None = None,
        places: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if places is not None:
            options["position_ids"] = places
        with output_layer(self.model, select) as hidden:
            out = self.model(input_ids=ids, attention_mask=mask, **options)
        return out.logits.float(), hidden[0]
