"""One picture of all robot tasks: ``python -m tetrathlon.benchmarks.robots_sheet FILE.png``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tetrathlon.benchmarks.contact_sheet import contact_sheet
from tetrathlon.envs.registry import listings, make

_SIDE = 240
_SEED = 3
_STEPS = 14
"""Of the expert, so that something is under way; a task that is done sooner shows its last step."""


def robots_sheet(path: Path) -> None:
    """Write a picture of every robot task, with its id and an instruction, as seen in the middle of an episode.

    Args:
        path: ``*.png``.
    """
    pictures, titles = [], []
    for listing in listings("robots"):
        env = make(listing.id, render_mode="rgb_array", render_size=_SIDE, quality="high")
        observation, _ = env.reset(seed=_SEED)
        told: Any = env.unwrapped
        for _ in range(_STEPS):
            picture = env.render()
            if any(env.step(told.expert_action())[2:4]):
                break
        assert isinstance(picture, np.ndarray)
        pictures.append(picture)
        titles.append(f"{listing.id.rpartition('/')[2]}: {observation['instruction']}")
        env.close()
    contact_sheet(pictures, titles, columns=3, side=_SIDE).save(path)


if __name__ == "__main__":
    robots_sheet(Path(sys.argv[1]))
