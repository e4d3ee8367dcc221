"""A helper for numbers: means and spreads, ranks, series, matrices."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_numbers import CASES
from tetrathlon.envs.tools.repo.family import Family, whole

_SUMMARY = '''"""What lists of numbers are like; those without a number raise ValueError where nothing else is said."""


def _check(values):
    if not values:
        raise ValueError("there must be a number")


def mean_of(values):
    """Return the mean, rounded to N_PLACES places."""
    _check(values)
    return round(sum(values) / len(values), N_PLACES)


def median_of(values):
    """Return the number in the middle, or the mean of the two in the middle; values stay as they are."""
    _check(values)
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def mode_of(values):
    """Return the number that is there most often, the smallest of those that are equally often."""
    _check(values)
    best = None
    for value in sorted(values):
        if best is None or values.count(value) > values.count(best):
            best = value
    return best


def spread_of(values):
    """Return the difference between the largest and the smallest."""
    _check(values)
    return max(values) - min(values)


def variance_of(values, sample=False):
    """Return the mean squared distance from the mean, rounded to N_PLACES places.

    With sample, the sum is divided by one less than there are numbers, and a single number has 0.
    """
    _check(values)
    center = sum(values) / len(values)
    total = sum((value - center) ** 2 for value in values)
    if not sample:
        return round(total / len(values), N_PLACES)
    if len(values) == 1:
        return 0
    return round(total / (len(values) - 1), N_PLACES)
'''
_RANKS = '''"""Ranks of numbers and what lies below them."""

from PKG.summary import median_of


def ranks_of(values):
    """Return the rank of each number: 1 for the largest; equal ones have the same rank, and the next are left out."""
    return [1 + sum(other > value for other in values) for value in values]


def top(values, count=N_TOP):
    """Return the largest numbers, largest first, count of them or all if there are fewer; values stay as they are."""
    return sorted(values, reverse=True)[:count]


def share_below(values, limit):
    """Return how many of the numbers are below a limit, in whole per cent, rounded down; 0 without any number."""
    if not values:
        return 0
    return 100 * sum(value < limit for value in values) // len(values)


def halves(values):
    """Return the numbers below the median and those above it, each in order."""
    middle = median_of(values)
    low = [value for value in sorted(values) if value < middle]
    high = [value for value in sorted(values) if value > middle]
    return low, high


def group_by(values, width):
    """Return start -> how many numbers are from a start up to the next, for groups of a width, in order.

    Starts are multiples of the width. Groups without a number are left out.
    """
    counts = {}
    for value in sorted(values):
        start = value // width * width
        counts[start] = counts.get(start, 0) + 1
    return counts
'''
_SERIES = '''"""Series of numbers in time."""

from PKG.summary import mean_of


def running_total(values, start=0):
    """Return the sums of all numbers up to each, with start added to each."""
    total, sums = start, []
    for value in values:
        total += value
        sums.append(total)
    return sums


def moving_mean(values, width):
    """Return the means of each width neighbours; there are none if width is larger than the series.

    A width below 1 raises ValueError.
    """
    if width < 1:
        raise ValueError("width must be at least 1")
    return [mean_of(values[at : at + width]) for at in range(len(values) - width + 1)]


def changes(values):
    """Return by how much each number but the first is larger than the one before it."""
    return [after - before for before, after in zip(values, values[1:])]


def longest_rise(values):
    """Return the longest piece of neighbours each larger than the one before, the first of equals."""
    best, piece = [], []
    for value in values:
        if piece and value <= piece[-1]:
            piece = []
        piece = piece + [value]
        if len(piece) > len(best):
            best = piece
    return best


def peaks(values):
    """Return the places of numbers that are larger than both neighbours; the first and the last are none."""
    return [at for at in range(1, len(values) - 1) if values[at] > values[at - 1] and values[at] > values[at + 1]]


def clamp(values, low, high):
    """Return the numbers with low for those below it and high for those above it; low above high raises ValueError."""
    if low > high:
        raise ValueError("low is above high")
    return [min(max(value, low), high) for value in values]
'''
_MATRIX = '''"""Matrices as lists of rows."""

from PKG.series import running_total


class Matrix:
    """Rows of numbers, all of one length; rows of different lengths raise ValueError."""

    def __init__(self, rows):
        if any(len(row) != len(rows[0]) for row in rows):
            raise ValueError("rows have different lengths")
        self.rows = [list(row) for row in rows]

    def shape(self):
        """Return the number of rows and of columns; without rows there are no columns."""
        return len(self.rows), len(self.rows[0]) if self.rows else 0

    def column(self, place):
        """Return a column as a list."""
        return [row[place] for row in self.rows]

    def turned(self):
        """Return a new matrix whose rows are the columns of this one."""
        return Matrix([self.column(place) for place in range(self.shape()[1])])

    def plus(self, other):
        """Return the sum of two matrices of one shape; other shapes raise ValueError."""
        if self.shape() != other.shape():
            raise ValueError("the shapes differ")
        return Matrix([[a + b for a, b in zip(left, right)] for left, right in zip(self.rows, other.rows)])

    def times(self, other):
        """Return the product; the columns of this one must be as many as the rows of the other, else ValueError."""
        if self.shape()[1] != other.shape()[0]:
            raise ValueError("the shapes do not fit")
        product = []
        for row in self.rows:
            product.append([sum(a * b for a, b in zip(row, column)) for column in other.turned().rows])
        return Matrix(product)

    def trace(self):
        """Return the sum of the numbers from the upper left to the lower right; no square raises ValueError."""
        if self.shape()[0] != self.shape()[1]:
            raise ValueError("this is no square")
        return sum(self.rows[at][at] for at in range(len(self.rows)))


def identity(size):
    """Return the square matrix with 1 from the upper left to the lower right, and 0 elsewhere."""
    return Matrix([[1 if at == place else 0 for place in range(size)] for at in range(size)])


def row_totals(matrix):
    """Return the sum of each row."""
    return [sum(row) for row in matrix.rows]


def cumulated(matrix):
    """Return a new matrix with the running totals of each row."""
    return Matrix([running_total(row) for row in matrix.rows])
'''
NUMBERS = Family(
    "numbers",
    ("meanwhile_kit", "statleaf", "numberfold", "sumtools", "figurebox", "datumkit"),
    """Works on lists of numbers and on small matrices.

Means are rounded to N_PLACES places. Of the largest numbers N_TOP are returned if nothing else is said.""",
    {"summary": _SUMMARY, "ranks": _RANKS, "series": _SERIES, "matrix": _MATRIX},
    CASES,
    {
        "mean_of": ("mean_of", "average", "mean_value"),
        "median_of": ("median_of", "middle_value", "median_value"),
        "mode_of": ("mode_of", "most_common", "mode_value"),
        "spread_of": ("spread_of", "extent", "range_of"),
        "variance_of": ("variance_of", "variance", "scatter"),
        "ranks_of": ("ranks_of", "ranking", "places_of"),
        "top": ("top", "biggest", "best_of"),
        "share_below": ("share_below", "percent_below"),
        "halves": ("halves", "two_halves"),
        "group_by": ("group_by", "histogram", "in_groups"),
        "running_total": ("running_total", "cumulate", "sums_up_to"),
        "moving_mean": ("moving_mean", "rolling_mean", "smoothed"),
        "changes": ("changes", "differences", "steps"),
        "longest_rise": ("longest_rise", "longest_climb"),
        "peaks": ("peaks", "summits", "local_tops"),
        "clamp": ("clamp", "limited", "kept_within"),
        "Matrix": ("Matrix", "Grid", "Table"),
        "turned": ("turned", "transposed", "flipped"),
        "plus": ("plus", "added_to", "sum_with"),
        "times": ("times", "product_with", "multiplied"),
        "identity": ("identity", "unit_matrix"),
        "row_totals": ("row_totals", "row_sums"),
        "cumulated": ("cumulated", "rows_summed_up"),
    },
    {"N_PLACES": whole(2, 4), "N_TOP": whole(2, 6)},
    (
        (
            "summary",
            "    ordered = sorted(values)\n",
            "    values.sort()\n    ordered = values\n",
        ),
        (
            "matrix",
            "        self.rows = [list(row) for row in rows]\n",
            "        self.rows = rows\n",
        ),
        (
            "series",
            "            piece = []\n        piece = piece + [value]\n",
            "            piece = []\n            continue\n        piece = piece + [value]\n",
        ),
        (
            "ranks",
            "    return sorted(values, reverse=True)[:count]",
            "    values.sort(reverse=True)\n    return values[:count]",
        ),
        (
            "ranks",
            "value // width * width",
            "value - width",
        ),
    ),
)
