"""What an action is worth: critics that read a state and an action, several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from tetrathlon.agents.networks import Critic, Trunk


@dataclass(frozen=True, slots=True)
class Appraisal:
    """What a critic says of decisions, with gradients."""

    value: Tensor | None = None
    """float [B, T], valid at mask | final: of the state before the decision; None: not asked for."""
    q: Tensor | None = None
    """float [K, B, T], valid at mask, by each of K critics: of what was decided there. Of n other actions a state it
    is [K, n, B, T]. None: not asked for."""

    @property
    def least(self) -> Tensor:
        """The smallest of the K, [B, T] or [n, B, T]: not all overrate the same (Fujimoto et al., 2018, TD3)."""
        assert self.q is not None
        return self.q.amin(0)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a policy would do, with gradients where its draws have any."""

    actions: Tensor
    """[n, B, T, D], as they are drawn inside; see :class:`~tetrathlon.agents.distributions.Distribution`."""
    numbers: Tensor
    """float [n, B, T, E]: the same as an environment takes them, as a critic reads them."""
    logp: Tensor | None
    """float [n, B, T]: the log-density of ``numbers``; None where nothing was drawn, or there is no density."""


class Ensemble(nn.Module):
    """K perceptrons of one shape, each with weights of its own, that make one number.

    Args:
        sizes: Widths, from the input to the last hidden layer.
        members: K.
        normalize: Whether each hidden layer is normalised (ReBRAC: Tarasov et al., 2023, section 3).
    """

    def __init__(self, sizes: Sequence[int], members: int, *, normalize: bool = False) -> None:
        super().__init__()
        # One after another: on a CPU a product of batches is slower than as many products.
        self.members = nn.ModuleList(_perceptron(sizes, normalize) for _ in range(members))

    def forward(self, x: Tensor) -> Tensor:
        """Return float [K, N] of ``x``, [N, E]."""
        told = [member(x)[:, 0] for member in self.members]
        return torch.stack(told) if told else x.new_zeros(0, len(x))


def _perceptron(sizes: Sequence[int], normalize: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), *([nn.LayerNorm(outputs)] if normalize else [])]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))


class ActionCritic(Critic):
    """The value of a state, and of actions in it by K critics of the same features.

    Args:
        trunk: Its own.
        value: Makes one number of E features.
        ensemble: Makes K numbers of E features and the numbers of an action.
    """

    def __init__(self, trunk: Trunk, value: nn.Module, ensemble: Ensemble) -> None:
        super().__init__(trunk, value)
        self.ensemble = ensemble

    def q(self, features: Tensor, numbers: Tensor) -> Tensor:
        """Return float [K, ...] of states [B, T, E] and of the numbers of actions, [B, T, A] or [n, B, T, A]."""
        told = torch.cat([features.expand(*numbers.shape[:-1], features.shape[-1]), numbers], dim=-1)
        return self.ensemble(told.flatten(0, -2)).unflatten(1, told.shape[:-1])
