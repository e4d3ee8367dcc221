"""What learns needs: a policy that turns episodes into decisions and evaluates them with gradients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.policy import Acted
from tetrathlon.envs.episode import Episode


class TrainablePolicy(nn.Module):
    """A policy that every algorithm can train; this is the whole border between agents and algorithms.

    A critic is one module ``self.critic``: a head on a shared or detached trunk, or a network of its own. It
    gives the values of :meth:`evaluate`, and ``critic.q(decisions, actions=None)`` to offline algorithms. What
    is in ``critic`` is trained with the critic's learning rate, everything else with the policy's.

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

    @abstractmethod
    def snapshot(self) -> TrainablePolicy:
        """Return a frozen reference of what this policy is now."""
