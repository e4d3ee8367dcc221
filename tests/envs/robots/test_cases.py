"""Reports of other libraries' users, on robots: no OpenGL, calls at the wrong time, worker processes, types."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.agents.policy import RandomPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.robots.lift import PickAndLift
from tetrathlon.envs.robots.place import PlaceOn
from tetrathlon.envs.robots.reach import Reach, ReachVector
from tetrathlon.envs.vector_slots import VectorSlots

STATE: dict[str, Any] = {"observation": "state"}
PLAY = """
import gymnasium as gym, tetrathlon
env = gym.make("tetrathlon/PickAndLift-v0", observation="state")
env.reset(seed=0)
for _ in range(5):
    env.step(env.action_space.sample())
env.close(); env.close()
env = gym.make("tetrathlon/PickAndLift-v0", observation="state", render_mode="rgb_array")
env.reset(seed=0)
try:
    env.render()
except gym.error.DependencyNotInstalled as error:
    print(error)
"""


# Farama-Foundation/Gymnasium-Robotics #263, Farama-Foundation/Gymnasium #726, google-deepmind/mujoco #991
def test_without_opengl_numbers_work_and_pictures_say_what_to_do() -> None:
    environment = {**os.environ, "MUJOCO_GL": "disable"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PLAY], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "MUJOCO_GL" in done.stdout and "egl, osmesa, glfw" in done.stdout
    assert "Exception ignored" not in done.stderr


def test_calls_at_the_wrong_time_are_errors() -> None:
    env = Reach(max_steps=1, **STATE)
    with pytest.raises(gym.error.ResetNeeded):
        env.step([0.0, 0.0])
    with pytest.raises(gym.error.ResetNeeded):
        env.expert_action()
    env.reset(seed=0)
    assert env.step([0.0, 0.0])[3]
    with pytest.raises(gym.error.ResetNeeded):
        env.step([0.0, 0.0])
    env.close()
    env.close()
    for call in (env.reset, env.render, env.expert_action, env.get_state, lambda: env.step([0.0, 0.0])):
        with pytest.raises(gym.error.ClosedEnvironmentError):
            call()


class Fatal(gym.Wrapper[Any, Any, Any, Any]):
    """Ends its process in step 2."""

    def step(self, action: Any) -> Any:
        self.count = getattr(self, "count", 0) + 1
        if self.count == 2:
            os._exit(3)
        return super().step(action)


class Maker:
    """Makes an id; such a thing can be sent to a process that is started afresh."""

    def __init__(self, fatal: bool = False) -> None:
        self.fatal = fatal

    def __call__(self) -> gym.Env[Any, Any]:
        import tetrathlon  # noqa: F401, F811

        env = gym.make("tetrathlon/Reach-v0", observation="state")
        return Fatal(env) if self.fatal else env


# Farama-Foundation/Gymnasium #222, openai/gym #2883, #3273
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_worker_processes_play_what_one_process_plays(context: str) -> None:
    envs = AsyncVectorEnv([Maker(), Maker()], context=context)
    try:
        seen = envs.reset(seed=3)[0]
        after = envs.step(np.ones((2, 2), dtype=np.float32))[0]
    finally:
        envs.close(timeout=5)
    alone = Reach(**STATE)
    assert np.array_equal(seen[1], alone.reset(seed=4)[0])
    assert np.array_equal(after[1], alone.step([1.0, 1.0])[0])


def test_a_killed_worker_is_an_error_and_no_hang() -> None:
    envs = AsyncVectorEnv([Maker(), Maker(fatal=True)], context="spawn")
    envs.reset(seed=0)
    still = np.zeros((2, 2), dtype=np.float32)
    envs.step(still)
    started = time.monotonic()
    with pytest.raises((EOFError, BrokenPipeError, ConnectionResetError)):
        envs.step(still)
    envs.close(terminate=True)
    assert time.monotonic() - started < 30


# openai/gym #2298, robotology-legacy/gym-ignition #426, DLR-RM/stable-baselines3 #1795
@pytest.mark.parametrize("env", [Reach(**STATE), PickAndLift(**STATE), PlaceOn(**STATE, reward="dense")], ids=str)
def test_types_are_those_of_the_interface(env: gym.Env[Any, Any]) -> None:
    observation, _ = env.reset(seed=0)
    assert observation.dtype == np.float32
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert observation.dtype == np.float32 and observation in env.observation_space
    assert type(reward) is float and type(terminated) is bool and type(truncated) is bool
    assert type(info["is_success"]) is bool and all(type(v) is float for v in info["cost_terms"].values())


@pytest.mark.filterwarnings("ignore")
def test_the_checkers_of_gymnasium_and_stable_baselines3_pass() -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    for make in (lambda: Reach(robot="arm", **STATE), lambda: PlaceOn(**STATE)):
        check_env(make(), skip_render_check=True)
        sb3.check_env(make(), skip_render_check=True)


# Farama-Foundation/Gymnasium #1017 and PR #1624, vwxyzjn/cleanrl #499
@pytest.mark.parametrize(
    ("mode", "ends"), [(AutoresetMode.NEXT_STEP, [3, 7, 11]), (AutoresetMode.SAME_STEP, [3, 6, 9, 12])]
)
def test_gymnasium_counts_the_steps_of_each_episode(mode: AutoresetMode, ends: list[int]) -> None:
    batch = ReachVector(2, max_steps=3, autoreset_mode=mode, reward="dense", **STATE)
    envs = RecordEpisodeStatistics(batch)
    envs.reset(seed=0)
    counted, paid, sums = [], np.zeros(2), []
    for step in range(1, 13):
        _, rewards, _, truncated, infos = envs.step(np.full(envs.action_space.shape, 0.1, np.float32))
        paid += rewards
        if truncated.any():
            counted.append(step)
            assert infos["episode"]["l"].tolist() == [3, 3]
            sums.append((infos["episode"]["r"].copy(), paid.copy()))
            paid[:] = 0
    assert counted == ends
    for told_sum, own_sum in sums:
        assert told_sum == pytest.approx(own_sum)


# vwxyzjn/cleanrl #499, sail-sg/envpool #194: the step of a restart is no transition, and an episode ends in its own end
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_restart_is_no_transition(mode: AutoresetMode) -> None:
    slots = VectorSlots(ReachVector(2, max_steps=3, autoreset_mode=mode, **STATE))
    policy = RandomPolicy(slots.action_space, seed=0)
    rows = Rollout(policy, slots, (Start(seed=seed) for seed in count())).stretch(8)
    single = Reach(max_steps=3, **STATE)
    for row in rows:
        assert [len(episode) for episode in row] == [3, 3, 2]
        for episode in row:
            observation, _ = single.reset(seed=episode.seed)
            for step in episode.steps:
                assert np.array_equal(step.observation, observation)
                observation = single.step(step.action)[0]
            assert np.array_equal(episode.final_observation, observation)
            assert [step.truncated for step in episode.steps] == [False, False, True][: len(episode)]


# openai/gym #2680, Farama-Foundation/Gymnasium #1321 and #427
def test_what_a_seed_means() -> None:
    def first(seed: Any) -> np.ndarray:
        return np.asarray(envs.reset(seed=seed)[0])

    envs = ReachVector(3, **STATE)
    rising = first(7)
    for i in range(3):
        assert np.array_equal(rising[i], Reach(**STATE).reset(seed=7 + i)[0])
    alike = first([7, 7, 7])
    assert np.array_equal(alike, np.stack([rising[0]] * 3))
    later = first(None)
    assert np.array_equal(later, np.stack([later[0]] * 3)) and not np.array_equal(later, alike)
    other = Reach(**STATE)
    np.random.seed(0)
    other.reset(seed=1)
    first([7, 7, 7])
    assert np.array_equal(first(None), later)
