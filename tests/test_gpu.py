"""The same numbers on a GPU: ``python -m pytest -m gpu``.

With ``TETRATHLON_TEST_DEVICE=cpu`` the same tests run without one, which shows that they are sound.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.reward_model import RewardModel
from tetrathlon.algos import preference_learning, reward_learning
from tetrathlon.algos.advantages import gae, group_relative, leave_one_out, returns
from tetrathlon.algos.baselines import whiten
from tetrathlon.algos.kl import kl
from tetrathlon.algos.learner import Learner
from tetrathlon.algos.losses import clipped_surrogate, total, value_loss
from tetrathlon.algos.on_policy import GRPO, PPO
from tetrathlon.algos.pairs import Pair
from tetrathlon.algos.preference_learning import Preferrer
from tetrathlon.algos.reward_learning import Judge
from tetrathlon.algos.segments import Segments
from tetrathlon.envs.episode import Episode, Step

DEVICE = os.environ.get("TETRATHLON_TEST_DEVICE", "cuda")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="there is no CUDA device"),
]
SUMS: dict[str, Any] = {"digits": 1, "answer_format": "plain", "max_tokens": 4}
ID = "tetrathlon/Arithmetic-v0"


def columns(seed: int = 0, rows: int = 12, width: int = 40) -> dict[str, Tensor]:
    """Return random columns of a batch, NaN wherever nothing was decided."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(rows, width, generator=generator) < 0.6
    mask[:, -1] = True
    found = {name: torch.randn(rows, width, generator=generator) for name in ("logp", "old", "ref", "reward", "value")}
    found = {name: torch.where(mask, each, torch.nan) for name, each in found.items()}
    found["reward"] = torch.where(mask, found["reward"], 0.0)
    ends = torch.zeros(rows, width, dtype=torch.bool)
    ends[:, -1] = True
    return {
        **found,
        "mask": mask,
        "terminated": ends,
        "nowhere": torch.zeros_like(mask),
        "env_steps": torch.ones(rows, width, dtype=torch.long),
        "episode": torch.zeros(rows, width, dtype=torch.long),
        "turn": torch.arange(width).expand(rows, width).div(8, rounding_mode="floor").contiguous(),
        "group": torch.arange(rows) // 4,
    }


def _gae(c: dict[str, Tensor]) -> Tensor:
    ends = {"final": c["nowhere"], "terminated": c["terminated"], "truncated": c["nowhere"]}
    value = torch.where(c["mask"], c["value"], 0.0)
    advantage, target = gae(c["reward"], value, c["mask"], env_steps=c["env_steps"], gamma=0.99, lam=0.9, **ends)
    return torch.stack([advantage, target])


def _surrogate(c: dict[str, Tensor]) -> Tensor:
    segments = Segments.of("turn", c["mask"], episode=c["episode"], turn=c["turn"])
    loss, _ = clipped_surrogate(
        c["logp"], c["old"], c["reward"], c["mask"], segments=segments, clip_low=0.2, clip_high=0.3, dual_clip=3.0
    )
    return total(loss, c["mask"], c["mask"].sum())


FORMULAS: dict[str, Callable[[dict[str, Tensor]], Tensor]] = {
    "gae": _gae,
    "returns": lambda c: returns(
        c["reward"],
        c["mask"],
        final=c["nowhere"],
        terminated=c["terminated"],
        truncated=c["nowhere"],
        env_steps=c["env_steps"],
        gamma=0.99,
    ),
    "group": lambda c: group_relative(c["reward"].sum(1), c["group"], scale="std", ddof=1, eps=1e-6),
    "leave_one_out": lambda c: leave_one_out(c["reward"].sum(1), c["group"]),
    "whiten": lambda c: whiten(c["reward"], c["mask"], ddof=1),
    "surrogate": _surrogate,
    "kl": lambda c: kl(c["logp"], c["ref"], c["mask"]),
    "value": lambda c: value_loss(
        torch.where(c["mask"], c["value"], 0.0), c["reward"], c["mask"], old_value=c["ref"], clip=0.2, clip_mode="max"
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_give_what_they_give_on_a_cpu(name: str) -> None:
    here = columns()
    there = {key: column.to(DEVICE) for key, column in here.items()}
    found = FORMULAS[name](there)
    assert found.device.type == DEVICE
    torch.testing.assert_close(found.cpu(), FORMULAS[name](here), rtol=1e-5, atol=1e-5, equal_nan=True)


def test_equal_rewards_give_exactly_nothing() -> None:
    score = torch.full((8,), 0.7, device=DEVICE)
    assert (
        group_relative(score, torch.zeros(8, dtype=torch.long, device=DEVICE), scale="std", ddof=1, eps=1e-8)
        .eq(0)
        .all()
    )


def policy(device: str, autocast: torch.dtype | None = None) -> LanguagePolicy:
    made = char_lm(seed=1, autocast=autocast)
    made.to(device)
    return made


def test_an_update_is_that_of_a_cpu() -> None:
    options: dict[str, Any] = {"groups": 4, "group_size": 4, "kl_coef": 0.1, "entropy_coef": 0.01, "lr": 1e-3}
    rows = GRPO(policy("cpu"), ID, kwargs=SUMS, **options).collector.collect().rows
    for number, row in enumerate(rows):
        row[0].steps[-1].reward = float(number % 3 == 0)
    found, weights = [], []
    for device in ("cpu", DEVICE):
        learner = Learner(policy(device), GRPO.Options(**options, epochs=2, minibatches=2))
        found.append(learner.update(rows))
        weights.append(torch.cat([p.detach().cpu().flatten() for p in learner.policy.parameters()]))
    here, there = found
    for name in ("policy_loss", "kl_loss", "entropy", "grad_norm", "kl_old", "reward", "advantage_std"):
        assert there[name] == pytest.approx(here[name], rel=1e-3, abs=1e-5), name
    assert there["first_ratio_error"] == 0.0
    torch.testing.assert_close(*weights, rtol=0, atol=2e-4)


@pytest.mark.parametrize("loss", ["dpo", "ipo", "kto", "simpo", "orpo", "bradley_terry"])
def test_pairs_are_learnt_as_on_a_cpu(loss: str) -> None:
    def said(text: str) -> Episode:
        return Episode(steps=[Step("What is 1 + 1?", text, terminated=True)], final_observation="")

    pairs = [Pair(said("2" * (1 + i)), said("3" * (2 + i % 2))) for i in range(6)]
    found = []
    for device in ("cpu", DEVICE):
        learner: Any
        if loss == "bradley_terry":
            learner = Judge(RewardModel(policy(device)), reward_learning.Options(steps=3, lr=1e-3, max_cost=100.0))
        else:
            options: Any = {"loss": loss, "steps": 3, "lr": 1e-3, "max_cost": 100.0}
            learner = Preferrer(policy(device), preference_learning.Options(**options))
        found.append(learner.update(learner.rows(pairs)))
    here, there = found
    assert there == pytest.approx(here, rel=1e-2, abs=1e-3)


def test_the_greedy_answers_are_those_of_a_cpu_and_samples_are_those_of_the_seed() -> None:
    prompts = tuple(f"What is {a} + 3?" for a in range(8))
    answers = [policy(device).act(prompts, greedy=True).actions for device in ("cpu", DEVICE)]
    assert answers[0] == answers[1]
    one, other = policy(DEVICE), policy(DEVICE)
    assert one.act(prompts).actions == other.act(prompts).actions


@pytest.mark.parametrize("algorithm", [GRPO, PPO])
def test_it_learns_in_16_bits_over_weights_of_32(algorithm: Any) -> None:
    mixed = policy(DEVICE, autocast=torch.bfloat16)
    before = torch.cat([p.detach().clone().flatten() for p in mixed.model.parameters()])
    history = algorithm(mixed, ID, kwargs=SUMS, groups=4, group_size=4, lr=1e-3).learn(2)
    after = torch.cat([p.detach().flatten() for p in mixed.model.parameters()])
    assert before.dtype == after.dtype == torch.float32
    for metrics in history:
        assert metrics["first_ratio_error"] < 1e-6 and metrics["sampler_drift"] < 0.5


def test_a_run_of_a_gpu_goes_on_without_one(tmp_path: Path) -> None:
    options: dict[str, Any] = {"kwargs": SUMS, "run": tmp_path, "groups": 2, "group_size": 2}
    GRPO(policy(DEVICE), ID, **options).learn(1)
    goes_on = GRPO(policy("cpu"), ID, resume=True, **options)
    assert len(goes_on.learn(2)) == 1
    assert {p.device.type for p in goes_on.policy.parameters()} == {"cpu"}
