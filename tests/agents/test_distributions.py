"""What actions are drawn from, against torch.distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import distributions as reference

from tetrathlon.agents.distributions import Distribution, Gaussian, distribution_of

SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(3, start=-1),
    "multi_discrete": spaces.MultiDiscrete(np.array([[2, 3], [4, 1]]), start=np.array([[0, 5], [-2, 0]])),
    "multi_binary": spaces.MultiBinary([2, 2]),
    "box": spaces.Box(np.array([-1.0, -0.5]), np.array([1.0, 2.0]), dtype=np.float64),
}


def the_same(space: spaces.Space[Any], outputs: torch.Tensor, log_std: float) -> Any:
    """The distributions of torch, one a component, [N, D]."""
    if isinstance(space, spaces.Discrete):
        return [reference.Categorical(logits=outputs)]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.ravel().tolist()
        return [reference.Categorical(logits=logits) for logits in outputs.split(sizes, -1)]
    if isinstance(space, spaces.MultiBinary):
        return [reference.Bernoulli(logits=logit) for logit in outputs.unbind(-1)]
    return [reference.Normal(mean, np.exp(log_std)) for mean in outputs.unbind(-1)]


def made(name: str) -> tuple[Distribution, torch.Tensor]:
    distribution = distribution_of(SPACES[name], log_std=-0.7)
    outputs = torch.randn(6, distribution.size, generator=torch.Generator().manual_seed(1))
    return distribution, outputs.requires_grad_()


@pytest.mark.parametrize("name", SPACES)
def test_probabilities_entropies_and_their_gradients(name: str) -> None:
    distribution, outputs = made(name)
    actions = distribution.sample(outputs, torch.Generator().manual_seed(0)).detach()
    logp, entropy = distribution.evaluate(outputs, actions)
    parts = the_same(SPACES[name], outputs, -0.7)
    drawn = actions.float().unbind(-1)
    expected = torch.stack([part.log_prob(a) for part, a in zip(parts, drawn, strict=True)], -1).sum(-1)
    torch.testing.assert_close(logp, expected)
    torch.testing.assert_close(entropy, torch.stack([part.entropy() for part in parts], -1).sum(-1))
    for found, wanted in ((logp, expected), (logp.exp(), expected.exp())):
        gradients = [torch.autograd.grad(x.sum(), outputs, retain_graph=True)[0] for x in (found, wanted)]
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", SPACES)
def test_draws_have_their_probabilities(name: str) -> None:
    distribution, outputs = made(name)
    row = outputs[:1].detach().expand(20_000, -1)
    drawn = distribution.sample(row, torch.Generator().manual_seed(0)).detach().double()
    for part, values in zip(the_same(SPACES[name], row[:1], -0.7), drawn.unbind(-1), strict=True):
        if name == "box":
            assert values.mean() == pytest.approx(part.mean.item(), abs=0.02)
            assert values.std() == pytest.approx(np.exp(-0.7), abs=0.02)
            continue
        for value in range(2 if name == "multi_binary" else part.probs.shape[-1]):
            expected = part.log_prob(torch.tensor(float(value))).exp().item()
            assert (values == value).double().mean() == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("name", SPACES)
def test_the_mode_is_the_likeliest(name: str) -> None:
    distribution, outputs = made(name)
    best = distribution.evaluate(outputs, distribution.mode(outputs))[0]
    for seed in range(20):
        drawn = distribution.sample(outputs, torch.Generator().manual_seed(seed))
        assert bool((distribution.evaluate(outputs, drawn)[0] <= best + 1e-6).all())


@pytest.mark.parametrize("name", SPACES)
def test_an_environment_takes_what_was_drawn(name: str) -> None:
    distribution, outputs = made(name)
    drawn = distribution.sample(10 * outputs, torch.Generator().manual_seed(0)).detach().numpy()
    actions = distribution.to_env(drawn)
    assert all(action in SPACES[name] for action in actions)
    back = distribution.from_env(actions)
    assert back.dtype == drawn.dtype and back.shape == drawn.shape
    if name == "box":
        assert (np.abs(drawn) > 2).any()  # clipped
        assert actions.tolist() == np.clip(drawn.astype(np.float64), [-1.0, -0.5], [1.0, 2.0]).tolist()
    else:
        assert back.tolist() == drawn.tolist()


def test_components_keep_their_places() -> None:
    multi = distribution_of(SPACES["multi_discrete"])
    assert multi.to_env(np.array([[1, 2, 3, 0]])).tolist() == [[[1, 7], [1, 0]]]
    assert distribution_of(SPACES["discrete"]).to_env(np.array([[0], [2]])).tolist() == [-1, 1]


def test_a_standard_deviation_is_learnt() -> None:
    box = distribution_of(SPACES["box"], log_std=0.5)
    assert isinstance(box, Gaussian) and [name for name, _ in box.named_parameters()] == ["log_std"]
    logp, entropy = box.evaluate(torch.zeros(1, 2), torch.tensor([[0.0, 3.0]]))
    (logp.sum() + 2 * entropy.sum()).backward()
    # d logp / d log_std = z**2 - 1, with z = distance / std; d entropy / d log_std = 1
    assert box.log_std.grad is not None
    assert box.log_std.grad.tolist() == pytest.approx([-1 + 2, 9 * np.exp(-1.0) - 1 + 2])


@pytest.mark.parametrize(
    ("name", "actions", "said"),
    [
        ("discrete", [0, 2], r"2.* is no action of Discrete\(3, start=-1\)"),
        ("discrete", [-2], r"-2.* is no action of Discrete"),
        ("discrete", [0.5], r"an array of float64 with the shape \(1,\)"),
        ("multi_discrete", [[0, 1]], r"with the shape \(1, 2\)"),
        ("multi_binary", [[[0, 1], [2, 0]]], "is no action of MultiBinary"),
        ("box", [[0.0, float("nan")]], "is no action of Box"),
        ("box", [["a", "b"]], "an array of <U1"),
    ],
)
def test_what_is_no_action(name: str, actions: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        distribution_of(SPACES[name]).from_env(np.array(actions))


def test_spaces_without_a_distribution() -> None:
    for space in (spaces.Text(3), spaces.Box(0, 255, (2,), np.uint8), spaces.Tuple([spaces.Discrete(2)])):
        with pytest.raises(TypeError, match="actions must be Discrete, MultiDiscrete, MultiBinary or a Box of floats"):
            distribution_of(space)
