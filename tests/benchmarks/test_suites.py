from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest
from rich.console import Console

from tests.agents.seeing import saved
from tetrathlon.benchmarks.bench import run
from tetrathlon.benchmarks.suites import STANDARD, SUITES, Entry, Suite, find
from tetrathlon.envs.registry import make

PLAYED = [(suite.name, entry) for suite in SUITES.values() for entry in suite.entries]
ENTRIES = [pytest.param(entry, id=f"{suite}-{entry.name}") for suite, entry in PLAYED]
TEXTS = [pytest.param(entry, id=f"{suite}-{entry.name}") for suite, entry in PLAYED if entry.domain == "text"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_can_be_played(entry: Entry) -> None:
    env = make(entry.env, split=entry.split, **entry.kwargs)
    try:
        env.reset(seed=entry.seeds[0])
    except gym.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
    terminated = truncated = False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(env.unwrapped.expert_action())  # type: ignore[attr-defined]
    assert terminated and float(reward) > 0 and info["is_success"]
    env.close()


@pytest.mark.parametrize("entry", TEXTS)
def test_the_expert_stays_inside_the_token_limit_of_an_entry(entry: Entry) -> None:
    # A token has a character or more, in every vocabulary; most have four.
    env = make(entry.env, split=entry.split, **entry.kwargs)
    for index in range(20):
        _, info = env.reset(options={"index": index})
        action = env.unwrapped.expert_action()  # type: ignore[attr-defined]
        assert len(action) <= 3 * info["limits"]["tokens"]
    env.close()


@pytest.mark.parametrize("suite", SUITES.values(), ids=list(SUITES))
def test_a_suite_is_sound(suite: Suite) -> None:
    assert SUITES[suite.name] is suite is find(suite.name)
    assert len({entry.name for entry in suite.entries}) == len(suite.entries)
    assert len({json.dumps([e.env, dict(e.kwargs)], sort_keys=True) for e in suite.entries}) == len(suite.entries)
    assert set(suite.domains) <= {"text", "tools", "vision", "robots"}
    assert suite.of(None) == suite.entries
    assert suite.of(suite.domains) == suite.entries


def test_the_suite_of_real_models_runs_with_tiny_ones(tmp_path: Path) -> None:
    tiny = f"hf:{saved('qwen2_5_vl', tmp_path / 'model')}"
    # One seed and episode of each entry; a model of random weights says all that it may, so its turns are short.
    entries = tuple(replace(entry, seeds=(0,), episodes=1) for entry in STANDARD.entries)
    suite = replace(STANDARD, entries=entries, policies=("random", tiny))
    folder = run(suite, out=tmp_path / "run", console=Console(quiet=True))
    results = json.loads((folder / "results.json").read_text())
    played = {(row["name"], row["policy"]) for row in results["entries"]}
    language = {entry.name for entry in entries if entry.domain != "robots"}
    assert {name for name, policy in played if policy == "random"} == {entry.name for entry in entries}
    assert {name for name, policy in played if policy == tiny} == language and not results["unavailable"]
    assert all(row["crashes"] == row["grader_errors"] == 0 for row in results["entries"])


def test_an_entry_is_frozen_to_the_bottom() -> None:
    entry = Entry(name="a", env="tetrathlon/Arithmetic-v0", kwargs={"digits": 1})
    with pytest.raises(TypeError):
        entry.kwargs["digits"] = 2  # type: ignore[index]


def test_another_setting_has_another_digest() -> None:
    entries = [Entry(name="a", env="tetrathlon/Arithmetic-v0", kwargs={"digits": digits}) for digits in (1, 1, 2)]
    suites = [Suite(name="s", version=1, entries=(entry,)) for entry in entries]
    assert suites[0].digest == suites[1].digest != suites[2].digest


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metric": "elegance"}, "elegance"),
        ({"episodes": 0}, "at least 1"),
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "seeds"),
        ({"kwargs": {"split": "train"}}, "must not hold 'split'"),
    ],
)
def test_a_wrong_entry_is_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Entry(name="a", env="tetrathlon/Arithmetic-v0", **wrong)


def test_names_must_differ_and_be_known() -> None:
    entry = Entry(name="twice", env="tetrathlon/Arithmetic-v0")
    with pytest.raises(ValueError, match="twice"):
        Suite(name="s", version=1, entries=(entry, entry))
    with pytest.raises(ValueError, match="quick"):
        find("slow")
    with pytest.raises(ValueError, match="sound"):
        find("quick").of(["sound"])


def test_nothing_cannot_be_measured() -> None:
    with pytest.raises(ValueError, match="'s' must have an entry"):
        Suite(name="s", version=1, entries=())
    with pytest.raises(ValueError, match="at least one domain"):
        find("quick").of([])
