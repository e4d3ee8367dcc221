"""Running statistics of rows of numbers."""

from __future__ import annotations

import numpy as np
import torch

from tetrathlon.agents.normalization import RunningNorm


def rows(n: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal([1e4, -2.0, 0.0], [1.0, 5.0, 0.0], (n, 3)))


def test_statistics_are_those_of_all_rows() -> None:
    norm = RunningNorm(3)
    seen = [rows(n, seed) for seed, n in enumerate((1, 50, 0, 7, 300))]
    for part in seen[:3]:
        norm.gather(part)
    norm.fold()
    for part in seen[3:]:
        norm.gather(part)
    norm.fold()
    every = torch.cat(seen)
    assert norm.count == 358
    torch.testing.assert_close(norm.mean, every.mean(dim=0))
    torch.testing.assert_close(norm.squares / norm.count, every.var(dim=0, correction=0))
    out = norm(every.float())
    assert out.dtype == torch.float32
    torch.testing.assert_close(out[:, 1].double(), (every[:, 1] - every[:, 1].mean()) / every[:, 1].std(correction=0))
    assert not out[:, 2].any()  # what never changes


def test_it_is_clipped() -> None:
    norm = RunningNorm(3)
    assert norm(torch.tensor([5.0, -50.0, 50.0])).tolist() == [5.0, -10.0, 10.0]  # before anything is known
    norm.gather(rows(100))
    norm.fold()
    assert norm(torch.tensor([0.0, 1e6, 1e-9])).tolist()[:2] == [-10.0, 10.0]


def test_nothing_moves_until_it_is_folded() -> None:
    norm = RunningNorm(3)
    seen = rows(20).float()
    before = norm(seen)
    norm.gather(seen)
    assert torch.equal(norm(seen), before)
    norm.fold()
    after = norm(seen)
    assert not torch.equal(after, before)
    norm.fold()
    assert torch.equal(norm(seen), after)


def test_what_waits_is_part_of_the_state() -> None:
    norm, other = RunningNorm(3), RunningNorm(3)
    norm.gather(rows(30))
    norm.fold()
    norm.gather(rows(10, seed=1))
    norm.due.fill_(True)
    other.load_state_dict(norm.state_dict())
    assert other.due
    norm.fold()
    other.fold()
    assert torch.equal(norm(rows(5)), other(rows(5))) and other.count == 40 and not other.due
