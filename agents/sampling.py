"""How tokens are drawn from what a model says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 256
"""Tokens whose probabilities are added up in float32."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn: from the whole distribution, which is what a policy gradient assumes.

    There is no top-p and no top-k: their samples come from another distribution than the one whose
    log-probabilities a trainer computes.

    Raises:
        ValueError: A value is out of range.
    """

    max_tokens: int = 256
    """Most tokens a completion has, its EOS included."""
    temperature: float = 1.0
    """Divides the logits, for the draw and for the log-probabilities alike; above 0. Unused when greedy."""
    greedy: bool = False
    """Take the likeliest token; log-probabilities are those at temperature 1."""
    seed: int | None = None
    """Seed of this call alone; None goes on with the engine's own stream."""
    top_p: float = 1.0
    """Refused if it is not 1."""
    top_k: int = 0
    """Refused if it is not 0."""

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise ValueError(f"max_tokens must be at least 0, got {self.max_tokens}")
        if self.top_p != 1 or self.top_k != 0:
            raise ValueError(
                f"top_p must be 1 and top_k 0, got {self.top_p} and {self.top_k}: samples of a cut distribution have "
                "other log-probabilities than a trainer computes"
            )
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be a finite number above 0, got {self.temperature}; greedy=True for 0")


def draw(logits: Tensor, state: Tensor, sampling: Sampling, uniform: Tensor | None) -> tuple[Tensor, Tensor]:
    """Choose a token a row by inverting the distribution function at ``uniform`` [B]; greedy without it.

    Args:
        logits: float32 [U, V].
        state: int [B]: which of the U distributions a row draws from.
        sampling: How to draw.
        uniform: Numbers from 0 to 1, [B].

    Returns:
        Ids [B] and their log-probabilities [B].
    """
    if uniform is None:
        logp = logits.log_softmax(-1)
        tokens = logp.argmax(-1)[state]
    else:
        logp = (logits if sampling.temperature == 1 else logits / sampling.temperature).log_softmax(-1)
        # First the block, then the token in it. Sums are in double precision: a float32 sum over 10^5 tokens is off by
        # more than a rare token's probability; over one block it is not.
        blocks = F.pad(logp.exp(), (0, -logp.shape[-1] % _BLOCK)).unflatten(-1, (-1, _BLOCK))  # [U, K, block]
        ends = blocks.sum(-1).to(uniform.dtype).cumsum(-1)[state]  # [B, K]
        # Below the end, so that no rounding picks a token of probability 0 behind it.
        point = _below(uniform[:, None] * ends[:, -1:], ends[:, -1:])
        block = torch.searchsorted(ends, point, right=True).clamp(max=ends.shape[1] - 1)  # [B, 1]; NaN is behind all
        start, end = F.pad(ends, (1, 0)).gather(1, block), ends.gather(1, block)
        inside = blocks[state, block[:, 0]].to(uniform.dtype).cumsum(-1)  # [B, block]
        # In its own measure: the two sums of a block differ by rounding.
        within = _below((point - start) / (end - start) * inside[:, -1:], inside[:, -1:])
        tokens = (block * _BLOCK + torch.searchsorted(inside, within, right=True))[:, 0].clamp(max=logp.shape[-1] - 1)
    return tokens, logp[state, tokens]


def _below(point: Tensor, end: Tensor) -> Tensor:
    return torch.minimum(point, torch.nextafter(end, torch.zeros_like(end)))


def stream(seed: int, row: int) -> np.random.Generator:
    """Return the uniform numbers of one row of one call; Philox takes the two as a key, so no two streams meet."""
    return np.random.Generator(np.random.Philox(key=np.array([seed % 2**64, row], dtype=np.uint64)))
