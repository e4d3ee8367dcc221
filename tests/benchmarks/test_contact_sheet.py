"""The contact sheet: which picture is where, at which size, with which caption below."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from tetrathlon.benchmarks.contact_sheet import contact_sheet

SIDE, GAP = 60, 12


def plain(colour: int, height: int = SIDE, width: int = SIDE) -> np.ndarray:
    return np.full((height, width, 3), (colour, 0, 0), np.uint8)


def places(sheet: Image.Image) -> dict[int, tuple[int, ...]]:
    """Return where each red is: left, top, width, height."""
    pixels = np.asarray(sheet)
    found = {}
    for red in np.unique(pixels[(pixels[..., 1] == 0) & (pixels[..., 0] > 60)][:, 0]):
        rows, columns = np.nonzero((pixels[..., 0] == red) & (pixels[..., 1] == 0))
        box = columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1
        found[int(red)] = tuple(map(int, box))
    return found


def test_pictures_stand_in_a_grid() -> None:
    reds = [100, 120, 140, 160, 180]
    sheet = contact_sheet([plain(red) for red in reds], ["a"] * 5, side=SIDE)
    where = places(sheet)
    assert [where[red][2:] for red in reds] == [(SIDE, SIDE)] * 5
    assert [where[red][0] for red in reds] == [GAP, GAP + 72, GAP + 144, GAP, GAP + 72]
    assert where[100][1] == where[120][1] == where[140][1] == GAP < where[160][1] == where[180][1]
    assert sheet.width == GAP + 3 * (SIDE + GAP)
    narrow = contact_sheet([plain(red) for red in reds], ["a"] * 5, side=SIDE, columns=1)
    assert len({place[0] for place in places(narrow).values()}) == 1 and narrow.width == SIDE + 2 * GAP


def test_pictures_keep_their_shape() -> None:
    images: list[np.ndarray | Image.Image] = [
        plain(100, 120, 60),
        plain(120, 13, 26),
        Image.fromarray(plain(140, 10, 10)).convert("RGBA"),
    ]
    where = places(contact_sheet(images, ["a", "b", "c"], side=SIDE, columns=3))
    assert where[100] == (GAP + 15, GAP, 30, 60)
    assert where[120][2:] == (52, 26)  # twice: a pixel stays a square
    assert where[140][2:] == (60, 60)


def test_captions_are_written_below_and_wrapped() -> None:
    def ink(title: str) -> tuple[np.ndarray, int]:
        sheet = contact_sheet([plain(100)], [title], side=SIDE)
        below = np.asarray(sheet.convert("L"))[GAP + SIDE :]
        return np.nonzero((below < 128).any(axis=1))[0], sheet.height

    assert ink("")[0].size == 0
    (one, low), (three, high) = ink("push"), ink("push the block")
    assert one.size > 5 and three.max() > one.max() + 10 and high > low
    wide = np.asarray(contact_sheet([plain(100)], ["wwwwww wwwwww"], side=SIDE).convert("L"))[GAP + SIDE :]
    assert (wide[:, :4] > 200).all()  # wrapped, nothing runs off the sheet
    first = np.asarray(contact_sheet([plain(100)] * 2, ["a", "a b c d e f g h i j k"], side=SIDE).convert("L"))
    assert (first[-10:, GAP : GAP + SIDE] == 255).all() and (first[GAP + SIDE : -10, GAP + SIDE :] < 128).any()


def test_what_makes_no_sheet() -> None:
    with pytest.raises(ValueError, match="a title for each of 1 or more images, got 1 and 2"):
        contact_sheet([plain(1)], ["a", "b"])
    with pytest.raises(ValueError, match="got 0 and 0"):
        contact_sheet([], [])
    with pytest.raises(ValueError, match="columns and side must be at least 1, got 0 and 240"):
        contact_sheet([plain(1)], ["a"], columns=0)
