"""Looks at twins: a shortcut is told from learning."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tetrathlon.agents.evaluation import instance_seeds
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.twins import EvaluateTwins
from tetrathlon.envs.registry import make

COUNT = "tetrathlon/Count-v0"
N = 40


class Learning(TrainablePolicy):
    """Knows a share of pictures, or, where it does not look, of questions on the full picture."""

    def __init__(self, looks: bool) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.looks, self.share = looks, 0.0
        self.env: Any = make(COUNT, split="test").unwrapped
        self.seeds = {self.env.reset(seed=seed)[1]["task_id"]: seed for seed in instance_seeds(0, N)}

    def collate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    evaluate = snapshot = collate

    def act(self, observations: Any, memory: Any = None, *, infos: Any = None, **_: Any) -> Acted:
        actions = []
        for info in infos:
            knows = int(info["task_id"], 16) % 100 < 100 * self.share
            actions.append(self._right(info) if knows else "<answer>0</answer>")
        return Acted(tuple(actions), [None] * len(actions), [None] * len(actions))

    def _right(self, info: dict[str, Any]) -> str:
        variant = info["variant"] if self.looks else "full"
        self.env.reset(seed=self.seeds[info["task_id"]], options={"variant": variant})
        return str(self.env.expert_action())


def seen(policy: Learning, look: EvaluateTwins, share: float, number: int = 0) -> dict[str, float]:
    policy.share = share
    metrics: dict[str, float] = {}
    look(number, metrics)
    return metrics


@pytest.mark.parametrize("looks", [True, False])
def test_success_that_pairs_do_not_follow_is_a_shortcut(looks: bool) -> None:
    policy = Learning(looks)
    look = EvaluateTwins(policy, COUNT, every=1, episodes=N)
    first = seen(policy, look, 0.1)
    later = seen(policy, look, 0.9)
    assert first["test/shortcut"] == 0 and later["test/success"] > 0.7
    assert later["test/shortcut"] == float(not looks)
    assert later["test/pair"] == (later["test/success"] if looks else 0)
    assert seen(policy, look, 0.12)["test/shortcut"] == 0  # nothing has risen


def test_the_first_look_goes_on_with_a_run() -> None:
    policy = Learning(False)
    look, other = (EvaluateTwins(policy, COUNT, every=1, episodes=N) for _ in range(2))
    seen(policy, look, 0.1)
    other.load_state_dict(look.state_dict())
    assert seen(policy, other, 0.9)["test/shortcut"] == 1
