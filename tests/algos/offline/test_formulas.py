"""One step of each algorithm, beside its paper's formula written out anew over the same weights and draws."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.algos.offline.logs import line_log, line_policy
from tetrathlon.agents.control import ControlPolicy
from tetrathlon.algos.offline import AWAC, AWR, CQL, TD3BC, Offline, ReBRAC
from tetrathlon.algos.offline.learner import OfflineLearner
from tetrathlon.algos.replay import Replay, Sample

ROWS = 40
GAMMA = 0.9


class Bench:
    """A learner in the middle of its run, a sample, and its networks by hand."""

    def __init__(self, algorithm: type[Offline], **options: Any) -> None:
        self.policy: ControlPolicy = line_policy(seed=1)
        # Two runs of random steps away from initial weights, so that slow copies are behind.
        small = {"gamma": GAMMA, "hidden": (8, 8), "steps": 6, "batch_size": 16, "polyak": 0.3, **options}
        self.learner: Any = algorithm.Learner(self.policy, algorithm.Options(**small))
        self.replay = Replay(self.policy, line_log(12))
        learner: OfflineLearner = self.learner
        learner.updates = 10
        learner.update(self.replay)
        self.sample: Sample = self.replay.draw(ROWS, torch.Generator().manual_seed(5))
        now, after = self.sample.now, self.sample.after
        assert after is not None
        self.state, self.next_state = now.inputs["observation"][:, 0], after.inputs["observation"][:, 0]
        self.action, self.reward = now.inputs["action"][:, 0].tanh(), now.reward[:, 0]
        self.streams = (learner.generator.get_state(), self.policy.generator.get_state())

    def q(self, critic: Any, state: Tensor, action: Tensor) -> Tensor:
        """Return [K, N], one member after another by plain products."""
        told = []
        for member in critic.ensemble.members:
            x = torch.cat([state, action], 1)
            linear = [layer for layer in member if isinstance(layer, torch.nn.Linear)]
            norms = [layer for layer in member if isinstance(layer, torch.nn.LayerNorm)]
            for number, layer in enumerate(linear):
                x = x @ layer.weight.t() + layer.bias
                if number < len(linear) - 1:
                    x = torch.relu(x)
                    if norms:
                        mean, var = x.mean(1, keepdim=True), x.var(1, keepdim=True, correction=0)
                        x = (x - mean) / (var + 1e-5).sqrt() * norms[number].weight + norms[number].bias
            told.append(x[:, 0])
        return torch.stack(told)

    def mean(self, policy: Any, state: Tensor) -> Tensor:
        return policy.actor(state)

    def draw(self, state: Tensor, n: int = 1) -> tuple[Tensor, Tensor]:
        """Return n actions a state, [n, N, 1], and their log-densities, from the policy's stream."""
        mean, std = self.policy.actor(state), self.policy.distribution.log_std.exp()  # type: ignore[operator]
        u = mean + std * torch.randn((n, len(state), 1, 1), generator=self.policy.generator)[..., 0]
        normal = -0.5 * ((u - mean) / std) ** 2 - std.log() - 0.5 * math.log(2 * math.pi)
        return u.tanh(), (normal - torch.log(1 - u.tanh() ** 2))[..., 0]

    def loss(self, phase: str) -> Tensor:
        """Return the learner's own loss of the sample, its draws begun anew."""
        self.learner.generator.set_state(self.streams[0])
        self.policy.generator.set_state(self.streams[1])
        return self.learner._loss(phase, self.sample, self.sample.now.mask.sum())[0]

    def again(self) -> None:
        """Begin the draws anew."""
        self.learner.generator.set_state(self.streams[0])
        self.policy.generator.set_state(self.streams[1])

    def check(self, phase: str, wanted: Tensor, weights: list[Any]) -> None:
        """Compare loss and gradients."""
        found = self.loss(phase)
        assert float(found.detach()) == pytest.approx(float(wanted.detach()), rel=1e-4)
        own = torch.autograd.grad(found, weights, allow_unused=True)
        other = torch.autograd.grad(wanted, weights, allow_unused=True)
        moved = 0
        for one, two in zip(own, other, strict=True):
            assert (one is None) == (two is None)
            if one is not None and two is not None:
                assert torch.allclose(one, two, rtol=1e-3, atol=1e-5)
                moved += int(one.abs().max() > 1e-6)
        assert moved > 2


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [(TD3BC, {}), (ReBRAC, {"critic_bc": 0.3, "bc": 0.2, "hidden": (8, 8)})],
)
def test_td3_bc_and_rebrac(algorithm: type[Offline], options: dict[str, Any]) -> None:
    bench = Bench(algorithm, **options)
    slow, critic = bench.learner.slow, bench.policy.critic
    bench.again()
    with torch.no_grad():
        noise = (torch.randn((1, ROWS, 1, 1), generator=bench.learner.generator)[0, :, 0] * 0.2).clamp(-0.5, 0.5)
        best = (slow.actor(bench.next_state).tanh() + noise).clamp(-1, 1)
        worth = bench.q(slow.critic, bench.next_state, best).min(0).values
        if algorithm is ReBRAC:
            assert bench.sample.after is not None
            done = bench.sample.after.inputs["action"][:, 0].tanh()
            was_decided = bench.sample.after.mask[:, 0]
            assert 0 < int(was_decided.sum()) < ROWS  # after a last step nothing was done
            worth = worth - 0.3 * torch.where(was_decided, ((best - done) ** 2).sum(1), 0.0)
        target = bench.reward + GAMMA * worth
    critics = [weight for weight in bench.learner.critic_weights if weight.requires_grad]
    wanted = sum(((q - target) ** 2).mean() for q in bench.q(critic, bench.state, bench.action))
    bench.check("critic", wanted, critics)
    mine = bench.mean(bench.policy, bench.state).tanh()
    q = bench.q(critic, bench.state, mine)
    apart = ((mine - bench.action) ** 2).sum(1)  # of one number its sum is its mean
    if algorithm is TD3BC:
        wanted = -2.5 / q[0].abs().mean().detach() * q[0].mean() + apart.mean()
    else:
        least = q.min(0).values
        wanted = 0.2 * apart.mean() - least.mean() / least.abs().mean().detach()
    bench.check("policy", wanted, bench.learner.actor_weights)


def test_awac() -> None:
    bench = Bench(AWAC, beta=2.0)
    critic, slow = bench.policy.critic, bench.learner.slow
    bench.again()
    with torch.no_grad():
        chosen, _ = bench.draw(bench.next_state)
        target = bench.reward + GAMMA * bench.q(slow, bench.next_state, chosen[0]).min(0).values
    wanted = sum(((q - target) ** 2).mean() for q in bench.q(critic, bench.state, bench.action))
    bench.check("critic", wanted, bench.learner.critic_weights)
    bench.again()
    with torch.no_grad():
        chosen, _ = bench.draw(bench.state)
        gain = (
            bench.q(critic, bench.state, bench.action).min(0).values
            - bench.q(critic, bench.state, chosen[0]).min(0).values
        )
        weight = (2.0 * gain).exp().clamp(max=100)
    logp = -bench.policy.imitation_loss(bench.sample.now)[0][:, 0]
    bench.check("policy", -(weight * logp).mean(), bench.learner.actor_weights)


def test_cql() -> None:
    n = 4
    bench = Bench(CQL, proposals=n, conservatism=3.0, temperature=0.7)
    critic, slow = bench.policy.critic, bench.learner.slow
    bench.again()
    with torch.no_grad():
        (here, here_logp), (there, there_logp) = bench.draw(bench.state, n), bench.draw(bench.next_state, n)
        target = bench.reward + GAMMA * bench.q(slow, bench.next_state, there[0]).min(0).values
        anywhere = torch.rand((n, ROWS, 1, 1), generator=bench.learner.generator)[:, :, 0] * 2 - 1
    wanted: Any = 0.0
    elsewhere = [bench.q(critic, bench.state, action) for action in (*anywhere, *here, *there)]
    density = [torch.full((ROWS,), math.log(0.5))] * n + list(here_logp) + list(there_logp)
    for k, q in enumerate(bench.q(critic, bench.state, bench.action)):
        told = torch.stack([e[k] / 0.7 - d for e, d in zip(elsewhere, density, strict=True)])
        most = 0.7 * (torch.logsumexp(told, 0) - math.log(3 * n))
        wanted = wanted + ((q - target) ** 2).mean() + 3.0 * (most - q).mean()
    bench.check("critic", wanted, bench.learner.critic_weights)
    bench.again()
    chosen, logp = bench.draw(bench.state)
    least = bench.q(critic, bench.state, chosen[0]).min(0).values
    alpha = bench.learner.log_alpha.exp()
    wanted = (alpha.detach() * logp[0] - least).mean() - (bench.learner.log_alpha * (logp[0].detach() - 1)).mean()
    bench.check("policy", wanted, [*bench.learner.actor_weights, bench.learner.log_alpha])


def test_awr() -> None:
    bench = Bench(AWR, beta=2.0, lam=0.7, value_steps=0)
    learner, now = bench.learner, bench.sample.now
    assert now.returns is not None
    value = bench.policy.critic(bench.state)
    gain = now.returns[:, 0] - value
    logp = -bench.policy.imitation_loss(now)[0][:, 0]
    weight = (2.0 * gain.detach()).exp().clamp(max=20)
    weights = [*learner.actor_weights, *learner.critic_weights]
    bench.check("loss", (gain**2).mean() / 2 - (weight * logp).mean(), weights)


def test_awr_listens_to_its_critic_only_when_it_knows_something() -> None:
    policy = line_policy()
    before = copy.deepcopy(policy.actor.state_dict())
    learner: Any = AWR.Learner(policy, AWR.Options(steps=5, value_steps=5))
    told = learner.update(Replay(policy, line_log(4)))
    assert "policy_loss" not in told
    assert all(torch.equal(weight, before[name]) for name, weight in policy.actor.state_dict().items())
    assert "policy_loss" in learner.update(Replay(policy, line_log(4)))
