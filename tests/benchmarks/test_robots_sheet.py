"""The picture of all robot tasks."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from tetrathlon.benchmarks.robots_sheet import robots_sheet
from tetrathlon.envs import listings


def test_every_robot_task_is_in_the_picture(tmp_path: Path) -> None:
    try:
        robots_sheet(tmp_path / "robots.png")
    except gym.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
    with Image.open(tmp_path / "robots.png") as sheet:
        pixels = np.asarray(sheet).astype(int)
    dark = (pixels.sum(axis=-1) < 600).reshape(len(pixels), -1)
    columns, tasks = 3, len(listings("robots"))
    side = (pixels.shape[1] - 12) // columns
    assert side == 252 and pixels.shape[0] > side * -(-tasks // columns)
    assert dark[12:252, 12:252].mean() > 0.5  # the first picture is one, not paper
