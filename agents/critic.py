"""Critics of language models: the value of the state before a token."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ValueHead(nn.Module):
    """A small network that reads the hidden state which the next token is drawn from.

    Args:
        size: H, the size of a hidden state.
        detach: Whether the trunk below stays untouched by the value loss.
        seed: Seed of the first weights; the values are 0 at first.
    """

    def __init__(self, size: int, *, detach: bool = True, seed: int = 0) -> None:
        super().__init__()
        self.detach = detach
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))
        nn.init.zeros_(self.layers[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(self.layers[-1].bias)  # type: ignore[arg-type]

    def forward(self, hidden: Tensor) -> Tensor:
        """Return values [N] of hidden states [N, H]."""
        return self.layers((hidden.detach() if self.detach else hidden).float())[:, 0]
