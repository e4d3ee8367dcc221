"""``tetrathlon/Math-v0`` on answers that are written in another way than the gold ones."""

from rows import latex_answers
from rows_tetrathlon import episodes_of

PACKAGES = ("tetrathlon", "gymnasium", "numpy", "latex2sympy2-extended", "sympy")


def start(kind, rows):
    """Return ``episodes``."""
    return episodes_of(latex_answers(kind, rows), seeded=False)
