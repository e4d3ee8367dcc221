"""An actor and a critic that see by trunks: what control policies share, whichever networks they are made of."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from tetrathlon.agents.action_values import ActionCritic, Appraisal, Ensemble, Proposal
from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.distributions import Distribution
from tetrathlon.agents.features import Features
from tetrathlon.agents.networks import Critic, Trunk, perceptron
from tetrathlon.agents.normalization import RunningNorm
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.steps import Record, collate_steps
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.spaces import stack


class ActorCritic(TrainablePolicy):
    """A trunk that sees, an actor that says what actions are drawn from, and a critic.

    A record holds ``action`` (as drawn, [D]), where it was drawn from a density ``logp``, and of a policy with a memory
    ``state`` (float32 [H], or [2 H] with that of the critic). Samples depend on ``seed`` and the sequence of calls; the
    stream is part of the policy's state.

    Args:
        observation_space: Of a single observation.
        action_space: Of a single action.
        features: How observations become arrays.
        distribution: What actions are drawn from.
        trunk: What the actor sees by.
        actor: Makes what the distribution needs of the trunk's features.
        critic: Gives values, by a trunk of its own or by the actor's; None: there is none.
        normalize_observations: Whether numbers are brought to mean 0 and deviation 1, and clipped at 10.
        seed: Seed of the samples.
    """

    default_lr = 3e-4
    """What trainers take as learning rate where none is given (Schulman et al., 2017, table 3)."""
    divisible = True
    """Rows may be cut anywhere: each piece is evaluated by itself."""
    critic: Critic | None

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        features: Features,
        distribution: Distribution,
        trunk: Trunk,
        actor: nn.Sequential,
        critic: Critic | None,
        normalize_observations: bool,
        seed: int,
    ) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.features, self.distribution = features, distribution
        self.generator = torch.Generator().manual_seed(seed)
        self.norm = RunningNorm(features.count) if normalize_observations and features.count else None
        self.memory = trunk.memory
        self.trunk, self.actor, self.critic = trunk, actor, critic
        self.has_density = distribution.has_density

    @torch.no_grad()
    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`; the memory is the state of the GRU, if there is one."""
        if self.norm is not None and self.norm.due:
            self.norm.fold()
        seen = self._seen({name: torch.from_numpy(array) for name, array in self.features(observations).items()})
        remembered, before, after = self._remember(seen, memory)
        outputs = self.actor(remembered)
        distribution = self.distribution
        drawn = distribution.mode(outputs) if greedy else distribution.sample(outputs, self.generator)
        raw = drawn.cpu().numpy()
        notes = {"action": raw}
        if distribution.has_density:
            notes["logp"] = distribution.log_prob(outputs, drawn).cpu().numpy()
        if before is not None:
            notes["state"] = before.cpu().numpy()
        records: list[Record | None] = [{name: note[i] for name, note in notes.items()} for i in range(len(raw))]
        actions = distribution.to_env(raw)
        for i, other in enumerate(forced or ()):
            if other is not None:
                actions[i], records[i] = other, None
        return Acted(actions, [()] * len(records) if after is None else list(after.cpu().numpy()), records)

    def _trunks(self) -> list[Trunk]:
        """Return those that remember: the actor's, and the critic's where it has its own."""
        return [self.trunk] if self.critic is None or self.critic.trunk is None else [self.trunk, self.critic.trunk]

    def _remember(
        self, seen: Mapping[str, Tensor], memory: Sequence[Any] | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the actor's features, and the states before and after: [N, H], or [N, 2 H] with the critic's."""
        if not self.memory:
            return self.trunk(seen, None, None), None, None
        trunks = self._trunks()
        before = self._like.new_zeros(len(next(iter(seen.values()))), self.memory * len(trunks))
        for i, kept in enumerate(memory or ()):
            if kept is not None:
                before[i] = torch.as_tensor(kept)
        after = [trunk.step(seen, state) for trunk, state in zip(trunks, before.split(self.memory, 1), strict=True)]
        return after[0], before, torch.cat(after, dim=1)

    def collate(self, rows: Sequence[Sequence[Episode]], *, learn: Learn = "own", last: Last = "open") -> Decisions:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.collate`; a step is a decision.

        In training mode the statistics of observations are gathered here, out of what is learnt from: an evaluation
        does not move them, and whatever is played costs nothing more. They count from the first action after an
        update on, so that a batch is evaluated by those that it was played by. Where others acted there is nothing to
        agree with: the statistics are those of all labels, which grow, or of the first data, and stay so while the
        policy then learns from other data or its own play, for what moves under a trained network changes what it does
        without a step of any optimizer.

        Raises:
            ValueError: A label or somebody else's action is none of the space.
        """
        decisions = collate_steps(
            rows,
            self._observed,
            self._decided,
            learn=learn,
            last=last,
            every=bool(self.memory),
            chunk=self.distribution.chunk,
        )
        if self.norm is not None and self.training and "observation" in decisions.inputs:
            seen = decisions.inputs["observation"][decisions.episode >= 0]
            if learn != "own" and decisions.mask.any():
                if learn == "label" or not self.norm.settled:
                    self.norm.settle(seen)
            elif learn == "own" and not self.norm.settled:
                self.norm.gather(seen)
        return decisions

    def evaluate(self, decisions: Decisions) -> Evaluation:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.evaluate`.

        Raises:
            TypeError: Actions are drawn from no density.
        """
        seen, states, starts = self._shown(decisions)
        remembered = self.trunk(seen, states[0], starts)
        logp, entropy = self._judged(self.actor(remembered), decisions.inputs)
        if self.critic is None:
            return Evaluation(logp, entropy)
        if self.critic.trunk is not None:
            remembered = self.critic.trunk(seen, states[1], starts)
        return Evaluation(logp, entropy, self.critic(remembered))

    def imitation_loss(self, decisions: Decisions) -> tuple[Tensor, Tensor | None]:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.imitation_loss`; no value is computed."""
        seen, states, starts = self._shown(decisions)
        outputs = self.actor(self.trunk(seen, states[0], starts))
        if not self.distribution.has_density:
            return self.distribution.loss(outputs, decisions.inputs["action"], self.generator), None
        logp, entropy = self._judged(outputs, decisions.inputs)
        return -logp, entropy

    def add_action_critic(
        self, ensemble: int = 2, *, hidden: Sequence[int] = (256, 256), normalize: bool = False, seed: int = 0
    ) -> None:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.add_action_critic`; it sees by a trunk of its own."""
        with seeded(seed):
            numbers = self.distribution.numbers(self.distribution.mode(self._like.new_zeros(self.distribution.size)))
            trunk = copy.deepcopy(self.trunk)
            value = perceptron([trunk.size, *hidden, 1], gain=1.0, activation="relu")
            heads = Ensemble([trunk.size + numbers.shape[-1], *hidden], ensemble, normalize=normalize)
            self.critic = ActionCritic(trunk, value, heads).to(self._like)

    def appraise(
        self,
        decisions: Decisions,
        *,
        value: bool = True,
        q: bool = True,
        numbers: Tensor | None = None,
        critic: nn.Module | None = None,
    ) -> Appraisal:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.appraise`."""
        critic = self.critic if critic is None else critic
        if not isinstance(critic, ActionCritic) or critic.trunk is None:
            raise TypeError("this policy has no critic of actions: call add_action_critic")
        seen, states, starts = self._shown(decisions)
        features = critic.trunk(seen, states[1], starts)
        if q and numbers is None:
            numbers = self.taken(decisions)
        return Appraisal(
            critic(features) if value else None, critic.q(features, numbers) if q and numbers is not None else None
        )

    def propose(self, decisions: Decisions, n: int = 1, *, greedy: bool = False) -> Proposal:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.propose`."""
        seen, states, starts = self._shown(decisions)
        outputs = self.actor(self.trunk(seen, states[0], starts))
        outputs = outputs.expand(n, *outputs.shape)
        distribution = self.distribution
        drawn = distribution.mode(outputs) if greedy else distribution.sample(outputs, self.generator)
        logp = None
        if distribution.has_density and not greedy:
            logp = distribution.log_prob(outputs, drawn)
            logp = (logp.sum(-1) if distribution.chunk else logp) + distribution.log_unit
        return Proposal(drawn, distribution.numbers(drawn), logp)

    def taken(self, decisions: Decisions) -> Tensor:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.taken`."""
        return self.distribution.numbers(decisions.inputs["action"].to(self._like.device))

    def _judged(self, outputs: Tensor, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of what was decided, and entropies, both [B, T]."""
        return self.distribution.evaluate(outputs, inputs["action"])

    def _shown(self, decisions: Decisions) -> tuple[dict[str, Tensor], list[Tensor | None], Tensor | None]:
        """Return what was seen, what each trunk remembered before a row, and where an episode begins in it."""
        if self.norm is not None and torch.is_grad_enabled():
            self.norm.due.fill_(True)
        inputs = decisions.inputs
        seen = self._seen({name: inputs[name] for name in self.features.names})
        if not self.memory:
            return seen, [None, None], None
        starts = decisions.turn == 0
        starts[:, 0] = False  # there the state is what was noted
        return seen, [*inputs["state"][:, 0].to(self._like).split(self.memory, dim=1), None], starts

    def snapshot(self) -> Self:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.snapshot`."""
        return copy.deepcopy(self).requires_grad_(False)

    def get_extra_state(self) -> dict[str, Any]:
        """Return what is neither a weight nor a buffer: the stream of samples."""
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_extra_state` returned."""
        self.generator.set_state(state["generator"].cpu())

    @property
    def _like(self) -> Tensor:
        """A weight: what is computed has its device and its precision."""
        return self.actor[-1].weight  # type: ignore[return-value]

    def _seen(self, arrays: dict[str, Tensor]) -> dict[str, Tensor]:
        """Bring what was observed to where the networks are, and normalise its numbers."""
        like = self._like
        seen = {name: array.to(like.device) for name, array in arrays.items()}
        if "observation" in seen:
            numbers = seen["observation"].to(like.dtype)
            seen["observation"] = numbers if self.norm is None else self.norm(numbers)
        return seen

    def _observed(self, observations: list[Any]) -> dict[str, np.ndarray]:
        return self.features(stack(self.observation_space, observations))

    def _decided(self, actions: list[Any], records: list[Record | None]) -> dict[str, np.ndarray]:
        """Return what was drawn; an action without a record is taken for a draw, and nothing remembered before it."""
        foreign = [np.asarray(action) for action, record in zip(actions, records, strict=True) if record is None]
        others = iter(self.distribution.from_env(np.stack(foreign)) if foreign else ())
        drawn = {"action": np.stack([next(others) if record is None else record["action"] for record in records])}
        if self.memory:
            nothing = np.zeros(self.memory * len(self._trunks()), np.float32)
            drawn["state"] = np.stack([nothing if record is None else record["state"] for record in records])
        return drawn


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let first weights be drawn from ``seed``; the global stream is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
