"""States of the slots of a batched environment, in all three autoreset modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.agents.policy import ExpertPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.episode import to_json
from tetrathlon.envs.robots.push import PushToZone, PushToZoneVector
from tetrathlon.envs.slots import Ready, Slots
from tetrathlon.envs.vector_slots import VectorSlots

SETTINGS: dict[str, Any] = {"observation": "state", "reward": "dense", "randomization": "strong", "max_steps": 9}
MODES = list(AutoresetMode)


def pushes(n: int, mode: AutoresetMode) -> VectorSlots:
    return VectorSlots(PushToZoneVector(n, autoreset_mode=mode, **SETTINGS))


def answers(slots: VectorSlots, ids: Sequence[int] | None = None, actions: Any = None) -> dict[int, Ready]:
    if ids is not None:
        slots.send(ids, actions)
    return {ready.id: ready for ready in slots.ready()}


def actions(n: int, steps: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (steps, n, 2)).astype(np.float32)


@pytest.mark.parametrize("mode", MODES)
def test_a_state_goes_on_in_another_slot(mode: AutoresetMode) -> None:
    slots = pushes(3, mode)
    slots.reset([0, 1, 2], [4, 5, 6])
    answers(slots)
    alone = PushToZone(**SETTINGS)
    alone.reset(seed=5)
    for now in actions(3, 4):
        seen = answers(slots, [0, 1, 2], now)
        alone.step(now[1])
    (state,) = slots.get_state([0])
    slots.set_state([2], [state])
    restored = answers(slots)
    assert list(restored) == [2] and restored[2].started
    assert np.array_equal(restored[2].observation, seen[0].observation)
    for now in actions(3, 5):
        now[2] = now[0]
        seen = answers(slots, [0, 1, 2], now)
        assert fingerprint((seen[2].observation, seen[2].reward, seen[2].info)) == fingerprint(
            (seen[0].observation, seen[0].reward, seen[0].info)
        )
        observation, reward, *_, info = alone.step(now[1])  # which nothing has disturbed
        assert np.array_equal(seen[1].observation, observation)
        assert (seen[1].reward, seen[1].info) == (reward, info)
    assert all(answer.truncated and answer.info["stop_reason"] == "time" for answer in seen.values())


@pytest.mark.parametrize("mode", MODES)
def test_a_slot_that_has_ended_goes_on_from_a_state(mode: AutoresetMode) -> None:
    slots = pushes(2, mode)
    slots.reset([0, 1], [4, 5])
    answers(slots)
    states = slots.get_state([0, 1])
    first = [answers(slots, [0, 1], now) for now in actions(2, 9)]
    assert first[-1][0].truncated and first[-1][1].truncated
    slots.set_state([1, 0], states)
    answers(slots)
    second = [answers(slots, [0, 1], now[::-1]) for now in actions(2, 9)]
    for before, after in zip(first, second, strict=True):
        for i in (0, 1):
            assert np.array_equal(before[i].observation, after[1 - i].observation)
            assert before[i].reward == after[1 - i].reward and before[i].truncated == after[1 - i].truncated


@pytest.mark.parametrize("mode", MODES)
def test_a_group_starts_from_one_state(mode: AutoresetMode) -> None:
    """As GRPO has it: more episodes than slots, in a vector that was never reset, another start among them."""
    env = PushToZone(**SETTINGS)
    env.reset(seed=3)
    for now in actions(1, 2):
        env.step(now[0])
    state = env.get_state()
    starts = [Start(state=state, group=0)] * 4 + [Start(seed=7, group=1)] * 2
    slots, single = pushes(3, mode), Slots(lambda: PushToZone(**SETTINGS), 1)
    played = Rollout(ExpertPolicy(slots.action_space), slots, starts).episodes()
    wanted = Rollout(ExpertPolicy(slots.action_space), single, starts).episodes()
    assert [len(episode) for episode in played] == [7] * 4 + [9] * 2
    assert [to_json(episode) for episode in played] == [to_json(episode) for episode in wanted]
    assert fingerprint(played[0].steps[-1].observation) != fingerprint(played[4].steps[-1].observation)


class Counters(VectorEnv[Any, Any, Any]):
    """Counts to 3 in each copy; a copy that has counted begins anew by itself, and no other way."""

    def __init__(self, n: int, mode: AutoresetMode) -> None:
        self.num_envs = n
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = spaces.Box(0, 9, (1,), np.int64)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self.counts: np.ndarray | None = None

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        assert not options, "it has no masked reset"
        self.counts = np.zeros(self.num_envs, dtype=np.int64)
        return self._see(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        assert self.counts is not None
        begins = self.counts == 3
        self.counts = np.where(begins, 0, self.counts + 1)
        return self._see(), np.where(begins, 0.0, 1.0), self.counts == 3, np.zeros(self.num_envs, dtype=bool), {}

    def get_states(self, ids: Sequence[int]) -> list[int]:
        assert self.counts is not None
        return [int(self.counts[i]) for i in ids]

    def set_states(self, ids: Sequence[int], states: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        assert self.counts is not None
        self.counts[list(ids)] = states
        return self._see(), {}

    def _see(self) -> Any:
        assert self.counts is not None
        return self.counts[:, None].copy()


def test_any_vector_environment_that_has_states_is_asked_for_them() -> None:
    slots = VectorSlots(Counters(3, AutoresetMode.NEXT_STEP))
    slots.set_state([2, 0], [1, 2])  # the first thing that is done with it
    restored = answers(slots)
    assert {i: answer.observation.tolist() for i, answer in restored.items()} == {0: [2], 2: [1]}
    slots.reset([1])
    assert answers(slots)[1].observation.tolist() == [0]
    seen = answers(slots, [0, 1, 2], [0, 0, 0])
    assert [seen[i].observation.tolist() for i in range(3)] == [[3], [1], [2]]
    assert seen[0].terminated and slots.get_state([1, 2]) == [1, 2]
    slots.set_state([0], slots.get_state([1]))
    assert answers(slots)[0].observation.tolist() == [1]
    with pytest.raises(ValueError, match=r"no slots \[3\]"):
        slots.get_state([3])


def test_what_keeps_its_states_to_itself_says_who_does_not() -> None:
    slots = VectorSlots(gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"))
    slots.reset([0, 1])
    answers(slots)
    with pytest.raises(TypeError, match=r"has no get_state by slot; Slots, a SyncVectorEnv, or .* get_states\(ids\)"):
        slots.get_state([0])
