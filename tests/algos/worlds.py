"""A small world whose values are known: two states, two actions, noisy pay, and every way to fare in it written out."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import torch
from torch import Tensor

from tetrathlon.envs.episode import Episode, Step

STATES, ACTIONS, END = 2, 2, 2
BEHAVIOUR = torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=torch.float64)
TARGET = torch.tensor([[0.1, 0.9], [0.7, 0.3]], dtype=torch.float64)

Way = tuple[float, list[tuple[int, int, float, int]]]
"""How likely it is, and of each step the state, the action, what was paid, and the state after it."""


@dataclass(frozen=True)
class Log:
    """Episodes as columns [B, H], NaN behind the end of each."""

    state: Tensor
    action: Tensor
    reward: Tensor
    mask: Tensor
    terminated: Tensor
    last: Tensor
    """int [B]: the state after the last decision."""
    chance: Tensor
    """float64 [B]: how likely the behaviour fares so."""

    def rows(self, index: Tensor) -> Log:
        return Log(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def log_ratio(self, target: Tensor, behaviour: Tensor) -> Tensor:
        return torch.where(self.mask, (target / behaviour).log()[self.state, self.action], torch.nan)

    def episodes(self, behaviour: Tensor) -> list[Episode]:
        """The same as episodes; one that did not terminate was truncated."""
        found = []
        for state, action, reward, mask, ends, last in zip(
            self.state, self.action, self.reward, self.mask, self.terminated, self.last, strict=True
        ):
            steps = []
            for t in range(int(mask.sum())):
                s, a = int(state[t]), int(action[t])
                logp = np.float32(np.log(float(behaviour[s, a])))
                steps.append(Step(s, a, float(reward[t]), terminated=bool(ends[t]), record={"logp": logp}))
            steps[-1].truncated = not steps[-1].terminated
            found.append(Episode(steps=steps, final_observation=int(last)))
        return found


@dataclass(frozen=True)
class World:
    start: list[float]
    """[S]"""
    chance: list[list[list[float]]]
    """[S, A, S + 1], the last of them is the end; multiples of 1/4."""
    paid: list[list[list[float]]]
    """[S, A, R], equally likely."""
    env_steps: list[int] = field(default_factory=lambda: [1, 1])
    """[S]: how many environment steps a decision takes in each state."""

    def values(self, policy: Tensor, horizon: int, gamma: float, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return q [H, S, A] and v [H + 1, S] with t decisions behind, by dynamic programming."""
        chance = torch.tensor(self.chance, dtype=torch.float64)
        mean = torch.tensor(self.paid, dtype=torch.float64).mean(-1)
        discount = torch.tensor([gamma**k for k in self.env_steps], dtype=torch.float64)[:, None]
        q = torch.zeros(horizon, STATES, ACTIONS, dtype=torch.float64)
        v = torch.zeros(horizon + 1, STATES, dtype=torch.float64)
        if last is not None:
            v[-1] = last
        for t in reversed(range(horizon)):
            q[t] = mean + discount * (chance[..., :STATES] @ v[t + 1])
            v[t] = (policy * q[t]).sum(-1)
        return q, v

    def value(self, policy: Tensor, horizon: int, gamma: float) -> float:
        return float(self.values(policy, horizon, gamma)[1][0] @ torch.tensor(self.start, dtype=torch.float64))

    def ways(self, behaviour: Tensor, horizon: int) -> Log:
        """Every way to fare for up to ``horizon`` decisions, once each."""
        done: list[Way] = []
        begun: list[Way] = [(p, [(-1, -1, 0.0, s)]) for s, p in enumerate(self.start) if p]
        for t in range(horizon):
            going: list[Way] = []
            for p, steps in begun:
                s = steps[-1][-1]
                for a, pay, after in product(range(ACTIONS), range(len(self.paid[0][0])), range(STATES + 1)):
                    chance = p * float(behaviour[s, a]) / len(self.paid[s][a]) * self.chance[s][a][after]
                    if chance:
                        way = (chance, [*steps, (s, a, self.paid[s][a][pay], after)])
                        (done if after == END or t == horizon - 1 else going).append(way)
            begun = going
        shape = (len(done), horizon)
        log = Log(
            state=torch.zeros(shape, dtype=torch.long),
            action=torch.zeros(shape, dtype=torch.long),
            reward=torch.full(shape, torch.nan, dtype=torch.float64),
            mask=torch.zeros(shape, dtype=torch.bool),
            terminated=torch.ones(shape, dtype=torch.bool),
            last=torch.zeros(len(done), dtype=torch.long),
            chance=torch.tensor([p for p, _ in done], dtype=torch.float64),
        )
        for b, (_, steps) in enumerate(done):
            for t, (s, a, paid, after) in enumerate(steps[1:]):
                log.state[b, t], log.action[b, t], log.mask[b, t] = s, a, True
                log.reward[b, t] = paid
                log.terminated[b, t] = after == END
                log.last[b] = after
        assert abs(float(log.chance.sum()) - 1) < 1e-12
        return log

    def steps_of(self, log: Log) -> Tensor:
        return torch.where(log.mask, torch.tensor(self.env_steps)[log.state], -9)


NOISY = World(
    start=[0.75, 0.25],
    chance=[[[0.25, 0.5, 0.25], [0.75, 0.25, 0.0]], [[0.5, 0.0, 0.5], [0.25, 0.75, 0.0]]],
    paid=[[[1.0, 3.0], [3.0, 6.0]], [[0.0, 8.0], [2.0, -3.0]]],
    env_steps=[1, 2],
)
SURE = World(
    start=[1.0, 0.0],
    chance=[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]],
    paid=[[[1.0], [2.0]], [[-1.0], [5.0]]],
)
