"""Low-rank adapters of a language model (Hu et al., 2022), and what the model was without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode


def adapted(model: Any, rank: int, seed: int) -> Any:
    """Return a model with adapters of ``rank`` in all linear layers, drawn from ``seed``, which learn alone."""
    from peft import LoraConfig, get_peft_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"))


class WithoutAdapter(TrainablePolicy):
    """What a policy was before its adapter; it has no weights of its own."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self._policy = (policy,)  # in a tuple, or its weights would be this module's too

    def act(self, *args: Any, **kwargs: Any) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`."""
        with self._policy[0].model.disable_adapter():
            return self._policy[0].act(*args, **kwargs)

    def collate(self, rows: Sequence[Sequence[Episode]], *, learn: Learn = "own", last: Last = "open") -> Decisions:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.collate`."""
        return self._policy[0].collate(rows, learn=learn, last=last)

    @torch.no_grad()
    def evaluate(self, decisions: Decisions) -> Evaluation:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.evaluate`."""
        with self._policy[0].model.disable_adapter():
            return self._policy[0].evaluate(decisions)

    def snapshot(self) -> TrainablePolicy:
        """Return itself: it never changes."""
        return self
