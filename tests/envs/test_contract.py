"""The contract's checks: each catches what it is for, and every registered environment passes all."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.envs import broken, golden, toys
from tetrathlon.envs import Episode, Step, check, contract_course, hostile, listings, replay
from tetrathlon.envs.contract import CHECKS, ContractError
from tetrathlon.envs.registry import domain_of
from tetrathlon.envs.subject import Subject

IDS = [listing.id for listing in listings()]
LANGUAGE = {"system", "tools"}
AT_ANY_LENGTH = ("global_rng", "interleaving", "vector", "threads", "state")
"""Checks that compare one course of episodes with another, however long they are."""


@pytest.fixture(autouse=True)
def quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Gymnasium's own checker warns of specs that toys have not."""


@pytest.mark.parametrize("env_id", IDS)
def test_every_registered_environment_keeps_the_contract(env_id: str) -> None:
    robot = domain_of(env_id) == "robots"
    ran = check(env_id, kwargs={"observation": "state"} if robot else None, skip=AT_ANY_LENGTH if robot else ())
    if robot:  # whose episodes are long, and these checks play many of them to no end of their own
        ran += check(env_id, kwargs={"observation": "state", "max_steps": 30}, only=AT_ANY_LENGTH)
    always = set(CHECKS) - {"no_answer"}  # a task without a private answer has none to tell
    if domain_of(env_id) in ("robots", "tools") or env_id == "tetrathlon/Zoom-v0":  # it is about tasks of a single turn
        always -= {"no_answer_no_pay"}
    assert always <= set(ran)


@pytest.mark.parametrize("env_id", IDS)
def test_first_observations_are_the_pinned_ones(env_id: str) -> None:
    pinned = golden.load()
    assert env_id in pinned, f"not pinned yet; write it with: {golden.COMMAND} {env_id}"
    assert golden.measure(env_id) == pinned[env_id], "a seed gives another instance: raise the version of the id"


def test_golden_holds_no_id_that_is_gone() -> None:
    assert set(golden.load()) <= set(IDS)


@pytest.mark.parametrize("cls", [toys.Echo, toys.Reach])
def test_good_toys_pass_every_check(cls: type) -> None:
    assert check(cls()) == [name for name in CHECKS if name not in ("no_answer", "no_answer_no_pay")]


@pytest.mark.parametrize("cls", broken.CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_a_fault_is_caught_by_its_check(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    name = broken.CAUGHT_BY[cls]
    if cls is broken.Slow:
        monkeypatch.setattr(hostile, "SLOWEST_STEP", broken.Slow.limit)
    skip = () if name == "new_process" else ("new_process",)  # a process each is a second each
    with pytest.raises(ContractError, match=rf"^\[{name}\] ") as caught:
        check(cls(), skip=skip)
    assert caught.value.check == name


def test_every_check_has_a_fault_that_it_catches() -> None:
    assert set(broken.CAUGHT_BY.values()) == set(CHECKS)


def test_the_faults_pass_the_other_checks_when_theirs_is_skipped() -> None:
    for cls in (broken.StepsOn, broken.WrongSum, broken.ForgetsGenerator, broken.IndexDraws):
        name = broken.CAUGHT_BY[cls]
        assert name not in check(cls(), skip=(name, "new_process"))


def test_an_environment_of_another_contract_is_told_what_to_skip() -> None:
    with pytest.raises(ContractError, match="a step after the end was taken"):
        check("CartPole-v1", only="reset_needed")
    with pytest.raises(ContractError, match=r"\[hostile\] the action '-1' raised AssertionError"):
        check("CartPole-v1", only=["hostile"])
    for name in ("expert", "state", "reward_terms", "info", "hostile", "reset_needed"):
        with pytest.raises(ContractError, match=rf"skip='{name}'"):
            check("CartPole-v1", only=name)
    promised = check("CartPole-v1", skip=("hostile", "reset_needed", "info", "reward_terms", "state", "expert"))
    assert promised == ["gymnasium", "global_rng", "interleaving", "new_process", "vector", "threads", "replay"]


def test_a_time_limit_that_the_bare_environment_has_not_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract_course, "LONGEST_EPISODE", 300)
    with pytest.raises(ContractError, match=r"max_episode_steps=200 is kept by the wrapper TimeLimit.*skip='reset_ne"):
        check("Pendulum-v1", only="reset_needed")


@pytest.mark.parametrize("answer_format", ["boxed", "tag", "plain"])
@pytest.mark.parametrize("name", ["Arithmetic", "LetterCount", "Countdown", "Symbolic"])
def test_no_format_pays_what_is_no_answer(name: str, answer_format: str) -> None:
    kwargs = {"answer_format": answer_format, "format_weight": 0.25}
    assert check(name, kwargs=kwargs, only=["no_answer_no_pay", "expert"]) == ["no_answer_no_pay", "expert"]


def test_names_of_checks_are_checked() -> None:
    with pytest.raises(ValueError, match=r"there are no checks \['exprt'\]"):
        check(toys.Echo(), skip=("exprt",))
    assert check(toys.Echo(), only="info") == ["info"]


def test_kwargs_and_instances() -> None:
    assert check("Arithmetic", kwargs={"answer_format": "plain", "shots": 2}, only=["hostile", "splits"])
    made = gym.make("tetrathlon/Arithmetic-v0", digits=3)
    assert Subject(made).make().digits == (3, 3)
    assert check(made, only="new_process") == ["new_process"]
    with pytest.raises(TypeError, match="kwargs go with an id"):
        check(made, kwargs={"digits": 2})
    with pytest.raises(TypeError, match=r"an id or a gymnasium\.Env"):
        check(toys.Echo)  # type: ignore[arg-type]


def test_an_instance_that_cannot_be_copied_says_what_to_do() -> None:
    with pytest.raises(ContractError, match=r"split='test'.*register it"):
        check(toys.Echo(split="test"))

    class Needy(toys.Echo):
        def __init__(self, words: Any) -> None:
            super().__init__()

    with pytest.raises(ContractError, match="register it and give its id"):
        check(Needy([]))


def test_a_class_inside_a_function_cannot_go_to_a_new_process() -> None:
    class Local(toys.Echo):
        pass

    with pytest.raises(ContractError, match="no class or function at the top of a file"):
        check(Local(), only="new_process")


def test_a_script_of_somebody_else(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import numpy as np, gymnasium as gym\n"
        "from gymnasium import spaces\n"
        "from tetrathlon.envs import check\n"
        "class Mine(gym.Env):\n"
        "    observation_space = spaces.Box(0, 1, (1,), np.float32)\n"
        "    action_space = spaces.Discrete(2)\n"
        "    metadata = {'render_modes': []}\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return self.np_random.random(1, dtype=np.float32), {}\n"
        "    def step(self, action):\n"
        "        return self.np_random.random(1, dtype=np.float32), 1.0, False, False, {}\n"
        "{guard}print(check(Mine(), only=['gymnasium', 'interleaving', 'new_process']))\n"
    )
    text = script.read_text()
    script.write_text(text.replace("{guard}", "if __name__ == '__main__': "))
    done = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, cwd=Path.cwd())
    assert done.stdout.strip() == "['gymnasium', 'interleaving', 'new_process']", done.stderr
    script.write_text(text.replace("{guard}", ""))
    done = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, cwd=Path.cwd())
    assert "if __name__ ==" in done.stderr


def test_checking_leaves_the_global_generators_alone() -> None:
    random.seed(5)
    np.random.seed(5)
    check(toys.Echo(), skip="new_process")
    with pytest.raises(ContractError):
        check(broken.GlobalSeed(), only="global_rng")
    seen = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    assert seen == (random.random(), np.random.random())


def test_hostile_texts_are_legal_actions_without_a_likely_answer() -> None:
    space = toys.Echo().action_space
    texts = [bad.action for bad in hostile.actions(space) if isinstance(bad.action, str)]
    assert len(texts) == len(hostile.TEXTS) and all(text in space for text in texts)
    assert max(map(len, texts)) == 1_000_000
    nested = gym.spaces.Dict(
        {"say": space, "move": gym.spaces.Tuple((gym.spaces.Discrete(2), toys.Reach().action_space))}
    )
    names = [bad.name for bad in hostile.actions(nested, longest=10)]
    assert {"say: empty", "move: 1: all nan", "move: 0: -1", "None", "no part"} <= set(names)
    assert len(set(names)) == len(names)


def test_replay_makes_the_environment_of_the_episode() -> None:
    env = gym.make("tetrathlon/Arithmetic-v0", digits=1, format_weight=0.25)
    observation, info = env.reset(seed=3)
    action = env.unwrapped.expert_action()  # type: ignore[attr-defined]
    reward = float(env.step(action)[1])
    episode = Episode([Step(observation, action, reward)], env="tetrathlon/Arithmetic-v0", seed=3, info=info)
    episode.kwargs = {"digits": 1, "format_weight": 0.25}
    assert replay(episode) == [reward] == [1.25]
    assert replay(episode, env) == [1.25]
    episode.steps *= 2
    with pytest.raises(ValueError, match="2 steps, but here it ended after 1"):
        replay(episode)
    with pytest.raises(ValueError, match="without a seed"):
        replay(Episode(env="tetrathlon/Arithmetic-v0"))
    with pytest.raises(ValueError, match="names no environment"):
        replay(Episode(seed=1))


def test_golden_file_is_sorted_and_short() -> None:
    assert json.loads(golden.FILE.read_text()) == golden.load()
    assert all(len(entry[split]) == len(golden.SEEDS) for entry in golden.load().values() for split in entry)
