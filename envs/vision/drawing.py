"""A scene, drawn: the picture, and which object is where in it.

Shapes: H rows and W columns of pixels, 3 colours.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

import numpy as np
from PIL import Image

from tetrathlon.envs.vision.scene import Bounds, Scene

_SMALL = 320 * 320
"""Pixels up to which each is drawn as 4 x 4 samples; above it is 2 x 2."""
_KEPT = 8
"""How many of the last drawings are kept."""
_LARGEST_KEPT = 1024 * 1024
"""Pixels of a picture above which its drawing is not kept: together they take some 60 MB at most."""


def drawing_of(scene: Scene) -> Drawing:
    """Return a scene, drawn; of one that was drawn a moment ago the same drawing.

    The copies of a group play one instance, and whoever plays an episode again sees its picture again.
    """
    if scene.width * scene.height > _LARGEST_KEPT:
        return Drawing(scene)
    try:
        return _recent(scene)
    except TypeError:  # marks of somebody else may hold lists, which have no hash
        return Drawing(scene)


class Drawing:
    """A scene, drawn once: each pixel is the mean of S x S samples, and each sample belongs to one mark.

    So the picture is anti-aliased, and what it shows of an object is known exactly.

    Args:
        scene: What is drawn.

    Attributes:
        scene: As given.
        scale: S, samples a pixel along each axis.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.scale = 4 if scene.width * scene.height <= _SMALL else 2
        canvas = Image.new("P", (scene.width * self.scale, scene.height * self.scale), 0)
        for number, mark in enumerate(scene.marks, 1):
            mark.paint(canvas, number, self.scale)
        # Now and not when the picture is asked for: a canvas is shared among threads, and never changed.
        canvas.putpalette([part for color in (scene.background, *(m.color for m in scene.marks)) for part in color])
        self._canvas = canvas

    @cached_property
    def picture(self) -> np.ndarray:
        """The picture, uint8 [H, W, 3], not to be changed."""
        scene = self.scene
        made = np.asarray(self._canvas.convert("RGB").reduce(self.scale))
        if scene.noise:
            spread = np.random.default_rng(scene.noise_seed).normal(0.0, scene.noise, made.shape)
            made = np.clip(np.rint(made + spread), 0, 255).astype(np.uint8)
        made.flags.writeable = False
        return made

    def mask(self, tags: Iterable[str]) -> np.ndarray:
        """Return bool [H, W]: whether at least half of a pixel shows one of the objects ``tags``."""
        scene, scale = self.scene, self.scale
        samples = self._shows(tags).view(np.uint8).reshape(scene.height, scale, -1)
        columns = samples.sum(axis=1, dtype=np.uint8).reshape(scene.height, scene.width, scale)
        return columns.sum(axis=2, dtype=np.uint8) * 2 >= scale * scale

    def box(self, tag: str) -> Bounds | None:
        """Return the smallest box around what is seen of an object, exact to 1 / S pixel; None: nothing is seen."""
        shows = self._shows([tag])
        rows, columns = np.flatnonzero(shows.any(axis=1)), np.flatnonzero(shows.any(axis=0))
        if not len(rows):
            return None
        x1, y1, x2, y2 = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
        return tuple(float(edge) / self.scale for edge in (x1, y1, x2, y2))  # type: ignore[return-value]

    def _shows(self, tags: Iterable[str]) -> np.ndarray:
        wanted = set(tags)
        numbers = [number for number, mark in enumerate(self.scene.marks, 1) if mark.tag in wanted]
        if len(numbers) == 1:
            return self._samples == numbers[0]
        of_object = np.zeros(len(self.scene.marks) + 1, dtype=bool)
        of_object[numbers] = True
        return of_object[self._samples]

    @cached_property
    def _samples(self) -> np.ndarray:
        """The number of the mark that each sample belongs to, uint8 [S H, S W]."""
        return np.asarray(self._canvas)


@lru_cache(_KEPT)
def _recent(scene: Scene) -> Drawing:
    return Drawing(scene)
