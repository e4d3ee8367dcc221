"""The batch of robot tasks: bit-equal to single ones, in all modes, with exact states and pure experts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs.robots.camera import Camera
from tetrathlon.envs.robots.push import PushToZone, PushToZoneVector
from tetrathlon.envs.robots.push_fragile import PushFragileVector
from tetrathlon.envs.spaces import unbatch_info
from tetrathlon.envs.vector_slots import VectorSlots

STATE: dict[str, Any] = {"observation": "state"}


def plays(n: int, steps: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (steps, n, 2)).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("randomization", ["none", "strong"])
def test_a_batch_is_bit_equal_to_single_environments(threads: int, randomization: str) -> None:
    n, steps = 16, 30
    settings = {**STATE, "randomization": randomization, "reward": "dense"}
    batch = PushToZoneVector(n, threads=threads, autoreset_mode=AutoresetMode.DISABLED, **settings)
    singles = [PushToZone(**settings) for _ in range(n)]
    observations, infos = batch.reset(seed=5)
    for i, env in enumerate(singles):
        observation, info = env.reset(seed=5 + i)
        assert np.array_equal(observations[i], observation)
        assert unbatch_info(infos, i) == info
    for actions in plays(n, steps):
        observations, rewards, terminated, truncated, infos = batch.step(actions)
        assert not (terminated | truncated).any()
        for i, env in enumerate(singles):
            observation, reward, *_, info = env.step(actions[i])
            assert np.array_equal(observations[i], observation)
            assert rewards[i] == reward
            assert unbatch_info(infos, i) == info


def test_make_vec_gives_the_batch() -> None:
    envs = gym.make_vec("tetrathlon/PushToZone-v0", 3, vectorization_mode="vector_entry_point", **STATE)
    assert isinstance(envs.unwrapped, PushToZoneVector)
    assert envs.reset(seed=0)[0].shape == (3, 22)


class TestAutoreset:
    """A limit of 3 steps ends every episode."""

    def test_next_step(self) -> None:
        envs = PushToZoneVector(2, max_steps=3, autoreset_mode=AutoresetMode.NEXT_STEP, **STATE)
        envs.reset(seed=0)
        ends = [envs.step(actions)[3].tolist() for actions in plays(2, 7)]
        assert ends == [[False] * 2, [False] * 2, [True] * 2, [False] * 2, [False] * 2, [False] * 2, [True] * 2]
        _, rewards, _, _, infos = envs.step(plays(2, 1)[0])
        assert rewards.tolist() == [0.0, 0.0]
        assert "task_id" in infos and "reward_terms" not in unbatch_info(infos, 0)

    def test_same_step_gives_the_true_last_observation(self) -> None:
        envs = PushToZoneVector(2, max_steps=3, autoreset_mode=AutoresetMode.SAME_STEP, **STATE)
        alone = PushToZone(max_steps=3, **STATE)
        envs.reset(seed=0)
        alone.reset(seed=0)
        for actions in plays(2, 3):
            observations, _, _, truncated, infos = envs.step(actions)
            last, *_, info = alone.step(actions[0])
        assert truncated.all()
        assert np.array_equal(infos["final_obs"][0], last)
        assert unbatch_info(infos["final_info"], 0) == info
        assert np.array_equal(observations[0], alone.reset()[0])

    def test_disabled_asks_for_a_reset(self) -> None:
        envs = PushToZoneVector(2, max_steps=1, autoreset_mode=AutoresetMode.DISABLED, **STATE)
        envs.reset(seed=0)
        envs.step(plays(2, 1)[0])
        with pytest.raises(gym.error.ResetNeeded, match=r"\[0, 1\]"):
            envs.step(plays(2, 1)[0])
        envs.reset(seed=[7, None], options={"reset_mask": np.array([True, False])})
        with pytest.raises(gym.error.ResetNeeded, match=r"\[1\]"):
            envs.step(plays(2, 1)[0])

    def test_a_masked_reset_leaves_the_others_alone(self) -> None:
        envs = PushToZoneVector(3, autoreset_mode=AutoresetMode.NEXT_STEP, **STATE)
        envs.reset(seed=0)
        before = envs.step(plays(3, 1)[0])[0]
        after = envs.reset(seed=[None, 9, None], options={"reset_mask": np.array([False, True, False])})[0]
        assert np.array_equal(before[[0, 2]], after[[0, 2]])
        assert np.array_equal(after[1], PushToZone(**STATE).reset(seed=9)[0])


class TestRest:
    def test_what_rests_stays_as_it_is_and_the_others_play_on(self) -> None:
        envs = PushToZoneVector(3, max_steps=4, autoreset_mode=AutoresetMode.DISABLED, **STATE)
        twin = PushToZoneVector(3, max_steps=4, autoreset_mode=AutoresetMode.DISABLED, **STATE)
        before = envs.reset(seed=0)[0]
        twin.reset(seed=0)
        envs.rest([1])
        for actions in plays(3, 3):
            mine, rewards, *_, infos = envs.step(actions)
            theirs = twin.step(actions)[0]
        assert np.array_equal(mine[[0, 2]], theirs[[0, 2]])
        assert np.array_equal(mine[1], before[1])
        assert rewards[1] == 0 and infos["_is_success"].tolist() == [True, False, True]
        envs.step(plays(3, 1)[0])
        envs.rest([0, 2])  # they have ended: nobody has to reset what nobody needs
        envs.step(plays(3, 1)[0])
        envs.reset(seed=[None, 1, None], options={"reset_mask": np.array([False, True, False])})
        assert not np.array_equal(envs.step(plays(3, 1)[0])[0][1], before[1])

    def test_what_becomes_another_does_not_rest(self) -> None:
        envs, other = (PushToZoneVector(2, autoreset_mode=AutoresetMode.DISABLED, **STATE) for _ in range(2))
        envs.reset(seed=0)
        other.reset(seed=9)
        envs.rest([1])
        envs.load(other)
        for actions in plays(2, 2):
            assert np.array_equal(envs.step(actions)[0], other.step(actions)[0])

    def test_a_picture_is_drawn_where_something_changed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn: list[list[int]] = []
        pictures = Camera.pictures

        def counted(self: Camera, world: Any, ids: Any, *others: Any) -> np.ndarray:
            drawn.append(list(ids))
            return pictures(self, world, ids, *others)

        monkeypatch.setattr(Camera, "pictures", counted)
        envs = PushToZoneVector(3, image_size=16, autoreset_mode=AutoresetMode.DISABLED)
        try:
            envs.reset(seed=0)
        except gym.error.DependencyNotInstalled as error:
            pytest.skip(str(error))
        envs.rest([1])
        seen = envs.step(plays(3, 1)[0])[0]["image"]
        again = envs.reset(seed=[5, None, None], options={"reset_mask": np.array([True, False, False])})[0]["image"]
        assert np.array_equal(again[1:], seen[1:]) and not np.array_equal(again[0], seen[0])
        envs.set_states([2], envs.get_states([0]))
        assert drawn == [[0, 1, 2], [0, 2], [0], [2]]
        envs.load(envs, [0, 0, 0])
        assert drawn[4:] == [[0, 1, 2]]


def test_slots_take_seeds_and_the_expert_from_the_batch() -> None:
    slots = VectorSlots(PushToZoneVector(2, **STATE))
    slots.reset([0, 1], [4, 5])
    first = slots.ready()
    assert np.array_equal(first[1].observation, PushToZone(**STATE).reset(seed=5)[0])
    assert np.shape(slots.expert([1], 3)) == (1, 3, 2)
    slots.close()


class TestStates:
    def test_a_state_goes_to_another_copy(self) -> None:
        one = PushToZoneVector(2, autoreset_mode=AutoresetMode.DISABLED, randomization="strong", **STATE)
        other = PushToZoneVector(2, autoreset_mode=AutoresetMode.DISABLED, randomization="strong", **STATE)
        one.reset(seed=1)
        other.reset(seed=2)
        for actions in plays(2, 5):
            one.step(actions)
        other.set_states([1], one.get_states([0]))
        for actions in plays(1, 10, seed=8):
            mine = one.step(np.repeat(actions, 2, 0))[0][0]
            theirs = other.step(np.repeat(actions, 2, 0))[0][1]
            assert np.array_equal(mine, theirs)

    @pytest.mark.parametrize(
        ("ids", "count", "message"),
        [
            ([0], 2, r"states must be one a copy, got 2 for 1 copies, \[0\]"),
            ([0, 1], 1, "states must be one a copy, got 1 for 2 copies"),
            ([1, 1], 2, r"ids must name a copy once, got \[1, 1\]"),
            ([0, 2], 2, r"ids must be integers from 0 to 1, got \[2\]"),
            (["a"], 1, r"ids must be a list of integers from 0 to 1, got \['a'\]"),
            (0, 1, "ids must be a list of integers from 0 to 1, got 0"),
        ],
    )
    def test_a_state_a_copy(self, ids: Any, count: int, message: str) -> None:
        envs = PushToZoneVector(2, **STATE)
        envs.reset(seed=0)
        with pytest.raises(ValueError, match=message):
            envs.set_states(ids, envs.get_states([0, 1])[:count])

    def test_one_bad_state_changes_no_copy(self) -> None:
        envs, other = PushToZoneVector(2, **STATE), PushFragileVector(1, **STATE)
        before = envs.reset(seed=0)[0]
        other.reset(seed=0)
        good = envs.get_states([1])[0]
        said = (
            r"a state for copy 1 must be what get_state\(\) of PushToZone .* got one of PushFragile with robot='pusher'"
        )
        with pytest.raises(ValueError, match=said):
            envs.set_states([0, 1], [good, other.get_states([0])[0]])
        assert np.array_equal(envs.set_states([], [])[0], before)

    def test_the_expert_s_next_actions_are_those_it_then_gives(self) -> None:
        envs = PushToZoneVector(4, autoreset_mode=AutoresetMode.DISABLED, randomization="strong", **STATE)
        envs.reset(seed=0)
        foreseen = envs.expert_action(5)
        for k in range(5):
            now = envs.expert_action()
            assert np.array_equal(now, [row[k] for row in foreseen])
            envs.step(np.stack(now))


class TestChunks:
    def test_a_chunk_is_its_actions_one_after_the_other(self) -> None:
        chunked, plain = PushToZone(chunk=4, reward="dense", **STATE), PushToZone(reward="dense", **STATE)
        chunked.reset(seed=2)
        plain.reset(seed=2)
        for _ in range(4):
            chunk = chunked.expert_action()
            seen, reward, *_, info = chunked.step(chunk)
            steps = [plain.step(action) for action in chunk]
            assert np.array_equal(seen, steps[-1][0])
            assert info["env_steps"] == 4 and info["step_rewards"] == [step[1] for step in steps]
            assert reward == pytest.approx(sum(step[1] for step in steps))

    def test_a_success_inside_a_chunk_ends_it_there(self) -> None:
        plain = PushToZone(**STATE)
        plain.reset(seed=0)
        length, over = 0, False
        while not over:
            _, _, over, _, _ = plain.step(plain.expert_action())
            length += 1
        size = next(k for k in (7, 6, 5) if length % k)
        env = PushToZone(chunk=size, **STATE)
        env.reset(seed=0)
        executed, over = [], False
        while not over:
            _, reward, over, _, info = env.step(env.expert_action())
            executed.append(info["env_steps"])
        assert sum(executed) == length
        assert reward == 1.0 and info["is_success"] and info["step_rewards"] == [0.0] * (length % size - 1) + [1.0]


def test_a_diverged_simulation_is_cut_and_says_so() -> None:
    envs = PushToZoneVector(3, autoreset_mode=AutoresetMode.DISABLED, **STATE)
    envs.reset(seed=0)
    envs.world.qvel[1] = 1e12
    observations, rewards, terminated, truncated, infos = envs.step(plays(3, 1)[0])
    assert truncated.tolist() == [False, True, False] and not terminated.any()
    assert infos["stop_reason"][1] == "diverged" and rewards.tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(observations).all() and envs.single_observation_space.contains(observations[1])


def test_an_action_that_is_not_finite_holds_still_unpaid() -> None:
    env = PushToZone(reward="dense", **STATE)
    env.reset(seed=0)
    before = env.step([1.0, 0.0])[0]
    after, reward, *_, info = env.step([np.nan, 0.0])
    assert reward == 0.0 and info["ignored_actions"] == 1
    assert abs(after[0] - before[0]) < 0.03
    assert env.step("left")[4]["ignored_actions"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"robot": "dog"}, "robot must be one of 'pusher', 'arm', got 'dog'"),
        ({"split": "dev"}, "split must be one of"),
        ({"chunk": 0}, "chunk must be an integer from 1"),
        ({"wrist_image": True}, "wrist_image is of robot='arm'"),
        ({"randomization": "wild"}, "randomization must be one of"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PushToZone(**arguments)


@pytest.mark.parametrize("batched", [True, False])
def test_an_argument_that_is_not_there_is_said_with_the_environment(batched: bool) -> None:
    def made(**arguments: Any) -> Any:
        name = "tetrathlon/PushToZone-v0"
        return gym.make_vec(name, 2, **arguments) if batched else gym.make(name, **arguments)

    takes = r"\(it takes .*chunk, end_on_violation, goal_steps, image_size, max_steps, .*wrist_image\)"
    with pytest.raises(TypeError, match=f"PushToZone has no argument 'imge_size'; did you mean image_size. {takes}"):
        made(imge_size=32)
    with pytest.raises(TypeError, match=f"PushToZone has no argument 'task' {takes}") as caught:
        made(task="push")
    assert ("autoreset_mode" in str(caught.value)) == batched


@pytest.mark.parametrize(
    ("actions", "got"),
    [
        ("x", "'x'"),
        (None, r"the shape \(\)"),
        ([[0.0, 0.0]], r"the shape \(1, 2\)"),
        ([[0.0, 0.0], [0.0]], r"\[\[0.0, 0.0\], \[0.0\]\]"),
        ([["a", "b"]] * 2, r"\[\['a', 'b'\]"),
    ],
)
def test_actions_that_are_none_are_named(actions: Any, got: str) -> None:
    envs = PushToZoneVector(2, **STATE)
    envs.reset(seed=0)
    with pytest.raises(
        ValueError, match=rf"actions must be numbers of the shape \(2, 2\), an action a copy, got {got}"
    ):
        envs.step(actions)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"seed": 1.5}, "seed must be an integer, or an integer or None a copy, got 1.5"),
        ({"seed": "12"}, "seed must be an integer, or an integer or None a copy, got '12'"),
        ({"seed": [1, 2.5]}, r"seed must be an integer, or an integer or None a copy, got \[1, 2.5\]"),
        ({"seed": [1, 2, 3]}, "seed must be one number or one a copy, got 3 for 2 copies"),
        ({"options": "index"}, "options must be a dict of some of 'index', .*, got 'index'"),
    ],
)
def test_resets_that_cannot_be_are_named(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PushToZoneVector(2, **STATE).reset(**asked)


def test_a_batch_that_was_closed_is_not_played() -> None:
    envs = gym.make_vec("tetrathlon/PushToZone-v0", 2, **STATE)
    batch: Any = envs.unwrapped
    envs.reset(seed=0)
    states = batch.get_states([0])
    envs.close()
    envs.close()
    calls = (
        envs.reset,
        envs.render,
        batch.expert_action,
        lambda: envs.step(plays(2, 1)[0]),
        lambda: batch.call("expert_action"),
        lambda: batch.get_states([0]),
        lambda: batch.set_states([0], states),
    )
    for call in calls:
        with pytest.raises(gym.error.ClosedEnvironmentError, match="was closed; make another"):
            call()


def test_observations_are_not_views_of_the_simulation() -> None:
    env = PushToZone(**STATE)
    seen = [env.reset(seed=0)[0], *(env.step(action[0])[0] for action in plays(1, 3))]
    copies = [observation.copy() for observation in seen]
    env.step([1.0, 1.0])
    assert all(np.array_equal(a, b) for a, b in zip(seen, copies, strict=True))
    assert not any(np.shares_memory(a, b) for a, b in pairwise(seen))
