"""Random batches of decisions: rows of several episodes and turns, with junk wherever a column means nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from tetrathlon.algos.segments import Level, Segments

JUNK = torch.nan


@dataclass(frozen=True)
class Batch:
    mask: Tensor
    final: Tensor
    terminated: Tensor
    truncated: Tensor
    cut: Tensor
    env_steps: Tensor
    episode: Tensor
    turn: Tensor
    reward: Tensor
    value: Tensor
    logp: Tensor
    old_logp: Tensor
    ref_logp: Tensor
    sampler_logp: Tensor
    group: Tensor
    score: Tensor

    def segments(self, level: Level) -> Segments:
        return Segments.of(level, self.mask, episode=self.episode, turn=self.turn)

    @property
    def ends(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("final", "terminated", "truncated", "env_steps")}

    def rows(self, index: Any) -> Batch:
        return Batch(**{column.name: getattr(self, column.name)[index] for column in fields(self)})

    def padded(self, left: int, right: int) -> Batch:
        """With columns of junk on both sides."""
        wide: dict[str, Tensor] = {}
        for column in fields(self):
            x = getattr(self, column.name)
            if x.ndim == 2:
                fill: Any = JUNK if x.is_floating_point() else column.name in ("terminated", "truncated", "cut")
                fill = fill if x.dtype == torch.bool or x.is_floating_point() else -1
                x = torch.nn.functional.pad(x.double(), (left, right), value=float(fill)).to(x.dtype)
            wide[column.name] = x
        return Batch(**wide)

    def with_logp(self, logp: Tensor) -> Batch:
        return replace(self, logp=logp)


def random_batch(seed: int, rows: int = 4, *, episodes: int = 3, empty_row: bool = True) -> Batch:
    """Return ``rows`` rows; the last one has no decision if ``empty_row``."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    kinds: list[list[tuple[str, int, int, int, bool, bool]]] = []
    for b in range(rows):
        row: list[tuple[str, int, int, int, bool, bool]] = []
        for e in range(draw(1, episodes)):
            steps = draw(1, 3)
            terminated = bool(draw(0, 1))
            for turn in range(steps):
                row += [("given", e, turn, 0, False, False)] * draw(0, 2)
                decided = 0 if empty_row and b == rows - 1 else draw(1, 4)
                for k in range(decided):
                    last = k == decided - 1
                    over = last and turn == steps - 1
                    row.append(
                        ("own", e, turn, draw(1, 3) if last else 0, over and terminated, over and not terminated)
                    )
            if not terminated and not (empty_row and b == rows - 1):
                row.append(("final", e, steps, 0, False, False))
        kinds.append(row)
    width = max(len(row) for row in kinds)
    kinds = [row + [("pad", -1, -1, 0, False, False)] * (width - len(row)) for row in kinds]
    kind = [[k for k, *_ in row] for row in kinds]
    mask = torch.tensor([[k == "own" for k in row] for row in kind])
    final = torch.tensor([[k == "final" for k in row] for row in kind])

    def column(i: int) -> Tensor:
        return torch.tensor([[entry[i] for entry in row] for row in kinds])

    def noise(keep: Tensor, scale: float = 1.0) -> Tensor:
        x = scale * torch.randn(rows, width, generator=generator, dtype=torch.float64)
        return torch.where(keep, x, JUNK)

    logp = noise(mask) - 2
    return Batch(
        mask=mask,
        final=final,
        terminated=torch.where(mask, column(4), True),
        truncated=torch.where(mask, column(5), True),
        cut=torch.where(mask, torch.rand(rows, width, generator=generator) < 0.1, True),
        env_steps=torch.where(mask, column(3), -7),
        episode=column(1),
        turn=column(2),
        reward=noise(mask),
        value=noise(mask | final),
        logp=logp,
        old_logp=logp + noise(mask, 0.3),
        ref_logp=logp + noise(mask, 0.5),
        sampler_logp=logp + noise(mask, 0.2),
        group=torch.randint(0, 2, (rows,), generator=generator),
        score=torch.randn(rows, generator=generator, dtype=torch.float64),
    )
