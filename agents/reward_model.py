"""Reward models: a critic that is read where an episode is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode


class RewardModel(nn.Module):
    """Scores finished episodes: the value that a policy's critic gives behind the last decision.

    That is the ``final`` position of ``collate(last="always")``. Of a language model it is read from the hidden state
    of the last token: the one that ended the answer, or the last of what the environment said after it. Records are
    read as they are, so episodes that were sampled must come from a policy with the same tokenizer.

    It is a scorer: ``OnPolicy(..., scorers={"reward_model": model.score})``. What is saved is the policy; the model of
    a run is ``RewardModel(make_policy("run:DIR", env))``.

    Args:
        policy: Whose critic it is. A language policy without one gets a value head whose loss trains the model too
            (``add_critic("shared")``).
        batch_size: Episodes that :meth:`score` evaluates at once.

    Raises:
        TypeError: The policy has no critic.
        ValueError: ``batch_size`` is below 1.
    """

    def __init__(self, policy: TrainablePolicy, *, batch_size: int = 64) -> None:
        super().__init__()
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size!r}")
        if getattr(policy, "critic", None) is None:
            if not callable(add := getattr(policy, "add_critic", None)):
                raise TypeError(
                    f"a reward model is a policy's critic; {type(policy).__name__} has no module 'critic' that gives "
                    "values"
                )
            add("shared")
        self.policy, self.batch_size = policy, batch_size

    def collate(self, episodes: Sequence[Episode]) -> Decisions:
        """Return N episodes as N rows, whoever acted in them."""
        return self.policy.collate([[episode] for episode in episodes], learn="action", last="always")

    def forward(self, decisions: Decisions) -> Tensor:
        """Return the scores of rows, float [B], with gradients.

        Args:
            decisions: Rows of :meth:`collate`, of one episode each.

        Raises:
            TypeError: The policy gives no values.
            ValueError: A row holds more than one final position, or none.
        """
        final = decisions.final
        if not bool((final.sum(dim=1) == 1).all()):
            raise ValueError(
                f"a row is scored at its one final position; there are {final.sum(dim=1).tolist()!r:.200} of them: "
                "collate with last='always', an episode a row"
            )
        # Nothing but these positions is asked for: of what was decided no probability is computed.
        value = self.policy.evaluate(replace(decisions, mask=torch.zeros_like(decisions.mask))).value
        if value is None:
            raise TypeError(f"{type(self.policy).__name__} has a critic, and its evaluate gives no value")
        return value[final]

    @torch.no_grad()
    def score(self, episodes: Sequence[Episode]) -> list[float]:
        """Return the scores of N episodes; see :data:`~tetrathlon.algos.collect.Scorer`."""
        device = next(self.policy.parameters()).device
        scores: list[float] = []
        for start in range(0, len(episodes), self.batch_size):
            batch = self.collate(episodes[start : start + self.batch_size])
            scores += cast(list[float], self(batch.to(device)).tolist())
        return scores
