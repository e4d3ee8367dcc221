from __future__ import annotations

import copy
import pickle
import time
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector import utils as vector_utils
from gymnasium.wrappers import FlattenObservation, FrameStackObservation
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs.toys import Echo, Film
from tetrathlon.envs.spaces import UnicodeText, null_sample, stack, unstack

TEXTS = ["", "\0", "a\0", "\0\0", "😀\U0010ffff", "\ud800", "\udc00\ud800", "\ud83d\ude00", "計算🙂\n", "é", "e\u0301"]


class Sized(Echo):
    """An ``Echo`` with a text space of its own."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.observation_space = UnicodeText(length)


@pytest.fixture(autouse=True)
def quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Gymnasium warns of environments without a spec."""


@pytest.mark.parametrize("cls", [Echo, Film])
def test_gymnasium_checks_environments_with_it(cls: type) -> None:
    check_env(cls())


def test_membership() -> None:
    space = UnicodeText(3, min_length=1)
    assert [text in space for text in ("", "a", "😀😀😀", "abcd", "\0", "\ud800")] == [
        False,
        True,
        True,
        False,
        True,
        True,
    ]
    assert all(value not in space for value in (None, 1, b"a", ["a"], np.array(["a"])))
    assert np.str_("a") in space


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_length": -1}, ValueError, "got 0 and -1"),
        ({"max_length": 2, "min_length": 3}, ValueError, "got 3 and 2"),
        ({"max_length": 2, "min_length": -1}, ValueError, "got -1 and 2"),
        ({"max_length": 2.0}, TypeError, "max_length must be an integer, got 2.0"),
        ({"max_length": True}, TypeError, "max_length must be an integer"),
        ({"max_length": 2, "min_length": "1"}, TypeError, "min_length must be an integer"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        UnicodeText(**arguments)


def test_copies_are_cheap_and_equal() -> None:
    space = UnicodeText(1_000_000, seed=3)
    begun = time.process_time()
    for twin in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert twin == space and hash(repr(twin)) == hash(repr(space))
        assert twin.sample() == copy.deepcopy(space).sample()
    assert time.process_time() - begun < 0.5
    assert len(pickle.dumps(space)) < 5_000
    assert space != UnicodeText(999_999) and space != UnicodeText(1_000_000, min_length=1)
    assert space != spaces.Text(5) and UnicodeText(np.int64(5)) == UnicodeText(5)  # type: ignore[arg-type]
    assert repr(space) == "UnicodeText(0, 1000000)"


def test_samples_are_quick_seeded_and_inside() -> None:
    space = UnicodeText(1_000_000)
    space.seed(0)
    space.sample()
    took = []
    for _ in range(100):
        begun = time.process_time()
        text = space.sample()
        took.append(time.process_time() - begun)
        assert text in space
        text.encode()  # no surrogates
    assert sorted(took)[50] < 0.005
    twins = [UnicodeText(50, seed=4) for _ in range(2)]
    assert [twins[0].sample() for _ in range(5)] == [twins[1].sample() for _ in range(5)]
    assert {len(UnicodeText(2, seed=s).sample()) for s in range(30)} == {0, 1, 2}
    assert {len(UnicodeText(400, min_length=300, seed=s).sample()) for s in range(30)} == {300}


def test_masks_and_probabilities() -> None:
    space = UnicodeText(300, seed=0)
    letters = np.zeros(0x110000, dtype=np.int8)
    letters[[ord("x"), 0x1F600, 0xD800]] = 1
    text = space.sample(mask=(200, letters))
    assert len(text) == 200 and set(text) == {"x", "😀", "\ud800"}
    assert len(space.sample(mask=(7, None))) == 7
    assert set(space.sample(mask=(None, letters))) <= {"x", "😀", "\ud800"}
    chances = np.zeros(0x110000)
    chances[[ord("a"), ord("b")]] = 0.9, 0.1
    text = space.sample(probability=(300, chances))
    assert set(text) == {"a", "b"} and text.count("a") > 220
    assert space.sample(mask=(None, np.zeros(0x110000, dtype=np.int8))) == ""
    with pytest.raises(ValueError, match="not both"):
        space.sample(mask=(1, None), probability=(1, None))
    with pytest.raises(ValueError, match="allows no character"):
        UnicodeText(3, min_length=1).sample(mask=(None, np.zeros(0x110000, dtype=np.int8)))


def test_characters_are_virtual() -> None:
    space = UnicodeText(4)
    for characters in (space.character_set, space.character_list, space.characters):
        assert len(characters) == 0x110000 and characters[0x1F600] == "😀" and characters[-1] == "\U0010ffff"
        assert "x" in characters and "xy" not in characters and characters[97:100] == ("a", "b", "c")
        with pytest.raises(IndexError, match="outside"):
            characters[0x110000]
    assert space.character_index("😀") == 0x1F600


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=12) | st.sampled_from(TEXTS))
def test_flatten_round_trip(text: str) -> None:
    space = UnicodeText(12)
    flat = spaces.flatten(space, text)
    assert flat in spaces.flatten_space(space)
    assert spaces.unflatten(space, flat) == text


def test_flatten_inside_a_dict_and_wrappers() -> None:
    env: Any = Film()
    observation, _ = env.reset(seed=1)
    space = env.observation_space
    back = spaces.unflatten(space, spaces.flatten(space, observation))
    assert back["text"] == observation["text"] and np.array_equal(back["image"], observation["image"])
    flat = FlattenObservation(Film())
    assert flat.reset(seed=1)[0] in flat.observation_space
    stacked: Any = FrameStackObservation(Sized(100), 3)
    first, _ = stacked.reset(seed=1)
    assert first in stacked.observation_space and len(first) == 3
    then, *_ = stacked.step("x")
    assert then[:2] == first[1:] and then[2] != ""


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5))
def test_stack_and_unstack(texts: list[str]) -> None:
    space = spaces.Dict({"t": UnicodeText(8), "x": spaces.Box(0, 1, (2,)), "p": spaces.Tuple((UnicodeText(8),))})
    items = [{"t": t, "x": np.full(2, 0.5, np.float32), "p": (t,)} for t in texts]
    batch = stack(space, items)
    assert batch["t"] == tuple(texts) and batch["x"].shape == (len(texts), 2)
    back = unstack(space, batch, len(texts))
    assert [item["t"] for item in back] == texts and [item["p"] for item in back] == [(t,) for t in texts]
    assert not np.shares_memory(back[0]["x"], batch["x"])
    if len(texts) > 1:
        with pytest.raises(ValueError, match=r"expected a batch of|items"):
            unstack(space["t"], batch["t"][:-1], len(texts))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (2, 3), np.float64),
        spaces.Box(-1, 1, (), np.float32),
        spaces.Discrete(5, start=2),
        spaces.MultiDiscrete([3, 4]),
        spaces.MultiBinary(4),
    ],
)
def test_unstacked_arrays_are_those_of_gymnasium(space: spaces.Space[Any]) -> None:
    space.seed(0)
    batch = stack(space, [space.sample() for _ in range(4)])
    before = batch.copy()
    items = unstack(space, batch, 4)
    expected = list(vector_utils.iterate(vector_utils.batch_space(space, 4), batch))
    assert [type(item) for item in items] == [type(item) for item in expected]
    assert all(item in space and np.array_equal(item, other) for item, other in zip(items, expected, strict=True))
    for item in items:
        if isinstance(item, np.ndarray):
            assert item.base is None
            item += 1
    assert np.array_equal(batch, before)
    with pytest.raises(ValueError, match="expected a batch of 3 items"):
        unstack(space, batch, 3)


def test_null_sample_is_one_for_ever() -> None:
    space = spaces.Dict({"t": UnicodeText(8), "x": spaces.Box(0, 1, (2,))})
    before = copy.deepcopy(space)
    one, other = null_sample(space), null_sample(space)
    assert one["t"] == other["t"] and np.array_equal(one["x"], other["x"]) and one in space
    space.seed(5)
    before.seed(5)
    assert space.sample()["t"] == before.sample()["t"]


MODES = list(AutoresetMode)
VECTORS: dict[str, Any] = {
    "sync": SyncVectorEnv,
    "async shared": partial(AsyncVectorEnv, shared_memory=True),
    "async piped": partial(AsyncVectorEnv, shared_memory=False),
}


def alone(cls: type, seed: int, steps: int) -> list[Any]:
    """Return the observations of an environment that is reset whenever it ends."""
    env: Any = cls()
    seen = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step("x")
        seen.append(observation)
        if terminated or truncated:
            break
    return seen


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize("cls", [Echo, Film])
def test_vector_environments_return_fresh_texts(cls: type, kind: str, mode: AutoresetMode) -> None:
    vector: Any = VECTORS[kind]([cls, cls], autoreset_mode=mode)
    try:
        wanted = [alone(cls, seed, 10) for seed in (5, 6)]
        observations, _ = vector.reset(seed=[5, 6])
        for number in range(min(map(len, wanted))):
            if number:
                observations, _, terminations, truncations, infos = vector.step(("x", "x"))
            items = unstack(vector.single_observation_space, observations, 2)
            for i in range(2):
                seen, want = items[i], wanted[i][number]
                ended = number and (terminations[i] or truncations[i])
                if ended and mode is AutoresetMode.SAME_STEP:
                    seen = infos["final_obs"][i]
                if cls is Film:
                    assert np.array_equal(seen["image"], want["image"])
                    seen, want = seen["text"], want["text"]
                assert seen == want
            assert observations in vector.observation_space
    finally:
        vector.close()


def test_shared_memory_never_returns_a_stale_text() -> None:
    """Stock Gymnasium 1.4 returns the first text of shared memory for ever."""
    vector = AsyncVectorEnv([Film, Film])
    try:
        observations, _ = vector.reset(seed=[1, 2])
        for number in range(1, 3):
            before, kept = observations, copy.deepcopy(observations)
            observations, *_ = vector.step(("", ""))
            for i in range(2):
                assert observations["text"][i] != before["text"][i]
                assert observations["text"][i].startswith("frame 1") == (number == 1)
                assert (observations["image"][i] != before["image"][i]).any()
            assert before["text"] == kept["text"]  # what was handed out does not change later
    finally:
        vector.close()


def test_shared_memory_holds_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = AsyncVectorEnv([Parrot])
    try:
        vector.reset()
        for text in TEXTS:
            assert vector.step((text,))[0] == (text,)
        with pytest.raises(ValueError, match="a text of 21 characters does not fit"):
            vector.step(("x" * 21,))
    finally:
        vector.close(terminate=True)


class Parrot(gym.Env[str, str]):
    """Says what it is told."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self) -> None:
        self.observation_space, self.action_space = UnicodeText(20), UnicodeText(100)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return "", {}

    def step(self, action: str) -> Any:
        return action, 0.0, False, False, {}


@pytest.mark.parametrize("kind", VECTORS)
def test_differing_spaces(kind: str) -> None:
    vector: Any = VECTORS[kind]([partial(Sized, 50), partial(Sized, 50)], observation_mode="different")
    try:
        observations, _ = vector.reset(seed=1)
        assert vector.observation_space == spaces.Tuple((UnicodeText(50), UnicodeText(50)))
        assert observations in vector.observation_space
    finally:
        vector.close()


def test_make_vec_of_a_registered_environment() -> None:
    for mode in MODES:
        vector: Any = gym.make_vec(
            "tetrathlon/Arithmetic-v0", num_envs=2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}
        )
        observations, _ = vector.reset(seed=3)
        assert observations in vector.observation_space
        _, rewards, terminations, _, infos = vector.step(vector.call("expert_action"))
        assert rewards.tolist() == [1.0, 1.0] and terminations.all()
        known = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
        assert known["is_success"].all()
        vector.close()
