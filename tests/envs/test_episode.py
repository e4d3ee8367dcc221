from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs.test_codec import TEXT, VALUES
from tetrathlon.envs import episode as episode_module
from tetrathlon.envs.episode import Episode, Step, from_json, load_episodes, save_episodes, scorable, to_json
from tetrathlon.envs.subject import equal


def picture(channels: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (7, 9, channels), dtype=np.uint8)


def episode(seed: int = 0, **record: Any) -> Episode:
    seen: list[Any] = [{"image": picture(c, seed), "wrist": picture(1, seed), "text": "\ud83d\ude00\0"} for c in (3, 4)]
    step = Step(
        seen[0],
        np.array([0.1, -1], np.float32),
        0.1,
        info={"reward_terms": {"x": 0.1}},
        record=record or None,
        label=np.zeros(2, np.float32),
    )
    last = Step(seen[1], "call 🙂", float("nan"), True, info={"is_success": True, "stop_reason": "answered"})
    return Episode([step, last], seen[0], "Toy-v0", {"size": (3, 4)}, seed, {"index": 7}, {"task_id": "a"}, 2)


STEPS = st.builds(
    Step,
    VALUES,
    VALUES,
    st.floats(),
    st.booleans(),
    st.booleans(),
    st.dictionaries(TEXT, VALUES, max_size=2),
    label=VALUES,
)
EPISODES = st.builds(
    Episode,
    st.lists(STEPS, max_size=2),
    VALUES,
    st.sampled_from(["", "Toy-v0"]),
    st.dictionaries(TEXT, VALUES, max_size=2),
    st.none() | st.integers(),
    st.none() | st.dictionaries(TEXT, VALUES, max_size=2),
    st.dictionaries(TEXT, VALUES, max_size=2),
    st.none() | st.integers(),
)


@settings(max_examples=100, deadline=None)
@given(EPISODES)
def test_json_round_trip(one: Episode) -> None:
    assert equal(from_json(json.loads(json.dumps(to_json(one), allow_nan=False))), one)


def test_save_and_load(tmp_path: Path) -> None:
    notes = {
        "ids": np.arange(5),
        "logp/raw": np.array([-0.5, -1], np.float32),
        "empty": np.zeros((0, 2)),
        "n": np.array(3),
    }
    episodes = [episode(0, **notes), Episode(), episode(1), episode(0)]
    path = save_episodes(tmp_path / "new", episodes)
    assert path.name == "episodes.jsonl" and path.read_bytes().isascii()
    loaded = load_episodes(tmp_path / "new")
    assert equal(loaded, episodes)
    assert {image.suffix for image in (tmp_path / "new" / "images").iterdir()} == {".png"}
    assert len(list((tmp_path / "new" / "images").iterdir())) == 6  # two seeds of grey, RGB and RGBA, each once
    loaded[0].steps[0].observation["image"][0] = 0  # what was loaded can be written to


def test_every_kind_of_picture_survives(tmp_path: Path) -> None:
    images = [picture(1), picture(3), picture(4), np.zeros((1, 1, 3), np.uint8), picture(3)[:, ::-1], picture(4)[::2]]
    save_episodes(tmp_path, [Episode([], image) for image in images])
    for image, back in zip(images, load_episodes(tmp_path), strict=True):
        assert back.final_observation.shape == image.shape and back.final_observation.dtype == np.uint8
        assert np.array_equal(back.final_observation, image)


def test_saving_again_replaces(tmp_path: Path) -> None:
    save_episodes(tmp_path, [episode(0, ids=np.arange(3)), episode(1)])
    save_episodes(tmp_path, [episode(2)])
    (only,) = load_episodes(tmp_path)
    assert equal(only, episode(2))
    assert not list(tmp_path.glob("*.npz"))
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("survives", range(3))
def test_a_kill_at_any_moment_leaves_episodes_with_their_own_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    old, new = [episode(0, ids=np.arange(3)), episode(1)], [episode(0, ids=np.arange(3) + 7), episode(2)]
    save_episodes(tmp_path, old)
    count = 0
    write = episode_module.write_aside

    def dies(path: Path, data: bytes) -> None:
        nonlocal count
        if path.suffix in (".npz", ".jsonl"):
            if count == survives:
                raise KeyboardInterrupt
            count += 1
        write(path, data)

    monkeypatch.setattr(episode_module, "write_aside", dies)
    if survives < 2:
        with pytest.raises(KeyboardInterrupt):
            save_episodes(tmp_path, new)
        assert equal(load_episodes(tmp_path), old)
    else:
        save_episodes(tmp_path, new)
        assert equal(load_episodes(tmp_path), new) and len(list(tmp_path.glob("*.npz"))) == 1


def test_records_of_other_episodes_are_refused(tmp_path: Path) -> None:
    path = save_episodes(tmp_path / "a", [episode(1), episode(0, ids=np.arange(3))])
    other = save_episodes(tmp_path / "b", [episode(1), episode(0, ids=np.arange(3) + 1)])
    (mine,), (theirs,) = path.parent.glob("*.npz"), other.parent.glob("*.npz")
    mine.write_bytes(theirs.read_bytes())
    with pytest.raises(ValueError, match=r"line 2 of .*other records than those"):
        load_episodes(tmp_path / "a")
    mine.write_bytes(b"PK")
    with pytest.raises(ValueError, match="line 2 of "):
        load_episodes(tmp_path / "a")
    mine.unlink()
    with pytest.raises(ValueError, match=rf"line 2 of .*{mine.name}"):
        load_episodes(tmp_path / "a")


def test_a_selection_of_lines_keeps_its_records(tmp_path: Path) -> None:
    episodes = [episode(seed, ids=np.arange(seed)) for seed in range(3)]
    path = save_episodes(tmp_path, episodes)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert equal(load_episodes(tmp_path), episodes[1:])


@pytest.mark.parametrize("value", [None, [[1], [2, 3]], {"a": 1}, [1, None]])
def test_a_record_that_cannot_be_written_names_its_step(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match="episode 1, step 0: 'logp' in its record"):
        save_episodes(tmp_path, [episode(0), episode(1, logp=value)])
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    save_episodes(tmp_path, [episode(0)])
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        save_episodes(tmp_path, [episode(1), Episode(info={"x": object()})])
    assert equal(load_episodes(tmp_path), [episode(0)])


DAMAGED = {
    "cut": b'{"env": "Toy-v0", "steps": [',
    "no object": b"[1, 2]",
    "a field is missing": b'{"env": "Toy-v0"}',
    "empty": b"",
    "no UTF-8": b"\xff\xfe",
}


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = save_episodes(tmp_path, [episode(0), episode(1), episode(2)])
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], line, lines[2]]))
    with pytest.raises(ValueError, match=r"line 2 of .*episodes\.jsonl is not an episode"):
        load_episodes(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        {"$array": ["<f4", [2], [1.0]]},
        {"$array": ["|u1", [1], [300]]},
        {"$array": ["zz", [1], [3]]},
        {"$array": 5},
        {"$bytes": "?"},
        {"$float": "much"},
        {"$tuple": 3},
        {"$text": [1]},
        {"$image": "gone.png"},
        {"$image": 5},
        {"$array": ["S1000000000", [1], ["a"]]},
        {"$array": ["U100000000", [2], ["a", "b"]]},
        {"$array": ["|O", [1], [1]]},
        {"$array": ["f4,f4", [1], "AAAAAAAAAAA="]},
        {"$array": ["<f4", [1000000000000], [1.0]]},
        {"$array": ["<f4", [-1], [1.0]]},
        {"$scalar": []},
        {"$dict": [[[1], 2]]},
    ],
)
def test_a_damaged_value_is_named_with_its_line(tmp_path: Path, value: Any) -> None:
    path = save_episodes(tmp_path, [Episode(), Episode()])
    lines = path.read_text().splitlines()
    path.write_text(lines[0] + "\n" + json.dumps({**json.loads(lines[1]), "final_observation": value}))
    tracemalloc.start()
    with pytest.raises(ValueError, match="line 2 of "):
        load_episodes(tmp_path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50_000_000  # a few letters of a dtype ask for no gigabyte


@pytest.mark.parametrize("depth", [5_000, 200_000])
def test_a_deep_line_is_named(tmp_path: Path, depth: int) -> None:
    (tmp_path / "episodes.jsonl").write_text("[" * depth + "]" * depth)
    with pytest.raises(ValueError, match="line 1 of "):
        load_episodes(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("env", 1), ("env", None), ("kwargs", []), ("seed", "3"), ("seed", True), ("seed", 1.5), ("options", [1])),
        *(("group", "a"), ("info", None), ("steps", {}), ("steps", [1]), ("records", 3), ("records", ["gone", 0])),
        *(("step.reward", "1"), ("step.reward", None), ("step.terminated", 1), ("step.truncated", None)),
        ("step.info", [1]),
    ],
)
def test_a_field_of_another_type_is_named_with_its_line(tmp_path: Path, field: str, value: Any) -> None:
    path = save_episodes(tmp_path, [episode()])
    data = json.loads(path.read_text())
    (data["steps"][0] if "." in field else data)[field.removeprefix("step.")] = value
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="line 1 of "):
        load_episodes(tmp_path)


def test_a_missing_picture_is_named(tmp_path: Path) -> None:
    save_episodes(tmp_path, [episode(0)])
    gone = sorted((tmp_path / "images").iterdir())[0]
    gone.unlink()
    with pytest.raises(ValueError, match=rf"line 1 of .*{gone.name}"):
        load_episodes(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_episodes(tmp_path / "nowhere")


def test_a_picture_is_read_from_the_folder_only(tmp_path: Path) -> None:
    save_episodes(tmp_path / "run", [Episode([], picture(3))])
    path = tmp_path / "run" / "episodes.jsonl"
    path.write_text(path.read_text().replace('"$image": "', '"$image": "../../'))
    assert np.array_equal(load_episodes(tmp_path / "run")[0].final_observation, picture(3))


def test_what_an_episode_says_of_itself() -> None:
    one = episode()
    assert len(one) == 2 and one.ended and one.is_success and one.stop_reason == "answered"
    fresh = Episode(info={"task_id": "a"})
    assert (fresh.total_reward, fresh.ended, fresh.is_success, fresh.stop_reason) == (0.0, False, False, None)
    assert fresh.last_info == {"task_id": "a"} and fresh.grader_error is None
    failed = Episode([Step("", "", info={"grader_error": "timeout"}), Step("", "", 1.0)])
    assert failed.grader_error == "timeout" and failed.total_reward == 1.0
    assert scorable([one, failed, fresh]) == [one, fresh]
