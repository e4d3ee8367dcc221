"""Words as numbers, without a vocabulary: each is known by its hash."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

MOST_WORDS = 64
"""What stands behind so many words of a text is not read."""

_WORD = re.compile(r"\w+|[^\w\s]")


def words(texts: Sequence[str]) -> np.ndarray:
    """Return the words of N texts, in order, as int64 [N, L], 0 behind the last.

    A word is a run of letters and digits in lower case, or a single other character; its number is 64 bits of a hash,
    the same in every process and for ever. L is that of the longest text, at least 1: an empty text is all 0.

    Args:
        texts: N texts.
    """
    rows = [_numbers(str(text)) for text in texts]
    found = np.zeros((len(rows), max([1, *map(len, rows)])), dtype=np.int64)
    for row, numbers in zip(found, rows, strict=True):
        row[: len(numbers)] = numbers
    return found


@lru_cache(maxsize=4096)
def _numbers(text: str) -> np.ndarray:
    found = _WORD.findall(text.lower())[:MOST_WORDS]
    digests = [blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in found]
    return np.frombuffer(b"".join(digests), dtype="<i8")
