"""Spaces that Gymnasium lacks, and the helpers that batch and unbatch samples of any space, and infos."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from copy import deepcopy
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces import utils as space_utils
from gymnasium.vector import utils as vector_utils
from numpy.typing import NDArray

_CODE_POINTS = 0x110000
_SURROGATES = (0xD800, 0xE000)
_LONGEST_SAMPLE = 256
_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class _EveryCharacter(Sequence[str]):
    """All Unicode code points in order, as a sequence that takes no memory."""

    def __len__(self) -> int:
        return _CODE_POINTS

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(chr(i) for i in range(*index.indices(_CODE_POINTS)))
        position = int(index)
        if not -_CODE_POINTS <= position < _CODE_POINTS:
            raise IndexError(f"character index {position} is outside 0..{_CODE_POINTS - 1}")
        return chr(position % _CODE_POINTS)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and len(value) == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _EveryCharacter)

    def __hash__(self) -> int:
        return hash(_EveryCharacter)

    def __repr__(self) -> str:
        return "<every Unicode code point>"


_EVERY_CHARACTER = _EveryCharacter()


class UnicodeText(spaces.Text):
    """Any string of ``min_length`` to ``max_length`` code points.

    ``gymnasium.spaces.Text`` enumerates its characters, so a space of all of Unicode takes ten seconds to
    build. Here the character set is virtual: construction, ``sample``, copies and pickles cost microseconds
    whatever ``max_length`` is. The registrations below this class mend what stock Gymnasium 1.4 does to text in
    vector environments (``AsyncVectorEnv`` with shared memory returns the first text for ever).

    Args:
        max_length: Longest string, in code points, inclusive.
        min_length: Shortest string, in code points, inclusive.
        seed: Seed for ``sample``.

    Raises:
        TypeError: A length is not an integer.
        ValueError: ``min_length`` is negative or above ``max_length``.
    """

    def __init__(self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None) -> None:
        for name, value in (("max_length", max_length), ("min_length", min_length)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"{name} must be an integer, got {value!r}")
        if not 0 <= min_length <= max_length:
            raise ValueError(f"lengths must satisfy 0 <= min_length <= max_length, got {min_length} and {max_length}")
        self.min_length = int(min_length)
        self.max_length = int(max_length)
        spaces.Space.__init__(self, dtype=str, seed=seed)

    def sample(
        self,
        mask: tuple[int | None, NDArray[np.int8] | None] | None = None,
        probability: tuple[int | None, NDArray[np.float64] | None] | None = None,
    ) -> str:
        """Draw a random string, of at most 256 characters unless ``min_length`` or the caller asks for more.

        Args:
            mask: ``(length, characters)`` as in ``gymnasium.spaces.Text``; ``characters`` is an int8 array over
                the 1,114,112 code points, or None.
            probability: The same with float64 probabilities.

        Returns:
            A string in this space, without surrogates unless a mask asks for them.
        """
        if mask is not None and probability is not None:
            raise ValueError("give mask or probability, not both")
        length: int | None = None
        weights: NDArray[Any] | None = None
        if mask is not None:
            length, weights = self._validate_mask(mask, np.int8, "mask")
        elif probability is not None:
            length, weights = self._validate_mask(probability, np.float64, "probability")
        if length is None:
            longest = max(self.min_length, min(self.max_length, _LONGEST_SAMPLE))
            length = int(self.np_random.integers(self.min_length, longest + 1))
        if weights is not None:
            allowed = np.flatnonzero(weights)
            if allowed.size == 0:
                if self.min_length:
                    raise ValueError("the mask allows no character but min_length is above 0")
                return ""
            share = weights[allowed] / weights[allowed].sum()
            points = self.np_random.choice(allowed, size=length, p=share)
        else:
            low, high = _SURROGATES
            points = self.np_random.integers(0, _CODE_POINTS - (high - low), size=length)
            points = np.where(points >= low, points + (high - low), points)
        return _decode(points.astype("<i4"))

    def contains(self, x: Any) -> bool:
        """Tell whether ``x`` is a string of an allowed length."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    @property
    def character_set(self) -> Any:
        """Every code point; a virtual sequence, never built."""
        return _EVERY_CHARACTER

    @property
    def character_list(self) -> Any:
        """Every code point; a virtual sequence, never built."""
        return _EVERY_CHARACTER

    @property
    def characters(self) -> Any:
        """Every code point; a virtual sequence, never built."""
        return _EVERY_CHARACTER

    def character_index(self, char: str) -> np.int32:
        """Return the code point of ``char``."""
        return np.int32(ord(char))

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )


def _encode(text: str) -> NDArray[np.int32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<i4")


def _decode(points: NDArray[np.int32]) -> str:
    return points.astype("<i4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


@space_utils.flatten.register(UnicodeText)
def _flatten(space: UnicodeText, x: str) -> NDArray[np.int32]:  # type: ignore[misc]
    flat = np.full(space.max_length, _CODE_POINTS, dtype=np.int32)
    flat[: len(x)] = _encode(x)
    return flat


@space_utils.unflatten.register(UnicodeText)
def _unflatten(space: UnicodeText, x: NDArray[np.int32]) -> str:  # type: ignore[misc]
    return _decode(x[x < _CODE_POINTS])


@vector_utils.create_empty_array.register(UnicodeText)
def _create_empty_array(space: UnicodeText, n: int = 1, fn: Any = np.zeros) -> tuple[str, ...]:
    return tuple("\0" * space.min_length for _ in range(n))


@vector_utils.batch_differing_spaces.register(UnicodeText)
def _batch_differing_spaces(differing: Sequence[UnicodeText]) -> spaces.Tuple:  # type: ignore[misc]
    return spaces.Tuple(deepcopy(list(differing)))


# In shared memory a text is its length followed by its code points.
@vector_utils.create_shared_memory.register(UnicodeText)
def _create_shared_memory(space: UnicodeText, n: int = 1, ctx: ModuleType = multiprocessing) -> Any:
    return ctx.Array(np.dtype(np.int32).char, n * (space.max_length + 1))


@vector_utils.write_to_shared_memory.register(UnicodeText)
def _write_to_shared_memory(space: UnicodeText, index: int, value: str, shared_memory: Any) -> None:
    if len(value) > space.max_length:
        raise ValueError(f"a text of {len(value)} characters does not fit {space}")
    rows = np.frombuffer(shared_memory.get_obj(), dtype=np.int32).reshape(-1, space.max_length + 1)
    rows[index, 0] = len(value)
    rows[index, 1 : 1 + len(value)] = _encode(value)


class _SharedTexts(Sequence[str]):
    """A live view of the texts in shared memory; a deep copy of it is a plain tuple of strings.

    ``AsyncVectorEnv`` reads shared memory once, at construction, and deep-copies what it read after each step:
    a view is decoded afresh by each of those copies.
    """

    def __init__(self, rows: NDArray[np.int32]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = self._rows[index]
        return _decode(row[1 : 1 + row[0]])

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)


@vector_utils.read_from_shared_memory.register(UnicodeText)
def _read_from_shared_memory(space: UnicodeText, shared_memory: Any, n: int = 1) -> _SharedTexts:
    rows = np.frombuffer(shared_memory.get_obj(), dtype=np.int32).reshape(n, space.max_length + 1)
    return _SharedTexts(rows)


def stack(space: spaces.Space[Any], items: Sequence[Any]) -> Any:
    """Batch samples of ``space`` as a Gymnasium ``VectorEnv`` does.

    Args:
        space: The space of a single item.
        items: N samples of it.

    Returns:
        An array with leading N for array spaces, a tuple of N strings for text, a dict of those for ``Dict``.
    """
    return vector_utils.concatenate(space, items, vector_utils.create_empty_array(space, n=len(items)))  # type: ignore[arg-type]


def unstack(space: spaces.Space[Any], batch: Any, n: int) -> list[Any]:
    """Undo :func:`stack`: the N items of a batch, arrays as copies of their own.

    Args:
        space: The space of a single item.
        batch: N samples of it, batched as a ``VectorEnv`` batches them.
        n: N.

    Raises:
        ValueError: The batch does not hold N items.
    """
    if isinstance(space, spaces.Dict):
        parts = {name: unstack(part, batch[name], n) for name, part in space.items()}
        return [{name: items[i] for name, items in parts.items()} for i in range(n)]
    if isinstance(space, spaces.Tuple):
        columns = [unstack(part, batch[k], n) for k, part in enumerate(space)]
        return [tuple(column[i] for column in columns) for i in range(n)]
    items: list[Any]
    if isinstance(space, _ARRAYS):
        array = np.asarray(batch)
        items = [item.copy() for item in array] if space.shape else list(array)  # scalars are copies
    elif isinstance(space, spaces.Text):
        items = list(batch)
    else:
        items = [deepcopy(item) for item in vector_utils.iterate(vector_utils.batch_space(space, n), batch)]
    if len(items) != n:
        raise ValueError(f"expected a batch of {n} items of {space}, got {len(items)}")
    return items


def read_action(space: spaces.Box, action: Any) -> np.ndarray:
    """Return an action as float64 of the shape of a ``Box``; NaN where it is none, which the environment ignores."""
    try:
        given = np.asarray(action)
        if given.dtype.kind in "fiub" and given.shape == space.shape:
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    return np.full(space.shape, np.nan)


def null_sample(space: spaces.Space[Any]) -> Any:
    """Return one fixed sample of ``space``, the same at every call; ``space`` itself draws nothing."""
    twin = deepcopy(space)
    twin.seed(0)
    return twin.sample()


def unbatch_info(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """Return slot ``i``'s own info out of a vector environment's, with Python scalars as the single one gives."""
    own: dict[str, Any] = {}
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        if mask is None or not mask[i]:
            continue
        if isinstance(value, dict):
            own[key] = unbatch_info(value, i)
        else:
            item = value[i]
            own[key] = (
                item.item() if isinstance(item, np.generic) else np.copy(item) if isinstance(item, np.ndarray) else item
            )
    return own
