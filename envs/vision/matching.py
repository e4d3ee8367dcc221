"""Sets of boxes against the sets that are right: matched one to one, so that no box is counted twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tetrathlon.envs.vision.boxes import Size, box_table, clip, ious
from tetrathlon.envs.vision.reading import MOST_BOXES


@dataclass(frozen=True, slots=True)
class Match:
    """Which predicted boxes are which gold ones."""

    predicted: int
    """How many boxes were predicted."""
    gold: int
    """How many there are."""
    pairs: tuple[tuple[int, int], ...]
    """Indices of a predicted box and its gold box, by the former; their IoU is at or above the threshold."""
    overlap: float
    """Mean IoU of the pairs; 0 without a pair."""

    @property
    def precision(self) -> float:
        """Share of the predicted boxes that are right; 1 where none was predicted and there is none."""
        return len(self.pairs) / self.predicted if self.predicted else float(not self.gold)

    @property
    def recall(self) -> float:
        """Share of the gold boxes that were found; 1 where none was predicted and there is none."""
        return len(self.pairs) / self.gold if self.gold else float(not self.predicted)

    @property
    def f1(self) -> float:
        """Two times the pairs over all boxes; 1 where there are none at all."""
        boxes = self.predicted + self.gold
        return 2 * len(self.pairs) / boxes if boxes else 1.0

    @property
    def score(self) -> float:
        """Pairs over the larger number of boxes: the smaller of precision and recall; 1 only where all is right.

        F1 alone pays for spraying: where one box is asked for, k boxes that hit with probability p each make
        2pk / (1 + k) on average, which grows with k. This score makes p, whatever k. A wrong box more never raises it,
        and a right box more never lowers it.
        """
        return min(self.precision, self.recall)


def match(predicted: ArrayLike, gold: ArrayLike, size: Size, threshold: float = 0.5) -> Match:
    """Match predicted boxes, clipped to the picture, with gold ones: most pairs first, then most IoU in all.

    Args:
        predicted: Shape [n, 4]; of more than 100 boxes none matches.
        gold: Shape [m, 4].
        size: Of the picture, pixels.
        threshold: Least IoU of a pair, above 0 to 1.

    Raises:
        ValueError: An argument has another shape or is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, got {threshold!r}")
    told, true = box_table(predicted), box_table(gold)
    if not len(told) or not len(true) or len(told) > MOST_BOXES:
        return Match(len(told), len(true), (), 0.0)
    from scipy.optimize import linear_sum_assignment  # takes longer to import than the rest of the environments

    table = ious(clip(told, size), true)
    gain = np.where(table >= threshold, table + min(table.shape) + 1, 0.0)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    kept = table[rows, columns] >= threshold
    pairs = tuple(zip(rows[kept].tolist(), columns[kept].tolist(), strict=True))
    return Match(len(told), len(true), pairs, float(table[rows, columns][kept].mean()) if pairs else 0.0)
