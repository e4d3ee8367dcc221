"""What answers to pictures depend on, of policies of which it is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tetrathlon.agents.dependence import compared, dependence, has_variants
from tetrathlon.agents.evaluation import evaluate, instance_seeds
from tetrathlon.agents.policy import Acted
from tetrathlon.cli import main
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.registry import make

COUNT = "tetrathlon/Count-v0"
N = 60


class Says:
    """Answers what a function of the picture and the text says."""

    def __init__(self, answer: Callable[[np.ndarray, str], str]) -> None:
        self.answer = answer

    def act(self, observations: Any, memory: Any = None, **_: Any) -> Acted:
        said = [self.answer(*each) for each in zip(observations["image"], observations["text"], strict=True)]
        actions = tuple(f"<answer>{answer}</answer>" for answer in said)
        return Acted(actions, [None] * len(actions), [None] * len(actions))


def patches(picture: np.ndarray) -> int:
    """Return how many pixels are of the colour of covers."""
    return int((picture == 127).all(axis=-1).sum())


@pytest.fixture(scope="module")
def told() -> dict[tuple[bytes, str], str]:
    """What is right in each picture."""
    env: Any = make(COUNT, split="test").unwrapped
    found = {}
    for seed in instance_seeds(0, N):
        for variant in ("full", "twin", "masked", "distractor_masked"):
            observation, _ = env.reset(seed=seed, options={"variant": variant})
            found[observation["image"].tobytes(), observation["text"]] = env.evidence()["answer"]
    return found


def test_who_looks_depends_on_the_evidence_and_on_nothing_else(told: dict[tuple[bytes, str], str]) -> None:
    found = dependence(Says(lambda picture, text: told.get((picture.tobytes(), text), "0")), COUNT, episodes=N)
    assert (found.instances, found.full, found.twin, found.pair, found.flips) == (N, 1, 1, 1, 1)
    assert (found.abstains, found.masked, found.distractor_masked, found.distractor_drop) == (1, 0, 1, 0)
    assert found.no_image == 0 and found.blind_floor == 1 / 6
    assert found.pair_low == pytest.approx(0.94, abs=0.01) and found.pair_high == 1


def test_who_does_not_look_is_at_the_blind_floor_and_never_right_on_both() -> None:
    found = dependence(Says(lambda picture, text: "3"), COUNT, episodes=N)
    assert found.pair == found.flips == found.abstains == found.distractor_drop == 0
    assert found.full == found.distractor_masked == found.no_image == found.masked
    assert found.full is not None and 0 < found.full < 0.35
    assert found.twin is not None and 0 < found.twin < 0.35


def test_who_calls_every_patch_a_cover_abstains_too_often(told: dict[tuple[bytes, str], str]) -> None:
    def answer(picture: np.ndarray, text: str) -> str:
        return "unseen" if patches(picture) else told.get((picture.tobytes(), text), "0")

    found = dependence(Says(answer), COUNT, episodes=N)
    assert (found.full, found.abstains, found.distractor_masked, found.distractor_drop) == (1, 1, 0, 1)


def test_the_expert_who_knows_without_looking_gives_itself_away() -> None:
    found = dependence("expert", COUNT, episodes=20)
    assert (found.full, found.pair, found.abstains, found.masked, found.no_image) == (1, 1, 1, 0, 1)


def test_episodes_that_are_there_are_not_played_again() -> None:
    full = evaluate("expert", COUNT, episodes=5).episodes_played
    seen: list[Episode] = []
    found = dependence("expert", COUNT, full=full, on_episode=seen.append)
    assert found.instances == 5 and len(seen) == 4 * 5
    assert {episode.kwargs["variant"] for episode in seen} == {"twin", "masked", "distractor_masked", "no_image"}


def test_instances_that_cannot_be_scored_are_left_out() -> None:
    env: Any = make(COUNT).unwrapped
    assert compared({"full": [], "twin": []}, env).as_dict() == {
        name: 0 if name == "instances" else None for name in compared({"full": [], "twin": []}, env).as_dict()
    }


def test_a_variant_that_is_named_is_refused() -> None:
    with pytest.raises(ValueError, match="kwargs must not name one, got 'twin'"):
        dependence("expert", COUNT, kwargs={"variant": "twin"})


def test_other_tasks_have_no_variants() -> None:
    assert has_variants(make(COUNT)) and not has_variants(make("tetrathlon/Arithmetic-v0"))
    assert not has_variants(make("CartPole-v1"))


def test_the_command_line_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "Count", "--policy", "expert", "--episodes", "4"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dependence"]["pair"] == 1
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "both twins right" in out and "the best blind policy 16.7 %" in out
    assert main([*words, "--full-only"]) == 0
    assert "both twins right" not in capsys.readouterr().out
