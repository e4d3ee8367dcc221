"""Planning in copies of the simulator: it solves the task, foresees truly and disturbs nothing."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.agents.mpc import MPC, Plan
from tetrathlon.agents.policy import STATE_KEY, RandomPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.action_chunk import ActionChunk
from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.episode import Episode, to_json
from tetrathlon.envs.robots.push import PushToZone, PushToZoneVector
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.vector_slots import VectorSlots

STATE: dict[str, Any] = {"observation": "state"}
TINY: dict[str, Any] = {"population": 6, "horizon": 4, "iterations": 2, "elites": 2, "hold": 2}


def play(policy: Any, seeds: list[int], slots: int = 1, **kwargs: Any) -> list[Episode]:
    made = Slots(lambda: PushToZone(**{**STATE, **kwargs}), slots)
    return Rollout(policy, made, [Start(seed=seed) for seed in seeds]).episodes()


def begun(seed: int = 0, steps: int = 3, **kwargs: Any) -> PushToZone:
    """Return an environment that has made a few steps of its expert."""
    env = PushToZone(**{**STATE, **kwargs})
    env.reset(seed=seed)
    for _ in range(steps):
        env.step(env.expert_action())
    return env


def decide(policy: MPC, *envs: PushToZone, memory: Any = None, forced: Any = None) -> Any:
    return policy.act(None, memory, infos=[{STATE_KEY: env.get_state()} for env in envs], forced=forced)


def test_it_pushes_things_into_their_zones() -> None:
    seeds = [1000, 1001, 1002]
    env = PushToZone(**STATE)
    planned = play(MPC(env), seeds, split="test")
    assert [episode.is_success for episode in planned] == [True] * 3
    assert not any(episode.is_success for episode in play(RandomPolicy(env.action_space), seeds, split="test"))


@pytest.mark.parametrize("randomization", ["none", "strong"])
def test_what_a_plan_is_worth_is_what_it_brings(randomization: str) -> None:
    env = begun(reward="dense", randomization=randomization, steps=8)
    policy = MPC(env, population=5, horizon=12, elites=1, gamma=0.9, success=1.0, cost=0.25, approach=2.0)
    state = env.get_state()
    sequences = np.random.default_rng(0).uniform(-1, 1, (5, 12, 2))
    sequences[0] = np.clip(env.expert_action(12), -1, 1)  # makes progress
    sequences[1] = [1.0, 1.0]  # leaves the workspace in the end
    worth = policy.worth(sequences, state)
    wanted, costs = np.zeros(5), np.zeros(5)
    for row, actions in enumerate(sequences):
        env.set_state(state)
        for step, action in enumerate(actions):
            _, reward, over, _, info = env.step(action)
            cost = sum(info["cost_terms"].values())
            costs[row] += cost
            wanted[row] += 0.9**step * (reward - 0.25 * cost)
            if over:
                break
        else:
            far = env.batch.now.hand - env.batch.now.thing
            wanted[row] -= 2.0 * float(np.linalg.norm(far))
    np.testing.assert_allclose(worth, wanted, rtol=0, atol=1e-12)
    assert costs[1] > 0 and costs[0] == 0
    assert worth[0] == worth.max() and worth[0] - worth[1] > 0.25


def test_a_success_is_paid_once_and_ends_the_count() -> None:
    env = begun(reward="dense", steps=0)
    steps = 0
    while not env.step(env.expert_action())[2]:
        steps += 1
    env = begun(reward="dense", steps=steps - 5)  # so far before the end that who holds still does not get there
    policy = MPC(env, **{**TINY, "horizon": 8, "gamma": 1.0, "success": 3.0, "approach": 100.0})
    left = 1.0 - float(env.batch.task.progress(env.batch.now)[0])
    sequences = np.zeros((6, 8, 2))
    sequences[0] = env.expert_action(8)
    worth = policy.worth(sequences, env.get_state())
    assert worth[0] == pytest.approx(3.0 + left, abs=1e-12)
    assert (worth[1:] < 3.0).all()


def test_planning_changes_nothing() -> None:
    env = begun(randomization="strong")

    def now() -> str:
        state = env.get_state()
        return fingerprint((state["arrays"], repr(state["instance"]), state["rng"]))

    before, rng = now(), np.random.get_state()[1].tolist()  # type: ignore[index]
    decide(MPC(env, **TINY), env)
    assert now() == before
    assert np.random.get_state()[1].tolist() == rng  # type: ignore[index]
    batch = PushToZoneVector(2, max_steps=3, autoreset_mode=AutoresetMode.SAME_STEP, **STATE)
    slots = VectorSlots(batch)
    planned = Rollout(MPC(batch, **TINY), slots, [Start(seed=3), Start(seed=4)]).episodes()
    for episode, seed in zip(planned, (3, 4), strict=True):
        alone = PushToZone(max_steps=3, **STATE)
        assert np.array_equal(alone.reset(seed=seed)[0], episode.steps[0].observation)
        for step in episode.steps:
            *_, truncated, info = alone.step(step.action)
            assert info == step.info and truncated == step.truncated
        assert all(STATE_KEY not in step.info for step in episode.steps)  # it is for the policy's eyes


def test_a_decision_depends_on_seed_and_state_alone() -> None:
    seeds = [1, 2, 3]
    env = PushToZone(max_steps=4, **STATE)

    def told(policy: MPC, slots: int) -> list[Any]:
        return [to_json(episode) for episode in play(policy, seeds, slots, max_steps=4)]

    wanted = told(MPC(env, **TINY), 1)
    assert told(MPC(env, **TINY), 3) == wanted
    assert told(MPC(env, **TINY, threads=2), 2) == wanted
    assert told(MPC(env, **TINY, seed=1), 1) != wanted


def test_the_plan_moves_on_and_is_kept_where_it_is_the_best() -> None:
    env = begun()
    policy = MPC(env, **{**TINY, "deviation": 0.0})  # nothing else is tried
    plan = Plan(5, np.array([[0.5, 0.0], [0.25, 0.1], [0.125, 0.2], [0.0, 0.3]]))
    acted = decide(policy, env, memory=[plan])
    assert acted.actions.tolist() == [[0.5, 0.0]] and acted.actions.dtype == np.float32
    (memory,) = acted.memory
    assert memory.step == 6 and memory.actions.tolist() == [*plan.actions[1:].tolist(), [0.0, 0.0]]


def test_forced_actions_leave_the_plan_right() -> None:
    env = begun()
    policy = MPC(env, **TINY)
    free = decide(policy, env, env)
    forced = decide(policy, env, env, memory=free.memory, forced=[None, np.array([0.25, -0.5])])
    assert np.array_equal(forced.actions[0], decide(policy, env, memory=free.memory[:1]).actions[0])
    assert forced.actions[1].tolist() == [0.25, -0.5] and forced.memory[1].step == 2
    assert np.array_equal(forced.memory[1].actions[:-1], free.memory[1].actions[1:])
    assert forced.records == [None, None]


def test_of_a_chunk_the_plan_s_first_actions_are_done() -> None:
    env = begun(chunk=3, steps=1)
    policy = MPC(env, **TINY)
    (plan,) = decide(policy, env).memory
    assert decide(policy, env).actions.shape == (1, 3, 2)
    assert plan.actions[1:].tolist() == [[0.0, 0.0]] * 3
    wrapped = MPC(ActionChunk(PushToZone(**STATE), 3), **TINY)
    assert np.array_equal(decide(wrapped, env).actions, decide(policy, env).actions)
    (episode,) = play(policy, [0], chunk=3, max_steps=6)
    assert [step.action.shape for step in episode.steps] == [(3, 2)] * 2
    with pytest.raises(ValueError, match="horizon must be an integer from 3"):
        MPC(env, horizon=2)


def test_an_arm_is_planned_for_too() -> None:
    env = gym.make("tetrathlon/PushToZone-v0", robot="arm", **STATE)
    env.reset(seed=0)
    policy = MPC(env, **TINY)
    assert decide(policy, env.unwrapped).actions.shape == (1, 4)  # type: ignore[arg-type]


def test_what_it_cannot_plan_in_is_refused() -> None:
    with pytest.raises(TypeError, match=r"MPC plans in copies of a robot task of tetrathlon.*CartPole"):
        MPC(gym.make("CartPole-v1"))
    env = begun()
    with pytest.raises(TypeError, match="MPC needs infos with 'env_state'"):
        MPC(env, **TINY).act(None, infos=[{}])
    for arguments, said in (
        ({"population": 1}, "population must be an integer from 2"),
        ({"elites": 7}, "elites must be an integer from 1 to 6"),
        ({"hold": 5}, "hold must be an integer from 1 to 4"),
    ):
        with pytest.raises(ValueError, match=said):
            MPC(env, **{**TINY, **arguments})
