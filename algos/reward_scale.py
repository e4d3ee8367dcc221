"""Rewards on the scale of their returns, so that a critic meets numbers of about 1 whatever the task pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions
from tetrathlon.envs.episode import Episode

_CLIP = 10.0
_EPS = 1e-8
_PRIOR = 1e-4


@dataclass(slots=True)
class RewardScale:
    r"""Divides rewards by the running deviation of the discounted return (Engstrom et al., 2020, section 2).

    .. math:: R_t = \gamma^{k_{t-1}} R_{t-1} + r_t,\quad r'_t = \mathrm{clip}(r_t / \mathrm{std}(R), -10, 10)

    R begins with each episode and goes on from one stretch of it to the next. The mean is not taken off, which would
    change what is worth doing. A decision counts before it is scaled, those of all rows at once, as in
    Stable-Baselines3's ``VecNormalize``, whose numbers these are: the variance begins at 1 with the weight of 1e-4
    returns.
    """

    gamma: float
    """Discount of one environment step."""
    count: float = _PRIOR
    """How many returns were seen."""
    mean: float = 0.0
    """Their mean."""
    squares: float = _PRIOR
    """The sum of their squares about it."""
    _open: dict[int, tuple[Any, float]] = field(default_factory=dict)
    """What episodes that had not ended came to, by the identity of their info, which every part of one shares."""

    @property
    def std(self) -> float:
        """The deviation of returns."""
        return float(np.sqrt(self.squares / self.count + _EPS))

    def scaled(self, batch: Decisions, rows: Sequence[Sequence[Episode]]) -> Tensor:
        """Return the rewards of a batch, scaled, and take note of them.

        Args:
            batch: What was collated of ``rows``, one row each.
            rows: B rows of episodes.

        Returns:
            float [B, T], 0 where there is no decision.
        """
        mask = batch.mask.cpu().numpy()
        reward = np.where(mask, batch.reward.cpu().numpy(), 0.0).astype(np.float64)
        discount = self.gamma ** batch.env_steps.cpu().numpy().astype(np.float64)
        goes_on = ~(batch.terminated | batch.truncated).cpu().numpy()
        come_to = np.array([self._open.get(id(row[0].info), (None, 0.0))[1] for row in rows])
        scaled = np.zeros_like(reward)
        places = [np.flatnonzero(decided) for decided in mask]
        for turn in range(max(map(len, places), default=0)):
            live = np.array([b for b, place in enumerate(places) if turn < len(place)])
            at = live, np.array([places[b][turn] for b in live])
            come_to[live] += reward[at]
            self._take(come_to[live])
            scaled[at] = np.clip(reward[at] / self.std, -_CLIP, _CLIP)
            come_to[live] *= discount[at] * goes_on[at]
        self._open = {
            id(row[-1].info): (row[-1].info, float(value))
            for row, value in zip(rows, come_to, strict=True)
            if not row[-1].ended
        }
        return torch.as_tensor(scaled, dtype=batch.reward.dtype, device=batch.reward.device)

    def _take(self, returns: np.ndarray) -> None:
        """Join a sample to what is known (Chan et al., 1979)."""
        apart, total = returns.mean() - self.mean, self.count + len(returns)
        self.squares += float(np.square(returns - returns.mean()).sum() + apart**2 * self.count * len(returns) / total)
        self.mean += float(apart * len(returns) / total)
        self.count = total

    def state_dict(self) -> dict[str, float]:
        """Return what is known of returns; a run that goes on begins its episodes anew."""
        return {"count": self.count, "mean": self.mean, "squares": self.squares}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.count, self.mean, self.squares = state["count"], state["mean"], state["squares"]
        self._open = {}
