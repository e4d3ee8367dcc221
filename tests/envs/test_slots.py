from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs.toys import Echo, Film, Fragile, Levels, Reach
from tetrathlon.agents.policy import Acted, ExpertPolicy, FunctionPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.episode import Episode, to_json
from tetrathlon.envs.slots import Slots, SlotsLike
from tetrathlon.envs.spaces import stack, unbatch_info, unstack
from tetrathlon.envs.vector_slots import VectorSlots

MODES = list(AutoresetMode)
Make = Callable[[], gym.Env[Any, Any]]


def cart() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", disable_env_checker=True)


def native(n: int) -> Any:
    return gym.make_vec("CartPole-v1", num_envs=n, vectorization_mode="vector_entry_point")


@contextmanager
def opened(slots: SlotsLike) -> Iterator[SlotsLike]:
    try:
        yield slots
    finally:
        slots.close()


def kinds(make: Make, n: int, *, apart: bool = True) -> dict[str, Callable[[], SlotsLike]]:
    made: dict[str, Callable[[], SlotsLike]] = {
        "inline": lambda: Slots(make, n),
        "threads": lambda: Slots(make, n, threads=2),
    }

    def vector(cls: Any, mode: AutoresetMode) -> SlotsLike:
        return VectorSlots(cls([make] * n, autoreset_mode=mode))

    for mode in MODES:
        made[f"sync {mode.name}"] = partial(vector, SyncVectorEnv, mode)
        if apart:
            made[f"async {mode.name}"] = partial(vector, AsyncVectorEnv, mode)
            if mode is not AutoresetMode.NEXT_STEP:  # which is refused
                made[f"async unshared {mode.name}"] = partial(
                    vector, partial(AsyncVectorEnv, shared_memory=False), mode
                )
    return made


def act(space: gym.Space[Any]) -> Callable[[Any], Any]:
    """Return a function that does what an observation says: half of the time what is right in an ``Echo``."""

    def choose(observation: Any) -> Any:
        number = int(fingerprint(observation)[:8], 16)
        if isinstance(space, gym.spaces.Text):
            text = observation if isinstance(observation, str) else observation["text"]
            return text[4:8] if number % 3 else "what?"
        if isinstance(space, gym.spaces.Box):
            return space.low + (space.high - space.low) * np.float32((number % 100) / 100)
        return np.int64(number % 2)

    return choose


def run(slots: SlotsLike, starts: Sequence[Start]) -> tuple[list[Any], Rollout]:
    policy = FunctionPolicy(act(slots.action_space), slots.observation_space, slots.action_space)
    rollout = Rollout(policy, slots, starts, env="Toy-v0", kwargs={"size": 3})
    return [to_json(episode) for episode in rollout.episodes()], rollout


@pytest.mark.parametrize("make", [cart, Echo, Film, Reach, Levels], ids=lambda make: make.__name__)
def test_all_kinds_of_slots_give_the_same_episodes(make: Make) -> None:
    starts = [Start(seed=seed, group=seed % 3) for seed in range(11)]
    wanted = None
    for name, slots in kinds(make, 3).items():
        with opened(slots()) as made:
            seen, rollout = run(made, starts)
        wanted = wanted or seen
        assert len(seen) == len(starts) and not rollout.crashes
        assert seen == wanted, name
    assert len({len(episode["steps"]) for episode in wanted or []}) > 1


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 4)), min_size=0, max_size=9),
    st.sampled_from([Echo, Levels]),
)
def test_same_episodes_whatever_the_queue(n: int, queue: list[tuple[int, int | None]], make: Any) -> None:
    options = [None if i is None else ({"left": i + 1} if make is Levels else {"index": i}) for _, i in queue]
    starts = [Start(seed=seed, options=option) for (seed, _), option in zip(queue, options, strict=True)]
    wanted = None
    for name, slots in kinds(make, n, apart=False).items():
        with opened(slots()) as made:
            seen, _ = run(made, starts)
        wanted = wanted if wanted is not None else seen
        assert seen == wanted, name
    assert len(wanted or []) == len(starts)


@pytest.mark.parametrize("threads", [0, 3])
def test_a_slot_that_raises_loses_its_episode_only(threads: int) -> None:
    starts = [Start(seed=seed) for seed in (3, 13, 4, 5, 13, 6)]
    with opened(Slots(Fragile, 2, threads=threads)) as slots:
        seen, rollout = run(slots, starts)
    assert [episode["seed"] for episode in seen] == [3, 4, 5, 6]
    assert rollout.crashes == ["RuntimeError: seed 13"] * 2
    with opened(Slots(Echo, 2)) as slots:
        assert seen == run(slots, [Start(seed=seed) for seed in (3, 4, 5, 6)])[0]


@pytest.mark.parametrize("threads", [0, 3])
def test_a_slot_that_raises_in_a_step_gets_a_new_environment(threads: int) -> None:
    closed = []

    class Closing(Fragile):
        def close(self) -> None:
            closed.append(self)

    with opened(Slots(Closing, 2, threads=threads)) as slots:
        slots.reset([0, 1], [1, 2])
        gather(slots, 2)
        slots.send([0, 1], ["13", "x"])
        answers = gather(slots, 2)
        assert answers[0].crash == "RuntimeError: action 13" and not answers[0].started
        assert answers[1].crash is None and answers[1].reward == 0.0
        assert len(closed) == 1
        with pytest.raises(gym.error.ResetNeeded, match=r"slots \[0\]"):
            slots.send([0], ["x"])
        slots.reset([0], [1])
        assert gather(slots, 1)[0].observation == Echo().reset(seed=1)[0]


def gather(slots: SlotsLike, count: int) -> dict[int, Any]:
    answers: dict[int, Any] = {}
    while len(answers) < count:
        answers.update({answer.id: answer for answer in slots.ready()})
    return answers


def test_crashes_inside_a_stretch_are_counted_and_replaced() -> None:
    class Sometimes:
        def __init__(self) -> None:
            self.turn = itertools.count()

        def act(self, observations: Any, memory: Any = None, **_: Any) -> Acted:
            n = len(observations)
            actions = tuple("13" if next(self.turn) % 5 == 4 else "x" for _ in range(n))
            return Acted(actions, [()] * n, [None] * n)

    for threads in (0, 2):
        with opened(Slots(Fragile, 2, threads=threads)) as slots:
            rollout = Rollout(Sometimes(), slots, (Start(seed=100 + s) for s in itertools.count()))
            rows = rollout.stretch(10)
        assert len(rollout.crashes) == 4
        assert len(rows) == 2 and all(not step.info.get("crash") for row in rows for e in row for step in e.steps)


def test_a_slow_slot_holds_nobody_up() -> None:
    gate = threading.Event()

    class Waiting(Echo):
        def step(self, action: Any) -> Any:
            if action == "wait":
                assert gate.wait(10)
            return super().step(action)

    with opened(Slots(Waiting, 2, threads=2)) as slots:
        slots.reset([0, 1], [1, 2])
        gather(slots, 2)
        slots.send([0], ["wait"])
        for _ in range(2):
            slots.send([1], ["x"])
            assert [answer.id for answer in slots.ready()] == [1]
        begun = time.perf_counter()
        assert slots.ready(block=False) == [] and time.perf_counter() - begun < 1
        with pytest.raises(gym.error.ResetNeeded):
            slots.send([0], ["x"])  # its answer is still to come
        gate.set()
        assert [answer.id for answer in slots.ready()] == [0]


@pytest.mark.parametrize("kind", kinds(Echo, 2, apart=False))
def test_sending_to_an_idle_slot_raises(kind: str) -> None:
    with opened(kinds(Echo, 2, apart=False)[kind]()) as slots:
        with pytest.raises(gym.error.ResetNeeded):
            slots.send([0], ["x"])
        slots.reset([0], [1])
        gather(slots, 1)
        with pytest.raises(gym.error.ResetNeeded):
            slots.send([1], ["x"])
        for _ in range(3):
            slots.send([0], ["wrong"])
            (answer,) = gather(slots, 1).values()
        assert answer.terminated and answer.info["stop_reason"] == "strikes"
        with pytest.raises(gym.error.ResetNeeded):
            slots.send([0], ["x"])


def test_a_vector_moves_in_lock_step() -> None:
    with opened(VectorSlots(SyncVectorEnv([Echo, Echo]))) as slots:
        slots.reset([0, 1], [1, 2])
        gather(slots, 2)
        slots.send([0], ["x"])
        with pytest.raises(RuntimeError, match=r"lock-step: slots \[1\] have no action"):
            slots.ready()


def test_a_native_vector_refuses_what_it_cannot_honour() -> None:
    with opened(VectorSlots(native(2), seed=5)) as slots:
        with pytest.raises(ValueError, match="cannot honour seeds"):
            slots.reset([0, 1], [1, 2])
        with pytest.raises(ValueError, match=r"options \[\{'low'"):
            slots.reset([0], None, [{"low": -0.1}])
        slots.reset([0, 1])
        assert len(gather(slots, 2)) == 2
        with pytest.raises(TypeError, match="no get_state by slot"):
            slots.get_state([0])
    first, second = (gather_first(native(2)) for _ in range(2))
    assert np.array_equal(first, second)


def gather_first(vector: Any) -> Any:
    with opened(VectorSlots(vector, seed=5)) as slots:
        slots.reset([0, 1])
        return np.stack([answer.observation for answer in gather(slots, 2).values()])


def test_what_cannot_be_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="n must be at least 1"):
        Slots(Echo, 0)
    with pytest.raises(ValueError, match="threads must be at least 0"):
        Slots(Echo, 1, threads=-1)
    apart = AsyncVectorEnv([Levels], shared_memory=False, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match="mixes episodes up: make it with shared_memory=True, or with autoreset_mode"):
        VectorSlots(apart)
    apart.close()
    vector = native(1)
    vector.metadata = {**vector.metadata, "autoreset_mode": AutoresetMode.DISABLED}
    with pytest.raises(ValueError, match="a slot could never restart"):
        VectorSlots(vector)
    vector.metadata = {"render_modes": []}
    with pytest.raises(ValueError, match="does not say its autoreset mode"):
        VectorSlots(vector)


@pytest.mark.parametrize("kind", kinds(Echo, 3))
def test_options_are_honoured_by_slot(kind: str) -> None:
    with opened(kinds(Echo, 3)[kind]()) as slots:
        slots.reset([0, 1, 2], [7, 8, 9], [{"index": 0}, None, {"index": 2}])
        answers = gather(slots, 3)
        seen = [answers[i].observation for i in range(3)]
        wanted = [Echo().reset(seed=7 + i, options={"index": i} if i != 1 else None)[0] for i in range(3)]
        assert seen == wanted


@pytest.mark.parametrize("kind", kinds(Echo, 2, apart=False))
def test_states_go_through_slots(kind: str) -> None:
    with opened(kinds(Echo, 2, apart=False)[kind]()) as slots:
        slots.reset([0, 1], [1, 2])
        gather(slots, 2)
        slots.send([0, 1], slots.expert([0, 1]))
        seen = gather(slots, 2)
        states = slots.get_state([0, 1])
        assert slots.expert([0], 2)[0] == [slots.expert([0])[0]] * 2
        answers = []
        for _ in range(2):
            slots.set_state([1, 0], states)  # each goes on where the other was
            restored = gather(slots, 2)
            assert [restored[i].observation for i in (1, 0)] == [seen[0].observation, seen[1].observation]
            assert restored[0].started
            slots.send([0, 1], slots.expert([0, 1]))
            answers.append(gather(slots, 2))
        assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", kinds(Echo, 2, apart=False))
def test_a_rollout_starts_from_states(kind: str) -> None:
    env = Echo()
    env.reset(seed=3)
    env.step(env.expert_action())
    state = env.get_state()
    with opened(kinds(Echo, 2, apart=False)[kind]()) as slots:
        starts = [Start(state=state, group=0)] * 4 + [Start(seed=1)]
        episodes = Rollout(ExpertPolicy(slots.action_space), slots, starts).episodes()
    members = [to_json(episode) for episode in episodes[:4]]
    assert all(member == members[0] for member in members)
    assert len(episodes[0]) == env.left and all(episode.is_success for episode in episodes)


def test_other_processes_keep_their_states() -> None:
    with opened(VectorSlots(AsyncVectorEnv([Echo]))) as slots:
        slots.reset([0], [1])
        gather(slots, 1)
        with pytest.raises(TypeError, match="no get_state by slot"):
            slots.get_state([0])
        with pytest.raises(TypeError, match="no set_state by slot"):
            slots.set_state([0], [None])
        assert slots.expert([0], 2) == [[slots.expert([0])[0]] * 2]


@pytest.mark.parametrize("kind", kinds(Film, 2))
def test_the_last_observation_is_the_true_one(kind: str) -> None:
    env: Any = Film()
    observation, info = env.reset(seed=1)
    steps, ended = 0, False
    while not ended:
        observation, _, ended, _, info = env.step("x")
        steps += 1
    with opened(kinds(Film, 2)[kind]()) as slots:
        slots.reset([0, 1], [1, 1])
        gather(slots, 2)
        for _ in range(steps):
            slots.send([0, 1], ["x", "x"])
            answers = gather(slots, 2)
    for answer in answers.values():
        assert answer.terminated and answer.info == info
        assert fingerprint(answer.observation) == fingerprint(observation)


class Counting:
    """Remembers how many steps of its episode it has seen."""

    def __init__(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.spaces = observation_space, action_space
        self.choose = act(action_space)

    def act(self, observations: Any, memory: Any = None, **_: Any) -> Acted:
        items = unstack(self.spaces[0], observations, len(memory))
        counts = [(count or 0) + 1 for count in memory]
        actions = stack(self.spaces[1], [self.choose(item) for item in items])
        return Acted(actions, counts, [{"count": np.array(count)} for count in counts])


def stretches(slots: SlotsLike, starts: Any, lengths: Sequence[int]) -> list[list[list[Episode]]]:
    rollout = Rollout(Counting(slots.observation_space, slots.action_space), slots, starts)
    return [rollout.stretch(length) for length in lengths]


@pytest.mark.parametrize("kind", kinds(Levels, 3))
def test_stretches_go_on_where_the_last_one_stopped(kind: str) -> None:
    lengths = (5, 1, 7, 13)
    with opened(kinds(Levels, 3)[kind]()) as slots:
        rows = stretches(slots, (Start(seed=seed) for seed in itertools.count()), lengths)
    for length, now in zip(lengths, rows, strict=True):
        assert [sum(map(len, row)) for row in now] == [length] * 3
        for row in now:
            assert all(episode.ended for episode in row[:-1]) and all(len(episode) for episode in row)
            assert all(episode.info["task_id"] for episode in row)
    check_continuation(rows)


def check_continuation(rows: list[list[list[Episode]]]) -> None:
    for before, after in itertools.pairwise(rows):
        for old, new in zip(before, after, strict=True):
            if not old or not new:
                continue
            if not old[-1].ended:
                assert fingerprint(old[-1].final_observation) == fingerprint(new[0].steps[0].observation)
                assert old[-1] is not new[0] and old[-1].seed == new[0].seed
                assert old[-1].info == new[0].info
    for slot in range(len(rows[0])):
        count = 0
        for episode in itertools.chain.from_iterable(row[slot] for row in rows):
            for step in episode.steps:
                count += 1
                assert step.record is not None and step.record["count"] == count
            count = 0 if episode.ended else count


def test_all_kinds_of_slots_give_the_same_stretches() -> None:
    wanted = None
    for name, slots in kinds(Levels, 2, apart=False).items():
        if name == "threads":  # there the order of answers decides which slot gets which start
            continue
        with opened(slots()) as made:
            rows = stretches(made, (Start(seed=seed) for seed in itertools.count()), (4, 9))
        seen = [[[to_json(episode) for episode in row] for row in now] for now in rows]
        wanted = wanted or seen
        assert seen == wanted, name


@pytest.mark.parametrize("n", [1, 3])
def test_stretches_of_a_native_vector(n: int) -> None:
    """A restart takes a step of a native NEXT_STEP vector: a row is one shorter for each."""
    with opened(VectorSlots(native(n), seed=1)) as slots:
        rows = stretches(slots, None, (50, 30, 60))
    for length, now in zip((50, 30, 60), rows, strict=True):
        for row in now:
            steps = sum(map(len, row))
            restarts = sum(episode.ended for episode in row)
            assert length - restarts - 1 <= steps <= length
            assert all(len(episode.final_observation) == 4 for episode in row)
    assert sum(episode.ended for now in rows for row in now for episode in row) > 2 * n
    check_continuation(rows)


def test_episodes_of_a_native_vector_end_truly() -> None:
    with opened(VectorSlots(native(2), seed=1)) as slots:
        episodes = [e for row in stretches(slots, None, (200,))[0] for e in row if e.ended]
    for episode in episodes:
        x, _, theta, _ = episode.final_observation
        assert abs(x) > 2.4 or abs(theta) > 12 * 2 * np.pi / 360
        assert all(step.reward == 1.0 for step in episode.steps)


def test_a_second_rollout_over_the_same_slots() -> None:
    starts = [Start(seed=seed) for seed in range(5)]
    for slots in kinds(Echo, 2, apart=False).values():
        with opened(slots()) as made:
            rollout = Rollout(Counting(made.observation_space, made.action_space), made)
            rollout.stretch(2)
            assert run(made, starts)[0] == run(made, starts)[0]
    with opened(VectorSlots(native(2), seed=1)) as made:
        for _ in range(3):
            rows = stretches(made, None, (40,))[0]
            assert all(sum(map(len, row)) > 20 for row in rows)


def test_stretch_checks_its_arguments() -> None:
    with opened(Slots(Levels, 2)) as slots:
        rollout = Rollout(Counting(slots.observation_space, slots.action_space), slots, [Start(seed=1)])
        with pytest.raises(ValueError, match="steps must be at least 1"):
            rollout.stretch(0)
        with pytest.raises(RuntimeError, match="ran dry"):
            rollout.stretch(1)


def test_infos_come_out_of_a_vector_as_they_went_in() -> None:
    infos: list[dict[str, Any]] = [
        {
            "task_id": "a",
            "n": 1,
            "x": 0.5,
            "ok": True,
            "tools": [{"a": [1]}],
            "none": None,
            "deep": {"y": 1.5, "e": {}},
        },
        {"task_id": "😀\0", "n": -3, "x": 2.0, "ok": False, "tools": [], "none": None, "deep": {"z": "t", "e": {}}},
        {},
        {"array": np.arange(3, dtype=np.float32)},
    ]
    vector = SyncVectorEnv([Echo] * len(infos))
    batched: dict[str, Any] = {}
    for i, info in enumerate(infos):
        batched = vector._add_info(batched, info, i)
    for i, info in enumerate(infos):
        got = unbatch_info(batched, i)
        assert fingerprint(got) == fingerprint(info)
    unbatch_info(batched, 3)["array"][0] = 9
    assert batched["array"][3, 0] == 0
    vector.close()


@pytest.mark.parametrize("threads", [0, 2])
def test_states_start_wrapped_environments_that_never_were_reset(threads: int) -> None:
    def wrapped() -> gym.Env[Any, Any]:
        return gym.make("tetrathlon/Arithmetic-v0")

    env: Any = wrapped().unwrapped
    env.reset(seed=3)
    with opened(Slots(wrapped, 2, threads=threads)) as slots:
        starts = [Start(state=env.get_state(), group=0)] * 4
        rollout = Rollout(ExpertPolicy(slots.action_space), slots, starts)
        episodes = rollout.episodes()
    assert not rollout.crashes
    assert [episode.is_success for episode in episodes] == [True] * 4


def test_a_restored_episode_has_its_whole_time_limit() -> None:
    def limited() -> gym.Env[Any, Any]:
        return gym.wrappers.TimeLimit(Film(), 2)

    env = Film()
    env.reset(seed=1)
    with opened(Slots(limited, 1)) as slots:
        seen, rollout = run(slots, [Start(state=env.get_state())] * 3)
    assert not rollout.crashes and [len(episode["steps"]) for episode in seen] == [2, 2, 2]


class Moody(Echo):
    """Its expert raises on the seeds that are named."""

    bad: frozenset[int] = frozenset()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.bad_now = seed in self.bad
        return super().reset(seed=seed, options=options)

    def expert_action(self, k: int = 1) -> Any:
        if self.bad_now and self.left < 3:
            raise RuntimeError("no idea")
        return super().expert_action(k)


@pytest.mark.parametrize("threads", [0, 2])
def test_an_expert_that_raises_costs_its_own_episode_only(threads: int) -> None:
    class Bad(Moody):
        bad = frozenset({1, 4, 5})

    with opened(Slots(Bad, 2, threads=threads)) as slots:
        rollout = Rollout(ExpertPolicy(slots.action_space), slots, [Start(seed=s) for s in range(7)], ask=True)
        episodes = rollout.episodes()
        assert [episode.seed for episode in episodes] == [0, 2, 3, 6] and all(e.is_success for e in episodes)
        assert rollout.crashes == ["RuntimeError: no idea"] * 3
        endless = Rollout(ExpertPolicy(slots.action_space), slots, (Start(seed=s) for s in itertools.count()), ask=True)
        rows = endless.stretch(9)
    assert endless.crashes == ["RuntimeError: no idea"] * 2  # the third comes after these steps
    assert all(step.label == step.action for row in rows for episode in row for step in episode.steps)


def test_an_environment_without_an_expert_is_no_crash() -> None:
    with opened(Slots(Levels, 1)) as slots:
        rollout = Rollout(ExpertPolicy(slots.action_space), slots, [Start(seed=1)], ask=True)
        with pytest.raises(AttributeError, match="expert_action"):
            rollout.episodes()


@pytest.mark.parametrize("threads", [0, 2])
def test_a_crashed_environment_that_cannot_be_closed_is_replaced(threads: int) -> None:
    class Stuck(Fragile):
        broken = False

        def step(self, action: Any) -> Any:
            self.broken = action == "13"
            return super().step(action)

        def close(self) -> None:
            if self.broken:
                raise OSError("stuck")

    with opened(Slots(Stuck, 1, threads=threads)) as slots:
        slots.reset([0], [1])
        gather(slots, 1)
        slots.send([0], ["13"])
        assert gather(slots, 1)[0].crash == "RuntimeError: action 13"
        slots.reset([0], [1])
        assert gather(slots, 1)[0].observation == Echo().reset(seed=1)[0]


@pytest.mark.parametrize("kind", kinds(Echo, 3, apart=False))
def test_seeds_and_options_as_arrays(kind: str) -> None:
    with opened(kinds(Echo, 3, apart=False)[kind]()) as slots:
        option = {"index": 1, "start": np.zeros(3)}
        slots.reset(np.arange(3), np.array([7, 8, 9]), [option, dict(option, start=np.ones(3)), None])  # type: ignore[arg-type]
        answers = gather(slots, 3)
        wanted = [Echo().reset(seed=7 + i, options={"index": 1} if i < 2 else None)[0] for i in range(3)]
        assert [answers[i].observation for i in range(3)] == wanted


@pytest.mark.parametrize("kind", kinds(Echo, 2, apart=False))
def test_slots_that_are_named_twice_or_not_there_are_refused(kind: str) -> None:
    with opened(kinds(Echo, 2, apart=False)[kind]()) as slots:
        for ids, said in (
            ([0, 0], r"slots \[0\] are named twice"),
            ([-1], r"no slots \[-1\]"),
            ([2], r"no slots \[2\]"),
        ):
            with pytest.raises(ValueError, match=said):
                slots.reset(ids, [1] * len(ids))
            with pytest.raises(ValueError, match=said):
                slots.set_state(ids, [None] * len(ids))
        slots.reset([0, 1], [1, 2])
        gather(slots, 2)
        for ids, said in (([0, 0], "named twice"), ([-1], "no slots")):
            with pytest.raises(ValueError, match=said):
                slots.send(ids, ["x"] * len(ids))
        slots.send([0, 1], ["x", "y"])
        assert len(gather(slots, 2)) == 2


def test_a_slot_in_flight_does_not_start_anew() -> None:
    gate = threading.Event()

    class Waiting(Echo):
        def step(self, action: Any) -> Any:
            assert gate.wait(10)
            return super().step(action)

    with opened(Slots(Waiting, 1, threads=2)) as slots:
        slots.reset([0], [1])
        gather(slots, 1)
        state = slots.get_state([0])
        slots.send([0], ["x"])
        for again in (lambda: slots.reset([0], [2]), lambda: slots.set_state([0], state)):
            with pytest.raises(RuntimeError, match=r"slots \[0\] have an answer under way"):
                again()
        gate.set()
        assert gather(slots, 1)[0].info["strikes"] == 1
        slots.reset([0], [2])
        assert gather(slots, 1)[0].observation == Echo().reset(seed=2)[0]


class Reusing(Levels):
    """Returns its own buffers, into which it goes on writing."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.buffer = np.zeros(1, np.float32)
        self.info: dict[str, Any] = {"task_id": "a", "places": [0]}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.buffer[0] = self.info["places"][0] = 0
        return self.buffer, self.info

    def step(self, action: Any) -> Any:
        self.buffer += 1
        self.info["places"][0] += 1
        return self.buffer, 1.0, bool(self.buffer[0] == 3), False, self.info

    def get_state(self) -> Any:
        return None

    def set_state(self, state: Any) -> Any:
        return self.reset()


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("start", [Start(seed=1), Start(state=0)])
def test_what_was_seen_stays_as_it_was_seen(threads: int, start: Start) -> None:
    with opened(Slots(Reusing, 1, threads=threads)) as slots:
        policy = FunctionPolicy(lambda observation: np.int64(0), slots.observation_space, slots.action_space)
        (episode,) = Rollout(policy, slots, [start]).episodes()
    assert [float(step.observation[0]) for step in episode.steps] == [0, 1, 2]
    assert episode.final_observation[0] == 3 and episode.info["places"] == [0]
    assert [step.info["places"] for step in episode.steps] == [[1], [2], [3]]
