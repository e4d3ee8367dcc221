"""``run:DIR``: what a training run made of its policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

import tetrathlon
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.naming import FORMS, PolicyError, make_policy
from tetrathlon.algos.checkpoint import Checkpoints
from tetrathlon.algos.trained import trained_kwargs

NAME = "tetrathlon.agents.char_lm:char_lm"
KWARGS = {"digits": 1, "answer_format": "plain", "max_tokens": 2}


def trained(value: float = 0.01, **options: Any) -> LanguagePolicy:
    """A policy whose weights are those of no fresh one."""
    policy = char_lm(**options)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.fill_(value)
    policy.act(("one call moves the stream",))
    return policy


def save(folder: Path, policy: LanguagePolicy, step: int = 1, name: str | None = NAME) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"algorithm": "GRPO", "env": "x", "policy": name}))
    return Checkpoints(folder / "checkpoints").save(step, {"learner": {"policy": policy.state_dict()}, "cursor": 0})


@pytest.fixture
def env() -> gym.Env[Any, Any]:
    return tetrathlon.make("tetrathlon/Arithmetic-v0", **KWARGS)


def test_the_weights_are_those_of_the_run_and_the_samples_are_not(tmp_path: Path, env: gym.Env[Any, Any]) -> None:
    policy = trained()
    save(tmp_path, policy)
    found: Any = make_policy(f"run:{tmp_path}", env)
    assert isinstance(found, LanguagePolicy)
    for name, parameter in policy.named_parameters():
        assert torch.equal(found.get_parameter(name), parameter), name
    fresh, here, there = (each.engine.get_state() for each in (char_lm(), found, policy))
    assert torch.equal(here, fresh)  # an evaluation draws from its own seed, not from where training was
    assert not torch.equal(here, there)


def test_the_newest_whole_checkpoint_counts(tmp_path: Path, env: gym.Env[Any, Any]) -> None:
    save(tmp_path, trained(0.01), 1)
    newest = save(tmp_path, trained(0.02), 2)
    made: Any = make_policy(f"run:{tmp_path}", env)
    assert next(made.parameters()).flatten()[0] == torch.tensor(0.02)
    (newest / "state.pt").write_bytes(b"half")
    with pytest.warns(UserWarning, match="step-00000002 is damaged"):
        made = make_policy(f"run:{tmp_path}", env)
    assert next(made.parameters()).flatten()[0] == torch.tensor(0.01)


def test_a_critic_that_the_algorithm_added_is_there(tmp_path: Path, env: gym.Env[Any, Any]) -> None:
    policy = trained(critic="head")
    save(tmp_path, policy)
    found: Any = make_policy(f"run:{tmp_path}", env)
    assert torch.equal(found.critic.layers[1].weight, torch.full_like(found.critic.layers[1].weight, 0.01))


def test_critics_of_actions_stay_with_their_run(tmp_path: Path, env: gym.Env[Any, Any]) -> None:
    policy = trained()
    policy.add_action_critic(hidden=(4,))
    save(tmp_path, policy)
    found: Any = make_policy(f"run:{tmp_path}", env)
    assert found.critic is None and next(found.parameters()).flatten()[0] == torch.tensor(0.01)


def test_it_is_evaluated_by_its_name(tmp_path: Path) -> None:
    policy = char_lm()
    head = policy.model.get_output_embeddings().weight
    with torch.no_grad():
        head.zero_()  # the likeliest token of equal ones is the first: end of text
    save(tmp_path, policy)
    result = evaluate(f"run:{tmp_path}", "tetrathlon/Arithmetic-v0", kwargs=KWARGS, episodes=3)
    assert result.policy == f"run:{tmp_path}"
    assert [episode.steps[0].action for episode in result.episodes_played] == ["", "", ""]
    assert "run:DIR" in FORMS


def test_the_arguments_of_the_environment_are_those_of_the_run_in_the_same_one(tmp_path: Path) -> None:
    config = {"algorithm": "GRPO", "env": "tetrathlon/Arithmetic-v0", "kwargs": {"split": "train", **KWARGS}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert trained_kwargs(tmp_path, "tetrathlon/Arithmetic-v0") == KWARGS
    assert trained_kwargs(tmp_path, "tetrathlon:tetrathlon/Arithmetic-v0") == KWARGS
    assert trained_kwargs(tmp_path, "tetrathlon/Countdown-v0") == {}
    (tmp_path / "config.json").write_text(json.dumps({"algorithm": "GRPO", "env": "tetrathlon/Arithmetic-v0"}))
    assert trained_kwargs(tmp_path, "tetrathlon/Arithmetic-v0") == {}
    with pytest.raises(PolicyError, match="there is no folder"):
        trained_kwargs(tmp_path / "nowhere", "tetrathlon/Arithmetic-v0")


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def write_config(text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / "config.json").write_text(text)

    return damage


def without_checkpoints(folder: Path) -> None:
    (folder / "checkpoints").rename(folder / "elsewhere")


def with_damaged_checkpoints(folder: Path) -> None:
    for state in folder.glob("checkpoints/*/state.pt"):
        state.write_bytes(b"")


@pytest.mark.filterwarnings("ignore:checkpoint")
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without_config, "the folder holds no config.json; give that of a training run"),
        (write_config("{"), "config.json is not JSON"),
        (write_config('{"env": "x", "policy": "random"}'), "config.json is not that of a training run"),
        (write_config('{"algorithm": "PPO", "policy": null}'), "was given a policy that has no name"),
        (write_config('{"algorithm": "PPO", "policy": "smolm2"}'), "did you mean smollm2?"),
        (write_config('{"algorithm": "PPO", "policy": "random"}'), "which now is a RandomPolicy: no TrainablePolicy"),
        (without_checkpoints, "there is no checkpoint in"),
        (with_damaged_checkpoints, "are damaged"),
    ],
)
def test_what_is_no_run_is_said(
    damage: Callable[[Path], None], said: str, tmp_path: Path, env: gym.Env[Any, Any]
) -> None:
    save(tmp_path, char_lm())
    damage(tmp_path)
    with pytest.raises(PolicyError) as caught:
        make_policy(f"run:{tmp_path}", env)
    assert said in str(caught.value)


def test_other_weights_than_the_policy_has_are_refused(tmp_path: Path, env: gym.Env[Any, Any]) -> None:
    save(tmp_path, char_lm(size=32))
    with pytest.raises(PolicyError, match=f"'{NAME}' is not what was trained there: size mismatch"):
        make_policy(f"run:{tmp_path}", env)
    with pytest.raises(PolicyError, match="there is no folder 'no/where'"):
        make_policy("run:no/where", env)
    with pytest.raises(PolicyError, match=r"there is no policy 'run:'.*run:DIR"):
        make_policy("run:", env)
