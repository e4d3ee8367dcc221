"""Estimates of the divergence: values, gradients, tails."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tetrathlon.algos.kl import Estimator, kl

ONE = torch.tensor([[True]])


def value_and_slope(logp: float, ref: float, estimator: Estimator, dtype: torch.dtype = torch.float64) -> list[float]:
    x = torch.tensor([[logp]], dtype=dtype, requires_grad=True)
    got = kl(x, torch.tensor([[ref]], dtype=dtype), ONE, estimator)
    got.sum().backward()
    assert x.grad is not None
    return [got.item(), x.grad.item()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("logp", "ref", "estimator", "expected"),
    [
        (-1.0, -1.5, "k1", [0.5, 1.0]),
        (-1.0, -1.5, "k2", [0.125, 0.5]),
        (-1.0, -1.5, "k3", [0.106531, 0.393469]),
        (-9.0, -1.0, "k3", [2971.957987, -2979.957987]),
        (-1.0, -9.0, "k3", [7.000335, 0.999665]),
        (-1.0, -1.0, "k3", [0.0, 0.0]),
    ],
)
def test_value_and_gradient(
    logp: float, ref: float, estimator: Estimator, expected: list[float], dtype: torch.dtype
) -> None:
    assert value_and_slope(logp, ref, estimator, dtype) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("gap", [20.0, 21.0, 50.0, 1000.0])
def test_however_far_the_reference_the_gradient_pulls_towards_it(gap: float) -> None:
    value, slope = value_and_slope(-gap, 0.0, "k3", torch.float32)
    assert slope == pytest.approx(1 - math.exp(20.0), rel=1e-6)
    assert value == pytest.approx(math.exp(20.0) * (gap - 19) - 1 - gap, rel=1e-6)


@given(st.floats(-1, 1, width=32), st.integers(-12, 1))
def test_k3_is_never_negative_and_keeps_its_digits_in_single_precision(mantissa: float, exponent: int) -> None:
    d = float(torch.tensor(mantissa * 10.0**exponent))
    single, _ = value_and_slope(0.0, d, "k3", torch.float32)
    assert single >= 0
    double, _ = value_and_slope(0.0, d, "k3", torch.float64)
    assert single == pytest.approx(double, rel=1e-5, abs=2e-7 * abs(d))


@pytest.mark.parametrize("estimator", ["k2", "k3"])
@pytest.mark.parametrize("start", [-6.0, -0.5])
def test_descent_brings_the_policy_to_the_reference(estimator: Estimator, start: float) -> None:
    logits = torch.tensor([start, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    reference = torch.zeros(3, dtype=torch.float64).log_softmax(0)

    def gap() -> torch.Tensor:
        return (logits.log_softmax(0) - reference).abs()[0]

    before = gap().item()
    for _ in range(300):
        loss = kl(logits.log_softmax(0)[None, :1], reference[None, :1], ONE, estimator).sum()
        (gradient,) = torch.autograd.grad(loss, logits)
        logits.data -= 0.1 * gradient / gradient.norm().clamp(min=1)
    assert gap().item() < 0.05 * before


def test_the_gradient_of_k2_is_that_of_the_divergence() -> None:
    # Over all actions: sum of pi times the gradient of k2 = d KL; of k1 alone = 0, however far the reference.
    logits = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-0.2, 0.5, 0.1], dtype=torch.float64).log_softmax(0)
    logp = logits.log_softmax(0)
    (exact,) = torch.autograd.grad((logp.exp() * (logp - reference)).sum(), logits, retain_graph=True)
    mask = torch.ones(1, 3, dtype=torch.bool)
    wanted: dict[Estimator, torch.Tensor] = {"k1": torch.zeros(3, dtype=torch.float64), "k2": exact}
    for estimator, gradient in wanted.items():
        weighted = (logp.exp().detach() * kl(logp[None], reference[None], mask, estimator)[0]).sum()
        assert torch.allclose(torch.autograd.grad(weighted, logits, retain_graph=True)[0], gradient, atol=1e-12)


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_weighted_by_its_ratio_the_estimate_is_unbiased_off_policy(estimator: Estimator) -> None:
    logits = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-0.2, 0.5, 0.1], dtype=torch.float64).log_softmax(0)
    sampler = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64).log_softmax(0)
    logp = logits.log_softmax(0)
    exact = (logp.exp() * (logp - reference)).sum()
    mask = torch.ones(1, 3, dtype=torch.bool)
    estimates = kl(logp[None], reference[None], mask, estimator, old_logp=sampler[None])[0]
    mean = (sampler.exp() * estimates).sum()
    assert mean.item() == pytest.approx(exact.item())
    gradients = [torch.autograd.grad(x, logits, retain_graph=True)[0] for x in (mean, exact)]
    assert torch.allclose(gradients[0], gradients[1], atol=1e-12)


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'k4'"):
        kl(torch.zeros(1, 1), torch.zeros(1, 1), ONE, "k4")  # type: ignore[arg-type]
