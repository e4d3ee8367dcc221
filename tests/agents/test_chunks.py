"""Heads: what they draw, how likely it is, and what they learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from scipy.stats import norm

from tetrathlon.agents.chunks import Bins, Chunk, Flow, Head, head_of
from tetrathlon.agents.distributions import Distribution

SPACE = spaces.Box(np.array([[-1, 0]] * 3, np.float32), np.array([[1, 4]] * 3, np.float32))  # K = 3, A = 2
HEADS: tuple[Head, ...] = ("gaussian", "bins", "l1", "flow")


def made(head: Head, space: spaces.Space[Any] = SPACE, **options: Any) -> Distribution:
    torch.manual_seed(0)
    return head_of(space, head, **{"log_std": -0.5, "state_std": False, "bins": 256, "flow_steps": 10, **options})


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fit(head: Distribution, targets: torch.Tensor, steps: int, lr: float = 0.01) -> torch.Tensor:
    """Learn what to say where there is nothing to see; return the outputs [P]."""
    outputs = torch.zeros(head.size, requires_grad=True)
    optimizer = torch.optim.Adam([outputs, *head.parameters()], lr=lr)
    noise = stream()
    for _ in range(steps):
        told = outputs.expand(len(targets), -1)
        loss = head.loss(told, targets, noise) if not head.has_density else -head.evaluate(told, targets)[0]
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
    return outputs.detach()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("space", [SPACE, spaces.Box(-1, 1, (2,), np.float64)], ids=["chunk", "single"])
def test_draws_are_actions_of_the_space_and_seeded(head: Head, space: spaces.Box) -> None:
    distribution = made(head, space)
    outputs = 3 * torch.randn(5, distribution.size, generator=stream(1))
    one, same, other = (distribution.sample(outputs, stream(seed)) for seed in (2, 2, 3))
    assert torch.equal(one, same) and torch.equal(one, other) == (head == "l1")
    for drawn in (one, distribution.mode(outputs)):
        actions = distribution.to_env(drawn.detach().numpy())
        assert actions.shape == (5, *space.shape) and all(action in space for action in actions)
        inside = distribution.to_env(distribution.from_env(actions))  # as others would do the same
        np.testing.assert_allclose(inside, actions, atol=1e-6)


def test_a_gaussian_chunk_is_as_likely_as_its_actions_together() -> None:
    chunk = made("gaussian", state_std=True)
    outputs = torch.randn(4, chunk.size, generator=stream())
    actions = torch.randn(4, 6, generator=stream(1))
    parameters = outputs.numpy().reshape(4, 3, 2, 2)  # of each action two means, then two logarithms of deviations
    expected = norm.logpdf(actions.numpy().reshape(4, 3, 2), parameters[:, :, 0], np.exp(parameters[:, :, 1] - 0.5))
    np.testing.assert_allclose(chunk.log_prob(outputs, actions), expected.sum(-1), rtol=1e-4, atol=1e-5)
    entropies = norm.entropy(0, np.exp(parameters[:, :, 1] - 0.5)).sum(-1)
    np.testing.assert_allclose(chunk.entropy(outputs), entropies, rtol=1e-5)
    executed = torch.tensor([0, 1, 2, 3])
    assert isinstance(chunk, Chunk)
    logp, entropy = chunk.evaluate(outputs, actions, executed)
    np.testing.assert_allclose(logp, [expected[i, :i].sum() for i in range(4)], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(entropy, [entropies[i, :i].sum() for i in range(4)], rtol=1e-5)
    np.testing.assert_allclose(chunk.evaluate(outputs, actions)[0], expected.sum((1, 2)), rtol=1e-4)


def test_what_was_not_executed_has_no_gradient() -> None:
    chunk = made("gaussian")
    assert isinstance(chunk, Chunk)
    outputs = torch.zeros(1, 6, requires_grad=True)
    actions = torch.tensor([[1.0, 2.0, 3.0, 1e6, -1e6, 1.0]])
    logp, _ = chunk.evaluate(outputs, actions, torch.tensor([1]))
    logp.sum().backward()
    assert outputs.grad is not None and outputs.grad[0].tolist()[2:] == [0.0] * 4 and outputs.grad[0, :2].all()


def test_bins_are_chosen_as_categories() -> None:
    chunk = made("bins", bins=5)
    assert isinstance(chunk, Chunk) and isinstance(chunk.of, Bins)
    outputs = torch.randn(4, chunk.size, generator=stream())
    actions = torch.randint(5, (4, 6), generator=stream(1))
    category = torch.distributions.Categorical(logits=chunk.of.logits(outputs.reshape(4, 3, 2, -1)))
    torch.testing.assert_close(chunk.log_prob(outputs, actions), category.log_prob(actions.reshape(4, 3, 2)).sum(-1))
    torch.testing.assert_close(chunk.entropy(outputs), category.entropy().sum(-1))
    drawn = chunk.sample(outputs[0].expand(20_000, -1), stream(2))
    shares = torch.stack([(drawn == choice).float().mean(0) for choice in range(5)], dim=-1)
    assert (shares - category.probs[0].reshape(6, 5)).abs().max() < 0.015
    assert torch.equal(chunk.mode(outputs), category.logits.argmax(-1).reshape(4, 6))


@pytest.mark.parametrize("bins", [2, 256])
def test_an_action_comes_back_from_its_bin_within_half_of_it(bins: int) -> None:
    chunk = made("bins", bins=bins)
    actions = np.random.default_rng(0).uniform(SPACE.low, SPACE.high, (500, 3, 2)).astype(np.float32)
    actions[0], actions[1] = SPACE.low, SPACE.high
    chosen = chunk.from_env(actions)
    assert chosen.dtype == np.int64 and chosen.min() == 0 and chosen.max() == bins - 1
    half = (SPACE.high - SPACE.low) / bins / 2
    assert (np.abs(chunk.to_env(chosen) - actions) <= half * (1 + 1e-5)).all()
    assert np.array_equal(chunk.from_env(chunk.to_env(chosen)), chosen)
    assert np.array_equal(chunk.from_env(actions + 100), np.full((500, 6), bins - 1))


def test_neighbouring_bins_begin_alike() -> None:
    bins = Bins(spaces.Box(-1, 1, (1,)))
    logp = bins.logits(torch.randn(200, 32, generator=stream()))
    near, far = (logp[:, 1:] - logp[:, :-1]).square().mean(), (logp[:, 128:] - logp[:, :-128]).square().mean()
    assert near < far / 10


def test_l1_is_the_median_and_a_gaussian_the_mean() -> None:
    space = spaces.Box(0, 4, (1,), np.float32)
    seen = np.array([[0.5], [1.0], [3.0]], np.float32)
    found = {}
    for name in ("l1", "gaussian"):
        head = made(name, space)
        outputs = fit(head, torch.from_numpy(head.from_env(seen)), steps=400, lr=0.05)
        found[name] = float(head.to_env(head.mode(outputs[None]).numpy())[0, 0])
    assert found == {"l1": pytest.approx(1.0, abs=0.15), "gaussian": pytest.approx(1.5, abs=0.05)}


def test_a_flow_goes_both_ways_where_a_regression_stands_between() -> None:
    space = spaces.Box(-1, 1, (2, 1), np.float32)
    both = torch.tensor([[0.8, -0.6], [-0.8, 0.6]]).repeat(32, 1)  # left and back, or right and back, never a mix
    flow = made("flow", space)
    outputs = fit(flow, both, steps=500, lr=5e-3)
    drawn = flow.sample(outputs.expand(500, -1), stream(7)).detach()
    distances = torch.cdist(drawn, both[:2])
    assert (distances.min(dim=1).values < 0.2).float().mean() > 0.85
    shares = torch.bincount(distances.argmin(dim=1), minlength=2) / 500
    assert 0.35 < shares[0] < 0.65
    regression = made("l1", space)
    middle = fit(regression, both, steps=400)
    assert torch.cdist(regression.sample(middle[None], stream()), both[:2]).min() > 0.9


def test_more_of_eulers_steps_are_nearer_to_the_flow() -> None:
    space = spaces.Box(-1, 1, (1,), np.float32)
    flow = made("flow", space)
    assert isinstance(flow, Flow)
    outputs = fit(flow, torch.tensor([[0.5]]).repeat(16, 1), steps=200, lr=5e-3)
    drawn = {}
    for steps in (1, 10, 100):
        flow.steps = steps
        drawn[steps] = flow.sample(outputs.expand(200, -1), stream()).detach()
    assert (drawn[10] - drawn[100]).abs().max() < (drawn[1] - drawn[100]).abs().max()
    assert (drawn[10] - 0.5).abs().mean() < 0.1


@pytest.mark.parametrize("head", ["l1", "flow"])
def test_what_has_no_density_says_so(head: Head) -> None:
    distribution = made(head)
    outputs, actions = torch.zeros(2, distribution.size), torch.zeros(2, 6)
    for ask in (lambda: distribution.evaluate(outputs, actions), lambda: distribution.entropy(outputs)):
        with pytest.raises(TypeError, match=f"head='{head}' has no density.* BC or DAgger, or take head='gaussian'"):
            ask()


@pytest.mark.parametrize(
    ("space", "options", "error", "said"),
    [
        (spaces.Discrete(3), {}, TypeError, r"a Box of floats, \[A\] or in chunks \[K, A\]; got Discrete"),
        (spaces.Box(-1, 1, (2, 2, 2)), {}, TypeError, r"a Box of floats, \[A\] or in chunks"),
        (
            spaces.Box(np.zeros((2, 1), np.float32), np.array([[1], [2]], np.float32)),
            {},
            TypeError,
            "must have the same bounds",
        ),
        (spaces.Box(-np.inf, np.inf, (2, 2)), {"head": "bins"}, ValueError, "bins need finite bounds, low below high"),
        (SPACE, {"head": "bins", "bins": 1}, ValueError, "bins must be at least 2, got 1"),
        (SPACE, {"head": "flow", "flow_steps": 0}, ValueError, "flow_steps must be at least 1, got 0"),
    ],
)
def test_what_it_refuses(space: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        made(**{"head": "gaussian", "space": space, **options})


@pytest.mark.parametrize("head", HEADS)
def test_what_is_no_action_is_refused(head: Head) -> None:
    distribution = made(head)
    with pytest.raises(ValueError, match="is no action of Box"):
        distribution.from_env(np.full((1, 3, 2), np.nan, np.float32))
    with pytest.raises(ValueError, match="actions must be those of Box"):
        distribution.from_env(np.zeros((1, 2), np.float32))
