"""What stands beside an episode about a picture: the truth, and where the answer said that it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tetrathlon
from tetrathlon.benchmarks.evidence import truth_of
from tetrathlon.envs.episode import Episode, Step


def answered(env_id: str, say: str | None, **kwargs: Any) -> tuple[Episode, Any]:
    env: Any = tetrathlon.make(env_id, **kwargs).unwrapped
    observation, info = env.reset(seed=5)
    action = env.expert_action() if say is None else say
    step = Step(observation, action, *env.step(action)[1:4])
    return Episode([step], info=info, env=env_id, kwargs=kwargs, seed=5), env


@pytest.mark.parametrize("env_id", ["tetrathlon/Box-v0", "tetrathlon/Point-v0"])
def test_a_place_that_was_answered_is_drawn(env_id: str) -> None:
    right, env = answered(env_id, None)
    silent, _ = answered(env_id, "I cannot say")
    found, bare = truth_of(right), truth_of(silent)
    assert found is not None and bare is not None and found.answer == bare.answer == env.evidence()["answer"]
    assert found.picture.shape == bare.picture.shape
    differs = (found.picture != bare.picture).any(-1)
    scale = found.picture.shape[0] // env.size
    (place,) = env.places(env.answer_in(right.steps[0].action))
    rows, columns = differs.nonzero()
    if len(place) == 4:  # a frame around the box
        assert [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] == pytest.approx(
            [scale * edge for edge in place], abs=2
        )
    else:  # a cross upon the point
        assert np.hypot(columns.mean() - scale * place[0], rows.mean() - scale * place[1]) < 2


@pytest.mark.parametrize("say", ["[-1e300, 0, 1e300, 9]", "[0, 0, 64000, 64000]", "[[1,1,5,5]]" * 500, "9" * 10_000])
def test_nothing_that_a_model_says_breaks_the_page(say: str) -> None:
    for kwargs in ({"answer_format": "plain"}, {"answer_format": "plain", "every": True}):
        episode, _ = answered("tetrathlon/Box-v0", say, **kwargs)
        assert truth_of(episode) is not None


def test_of_other_tasks_nothing_is_told() -> None:
    assert truth_of(Episode([Step("", "", 0.0, True)], env="tetrathlon/Arithmetic-v0", seed=1)) is None
