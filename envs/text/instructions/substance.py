"""Whether a reply says anything of its own: no echo of its prompt, and not the same words over and over."""

from __future__ import annotations

import math
from collections import Counter

from tetrathlon.envs.text.instructions.units import shown, tokens

_ECHO = 4  # as many words in the order of the prompt are copied from it
_LEAST_BIG = 30  # a column of a small table may say the same in every row
_LARGEST_SHARE = 0.25


def own_words(text: str, prompt: str) -> list[str]:
    """Return the words of ``text``, in small letters, without runs of four or more that stand in ``prompt`` too.

    A Chinese or Japanese character counts as a word.
    """
    said, asked = tokens(shown(text)), tokens(prompt)
    grams = {tuple(asked[start : start + _ECHO]) for start in range(len(asked) - _ECHO + 1)}
    is_copied = bytearray(len(said))
    for start in range(len(said) - _ECHO + 1):
        if tuple(said[start : start + _ECHO]) in grams:
            is_copied[start : start + _ECHO] = b"\1" * _ECHO
    return [word for word, copied in zip(said, is_copied, strict=True) if not copied]


def is_substantial(text: str, prompt: str, least: int) -> bool:
    """Tell whether ``text`` has ``least`` words of its own, and enough different ones among these.

    Of n words 2 * sqrt(n) must be different (of 8 words 6, of 100 words 20; an ordinary text has twice as many and
    more), and from 30 words on none may make up more than a quarter.
    """
    words = own_words(text, prompt)
    if len(words) < least:
        return False
    counts = Counter(words)
    if len(counts) < min(len(words), math.ceil(2 * math.sqrt(len(words)))):
        return False
    return len(words) < _LEAST_BIG or max(counts.values()) <= _LARGEST_SHARE * len(words)


def describe_substance(least: int) -> str:
    """Return what a prompt says about :func:`is_substantial`."""
    return (
        f"At least {least} words must be your own (runs of {_ECHO} or more words of this message do not count), and "
        "not the same ones over and over."
    )
