"""Observations as rows of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten

from tetrathlon.agents.features import Features, feature_count, features
from tetrathlon.envs.spaces import UnicodeText, stack

SPACE = spaces.Dict(
    {
        "velocity": spaces.Box(-9, 9, (2, 2), np.float64),
        "gear": spaces.Discrete(3, start=1),
        "doors": spaces.MultiDiscrete([2, 3]),
        "lamps": spaces.Dict({"on": spaces.MultiBinary(2)}),
    }
)


def test_every_number_has_its_place() -> None:
    one = {
        "velocity": np.array([[1.5, 2.0], [3.0, 4.0]]),
        "gear": np.int64(3),
        "doors": np.array([1, 0]),
        "lamps": {"on": np.array([0, 1], dtype=np.int8)},
    }
    other = {**one, "gear": np.int64(1), "doors": np.array([0, 2])}
    rows = features(SPACE, stack(SPACE, [one, other]))
    assert rows.dtype == np.float32 and feature_count(SPACE) == 14
    by_name = {name: features(space, stack(space, [one[name], other[name]])) for name, space in SPACE.items()}
    assert by_name["velocity"].tolist() == [[1.5, 2.0, 3.0, 4.0]] * 2
    assert by_name["gear"].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert by_name["doors"].tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]
    assert by_name["lamps"].tolist() == [[0, 1]] * 2
    assert rows.tolist() == np.concatenate([by_name[name] for name in SPACE], axis=1).tolist()


def test_it_agrees_with_gymnasium() -> None:
    SPACE.seed(0)
    samples = [SPACE.sample() for _ in range(5)]
    assert np.allclose(features(SPACE, stack(SPACE, samples)), np.array([flatten(SPACE, sample) for sample in samples]))


def test_spaces_that_are_no_numbers() -> None:
    for space in (spaces.Text(3), spaces.Dict({"text": spaces.Text(3)}), spaces.Sequence(spaces.Discrete(2))):
        with pytest.raises(TypeError, match="observations must be Box, Discrete"):
            feature_count(space)


def test_images_stand_apart() -> None:
    camera = spaces.Box(0, 255, (4, 5, 3), np.uint8)
    numbers = spaces.Box(-1, 1, (2,))
    space = spaces.Dict({"see": spaces.Dict({"wrist": camera}), "state": numbers, "say": UnicodeText(9)})
    read = Features(space, text="ignore")
    assert read.count == 2 and read.images == {"image/see/wrist": camera}
    samples = [space.sample() for _ in range(3)]
    found = read(stack(space, samples))
    assert list(found) == ["observation", "image/see/wrist"]
    assert found["observation"].tolist() == [sample["state"].tolist() for sample in samples]
    assert found["image/see/wrist"].dtype == np.uint8
    assert np.array_equal(found["image/see/wrist"], np.stack([sample["see"]["wrist"] for sample in samples]))
    assert list(Features(camera).images) == ["image"] and Features(camera).count == 0
    assert not Features(spaces.Box(0, 255, (8,), np.uint8)).images  # bytes, but no image


def test_text_is_left_out_only_where_that_is_wanted() -> None:
    space = spaces.Dict({"state": spaces.Box(-1, 1, (2,)), "say": UnicodeText(9)})
    with pytest.raises(TypeError, match=r"got UnicodeText.*; ignore_text=True leaves texts out"):
        Features(space)
    with pytest.raises(TypeError, match="hold nothing but text"):
        Features(UnicodeText(9), text="ignore")


def test_texts_become_words() -> None:
    space = spaces.Dict({"state": spaces.Box(-1, 1, (2,)), "say": spaces.Dict({"what": UnicodeText(9)})})
    read = Features(space, text="words")
    assert read.texts == ["text/say/what"] and read.names == ["observation", "text/say/what"]
    found = read({"state": np.zeros((2, 2)), "say": {"what": ("go on", "")}})
    assert found["text/say/what"].shape == (2, 2) and found["text/say/what"].any(axis=1).tolist() == [True, False]
    assert list(Features(UnicodeText(9), text="words")(("go",))) == ["text"]
