"""Each name of a reduction has one value, however the batch is split."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tetrathlon.algos.denominators import BatchSize, Reduction, denominators
from tetrathlon.algos.losses import total
from tetrathlon.algos.segments import Segments


def episodes(mask: Tensor, episode: Tensor | None = None) -> Segments:
    zeros = torch.zeros(mask.shape, dtype=torch.long)
    return Segments.of("episode", mask, episode=zeros if episode is None else episode, turn=zeros)


def reduced(loss: Tensor, mask: Tensor, reduction: Reduction, constant: float | None = None) -> float:
    return total(loss, mask, denominators(reduction, episodes(mask), constant=constant)).item()


def test_means_go_by_episode_and_not_by_row() -> None:
    loss = torch.tensor([[1.0, 1.0, 1.0, 4.0], [2.0, 2.0, 0.0, 0.0]])
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    segments = episodes(mask, torch.tensor([[0, 0, 0, 1], [0, 0, -1, -1]]))
    assert total(loss, mask, denominators("episode_mean", segments)).item() == pytest.approx((1 + 4 + 2) / 3)
    assert total(loss, mask, denominators("episode_sum", segments, constant=5)).item() == pytest.approx(11 / 3 / 5)


def test_a_part_knows_the_size_of_the_whole() -> None:
    mask = torch.arange(6) < torch.tensor([[1], [6], [0], [3]])
    for reduction, constant in (("decision_mean", None), ("episode_mean", None), ("episode_sum", 7.0)):
        whole = denominators(reduction, episodes(mask), constant=constant)  # type: ignore[arg-type]
        sizes = [BatchSize.of(episodes(part)) for part in mask.split(2)]
        parts = [
            denominators(reduction, episodes(part), sizes[0] + sizes[1], constant=constant)  # type: ignore[arg-type]
            for part in mask.split(2)
        ]
        assert torch.equal(torch.cat(parts), whole)
    assert sizes[0] + sizes[1] == BatchSize(decisions=10, episodes=3)


@pytest.mark.parametrize(
    ("reduction", "constant"),
    [("episode_sum", None), ("episode_sum", 0.5), ("episode_sum", torch.nan), ("episode_mean", 10.0)],
)
def test_the_constant_belongs_to_the_sum_alone(reduction: Reduction, constant: float | None) -> None:
    with pytest.raises(ValueError, match="constant is the length limit of 'episode_sum'"):
        reduced(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool), reduction, constant)


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'token_mean'"):
        reduced(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool), "token_mean")  # type: ignore[arg-type]
