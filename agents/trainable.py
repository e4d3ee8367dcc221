"""What learns needs: a policy that turns episodes into decisions and evaluates them with gradients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from tetrathlon.agents.action_values import Appraisal, Proposal
from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.policy import Acted
from tetrathlon.envs.episode import Episode


class TrainablePolicy(nn.Module):
    """A policy that every algorithm can train; this is the whole border between agents and algorithms.

    A critic is one module ``self.critic``: a head on a shared or detached trunk, or a network of its own. It
    gives the values of :meth:`evaluate`; made by :meth:`add_action_critic` it gives offline algorithms what
    :meth:`appraise` says of actions, too. What is in ``critic`` is trained with the critic's learning rate, everything
    else with the policy's. Algorithms that look at actions outside the data need :meth:`propose`.

    A policy whose inputs are plain tensors [B, T, ...], each position for itself, may say ``divisible = True``:
    trainers then deal pieces of its rows. ``default_lr`` is the learning rate that they take where none is given;
    ``default_rl_lr``, where there is one, that of learning from pay, whose noise takes apart what large steps learnt.
    One that gives no log-probabilities says ``has_density = False``, and learns by imitation alone.
    """

    has_density: bool = True

    @abstractmethod
    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`."""

    @abstractmethod
    def collate(self, rows: Sequence[Sequence[Episode]], *, learn: Learn = "own", last: Last = "open") -> Decisions:
        """Return what was decided in B rows of episodes, as tensors.

        Records are used as they are, never encoded anew. What has no record (a label, an action of somebody else) is
        encoded, and its ``logp`` is NaN.

        Args:
            rows: B rows: one episode for language and for groups, those of one slot's stretch for control.
            learn: Whose decisions: the policy's own, the experts' labels, or whatever was done; see
                :data:`~tetrathlon.agents.decisions.Learn`.
            last: Which last observations are laid out; handed on to
                :func:`~tetrathlon.agents.decisions.layout`.
        """

    @abstractmethod
    def evaluate(self, decisions: Decisions) -> Evaluation:
        """Return log-probability and entropy at mask, and with a critic the value at mask | final.

        Padding need not be computed: columns that no row uses may be cut off inside, as long as what is returned is
        [B, T].
        """

    def imitation_loss(self, decisions: Decisions) -> tuple[Tensor, Tensor | None]:
        """Return what cloning lowers at mask, [B, T], and the entropies there, or None where there are none.

        It is -log p of what was decided. A policy that has no density (a regression, a flow) overrides it.
        """
        evaluation = self.evaluate(decisions)
        return -evaluation.logp, evaluation.entropy

    def add_action_critic(
        self, ensemble: int = 2, *, hidden: Sequence[int] = (256, 256), normalize: bool = False, seed: int = 0
    ) -> None:
        """Make ``critic`` one that says what states and actions are worth, for offline learning.

        Args:
            ensemble: K, how many there are of actions.
            hidden: Widths of its hidden layers.
            normalize: Whether those that read actions are normalised layer by layer.
            seed: Of its first weights.

        Raises:
            TypeError: This policy can have none.
        """
        raise TypeError(f"{type(self).__name__} can have no critic of actions (add_action_critic)")

    def appraise(
        self,
        decisions: Decisions,
        *,
        value: bool = True,
        q: bool = True,
        numbers: Tensor | None = None,
        critic: nn.Module | None = None,
    ) -> Appraisal:
        """Return what states are worth, and what was decided in them.

        Args:
            decisions: Where.
            value: Whether the values of states are asked for.
            q: Whether those of actions are.
            numbers: float [n, B, T, E]: other actions than what was decided, as :meth:`propose` gives them.
            critic: Who says so: a copy of ``self.critic``; None: that itself.

        Raises:
            TypeError: There is no critic of actions.
        """
        raise TypeError(f"{type(self).__name__} has no critic of actions (appraise)")

    def propose(self, decisions: Decisions, n: int = 1, *, greedy: bool = False) -> Proposal:
        """Return n actions in each state, drawn from what the policy is now, or the most likely one as each of them.

        Raises:
            TypeError: This policy cannot say what else it would do.
        """
        raise TypeError(f"{type(self).__name__} cannot say what else it would do in a state (propose)")

    def taken(self, decisions: Decisions) -> Tensor:
        """Return what was decided, as :meth:`propose` gives other actions: float [B, T, E], valid at mask.

        Raises:
            TypeError: This policy cannot tell.
        """
        raise TypeError(f"{type(self).__name__} cannot tell what was done in numbers (taken)")

    @abstractmethod
    def snapshot(self) -> TrainablePolicy:
        """Return a frozen reference of what this policy is now."""


@contextmanager
def still(module: nn.Module) -> Iterator[None]:
    """Hold a module in evaluation mode: its statistics stay, nothing is dropped out. Each part gets its mode back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, was_training in modes:
            part.training = was_training
