"""Critics of language models: the value of the state before a token."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tetrathlon.agents.intake import inside_of
from tetrathlon.agents.picture import Picture
from tetrathlon.agents.sight import Sight


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
        with torch.autocast(hidden.device.type, enabled=False):  # bfloat16 knows a value to a percent
            return self.layers((hidden.detach() if self.detach else hidden).float())[:, 0]


class OwnCritic(nn.Module):
    """A copy of the model with a value head, which learns apart from the policy.

    Args:
        model: A transformers causal language model; without its output layer it is copied.
        size: H, the size of a hidden state.
    """

    def __init__(self, model: Any, size: int) -> None:
        super().__init__()
        inside = inside_of(model)
        self.trunk = copy.deepcopy(inside.base_model).requires_grad_(True)
        self.head = ValueHead(size, detach=False)

    def forward(
        self, ids: Tensor, read: Tensor, sight: Sight | None = None, pictures: Sequence[Picture] = ()
    ) -> Tensor:
        """Return values [N] of the states before the chosen positions, in the order of ``read.nonzero()``.

        Args:
            ids: int [B, T]; what stands behind the last chosen position of a row is not looked at.
            read: bool [B, T], the chosen positions, none of them the first of a row.
            sight: How the model takes pictures; None: it takes none.
            pictures: By number, as their codes in ``ids`` are.
        """
        longest = int(read.any(dim=0).nonzero()[-1])
        options: dict[str, Any] = {}
        ids = ids[:, :longest]
        if sight is not None:
            # Behind its last chosen position a row may hold a part of a picture, which no model takes.
            is_before = read.flip(1).cumsum(1).flip(1)[:, 1 : longest + 1] > 0
            codes = ids.where(is_before, 0)
            ids, options = sight.read(codes, pictures)
            if (axes := sight.positions(codes.tolist(), pictures)) is not None:
                options["position_ids"] = torch.stack(list(axes), dim=1).to(ids.device)
        out = self.trunk(input_ids=ids, use_cache=False, **options)
        return self.head(out.last_hidden_state[read[:, 1 : longest + 1]])
