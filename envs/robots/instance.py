"""One instance of a task: what lies where, and what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from tetrathlon.envs.splits import split_of


@dataclass(frozen=True)
class Instance:
    """Where an episode begins and what it is about; all that a seed decides but the randomisation."""

    instruction: str
    """What the robot is told."""
    phrases: tuple[str, str, str]
    """Of which phrases that is made."""
    target: int
    """Which object it is about."""
    place: int
    """Which place it is about; 0 where there is none."""
    object_colours: tuple[str, ...]
    """Names of colours, K of them."""
    place_colours: tuple[str, ...]
    """Names of colours, Z of them."""
    objects: tuple[tuple[float, float, float], ...]
    """x and y in metres and the turn in radians of each of K objects."""
    places: tuple[tuple[float, float], ...]
    """x and y of each of Z places, in metres."""
    hand: tuple[float, float, float]
    """Where the hand is, in metres."""

    @property
    def id(self) -> str:
        """A name that depends on the content alone."""
        return sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def split(self) -> str:
        """The one split that this arrangement of things may belong to: a hash of where they are decides."""
        return arrangement_split(self.objects, self.places, self.hand)


def arrangement_split(*positions: object) -> str:
    """Return the split of an arrangement, by a hash of its numbers."""
    return split_of(int.from_bytes(sha256(repr(positions).encode()).digest()[:8]))


def scatter(
    rng: np.random.Generator,
    radii: list[float],
    low: np.ndarray,
    high: np.ndarray,
    *,
    gap: float = 0.02,
    tries: int = 200,
) -> list[tuple[float, float]] | None:
    """Return places for discs of these radii, ``gap`` metres from each other; None where none were found."""
    found: list[tuple[float, float]] = []
    for radius in radii:
        for _ in range(tries):
            x, y = (round(float(rng.uniform(a, b)), 4) for a, b in zip(low[:2], high[:2], strict=True))
            if all(
                (x - u) ** 2 + (y - v) ** 2 > (radius + other + gap) ** 2
                for (u, v), other in zip(found, radii, strict=False)
            ):
                found.append((x, y))
                break
        else:
            return None
    return found
