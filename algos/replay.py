"""A log of episodes, as offline algorithms learn from it: decisions one by one with what they led to, or whole rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.advantages import gae, next_values
from tetrathlon.algos.batch import parts
from tetrathlon.algos.cloner import is_cut
from tetrathlon.algos.pieces import pieces
from tetrathlon.envs.episode import Episode, scorable

Read = Callable[[Decisions], Tensor]
"""Says what states are worth: float [B, T], valid at mask | final."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a step learns from: B rows of T positions."""

    now: Decisions
    """What was decided."""
    after: Decisions | None = None
    """The states that it led to, and what was decided there, a row each: only its inputs and its mask are read, and
    beside a termination these mean nothing. None: they are further on in the rows."""

    def following(self, read: Read) -> Tensor:
        """Return the value of the state that each decision led to, float [B, T]; 0 after a termination."""
        now = self.now
        if self.after is None:
            return next_values(read(now), now.mask, now.final, now.terminated)
        return torch.where(now.terminated, 0.0, read(self.after))

    def to(self, device: torch.device | str) -> Sample:
        """Return the sample on ``device``."""
        if self.now.mask.device == torch.device(device):
            return self
        return Sample(self.now.to(device), None if self.after is None else self.after.to(device))


class Replay:
    """Episodes that somebody played, ready to be sampled from.

    Where a policy takes each decision by itself (control without a memory), a row is one decision; else it is an
    episode. Whatever was done is learnt from, by whomever; an end of time is no end of the task: its last observation
    is there to be valued. Episodes whose grader failed take no part.

    Args:
        policy: Whose reading of episodes it is.
        episodes: The log.
        reward_scale: By what rewards are multiplied.
        reward_shift: What is then added, a step of the environment.

    Attributes:
        episodes: Those that take part.
        rows: All rows; where they are decisions, each is followed by the one that it led to.
        is_cut: Whether they are.

    Raises:
        ValueError: There is no step that can be learnt from, or an episode that the task did not end lacks its last
            observation.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        episodes: Sequence[Episode],
        *,
        reward_scale: float = 1.0,
        reward_shift: float = 0.0,
    ) -> None:
        kept = [episode for episode in scorable(episodes) if episode.steps]
        if not kept:
            raise ValueError(f"there is no step to learn from in these {len(episodes)} episodes")
        for number, episode in enumerate(kept):
            if not episode.steps[-1].terminated and episode.final_observation is None:
                raise ValueError(
                    f"episode {number} was not ended by its task and has no final_observation, so that the state after "
                    "its last step is not known; record it with its T + 1 observations"
                )
        self.episodes = kept
        self.is_cut = is_cut(policy)
        if self.is_cut:  # in one row, and then cut: nothing is padded
            whole = policy.collate([[replace(episode, group=None) for episode in kept]], learn="action")
            self.rows = pieces(whole, 1, keep=whole.mask | whole.final)
        else:
            self.rows = policy.collate([[episode] for episode in kept], learn="action")
        if not self.rows.mask.any():
            raise ValueError(f"nothing was decided in these {len(kept)} episodes")
        rows = self.rows
        rows.reward = rows.reward * reward_scale + reward_shift * rows.env_steps
        self._choices = rows.mask.any(dim=1).nonzero()[:, 0]

    def __len__(self) -> int:
        """Return from how many rows a step may draw."""
        return len(self._choices)

    def draw(self, count: int, generator: torch.Generator) -> Sample:
        """Draw ``count`` rows, with replacement."""
        chosen = self._choices[torch.randint(len(self._choices), (count,), generator=generator)]
        now = self.rows.select(chosen)
        if not self.is_cut:
            return Sample(now)
        # What follows a decision is the next row, whether decided or a last state; after a termination it is not read.
        following = (chosen + 1).clamp(max=len(self.rows) - 1)
        inputs = {name: column[following] for name, column in self.rows.inputs.items()}
        return Sample(now, replace(now, mask=self.rows.mask[following], inputs=inputs))

    @torch.no_grad()
    def estimate(self, read: Read, *, gamma: float, lam: float, batch_size: int, max_cost: float | None) -> None:
        """Set ``returns`` of all rows to lambda returns by the values of now (GAE and the value; see :func:`gae`).

        Args:
            read: Says what states are worth.
            gamma: Discount of one environment step.
            lam: Trace of one decision.
            batch_size: Rows that are read at once.
            max_cost: What is read at once, in the policy's own unit; None: ``batch_size`` rows.
        """
        rows = self.rows
        value = torch.cat(
            [
                read(part)
                for start in range(0, len(rows), batch_size)
                for part in parts(rows.select(range(start, min(start + batch_size, len(rows)))), max_cost)
            ]
        ).cpu()
        columns = {name: getattr(rows, name) for name in ("mask", "final", "terminated", "truncated", "env_steps")}
        at, inside = self._episodes()
        reward, value = rows.reward.flatten()[at], value.flatten()[at]
        told = {name: column.flatten()[at] for name, column in columns.items()}
        told["mask"] &= inside
        told["final"] &= inside
        _, found = gae(reward, value, told.pop("mask"), gamma=gamma, lam=lam, **told)
        rows.returns = torch.zeros_like(rows.reward)
        rows.returns.view(-1)[at[inside]] = found[inside].to(rows.reward)

    def _episodes(self) -> tuple[Tensor, Tensor]:
        """Return where the positions of each episode are, int [B, L], and which of these are there, bool [B, L]."""
        count, width = self.rows.mask.shape
        if not self.is_cut:
            at = torch.arange(count * width).view(count, width)
            return at, torch.ones_like(at, dtype=torch.bool)
        lengths = torch.unique_consecutive(self.rows.episode[:, 0], return_counts=True)[1]
        starts = lengths.cumsum(0) - lengths
        place = torch.arange(int(lengths.max()))
        inside = place < lengths[:, None]
        return torch.where(inside, starts[:, None] + place, 0), inside
