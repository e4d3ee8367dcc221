"""Episodes to Minari and back: exactly, and with one observation more than actions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.agents.toys import Counting
from tetrathlon.agents.policy import ExpertPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.minari import check_dataset, load_minari, save_minari, storable
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText
from tetrathlon.envs.subject import equal
from tetrathlon.envs.vector_slots import VectorSlots

INSTALL = 'needs minari and h5py: pip install "tetrathlon[data]"'
minari = pytest.importorskip("minari", reason=INSTALL)
h5py = pytest.importorskip("h5py", reason=INSTALL)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def counting() -> Iterator[str]:
    gym.register("toys/Counting-v0", entry_point="tests.agents.toys:Counting")
    yield "toys/Counting-v0"
    del gym.registry["toys/Counting-v0"]


SEEN = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (40, 36, 3), np.uint8),  # large enough for Minari to take it for a picture
        "instruction": UnicodeText(1000),
        "state": spaces.Dict({"arm": spaces.Box(-np.inf, np.inf, (3,), np.float32), "open": spaces.Discrete(2)}),
        "pair": spaces.Tuple([spaces.MultiBinary(2), spaces.Box(-1.0, 1.0, (), np.float64)]),
    }
)
DONE = spaces.Box(-1.0, 1.0, (2,), np.float32)


def scene(rng: np.random.Generator, text: str) -> dict[str, Any]:
    return {
        "image": rng.integers(0, 256, (40, 36, 3), dtype=np.uint8),
        "instruction": text,
        "state": {"arm": rng.normal(size=3).astype(np.float32), "open": np.int64(rng.integers(2))},
        "pair": (rng.integers(0, 2, 2, dtype=np.int8), np.array(rng.uniform(-1, 1))),
    }


def rich(seed: int, text: str = "push the réd 🟥 block\n\t", n: int = 3) -> Episode:
    """An episode with everything that Minari has no place for."""
    rng = np.random.default_rng(seed)
    steps = [
        Step(
            scene(rng, text),
            rng.uniform(-1, 1, 2).astype(np.float32),
            0.1 * t,
            info={"reward_terms": {"near": 0.1 * t}, "cost": np.float32(t), "force": np.arange(3.0)},
            record={"logp": np.array([-0.5], np.float32)} if t else None,
            label=rng.uniform(-1, 1, 2).astype(np.float32) if t else None,
        )
        for t in range(n)
    ]
    steps[-1].truncated = seed % 2 == 0
    steps[-1].terminated = seed % 2 == 1
    steps[-1].info.update(is_success=seed % 2 == 1, stop_reason="done \ud800\0")
    options = {"index": seed, "from": (1, None)}
    return Episode(steps, scene(rng, ""), "", {}, seed, options, {"task_id": "a/b", "limits": {"x": 1}}, seed)


def saved(episodes: list[Episode], name: str = "push/rich-v0", **more: Any) -> Path:
    return save_minari(episodes, name, observation_space=SEEN, action_space=DONE, **more)


def test_the_round_trip_is_exact(home: Path) -> None:
    episodes = [rich(seed, n=2 + seed) for seed in range(3)]
    assert saved(episodes, algorithm="expert", author="me") == home / "push" / "rich-v0"
    loaded = load_minari("push/rich-v0")
    assert len(loaded) == 3
    for one, other in zip(loaded, episodes, strict=True):
        for name in ("final_observation", "env", "kwargs", "seed", "options", "info", "group"):
            assert equal(getattr(one, name), getattr(other, name)), name
        for ours, theirs in zip(one.steps, other.steps, strict=True):
            for name in ("observation", "action", "reward", "terminated", "truncated", "info", "record", "label"):
                assert equal(getattr(ours, name), getattr(theirs, name)), name
            assert SEEN.contains(ours.observation) and ours.observation["image"].dtype == np.uint8
    assert loaded[0].steps[0].observation["image"].flags.owndata


def test_what_other_programs_see(home: Path) -> None:
    saved([rich(0), rich(1, n=2)], algorithm="expert")
    assert set(minari.list_local_datasets()) == {"push/rich-v0"}
    dataset = minari.load_dataset("push/rich-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (2, 5)
    assert dataset.storage.metadata["algorithm_name"] == "expert"
    for data, n in zip(dataset.iterate_episodes(), (3, 2), strict=True):
        assert len(data.actions) == len(data.rewards) == n and data.observations["image"].shape == (n + 1, 40, 36, 3)
        assert data.observations["instruction"] == [*["push the réd 🟥 block\n\t"] * n, ""]
        assert data.terminations[:-1].sum() + data.truncations[:-1].sum() == 0
    assert dataset[0].truncations[-1] and dataset[1].terminations[-1]
    text: Any = dataset.observation_space["instruction"]
    assert text.contains("🟥") and not text.contains("z") and text.max_length == 1000


def test_every_reset_is_an_episode_and_its_last_observation_is_kept(counting: str) -> None:
    """Under SAME_STEP the observation that comes with an end is already that of the next episode."""
    for number, mode in enumerate((AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, None)):
        slots: Any = Slots(Counting, 3) if mode is None else None
        if mode is not None:
            slots = VectorSlots(SyncVectorEnv([Counting for _ in range(3)], autoreset_mode=mode))
        starts = [Start(seed=s, options={"length": 2 + s % 3}) for s in range(8)]
        episodes = Rollout(ExpertPolicy(slots.action_space), slots, starts, env=counting).episodes()
        save_minari(episodes, f"counting-v{number}")
        dataset = minari.load_dataset(f"counting-v{number}")
        assert dataset.total_episodes == 8
        for seed, data in enumerate(dataset.iterate_episodes()):
            n = 2 + seed % 3
            assert data.observations[:, 0].tolist() == list(range(n + 1)) and data.actions.tolist() == list(range(n))
        assert dataset.spec.env_spec.id == counting and isinstance(dataset.recover_environment().unwrapped, Counting)
        for seed, episode in enumerate(load_minari(dataset)):
            assert (episode.seed, episode.env, len(episode)) == (seed, counting, 2 + seed % 3)
            assert episode.is_success == (seed % 2 == 1) and episode.stop_reason == "counted"
            assert episode.info == {"task_id": str(seed)} and episode.options == {"length": 2 + seed % 3}


def test_a_text_task(home: Path) -> None:
    env = gym.make("tetrathlon/Arithmetic-v0")
    slots = Slots(lambda: gym.make("tetrathlon/Arithmetic-v0", split="test"), 2)
    starts = [Start(seed=s) for s in range(3)]
    rollout = Rollout(
        ExpertPolicy(env.action_space), slots, starts, env="tetrathlon/Arithmetic-v0", kwargs={"split": "test"}
    )
    episodes = rollout.episodes()
    save_minari(episodes, "sums/expert-v1")
    assert all(
        equal(one.steps[0], two.steps[0]) for one, two in zip(load_minari("sums/expert-v1"), episodes, strict=True)
    )
    assert load_minari("sums/expert-v1")[2].kwargs == {"split": "test"}


def test_a_dataset_of_another_program(home: Path) -> None:
    from minari.data_collector import EpisodeBuffer

    infos = {"speed": np.arange(4.0), "place": {"x": np.arange(3), "odd": np.arange(2)}}
    buffer = EpisodeBuffer(
        seed=5,
        options={"level": 2},
        observations=np.arange(4, dtype=np.float32)[:, None],
        actions=np.array([1, 0, 1]),
        rewards=[1.0, 2.0, 3.0],
        terminations=[False, False, True],
        truncations=[False] * 3,
        infos=infos,
    )
    box = spaces.Box(0, 9, (1,), np.float32)
    with pytest.warns(UserWarning):
        dataset = minari.create_dataset_from_buffers(
            "theirs-v0", [buffer], observation_space=box, action_space=spaces.Discrete(2)
        )
    (episode,) = load_minari(dataset)
    assert [float(step.observation[0]) for step in episode.steps] == [0, 1, 2] and episode.final_observation[0] == 3
    assert [step.reward for step in episode.steps] == [1, 2, 3] and episode.steps[2].terminated
    assert episode.info == {"speed": 0.0, "place": {}}  # a column of four is of the reset too, one of three is not
    assert [step.info["speed"] for step in episode.steps] == [1, 2, 3]
    assert [step.info["place"] for step in episode.steps] == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert (episode.seed, episode.options, episode.env) == (5, {"level": 2}, "")


def test_a_lost_last_observation_is_told(home: Path) -> None:
    saved([rich(0)])
    with h5py.File(home / "push" / "rich-v0" / "data" / "main_data.hdf5", "a") as file:
        for path in ("image", "instruction", "state/arm", "state/open", "pair/_index_0", "pair/_index_1"):
            column = file[f"episode_0/observations/{path}"]
            column.resize(3, axis=0)
    with pytest.raises(ValueError, match=r"episode 0 of 'push/rich-v0' has 3 observations and 3 actions for 3 rewards"):
        load_minari("push/rich-v0")


def test_what_cannot_be_stored_is_refused_by_name(home: Path) -> None:
    for text in ("a\0b", "\udc00"):
        with pytest.raises(ValueError, match=r"episode 1, observation 'instruction' 0: .* the character '\\"):
            saved([rich(0), rich(1, text)])
    with pytest.raises(ValueError, match="episode 1 has no steps"):
        saved([rich(0), Episode(env="", final_observation=0)])
    with pytest.raises(ValueError, match=r"episode 1 is of 'A-v0' \{\}, the first of ''"):
        saved([rich(0), Episode([Step(0, 0)], 0, "A-v0")])
    with pytest.raises(ValueError, match="no episodes"):
        saved([])
    with pytest.raises(ValueError, match="give observation_space and action_space"):
        save_minari([rich(0)], "x-v0")
    with pytest.raises(TypeError, match=r"'graph': .*; it takes Box"):
        storable(spaces.Dict({"graph": spaces.Sequence(DONE)}))
    with pytest.raises(TypeError, match="the part 'in': 'a/b': its name holds a slash"):
        storable(spaces.Dict({"in": spaces.Dict({"a/b": DONE})}))
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["rich", "rich-v", "a b-v0", "/rich-v0", "../rich-v0", "push//rich-v0", "p/rich-v0", ""]
)
def test_an_id_needs_a_name_and_a_version(name: str) -> None:
    with pytest.raises(ValueError, match="such as 'push/expert-v0', its folders of two letters or more, got"):
        saved([rich(0)], name)


def test_no_dataset_is_overwritten_and_none_is_left_half(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved([rich(0)])
    before = (folder / "data" / "main_data.hdf5").read_bytes()
    with pytest.raises(FileExistsError, match=r"there is a dataset 'push/rich-v0' in .*another name or version"):
        saved([rich(1)])
    assert (folder / "data" / "main_data.hdf5").read_bytes() == before

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("minari.dataset._storages.hdf5_storage._add_episode_to_group", stop)
    with pytest.raises(KeyboardInterrupt):
        saved([rich(0)], "push/rich-v1")
    assert not (home / "push" / "rich-v1").exists()
    with pytest.raises(FileNotFoundError, match="no Minari dataset 'push/rich-v1' below"):
        load_minari("push/rich-v1")


def test_missing_packages_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrathlon.envs.minari.find_spec", lambda name: None if name == "h5py" else True)
    for call in (lambda: check_dataset("a-v0"), lambda: load_minari("a-v0"), lambda: saved([rich(0)])):
        with pytest.raises(ImportError, match=r'need h5py: pip install "tetrathlon\[data\]"'):
            call()


def test_no_jax_is_needed() -> None:
    saved([rich(0)])
    assert "jax" not in sys.modules
