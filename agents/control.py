"""An actor and a critic for control: networks over numbers and images."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.distributions import distribution_of
from tetrathlon.agents.features import Features
from tetrathlon.agents.networks import CNN, Activation, Channels, Critic, Trunk, check_choices, perceptron
from tetrathlon.agents.normalization import RunningNorm
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.steps import Record, collate_steps
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.spaces import stack


class ControlPolicy(TrainablePolicy):
    """A multi-layer perceptron that acts, and another one that is its critic.

    Weights are orthogonal, scaled by sqrt 2, and by 0.01 and 1 in the last layer of the actor and of the critic, as is
    usual for PPO (Huang et al., 2022, The 37 implementation details of PPO, 2).

    Images go through a CNN, as values from 0 to 1, and stand beside the numbers. A memory is the state of a GRU, one a
    slot, which begins with each episode; what it was before each decision is noted, so that an update begins where
    acting began.

    ``Discrete``, ``MultiDiscrete`` and ``MultiBinary`` actions have independent components. A ``Box`` is a normal
    distribution; see :mod:`tetrathlon.agents.distributions`.

    A record holds ``action`` (int64 or float32 [D], as drawn), ``logp`` (float32) and, of a policy with a memory,
    ``state`` (float32 [H] or [2 H]). Samples depend on ``seed`` and the sequence of calls; the stream is part of the
    policy's state.

    Args:
        observation_space: Of a single observation: ``Box``, ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a
            ``Dict`` of those. It is flattened, a choice as a one-hot; a ``Box`` of uint8 with three dimensions is an
            image.
        action_space: Of a single action: ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a ``Box`` of floats.
        hidden: Widths of the hidden layers, of the actor and of the critic alike.
        activation: See :data:`~tetrathlon.agents.networks.Activation`.
        log_std: The first logarithm of the standard deviation of ``Box`` actions.
        state_std: Whether that deviation depends on the state; else it is the same in all.
        squash: Whether ``Box`` actions go through tanh; else they are clipped.
        normalize_observations: Whether numbers are brought to mean 0 and deviation 1, and clipped at 10; the
            statistics are part of the policy's state. Images never are.
        cnn: See :data:`~tetrathlon.agents.networks.CNN`.
        channels: See :data:`~tetrathlon.agents.networks.Channels`.
        memory: H, the size of the memory; 0: none.
        shared: Whether the critic sees by the CNN and the memory of the actor; else by its own.
        ignore_text: Whether observations may have parts that are text, which are not read.
        seed: Seed of the weights, and of the samples.

    Raises:
        TypeError: A space is none of those, or an option does not go with it.
        ValueError: An option is out of range, or there is no such choice.
    """

    default_lr = 3e-4
    """What trainers take as learning rate where none is given (Schulman et al., 2017, table 3)."""
    divisible = True
    """Rows may be cut anywhere: each piece is evaluated by itself."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        log_std: float = 0.0,
        state_std: bool = False,
        squash: bool = False,
        normalize_observations: bool = False,
        cnn: CNN = "nature",
        channels: Channels = "last",
        memory: int = 0,
        shared: bool = False,
        ignore_text: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(hidden, Sequence) or not all(isinstance(width, Integral) and width >= 1 for width in hidden):
            raise ValueError(f"hidden must be a list of widths of at least 1, got {hidden!r}")
        if memory < 0:
            raise ValueError(f"memory must be the size of a state, or 0 for none, got {memory!r}")
        check_choices(activation=activation, cnn=cnn, channels=channels)
        self.observation_space, self.action_space = observation_space, action_space
        self.distribution = distribution_of(action_space, log_std=log_std, squash=squash, state_std=state_std)
        self.generator = torch.Generator().manual_seed(seed)
        self.features = Features(observation_space, ignore_text=ignore_text)
        self.norm = RunningNorm(self.features.count) if normalize_observations and self.features.count else None
        self.memory = memory
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.trunk, own = (Trunk(self.features, cnn=cnn, channels=channels, memory=memory) for _ in range(2))
            sizes = [self.trunk.size, *hidden]
            self.actor = perceptron([*sizes, self.distribution.size], gain=0.01, activation=activation)
            head = perceptron([*sizes, 1], gain=1.0, activation=activation)
            self.critic = Critic(None if shared else own, head)

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
        logp = distribution.log_prob(outputs, drawn).cpu().numpy()
        raw = drawn.cpu().numpy()
        records: list[Record | None] = [{"action": a, "logp": p} for a, p in zip(raw, logp, strict=True)]
        actions = distribution.to_env(raw)
        if before is not None:
            states = before.cpu().numpy()
            records = [{"action": a, "logp": p, "state": s} for a, p, s in zip(raw, logp, states, strict=True)]
        for i, other in enumerate(forced or ()):
            if other is not None:
                actions[i], records[i] = other, None
        return Acted(actions, [()] * len(records) if after is None else list(after.cpu().numpy()), records)

    def _remember(
        self, seen: Mapping[str, Tensor], memory: Sequence[Any] | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the actor's features, and the states before and after: [N, H], or [N, 2 H] with the critic's."""
        if not self.memory:
            return self.trunk(seen, None, None), None, None
        trunks = [self.trunk] if self.critic.trunk is None else [self.trunk, self.critic.trunk]
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
        update on, so that a batch is evaluated by those that it was played by; where others acted there is nothing to
        agree with, and they count at once.

        Raises:
            ValueError: A label or somebody else's action is none of the space.
        """
        decisions = collate_steps(rows, self._observed, self._decided, learn=learn, last=last, every=bool(self.memory))
        if self.norm is not None and self.training and "observation" in decisions.inputs:
            self.norm.gather(decisions.inputs["observation"][decisions.episode >= 0])
            if learn != "own":
                self.norm.fold()
        return decisions

    def evaluate(self, decisions: Decisions) -> Evaluation:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.evaluate`."""
        if self.norm is not None and torch.is_grad_enabled():
            self.norm.due.fill_(True)
        inputs = decisions.inputs
        seen = self._seen({name: inputs[name] for name in self._names})
        states: list[Tensor | None] = [None, None]
        starts = None
        if self.memory:
            starts = decisions.turn == 0
            starts[:, 0] = False  # there the state is what was noted
            states = [*inputs["state"][:, 0].to(self._like).split(self.memory, dim=1), None]
        remembered = self.trunk(seen, states[0], starts)
        logp, entropy = self.distribution.evaluate(self.actor(remembered), inputs["action"])
        if self.critic.trunk is not None:
            remembered = self.critic.trunk(seen, states[1], starts)
        return Evaluation(logp, entropy, self.critic(remembered))

    def snapshot(self) -> ControlPolicy:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.snapshot`."""
        return copy.deepcopy(self).requires_grad_(False)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the stream of samples, so that a loaded policy goes on with it."""
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_extra_state` returned."""
        self.generator.set_state(state["generator"].cpu())

    @property
    def _like(self) -> Tensor:
        """A weight: what is computed has its device and its precision."""
        return self.actor[-1].weight  # type: ignore[return-value]

    @property
    def _names(self) -> list[str]:
        return [*(["observation"] if self.features.count else []), *self.features.images]

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
            nothing = np.zeros(self.memory if self.critic.trunk is None else 2 * self.memory, np.float32)
            drawn["state"] = np.stack([nothing if record is None else record["state"] for record in records])
        return drawn
