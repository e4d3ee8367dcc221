"""Observations of a control environment as rows of numbers, and as images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from tetrathlon.agents.words import words

Path = tuple[str, ...]
"""Where a part of an observation is: the keys of the ``Dict`` spaces that lead to it, () for the whole."""

Reading = Literal["refuse", "ignore", "words"]
"""What is made of texts: they are refused, left out, or become numbers of words."""


class Features:
    """How observations of a space become arrays: its images and texts apart, all else as one row of numbers.

    An image is a ``Box`` of uint8 with three dimensions; nothing is read out of its shape.

    Args:
        space: The space of a single observation: ``Box``, ``Discrete``, ``MultiDiscrete``, ``MultiBinary``, or a
            ``Dict`` of those.
        text: What is made of parts that are ``Text``.

    Attributes:
        images: The images by their names in the result: ``image`` and the keys that lead to it, by slashes.
        texts: The names of the texts that are read: ``text`` and the keys that lead to it.
        count: F, how many numbers an observation has beside images and texts.
        names: Those of all that is in the result.

    Raises:
        TypeError: A part of the space is none of those, or nothing is left of it.
    """

    def __init__(self, space: spaces.Space[Any], *, text: Reading = "refuse") -> None:
        parts = dict(_parts(space))
        said = [path for path, part in parts.items() if isinstance(part, spaces.Text)]
        self._texts = {"/".join(("text", *path)): path for path in said} if text == "words" else {}
        if text != "refuse":
            parts = {path: part for path, part in parts.items() if path not in said}
            if not parts and not self._texts:
                raise TypeError(f"observations hold nothing but text, which is ignored: {space}")
        self._images = {"/".join(("image", *path)): path for path, part in parts.items() if is_image(part)}
        self._numbers = {path: part for path, part in parts.items() if not is_image(part)}
        self.images: dict[str, spaces.Box] = {name: parts[path] for name, path in self._images.items()}  # type: ignore[misc]
        self.texts = list(self._texts)
        self.count = sum(map(feature_count, self._numbers.values()))
        self.names = [*(["observation"] if self.count else []), *self._images, *self._texts]

    def __call__(self, batch: Any) -> dict[str, np.ndarray]:
        """Return N observations, batched as a ``VectorEnv`` batches them.

        Returns:
            ``observation``: float32 [N, F], where F is not 0; each image by its name, uint8 as it is; and each text as
            the numbers of its words, int64 [N, L].
        """
        rows = [features(part, _part(batch, path)) for path, part in self._numbers.items()]
        seen = {"observation": rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)} if rows else {}
        seen |= {name: np.asarray(_part(batch, path)) for name, path in self._images.items()}
        return seen | {name: words(_part(batch, path)) for name, path in self._texts.items()}


def is_image(space: spaces.Space[Any]) -> bool:
    """Tell whether a space is one of images."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def _parts(space: spaces.Space[Any], path: Path = ()) -> Iterator[tuple[Path, spaces.Space[Any]]]:
    if not isinstance(space, spaces.Dict):
        yield path, space
        return
    for name, part in space.items():
        yield from _parts(part, (*path, name))


def _part(batch: Any, path: Path) -> Any:
    return reduce(lambda whole, name: whole[name], path, batch)


def feature_count(space: spaces.Space[Any]) -> int:
    """Return F, how many numbers :func:`features` makes of one observation.

    Raises:
        TypeError: The space, or a part of it, is none that :func:`features` takes.
    """
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return math.prod(space.shape)
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.Dict):
        return sum(feature_count(part) for part in space.values())
    hint = "; ignore_text=True leaves texts out" if isinstance(space, spaces.Text) else ""
    raise TypeError(
        f"observations must be Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of those, got {space}{hint}"
    )


def features(space: spaces.Space[Any], batch: Any) -> np.ndarray:
    """Return N observations as float32 [N, F].

    Boxes and switches are flattened, a choice becomes a one-hot, and the parts of a ``Dict`` stand side by side in
    the order of the space.

    Args:
        space: The space of a single observation.
        batch: N observations, batched as a ``VectorEnv`` batches them.
    """
    if isinstance(space, spaces.Dict):
        assert isinstance(batch, Mapping)
        return np.concatenate([features(part, batch[name]) for name, part in space.items()], axis=1)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel()
        chosen = np.asarray(batch).reshape(-1, len(sizes)) - np.atleast_1d(space.start).ravel()
        flat = np.zeros((len(chosen), int(sizes.sum())), dtype=np.float32)
        np.put_along_axis(flat, chosen + np.cumsum(sizes) - sizes, 1.0, axis=1)
        return flat
    assert space.shape is not None
    return np.asarray(batch, dtype=np.float32).reshape(-1, math.prod(space.shape))
