"""The two splits of instances, and which of them an instance belongs to by its content."""

from __future__ import annotations

SPLITS = ("train", "test")
_TEST_SHARE = 5  # one instance in five


def split_of(digest: int) -> str:
    """Return the one split of an instance, by a hash of its content."""
    return SPLITS[digest % _TEST_SHARE == 0]
