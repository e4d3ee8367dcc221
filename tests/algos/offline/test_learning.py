"""What comes of a log: every algorithm, from play by nobody who knew anything; runs that stop; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

from tests.algos.offline.logs import line_log, line_policy, line_return
from tests.algos.test_crashes import check_same_run
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos import AWAC, AWR, BC, CQL, IQL, RAFT, TD3BC, FilteredBC, ReBRAC
from tetrathlon.algos.rejection import best_of_groups, top_share
from tetrathlon.envs.episode import Episode, Step, save_episodes

SMALL: dict[str, Any] = {"hidden": (64, 64), "value_lr": 1e-3, "lr": 1e-3, "batch_size": 128, "steps": 150}
CASES: list[tuple[Any, dict[str, Any]]] = [
    (IQL, {}),
    (AWR, {"beta": 3.0}),
    (AWAC, {"beta": 3.0}),
    (TD3BC, {}),
    (ReBRAC, {}),
    (CQL, {"conservatism": 0.5, "proposals": 2}),
]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gym.register("Row-v0", entry_point="tests.algos.offline.logs:Line")
    yield
    del gym.registry["Row-v0"]


@pytest.mark.parametrize(("algorithm", "options"), CASES)
def test_it_is_far_better_than_what_was_done(algorithm: Any, options: dict[str, Any]) -> None:
    log = line_log(100)
    clone = line_policy()
    BC(clone, "Row-v0", demonstrations=log, steps=200, lr=1e-3, batch_size=128).learn(1)
    # What was done is random: it is paid -4.1 an episode, and the best that can be done about -0.2.
    assert -4.8 < line_return(clone) < -3.5
    learnt, mistaken = line_policy(), line_policy()
    algorithm(learnt, "Row-v0", log=log, **SMALL, **options).learn(2)
    assert line_return(learnt) > -1.6
    algorithm(mistaken, "Row-v0", log=log, reward_scale=-1.0, **SMALL, **options).learn(2)
    assert line_return(mistaken) < -6


def test_the_best_of_a_log_are_imitated() -> None:
    policy = line_policy()
    trainer = FilteredBC(policy, "Row-v0", log=line_log(300), share=0.05, steps=200, lr=1e-3)
    told = trainer.learn(1)
    assert told[0]["kept"] == 15
    assert line_return(policy) > -2


def test_the_best_of_several_tries_are_imitated(monkeypatch: pytest.MonkeyPatch) -> None:
    def after_six(**others: Any) -> float:
        policy = line_policy()
        RAFT(policy, "Row-v0", episodes=256, group_size=8, steps=40, batch_size=128, lr=3e-3, **others).learn(6)
        return line_return(policy)

    assert after_six() > -0.6
    # The worst of them, as if it were the best.
    monkeypatch.setattr(Episode, "total_reward", property(lambda episode: -sum(s.reward for s in episode.steps)))
    assert after_six() < -8


def test_tries_are_sorted_by_what_they_were_paid() -> None:
    def paid(group: int, *rewards: float, success: bool = False) -> list[Episode]:
        return [Episode([Step("", "", reward, True, info={"is_success": success})], group=group) for reward in rewards]

    episodes = [*paid(0, 0.0, 1.0, 1.0), *paid(1, 0.0, 0.0), *paid(2, 1.0, 1.0, success=True), *paid(3, 0.2, 0.1)]
    best = best_of_groups(episodes)
    assert [episodes.index(episode) for episode in best] == [1, 5, 7]
    assert len(top_share(episodes, 0.3)) == 4  # three, and one that was paid as much
    assert [episode.total_reward for episode in top_share(episodes, 1.0, least=0.2)] == [1, 1, 1, 1, 0.2]
    episodes[1].steps[0].info["grader_error"] = "died"
    assert best_of_groups(episodes)[0] is episodes[2]
    assert top_share([], 0.5) == []


@pytest.mark.parametrize(("algorithm", "options"), [*CASES, (FilteredBC, {})])
def test_a_run_that_stopped_ends_as_one_that_did_not(algorithm: Any, options: dict[str, Any], tmp_path: Path) -> None:
    def trainer(name: str, **others: Any) -> Any:
        log = {"log": line_log(6)} if algorithm is not IQL else {"episodes": 6}  # IQL plays its own
        some = {"steps": 5, "lr": 1e-3, "batch_size": 16, "decay": "constant"} | (
            {} if algorithm is FilteredBC else {"hidden": (8, 8)}
        )
        policy = line_policy(seed=3, normalize_observations=True)
        return algorithm(policy, "Row-v0", run=tmp_path / name, checkpoint_every=1, **log, **some, **options, **others)

    whole = trainer("whole")
    whole.learn(4)
    trainer("run").learn(2)
    other = trainer("run", resume=True)
    other.policy.load_state_dict(line_policy(seed=9, normalize_observations=True).state_dict(), strict=False)
    other.learn(4)
    check_same_run(tmp_path / "run", tmp_path / "whole", 4)


def sums() -> LanguagePolicy:
    return char_lm(characters="0123456789+=", size=32, layers=1, heads=2, context=16, seed=0, max_tokens=2)


def test_tokens_are_valued_where_they_stand() -> None:
    """In "0" + "1" only the first digit decides what is paid; Q knows it, and V after it does."""
    policy = sums()
    log = [
        Episode([Step("=", first + second, reward=float(first == "7"), terminated=True)], final_observation="")
        for first in "1379"
        for second in "24680"
    ]
    how: dict[str, Any] = {"steps": 150, "batch_size": 20, "lr": 3e-3, "value_lr": 3e-3, "beta": 5.0, "polyak": 0.1}
    IQL(policy, "tetrathlon/Arithmetic-v0", log=log, **how).learn(1)
    batch = policy.collate([[episode] for episode in log], learn="action")
    with torch.no_grad():
        told = policy.appraise(batch)
    assert told.q is not None and told.value is not None
    is_right = batch.total_reward > 0
    first, second = told.q[:, batch.mask].mean(0).view(20, -1)[:, 0], told.value[batch.mask].view(20, -1)[:, 1]
    assert float(first[is_right].min()) > 0.8 > 0.3 > float(first[~is_right].max())
    assert float(second[is_right].min()) > 0.8 > 0.3 > float(second[~is_right].max())
    answers = policy.act(("=",) * 40).actions
    assert sum(answer.startswith("7") for answer in answers) > 30


def test_rows_in_parts_learn_the_same() -> None:
    weights = []
    for max_cost in (None, 12.0):
        policy = sums()
        log = [Episode([Step("=", f"{n}", float(n % 2), True)], final_observation="") for n in range(20)]
        IQL(policy, "tetrathlon/Arithmetic-v0", log=log, steps=3, batch_size=20, max_cost=max_cost).learn(1)
        weights.append(torch.cat([weight.detach().flatten() for weight in policy.parameters()]))
    assert torch.allclose(weights[0], weights[1], atol=1e-5)


def test_what_cannot_learn_so_is_told() -> None:
    log = [Episode([Step("=", "1", 1.0, True)], final_observation="")]
    with pytest.raises(TypeError, match="reads whole episodes, and this algorithm looks at other actions"):
        AWAC(sums(), "tetrathlon/Arithmetic-v0", log=log, steps=1).learn(1)
    with pytest.raises(ValueError, match="learns from whole steps alone"):
        TD3BC(line_policy(), "Row-v0", log=line_log(2), max_cost=3.0).learn(1)
    with pytest.raises(ValueError, match=r"none of the 2 episodes of the log was paid least=5\.0"):
        FilteredBC(line_policy(), "Row-v0", log=line_log(2), least=5.0).learn(1)
    with pytest.raises(ValueError, match="group_size must be at least 2 and divide episodes=10, got 3"):
        RAFT.Options(episodes=10, group_size=3)


def test_logs_on_disk_are_read(tmp_path: Path) -> None:
    save_episodes(tmp_path, line_log(4))
    (told,) = IQL(line_policy(), "Row-v0", log=tmp_path, steps=2).learn(1)
    assert told["dataset"] == 32
