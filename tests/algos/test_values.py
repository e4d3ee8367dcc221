"""What actions are worth: numbers that papers and other people's faults fix."""

from __future__ import annotations

import math

import pytest
import torch

from tetrathlon.algos.losses import expectile
from tetrathlon.algos.values import advantage_weights, q_scale, soft_maximum, td_target


def test_an_end_of_the_task_is_worth_nothing_more_and_one_of_time_is() -> None:
    told = td_target(
        torch.tensor([1.0, 1.0, 1.0, 1.0]),
        torch.tensor([10.0, torch.nan, 10.0, 10.0]),
        terminated=torch.tensor([False, True, False, False]),
        env_steps=torch.tensor([1, 1, 0, 3]),
        gamma=0.9,
    )
    assert told.tolist() == pytest.approx([10.0, 1.0, 11.0, 1 + 0.729 * 10])


def test_expectiles_of_four_numbers() -> None:
    told = expectile(torch.tensor([1.0, -1.0]), 0.9)
    assert told.tolist() == pytest.approx([0.9, 0.1])
    numbers = torch.tensor([0.0, 1.0, 2.0, 10.0])
    grid = torch.arange(0, 10.0001, 0.0005)
    for tau, least in ((0.5, 3.25), (0.7, 4.9375), (0.9, 7.75), (0.99, 9.735)):
        loss = expectile(numbers[:, None] - grid, tau).sum(0)
        assert float(grid[loss.argmin()]) == pytest.approx(least, abs=2e-3)


def test_weights_are_bounded_and_let_no_gradient_through() -> None:
    advantage = torch.tensor([-1.0, 0.0, 1.0, 5.0, 1e6], requires_grad=True)
    weight = advantage_weights(advantage, 3.0, 100.0)
    assert weight.tolist() == pytest.approx([math.exp(-3), 1.0, math.exp(3), 100.0, 100.0], rel=1e-5)
    assert not weight.requires_grad


class TestSoftMaximum:
    """Q(a) = -a**2 on [-1, 1], whose soft maximum is .40122."""

    @staticmethod
    def draws(n: int, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        action = torch.rand(n, generator=generator) * 2 - 1
        return action, torch.full((n,), -math.log(2 * spread))

    def test_of_uniform_draws(self) -> None:
        action, density = self.draws(400_000)
        assert float(soft_maximum(-(action**2), density)) == pytest.approx(0.40122, abs=1e-3)

    def test_of_draws_from_two_densities(self) -> None:
        # Half of them from p(a) = (1 + a) / 2, by its inverse: both are estimates of one integral.
        action, density = self.draws(400_000)
        generator = torch.Generator().manual_seed(1)
        tilted = 2 * torch.rand(400_000, generator=generator).sqrt() - 1
        both = torch.cat([action, tilted])
        told = soft_maximum(-(both**2), torch.cat([density, ((1 + tilted) / 2).log()]))
        assert float(told) == pytest.approx(0.40122, abs=2e-3)

    def test_the_temperature_divides_q_alone(self) -> None:
        action, density = self.draws(400_000)
        grid = torch.linspace(-1, 1, 200_001, dtype=torch.float64)
        for temperature in (0.5, 2.0):
            exact = temperature * math.log(float(torch.trapezoid((-(grid**2) / temperature).exp(), grid)))
            assert float(soft_maximum(-(action**2), density, temperature)) == pytest.approx(exact, abs=2e-3)

    def test_gradients_reach_q_and_no_density(self) -> None:
        q = torch.tensor([1.0, 2.0], requires_grad=True)
        density = torch.zeros(2, requires_grad=True)
        soft_maximum(q, density).backward()
        assert q.grad is not None and q.grad.tolist() == pytest.approx(torch.softmax(q.detach(), 0).tolist())
        assert density.grad is None


def test_q_is_brought_to_one_size() -> None:
    q = torch.tensor([2.0, -4.0], requires_grad=True)
    scale = q_scale(q, 2.5)
    assert float(scale) == pytest.approx(2.5 / 3) and not scale.requires_grad
    assert math.isfinite(float(q_scale(torch.zeros(3), 2.5)))
