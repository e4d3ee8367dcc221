"""One picture of all vision tasks and their variants: ``python -m tetrathlon.benchmarks.vision_sheet FILE.png``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tetrathlon.benchmarks.contact_sheet import contact_sheet
from tetrathlon.envs.registry import listings, make
from tetrathlon.envs.vision.variants import VARIANTS

_SIDE = 192
_SEED = 5
_SIZES = {"OCR-v0": 64, "Chart-v0": 192, "Zoom-v0": 192}
"""Pixels of the side where it is not 96."""
_EDGE = (200, 200, 200)


def vision_sheet(path: Path) -> None:
    """Write a column of every vision task: its question, and one instance in each variant that is a picture.

    Args:
        path: ``*.png``.
    """
    pictures: list[np.ndarray | Image.Image] = []
    titles: list[str] = []
    names = [listing.id.rpartition("/")[2] for listing in listings("vision")]
    envs: list[Any] = [make(name, size=_SIZES.get(name, 96)).unwrapped for name in names]
    for variant in (variant for variant in VARIANTS if variant != "no_image"):
        for name, env in zip(names, envs, strict=True):
            observation, _ = env.reset(seed=_SEED, options={"variant": variant})
            pictures.append(_framed(observation["image"]))
            asked = f"{name}: {observation['text'].splitlines()[0]}" if variant == "full" else f"{variant}:"
            titles.append(f"{asked} {env.evidence()['answer']}")
    contact_sheet(pictures, titles, columns=len(names), side=_SIDE).save(path)


def _framed(picture: np.ndarray) -> Image.Image:
    """Return a picture with an edge of its own, so that white ones end somewhere."""
    grown = picture.repeat(scale := max(1, _SIDE // len(picture)), axis=0).repeat(scale, axis=1)
    framed = Image.fromarray(grown)
    framed.paste(_EDGE, (0, 0, framed.width, 1))
    for box in ((0, framed.height - 1, framed.width, framed.height), (0, 0, 1, framed.height)):
        framed.paste(_EDGE, box)
    framed.paste(_EDGE, (framed.width - 1, 0, framed.width, framed.height))
    return framed


if __name__ == "__main__":
    vision_sheet(Path(sys.argv[1]))
