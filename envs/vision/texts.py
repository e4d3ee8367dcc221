"""Texts that were read in a picture, against what stands there."""

from __future__ import annotations

import unicodedata

LONGEST_GOLD = 10_000
"""Characters of a gold text."""
_WIDEST = 4
"""Characters at most that Unicode's composition makes one of."""


def same_text(found: str | None, gold: str) -> bool:
    """Tell whether a text is the gold one, character by character.

    Blanks around both do not count, and neither does how signs are composed (NFC, to which the signs of the units
    kelvin, angstrom and ohm are letters). All else does: case, blanks inside, and signs that only look alike, such as
    full-width digits.

    Args:
        found: A final answer, of any length and content; None: there is none.
        gold: What stands in the picture.

    Raises:
        ValueError: ``gold`` is blank or has more than 10,000 characters.
    """
    true = _gold(gold)
    if found is None or len(stripped := found.strip()) > _WIDEST * len(true):
        return False
    return unicodedata.normalize("NFC", stripped) == true


def cer(found: str | None, gold: str) -> float:
    """Return the character error rate: edits that make a text the gold one, over the length of the gold one.

    Both texts are taken as :func:`same_text` does.

    Args:
        found: A final answer, of any length and content; None: there is none.
        gold: What stands in the picture.

    Returns:
        From 0 to 1: who adds much is not told apart from who reads nothing.

    Raises:
        ValueError: See :func:`same_text`.
    """
    true = _gold(gold)
    if found is None or len(stripped := found.strip()) > 2 * _WIDEST * len(true):
        return 1.0  # composed it still has more than twice the characters, so as many edits as the gold text has
    return min(_edits(unicodedata.normalize("NFC", stripped), true) / len(true), 1.0)


def _gold(gold: str) -> str:
    if len(gold) > LONGEST_GOLD or not (true := unicodedata.normalize("NFC", gold.strip())):
        raise ValueError(f"a gold text has 1 to {LONGEST_GOLD:,} characters, blanks around it aside, got {gold[:60]!r}")
    return true


def _edits(a: str, b: str) -> int:
    """Return the least number of insertions, deletions and changes of a character that make ``a`` of ``b``.

    The bit-vector algorithm of Myers (1999) in the form of Hyyrö (2003): a column of the table is two integers, with a
    bit for each character of ``b``.
    """
    whole, last = (1 << len(b)) - 1, 1 << (len(b) - 1)
    places: dict[str, int] = {}
    for index, sign in enumerate(b):
        places[sign] = places.get(sign, 0) | 1 << index
    more, less, edits = whole, 0, len(b)
    for sign in a:
        equal = places.get(sign, 0)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        right_more = less | (whole & ~(diagonal | more))
        right_less = more & diagonal
        edits += bool(right_more & last) - bool(right_less & last)
        right_more, right_less = (right_more << 1 | 1) & whole, (right_less << 1) & whole
        more = right_less | (whole & ~(diagonal | right_more))
        less = right_more & diagonal
    return edits
