"""The one loop: order, labels, forced actions, cuts and crashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.agents.toys import Counting, Oracle
from tetrathlon.agents.policy import Acted, ExpertPolicy, FunctionPolicy, RandomPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.vector_slots import VectorSlots


class Noting:
    """Does 7, remembers how often it acted in the episode, and keeps what it was given."""

    def __init__(self, stop_at: int | None = None, stop: str = "length") -> None:
        self.stop_at, self.stop = stop_at, stop
        self.calls: list[dict[str, Any]] = []

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        assert memory is not None
        n = len(memory)
        self.calls.append({"memory": list(memory), "infos": infos, "greedy": greedy, "forced": forced, "n": n})
        turns = [(old or 0) + 1 for old in memory]
        done = [7 if forced is None or forced[i] is None else forced[i] for i in range(n)]
        return Acted(
            np.array(done),
            turns,
            [{"turn": np.array(turn)} for turn in turns],
            [self.stop if turn == self.stop_at else None for turn in turns],
        )


def test_episodes_come_in_the_order_of_their_starts() -> None:
    # The first start is the longest, so it ends last.
    lengths = [9, 1, 2, 3, 1]
    starts = [Start(seed=s, options={"length": n}, group=s // 2) for s, n in enumerate(lengths)]
    episodes = Rollout(Noting(), Slots(Counting, 2), starts, env="Counting", kwargs={"length": 3}).episodes()
    assert [e.seed for e in episodes] == [0, 1, 2, 3, 4]
    assert [len(e) for e in episodes] == lengths
    assert [e.group for e in episodes] == [0, 0, 1, 1, 2]
    assert [e.info for e in episodes] == [{"task_id": str(s)} for s in range(5)]
    assert {e.env for e in episodes} == {"Counting"} and episodes[0].kwargs == {"length": 3}
    assert episodes[0].options == {"length": 9}
    first = episodes[3]
    assert [step.observation.tolist() for step in first.steps] == [[0], [1], [2]]
    assert first.final_observation.tolist() == [3]
    assert first.total_reward == 21.0
    assert [step.record and int(step.record["turn"]) for step in first.steps] == [1, 2, 3]
    assert [step.terminated for step in first.steps] == [False, False, True]


def test_memory_is_fresh_for_each_episode() -> None:
    policy = Noting()
    Rollout(policy, Slots(lambda: Counting(2), 1), [Start(seed=0), Start(seed=1)]).episodes()
    assert [call["memory"] for call in policy.calls] == [[None], [1], [None], [1]]


@pytest.mark.parametrize("threads", [0, 2])
def test_more_slots_than_starts(threads: int) -> None:
    slots = Slots(Counting, 4, threads=threads)
    try:
        episodes = Rollout(Noting(), slots, [Start(seed=5)]).episodes()
    finally:
        slots.close()
    assert [e.seed for e in episodes] == [5]
    assert Rollout(Noting(), Slots(Counting, 2), []).episodes() == []


def test_asking_labels_every_step() -> None:
    policy = Noting()
    (episode,) = Rollout(policy, Slots(Counting, 1), [Start(seed=1)], ask=True, greedy=True).episodes()
    assert [step.label for step in episode.steps] == [0, 1, 2]
    assert [step.action for step in episode.steps] == [7, 7, 7]
    assert [call["infos"][0]["expert_action"] for call in policy.calls] == [0, 1, 2]
    assert all(call["greedy"] for call in policy.calls)
    # The expert's action is for the policy's eyes; the episode's infos are the environment's own.
    assert all("expert_action" not in step.info for step in episode.steps)
    assert "expert_action" not in episode.info


def test_nobody_asks_unless_told() -> None:
    policy = Noting()
    (episode,) = Rollout(policy, Slots(Counting, 1), [Start(seed=1)]).episodes()
    assert all("expert_action" not in call["infos"][0] for call in policy.calls)
    assert [step.label for step in episode.steps] == [None] * 3


def test_expert_policy_is_asked_for_without_labels() -> None:
    slots = Slots(Counting, 2)
    episodes = Rollout(ExpertPolicy(slots.action_space), slots, [Start(seed=s) for s in range(3)]).episodes()
    assert [[int(step.action) for step in e.steps] for e in episodes] == [[0, 1, 2]] * 3
    assert [e.total_reward for e in episodes] == [3.0] * 3
    assert all(step.label is None for e in episodes for step in e.steps)


def test_forced_actions_are_done_and_handed_to_the_policy() -> None:
    policy = Noting()
    force = lambda slot, expert: expert if expert == 1 else None  # noqa: E731
    (episode,) = Rollout(policy, Slots(Counting, 1), [Start(seed=1)], force=force).episodes()
    assert [call["forced"] for call in policy.calls] == [[None], [1], [None]]
    assert [int(step.action) for step in episode.steps] == [7, 1, 7]
    assert [step.label for step in episode.steps] == [0, 1, 2]
    assert episode.total_reward == 15.0


@pytest.mark.parametrize("stop", ["length", "context"])
def test_a_cut_ends_the_episode(stop: str) -> None:
    (episode,) = Rollout(Noting(2, stop), Slots(Counting, 1), [Start(seed=1)]).episodes()
    assert len(episode) == 2
    assert (episode.steps[-1].terminated, episode.steps[-1].truncated) == (True, False)
    assert episode.stop_reason == stop
    assert episode.is_success is False and episode.last_info["is_success"] is False
    assert episode.last_info["reward_terms"] == {"action": 7.0}


@pytest.mark.parametrize(("seed", "success"), [(1, True), (2, False)])
def test_a_cut_keeps_what_the_environment_said(seed: int, success: bool) -> None:
    # The cut falls on the step with which the environment ends by itself.
    (episode,) = Rollout(Noting(3), Slots(Counting, 1), [Start(seed=seed)]).episodes()
    assert len(episode) == 3 and episode.is_success is success and episode.stop_reason == "length"


def test_eos_ends_nothing() -> None:
    (episode,) = Rollout(Noting(1, "eos"), Slots(Counting, 1), [Start(seed=1)]).episodes()
    assert len(episode) == 3 and episode.stop_reason == "counted"


def test_a_slot_goes_on_after_a_cut() -> None:
    episodes = Rollout(Noting(1), Slots(Counting, 1), [Start(seed=s) for s in range(3)]).episodes()
    assert [(e.seed, len(e)) for e in episodes] == [(0, 1), (1, 1), (2, 1)]


def test_crashes_are_counted_and_cost_one_episode() -> None:
    rollout = Rollout(Noting(), Slots(lambda: Counting(crash_at=2, crash_seed=1), 2), [Start(seed=s) for s in range(4)])
    episodes = rollout.episodes()
    assert [e.seed for e in episodes] == [0, 2, 3]
    assert rollout.crashes == ["RuntimeError: the simulator is gone"]


def test_on_episode_is_called_once_for_each() -> None:
    seen: list[Episode] = []
    rollout = Rollout(
        Noting(),
        Slots(lambda: Counting(crash_at=2, crash_seed=1), 2),
        [Start(seed=s) for s in range(5)],
        on_episode=seen.append,
    )
    episodes = rollout.episodes()
    assert sorted(e.seed or 0 for e in seen) == [0, 2, 3, 4]
    assert {id(e) for e in seen} == {id(e) for e in episodes}


def test_text_goes_through() -> None:
    slots = Slots(Oracle, 2)
    policy = FunctionPolicy(lambda text: f"right {text}", slots.observation_space, slots.action_space)
    episodes = Rollout(policy, slots, [Start(seed=s) for s in (4, 5)]).episodes()
    assert [e.steps[0].action for e in episodes] == ["right train 4", "right train 5"]
    assert [e.is_success for e in episodes] == [True, True]


def test_stretch_goes_on_where_it_stopped() -> None:
    slots = Slots(Counting, 2)
    rollout = Rollout(RandomPolicy(slots.action_space), slots)
    rows = rollout.stretch(4)
    assert [[len(e) for e in row] for row in rows] == [[3, 1], [3, 1]]
    assert [[e.ended for e in row] for row in rows] == [[True, False], [True, False]]
    assert rows[0][1].final_observation.tolist() == [1]
    rows = rollout.stretch(3)
    assert [[len(e) for e in row] for row in rows] == [[2, 1], [2, 1]]
    assert rows[0][0].steps[0].observation.tolist() == [1]
    with pytest.raises(ValueError, match="at least 1"):
        rollout.stretch(0)
    with pytest.raises(RuntimeError, match="ran dry"):
        Rollout(Noting(), Slots(Counting, 1), [Start(seed=0)]).stretch(4)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_cut_in_one_slot_of_a_vector_holds_no_other_up(mode: AutoresetMode) -> None:
    class CutsSlotOnce(Noting):
        """Is cut at the first step of seed 0 and plays on elsewhere."""

        def act(self, observations: Any, memory: Sequence[Any] | None = None, **options: Any) -> Acted:
            acted = super().act(observations, memory, **options)
            infos = options["infos"]
            acted.stops = ["length" if info.get("task_id") == "0" else "eos" for info in infos]
            return acted

    venv = SyncVectorEnv([Counting] * 2, autoreset_mode=mode)
    slots = VectorSlots(venv)
    rollout = Rollout(CutsSlotOnce(), slots, [Start(seed=seed) for seed in range(2)])
    episodes = rollout.episodes()
    assert [len(episode) for episode in episodes] == [1, 3]
    assert [episode.stop_reason for episode in episodes] == ["length", "counted"]


@pytest.mark.parametrize("threads", [0, 2])
def test_a_stretch_of_nothing_but_crashes_ends(threads: int) -> None:
    class Gone(Counting):
        works = 0

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            if Gone.works:
                return super().reset(seed=seed, options=options)
            raise RuntimeError("no licence")

    slots = Slots(Gone, 2, threads=threads)
    rollout = Rollout(Noting(), slots)
    with pytest.raises(RuntimeError, match=r"crashes in a row, the last of them: RuntimeError: no licence"):
        rollout.stretch(3)
    assert 10 <= len(rollout.crashes) <= 12
    Gone.works = 1
    assert [sum(map(len, row)) for row in Rollout(Noting(), slots).stretch(3)] == [3, 3]
    slots.close()


def test_crashes_between_successes_end_no_stretch() -> None:
    slots = Slots(lambda: Counting(crash_at=2, crash_seed=1), 1)
    rollout = Rollout(Noting(), slots, (Start(seed=1) for _ in range(1_000)))
    assert rollout.stretch(100)[0] == [] or rollout.crashes
    assert len(rollout.crashes) == 50


def test_an_expert_that_raises_is_counted() -> None:
    class Silent(Counting):
        def expert_action(self, k: int = 1) -> Any:
            raise ValueError("no plan")

    rollout = Rollout(Noting(), Slots(Silent, 2), [Start(seed=s) for s in range(3)], ask=True)
    assert rollout.episodes() == [] and rollout.crashes == ["ValueError: no plan"] * 3
