"""Critics of language models: the value of the state before a token, and of the token."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tetrathlon.agents.action_values import Ensemble
from tetrathlon.agents.intake import inside_of
from tetrathlon.agents.picture import Picture
from tetrathlon.agents.sight import Sight


def width(model: Any) -> int:
    """Return H, the size of the hidden states that a model draws tokens from."""
    return int(model.get_output_embeddings().weight.shape[1])


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
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        inside = inside_of(model)
        self.trunk = copy.deepcopy(inside.base_model).requires_grad_(True)
        self.head = ValueHead(width(model), detach=False)

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
        after = _after(read)
        states = self._states(ids, after, sight, pictures)
        return self.head(states[after[:, : states.shape[1]]])

    def _states(self, ids: Tensor, after: Tensor, sight: Sight | None, pictures: Sequence[Picture]) -> Tensor:
        """Return what the trunk knows after each position, [B, L, H]; L is where it is asked for the last time."""
        longest = int(after.any(dim=0).nonzero()[-1]) + 1
        options: dict[str, Any] = {}
        ids = ids[:, :longest]
        if sight is not None:
            # Behind its last chosen position a row may hold a part of a picture, which no model takes.
            is_needed = after.flip(1).cumsum(1).flip(1)[:, :longest] > 0
            codes = ids.where(is_needed, 0)
            ids, options = sight.read(codes, pictures)
            if (axes := sight.positions(codes.tolist(), pictures)) is not None:
                options["position_ids"] = torch.stack(list(axes), dim=1).to(ids.device)
        return self.trunk(input_ids=ids, use_cache=False, **options).last_hidden_state


def _after(read: Tensor) -> Tensor:
    """Return bool [B, T]: after which positions is asked, where it is asked before those of ``read``."""
    return functional.pad(read[:, 1:], (0, 1))


class TokenCritic(OwnCritic):
    """One that says, beside the value of a state, what a token is worth: it reads what the trunk knows after it.

    Args:
        model: A transformers causal language model; without its output layer it is copied.
        ensemble: K, how many say what a token is worth.
        hidden: Widths of their hidden layers.
        normalize: See :class:`~tetrathlon.agents.action_values.Ensemble`.
        seed: Seed of the first weights.
    """

    def __init__(self, model: Any, ensemble: int, *, hidden: Sequence[int], normalize: bool, seed: int) -> None:
        super().__init__(model)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.ensemble = Ensemble([width(model), *hidden], ensemble, normalize=normalize)

    def appraise(
        self,
        ids: Tensor,
        read: Tensor | None,
        decided: Tensor | None,
        sight: Sight | None,
        pictures: Sequence[Picture],
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the values [N] of the states before the positions of ``read``, and [K, M] of the tokens ``decided``.

        Args:
            ids: int [B, T].
            read: bool [B, T]; None: values are not asked for.
            decided: bool [B, T]; None: tokens are not asked for.
            sight: How the model takes pictures; None: it takes none.
            pictures: By number.
        """
        before = None if read is None else _after(read)
        asked = [column for column in (before, decided) if column is not None]
        states = self._states(ids, torch.stack(asked).any(dim=0), sight, pictures)
        length = states.shape[1]
        with torch.autocast(states.device.type, enabled=False):
            return (
                None if before is None else self.head(states[before[:, :length]]),
                None if decided is None else self.ensemble(states[decided[:, :length]].float()),
            )
