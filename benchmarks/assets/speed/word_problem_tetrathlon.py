"""``tetrathlon/Math-v0`` on word problems of a file."""

from rows import word_problems
from rows_tetrathlon import episodes_of

PACKAGES = ("tetrathlon", "gymnasium", "numpy")


def start(rows, seeded=False, worked=False):
    """Return ``episodes``."""
    return episodes_of(word_problems(worked, rows), seeded, answer_format="plain")
