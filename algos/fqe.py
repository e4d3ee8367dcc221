"""Fitted Q evaluation: the worth of states and actions under a policy, learnt from transitions that others made.

Shapes: N transitions, S states, M proposals a state, E episodes. A state is stored once: T actions have T + 1 states,
of which the last is left out where the task ended, for nothing comes after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy, still
from tetrathlon.algos.batch import evaluated
from tetrathlon.algos.columns import select
from tetrathlon.algos.estimates import device_of
from tetrathlon.envs.episode import Episode, Step, scorable

Q = Callable[[Tensor, Tensor], Tensor]
"""From states [N, ...] and actions [N, ...] to their worth, float [N]: a module or any function."""
Encode = Callable[[list[Any]], Tensor]
"""From N observations, or N actions, to features [N, ...]."""
Propose = Callable[[list[Any]], tuple[Tensor, Tensor]]
"""From S observations to what the policy would do there: features [S, M, ...], as :data:`Encode` makes them of actions,
and weights [S, M] that sum to 1 over M. See :func:`enumerated` and :func:`sampled`."""

_ROWS = 2**16
"""Rows that Q is asked for at once without gradients."""
_ALONE = 2**10
"""Actions that a policy is asked for at once."""


class Fit(Protocol):
    """Sets Q to the regression of targets; see :class:`Regression`."""

    def __call__(self, q: Q, data: Transitions, target: Tensor, /) -> object:
        """Fit ``q`` of the N transitions to ``target``, float64 [N]."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """What was done in a log, and what the policy that is judged would do in each of its states."""

    state: Tensor
    """[S, ...], features."""
    proposal: Tensor
    """[S, M, ...], features of what the policy might do there."""
    weight: Tensor
    """float [S, M], how likely it does; sums to 1 over M."""
    action: Tensor
    """[N, ...], features of what was done."""
    before: Tensor
    """int [N], the state in which it was done."""
    after: Tensor
    """int [N], the state to which it led; not read where ``terminated``."""
    reward: Tensor
    """float64 [N]."""
    terminated: Tensor
    """bool [N], nothing comes after it. A truncation is no end: the true last state follows."""
    env_steps: Tensor
    """int [N], environment steps that it took; the discount is gamma ** env_steps."""
    start: Tensor
    """int [E], the first state of each episode."""

    def __len__(self) -> int:
        return len(self.action)

    @classmethod
    def of(cls, episodes: Sequence[Episode], *, observed: Encode, decided: Encode, proposed: Propose) -> Transitions:
        """Read the transitions of a log, each step one. Episodes whose grader failed are left out.

        Args:
            episodes: The log.
            observed: Makes features of observations.
            decided: Makes features of actions.
            proposed: Says what the policy that is judged would do; see :data:`Propose`.

        Raises:
            ValueError: There is no step, a last observation is missing after an episode that did not terminate, or
                features or proposals are not as many as what they are of.
        """
        observations: list[Any] = []
        actions: list[Any] = []
        before: list[int] = []
        after: list[int] = []
        steps: list[Step] = []
        start: list[int] = []
        for number, episode in enumerate(scorable(episodes)):
            if episode.steps:
                start.append(len(observations))
            for step in episode.steps:
                before.append(len(observations))
                after.append(len(observations) + (not step.terminated))
                observations.append(step.observation)
                actions.append(step.action)
                steps.append(step)
            if episode.steps and not episode.steps[-1].terminated:
                if episode.final_observation is None:
                    raise ValueError(f"episode {number} did not terminate, and its last observation is missing")
                observations.append(episode.final_observation)
        if not steps:
            raise ValueError(f"there is no step in these {len(episodes)} episodes")
        state, action = observed(observations), decided(actions)
        proposal, weight = proposed(observations)
        for name, features, count in (("observed", state, len(observations)), ("decided", action, len(actions))):
            if len(features) != count:
                raise ValueError(f"{name} made {len(features)} features of {count}; it must make one of each")
        if weight.ndim != 2 or weight.shape != proposal.shape[:2] or len(weight) != len(state):
            raise ValueError(
                f"proposed must give [S, M, ...] and [S, M] of {len(state)} states, got {list(proposal.shape)} and "
                f"{list(weight.shape)}"
            )
        if not ((off := (weight.double().sum(dim=1) - 1).abs()) < 1e-3).all():
            raise ValueError(
                f"weights of proposals must sum to 1 in each state; they are off by up to {float(off.max())}"
            )
        return cls(
            state=state,
            proposal=proposal,
            weight=weight,
            action=action,
            before=torch.tensor(before),
            after=torch.tensor(after),
            reward=torch.tensor([float(step.reward) for step in steps], dtype=torch.float64),
            terminated=torch.tensor([step.terminated for step in steps]),
            env_steps=torch.tensor([len(step.info.get("step_rewards", (step.reward,))) for step in steps]),
            start=torch.tensor(start),
        )

    @torch.no_grad()
    def q(self, q: Q) -> Tensor:
        """Return the worth of what was done, float64 [N]."""
        parts = zip(self.before.split(_ROWS), self.action.split(_ROWS), strict=True)
        return torch.cat([q(self.state[before], action).double().cpu() for before, action in parts])

    @torch.no_grad()
    def v(self, q: Q) -> Tensor:
        """Return the worth of each state under the policy, float64 [S]: the mean of q over what it would do."""
        found = []
        width = self.weight.shape[1]
        rows = max(_ROWS // width, 1)
        for state, proposal, weight in zip(
            *(x.split(rows) for x in (self.state, self.proposal, self.weight)), strict=True
        ):
            worth = q(state.repeat_interleave(width, dim=0), proposal.flatten(0, 1)).double().view(weight.shape)
            found.append((select(worth, weight > 0) * weight).sum(dim=1).cpu())
        return torch.cat(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedQ:
    """What fitted Q evaluation found."""

    value: float
    """The mean worth of the first states."""
    standard_error: float
    """Of that mean over the first states, as if Q were right; NaN for one episode."""
    q: Tensor = field(repr=False)
    """float64 [N], the worth of what was done."""
    v: Tensor = field(repr=False)
    """float64 [S], the worth of each state under the policy."""
    changes: list[float] = field(repr=False)
    """How far the targets moved, at most, from each iteration to the next: near 0 it has settled."""
    data: Transitions = field(repr=False)
    """What it was learnt from."""

    def columns(self, decisions: Decisions) -> tuple[Tensor, Tensor]:
        """Return q and v where the decisions are, as :func:`tetrathlon.algos.ope.doubly_robust` takes them.

        Args:
            decisions: Of the same episodes, a row each, every step one decision.

        Returns:
            q: float64 [B, T], 0 outside ``mask``.
            v: float64 [B, T], 0 outside ``mask | final``.

        Raises:
            ValueError: They are not the decisions of the same steps.
        """
        mask, asked = decisions.mask.cpu(), (decisions.mask | decisions.final).cpu()
        if (int(mask.sum()), int(asked.sum())) != (len(self.q), len(self.v)):
            raise ValueError(
                f"there are {int(mask.sum())} decisions and {int((asked & ~mask).sum())} last states, and Q was fitted "
                f"to {len(self.q)} and {len(self.v) - len(self.q)}; they must be the same steps, each one decision"
            )
        empty = torch.zeros(mask.shape, dtype=torch.float64)
        return empty.masked_scatter(mask, self.q), empty.masked_scatter(asked, self.v)


@dataclass(slots=True, kw_only=True)
class Regression:
    """Least squares by Adam over minibatches; the optimizer goes on from one iteration to the next."""

    steps: int = 50
    """Optimizer steps an iteration."""
    lr: float = 1e-3
    """Learning rate."""
    batch_size: int = 256
    """Transitions a step, drawn with replacement; all of them where there are no more."""
    seed: int = 0
    """Of what is drawn."""
    _optimizer: torch.optim.Optimizer | None = field(default=None, init=False, repr=False)
    _generator: torch.Generator = field(default_factory=torch.Generator, init=False, repr=False)

    def __call__(self, q: Q, data: Transitions, target: Tensor) -> None:
        """See :class:`Fit`.

        Raises:
            TypeError: Q has no parameters to fit.
        """
        if self._optimizer is None:
            weights = [w for w in q.parameters() if w.requires_grad] if isinstance(q, nn.Module) else []
            if not weights:
                raise TypeError(f"{type(q).__name__} has no parameters to fit; give a torch module, or fit=")
            self._optimizer = torch.optim.Adam(weights, self.lr)
            self._generator.manual_seed(self.seed)
        for _ in range(self.steps):
            rows = torch.arange(len(data))
            if len(data) > self.batch_size:
                rows = torch.randint(len(data), (self.batch_size,), generator=self._generator)
            worth = q(data.state[data.before[rows]], data.action[rows])
            loss = 0.5 * (worth - target[rows].to(worth)).pow(2).mean()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()


def fitted_q_evaluation(
    q: Q, data: Transitions, *, gamma: float, iterations: int = 100, fit: Fit | None = None
) -> FittedQ:
    r"""Learn the worth of actions under a policy (FQE; Le et al., 2019, algorithm 3).

    .. math:: Q_k = \arg\min_Q \sum_i \Big(Q(s_i, a_i) - r_i - \gamma^{k_i} \sum_m w_m Q_{k-1}(s'_i, a'_m)\Big)^2

    After a termination the second term is 0; after a truncation it is that of the true last state.

    Args:
        q: See :data:`Q`; it is changed.
        data: The transitions.
        gamma: Discount of one environment step.
        iterations: How often targets are made anew. The worth of rewards k steps ahead takes k of them.
        fit: Fits Q to targets; default: :class:`Regression`, for torch modules.

    Raises:
        TypeError: Q has no parameters to fit.
        ValueError: ``gamma`` or ``iterations`` is out of range, or Q ran away: it is not finite.
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must be in [0, 1], got {gamma}")
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    fit = Regression() if fit is None else fit
    discount = gamma ** data.env_steps.double()
    target: Tensor | None = None
    changes: list[float] = []
    for iteration in range(iterations):
        # Where the task ended, ``after`` may be out of bounds.
        following = data.v(q)[data.after.where(~data.terminated, 0)]
        wanted = data.reward + torch.where(data.terminated, 0.0, discount * following)
        if not torch.isfinite(wanted).all():
            raise ValueError(f"Q is not finite after {iteration} iterations: it ran away; try a smaller learning rate")
        if target is not None:
            changes.append(float((wanted - target).abs().max()))
        target = wanted
        fit(q, data, target)
    v = data.v(q)
    first = v[data.start]
    error = float(first.std()) / math.sqrt(len(first)) if len(first) > 1 else math.nan
    return FittedQ(value=float(first.mean()), standard_error=error, q=data.q(q), v=v, changes=changes, data=data)


def enumerated(policy: TrainablePolicy, actions: Sequence[Any], decided: Encode) -> Propose:
    """Return proposals that are all actions of a finite set, weighed by a policy's probabilities.

    For policies that need no memory: each observation stands alone.

    Args:
        policy: Who is judged.
        actions: All M actions that it may take.
        decided: Makes features of actions.

    Raises:
        ValueError: When it is asked, and the probabilities do not sum to 1.
    """

    def proposed(observations: list[Any]) -> tuple[Tensor, Tensor]:
        features = decided(list(actions))
        steps = [Step(observation, action, terminated=True) for observation in observations for action in actions]
        found = []
        for i in range(0, len(steps), _ALONE):
            with still(policy), torch.no_grad():
                alone = [[Episode(steps=[step])] for step in steps[i : i + _ALONE]]
                batch = policy.collate(alone, learn="action", last="never")
                logp = evaluated(policy, batch.to(device_of(policy)), None).logp.cpu()
            found.append(select(logp.double(), batch.mask).sum(dim=1).exp())
        weight = torch.cat(found).view(len(observations), len(actions))
        if not ((off := (weight.sum(dim=1) - 1).abs()) < 1e-3).all():
            raise ValueError(
                f"the {len(actions)} actions must be all that the policy may do; their probabilities sum to "
                f"{float(weight.sum(dim=1)[off.argmax()]):.4g}"
            )
        return features.expand(len(observations), *features.shape), weight

    return proposed


def sampled(
    policy: TrainablePolicy, batched: Callable[[list[Any]], Any], decided: Encode, *, n: int = 8, greedy: bool = False
) -> Propose:
    """Return proposals that are ``n`` samples of a policy, of equal weight: for continuous actions.

    For policies that need no memory. The samples are drawn once, from the policy's own stream.

    Args:
        policy: Who is judged.
        batched: Makes of N observations a batch as ``policy.act`` takes it: ``numpy.stack``, or
            ``functools.partial(tetrathlon.envs.spaces.stack, space)``.
        decided: Makes features of actions.
        n: How many.
        greedy: Judge the policy as it acts greedily; ``n`` is 1 then.

    Raises:
        ValueError: ``n`` is below 1.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")

    def proposed(observations: list[Any]) -> tuple[Tensor, Tensor]:
        with still(policy), torch.no_grad():
            batch = batched(observations)
            drawn = [decided(list(policy.act(batch, greedy=greedy).actions)) for _ in range(1 if greedy else n)]
        proposal = torch.stack(drawn, dim=1)
        return proposal, torch.full(proposal.shape[:2], 1 / len(drawn))

    return proposed
