"""What actions are drawn from, against torch.distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import distributions as reference

from tetrathlon.agents.distributions import Distribution, Gaussian, SquashedGaussian, distribution_of

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


UNEVEN = spaces.Box(np.array([-1.0, -0.5]), np.array([1.0, 2.5]), dtype=np.float64)


def squashed(log_std: float = -0.7, *, state_std: bool = False) -> tuple[SquashedGaussian, torch.Tensor, Any]:
    """A distribution, its outputs, and torch's distribution of the same: [6] of [2]."""
    made = distribution_of(UNEVEN, log_std=log_std, squash=True, state_std=state_std)
    assert isinstance(made, SquashedGaussian)
    outputs = torch.randn(6, made.size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean, log_stds = made.parameters_of(outputs)
    to_bounds = reference.AffineTransform(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.5]), event_dim=1)
    normal = reference.Independent(reference.Normal(mean, log_stds.exp()), 1)
    return made, outputs, reference.TransformedDistribution(normal, [reference.TanhTransform(), to_bounds])


@pytest.mark.parametrize("state_std", [False, True])
def test_a_squashed_draw_has_the_probability_of_its_action(state_std: bool) -> None:
    made, outputs, same = squashed(state_std=state_std)
    drawn = made.sample(outputs, torch.Generator().manual_seed(0))
    actions = made.to_env(drawn.detach().numpy())
    assert all(action in UNEVEN for action in actions)
    expected = same.log_prob(torch.as_tensor(actions))
    torch.testing.assert_close(made.log_prob(outputs, drawn), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(made.from_env(actions), drawn.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("u", "half_width", "expected"), [(3.0, 1.0, -10.18713), (3.0, 2.0, -10.88028), (12.0, 1.0, -251.392)]
)
def test_a_squashed_draw_far_out(u: float, half_width: float, expected: float) -> None:
    made = distribution_of(spaces.Box(-half_width, half_width, (1,)), log_std=np.log(0.5), squash=True)
    draw = torch.tensor([[u]], requires_grad=True)
    logp = made.log_prob(torch.tensor([[0.3]]), draw)
    assert logp.item() == pytest.approx(expected, rel=1e-5)
    logp.sum().backward()
    # d/du of the normal, and of -log(1 - tanh**2), which is 2 tanh
    assert draw.grad is not None
    assert draw.grad.item() == pytest.approx(-(u - 0.3) / 0.25 + 2 * np.tanh(u), rel=1e-5)


@pytest.mark.parametrize("log_std", [-2.0, -0.7, 0.0])
def test_the_entropy_of_a_squashed_draw_is_its_mean_surprise(log_std: float) -> None:
    made, outputs, same = squashed(log_std)
    draws = same.sample((100_000,))
    surprise = -same.log_prob(draws).mean(dim=0)
    torch.testing.assert_close(made.entropy(outputs), surprise, rtol=0, atol=0.03)
    wide = outputs.clone().requires_grad_()
    made.entropy(wide).sum().backward()
    assert wide.grad is not None
    assert bool((wide.grad * outputs < 0).all())  # nearer to the middle there is more room


def test_a_standard_deviation_of_the_state() -> None:
    box = distribution_of(SPACES["box"], log_std=-0.7, state_std=True)
    assert box.size == 4 and not list(box.parameters())
    outputs, actions = torch.tensor([[0.1, -0.2, 0.5, -30.0]]), torch.tensor([[0.4, -0.2]])
    parts = reference.Normal(outputs[0, :2], torch.tensor([-0.2, -20.0]).exp())
    logp, entropy = box.evaluate(outputs, actions)
    torch.testing.assert_close(logp, parts.log_prob(actions).sum(-1))
    torch.testing.assert_close(entropy, parts.entropy().sum()[None])
    assert torch.equal(box.mode(outputs), outputs[:, :2])


def test_what_was_drawn_outside_is_noted_as_drawn() -> None:
    box = distribution_of(spaces.Box(-1, 1, (1,)), log_std=np.log(0.5))
    logp = box.log_prob(torch.tensor([[0.9], [0.9]]), torch.tensor([[1.6], [1.0]]))
    assert logp.tolist() == pytest.approx([-1.205791, -0.245791], abs=1e-6)
    assert box.to_env(np.array([[1.6]], np.float32)).tolist() == [[1.0]]
    assert (logp[1] - logp[0]).exp().item() == pytest.approx(2.611696, rel=1e-5)  # the ratio, were they mixed


def test_what_squashing_needs() -> None:
    with pytest.raises(ValueError, match="finite bounds, low below high; got Box"):
        distribution_of(spaces.Box(-np.inf, 1.0, (2,)), squash=True)
    with pytest.raises(TypeError, match=r"squash=True and state_std=False are of a Box of floats, got Discrete\(3\)"):
        distribution_of(spaces.Discrete(3), squash=True)
    made = squashed()[0]
    assert np.isfinite(made.from_env(np.array([[1.0, -0.5]]))).all()
    with pytest.raises(ValueError, match="is no action of Box"):
        made.from_env(np.array([[1.0, 2.6]]))
