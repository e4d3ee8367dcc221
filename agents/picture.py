"""Pictures among the ids of a text: runs of codes, which say what each shows and which of its tokens they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

SPAN = 2**20
"""More tokens than a picture has."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture as a model reads it.

    Among ids it stands as its ``codes``, numbers below 0 that no token has: two texts that differ in their pictures
    alone differ in them, and so does whatever compares ids.
    """

    array: np.ndarray
    """uint8 [H, W, 3]."""
    digest: int
    """Tells pictures apart: 128 bits of a hash of the array and its shape."""
    ids: tuple[int, ...]
    """What it is written as, [N]: placeholders, and what the model has around them."""
    codes: tuple[int, ...] = field(init=False, repr=False)
    """One for each of ``ids``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", tuple(-1 - (self.digest * SPAN + at) for at in range(len(self.ids))))


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Which pictures B rows show: a column of the inputs of decisions.

    Rows are chosen and moved as those of a tensor are; the pictures themselves stay where they are, each once.
    """

    codes: Tensor
    """int [B, T]: the code of the picture's token that stands there, of pictures by number; 0 where none does."""
    distinct: tuple[Picture, ...]
    """Each picture once."""

    def __getitem__(self, rows: Tensor) -> Pictures:
        """Return the rows ``rows``."""
        return Pictures(self.codes[rows], self.distinct)

    def to(self, device: torch.device | str) -> Pictures:
        """Return the column on ``device``."""
        return Pictures(self.codes.to(device), self.distinct)

    def within(self, ids: Tensor) -> tuple[Tensor, tuple[Picture, ...]]:
        """Return ids [B, T] with the codes of pictures in their places, and the pictures by number."""
        return ids.where(self.codes == 0, self.codes), self.distinct


def digest_of(array: np.ndarray) -> int:
    """Return 128 bits that tell an array of uint8 from others."""
    shape = np.asarray(array.shape, dtype=np.int64).tobytes()
    whole = blake2b(shape, digest_size=16)
    whole.update(np.ascontiguousarray(array).data)
    return int.from_bytes(whole.digest(), "big")


def numbered(
    rows: Sequence[Sequence[int]], pictures: Iterable[Picture]
) -> tuple[list[tuple[int, ...]], tuple[Picture, ...]]:
    """Return rows of ids in which pictures go by number, so that their codes fit into a tensor, and the pictures so.

    Args:
        rows: Ids and codes.
        pictures: At least those of the rows.
    """
    distinct = {picture.digest: picture for picture in pictures}
    if not distinct:
        return [tuple(row) for row in rows], ()
    numbers = {digest: number for number, digest in enumerate(distinct)}

    def short(code: int) -> int:
        digest, at = divmod(-1 - code, SPAN)
        return -1 - (numbers[digest] * SPAN + at)

    return [tuple(short(i) if i < 0 else i for i in row) for row in rows], tuple(distinct.values())


def pictures_at(ids: Sequence[int], pictures: Sequence[Picture]) -> list[tuple[int, int]]:
    """Return where pictures begin among ids and codes, and which of ``pictures`` each of them is."""
    firsts = {picture.codes[0]: which for which, picture in reversed(list(enumerate(pictures)))}
    return [(at, firsts[code]) for at, code in enumerate(ids) if code in firsts] if firsts else []


def spelled(codes: Tensor, pictures: Sequence[Picture]) -> Tensor:
    """Return the ids that rows are written as, int [...], of rows in which pictures go by number."""
    is_code = codes < 0
    if not bool(is_code.any()):
        return codes
    number, at = told(codes[is_code])
    used, which = number.unique(return_inverse=True)
    written = [pictures[k].ids for k in used.tolist()]
    known = torch.tensor([i for ids in written for i in ids], device=codes.device)
    ends = torch.tensor([len(ids) for ids in written], device=codes.device).cumsum(0)
    return codes.masked_scatter(is_code, known[F.pad(ends, (1, 0))[which] + at])


def in_order(codes: Tensor, pictures: Sequence[Picture]) -> list[Picture]:
    """Return the pictures that rows show, one row after another, each as often as it is shown."""
    if not pictures:
        return []
    number, at = told(codes[codes < 0])
    return [pictures[k] for k in number[at == 0].tolist()]


def told(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of the picture of each code, and which of its tokens that is."""
    place = -1 - codes
    return place // SPAN, place % SPAN
