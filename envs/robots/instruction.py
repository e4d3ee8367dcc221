"""What a robot is told: verbs, wordings and colours, and which of their combinations the test split holds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OBJECT_COLOURS = {
    "red": (0.85, 0.1, 0.1),
    "green": (0.1, 0.65, 0.15),
    "blue": (0.1, 0.25, 0.9),
    "orange": (1.0, 0.5, 0.0),
    "purple": (0.55, 0.15, 0.75),
    "cyan": (0.1, 0.8, 0.85),
}
"""Of what is handled; RGB from 0 to 1."""
PLACE_COLOURS = {
    "yellow": (0.95, 0.9, 0.15),
    "white": (0.95, 0.95, 0.95),
    "black": (0.05, 0.05, 0.05),
    "pink": (1.0, 0.6, 0.75),
}
"""Of where it goes."""
_HELD_OUT = 2  # colours of an object that, with one verb and one place, only the test split asks for


@dataclass(frozen=True)
class Wordings:
    """Sentences that all say the same.

    A sentence takes one phrase for the verb, one for the preposition and one noun for the place. Of the combinations
    the test split holds out a quarter, each made of phrases that are known from other sentences.
    """

    verbs: Sequence[str]
    """How the doing is called."""
    prepositions: Sequence[str] = ("",)
    """How object and place are joined; empty where there is no place."""
    nouns: Sequence[str] = ("",)
    """How the place is called."""

    def of(self, split: str) -> list[tuple[str, str, str]]:
        """Return the combinations of a split, in order."""
        every = [
            ((i + j + k) % 4 == 3, (verb, preposition, noun))
            for i, verb in enumerate(self.verbs)
            for j, preposition in enumerate(self.prepositions)
            for k, noun in enumerate(self.nouns)
        ]
        return [phrases for is_held_out, phrases in every if is_held_out == (split == "test")]


def sentence(phrases: tuple[str, str, str], thing: str, place: str) -> str:
    """Write an instruction.

    Args:
        phrases: Verb, preposition and noun; see :class:`Wordings`.
        thing: The object: ``red cube``.
        place: The colour of the place, where there is one.
    """
    verb, preposition, noun = phrases
    words = f"{verb} the {thing}"
    return f"{words} {preposition} the {place} {noun}" if preposition else words


def held_out(verb: int, colour: str, place: str | None) -> bool:
    """Tell whether only the test split asks for an object of this colour, with this verb and place.

    Args:
        verb: Number of the task's verb; tasks differ in what they hold out.
        colour: Of the object.
        place: Colour of the place; None: there is none.
    """
    row = list(OBJECT_COLOURS).index(colour)
    column = 0 if place is None else list(PLACE_COLOURS).index(place)
    return (row + 2 * column + verb) % len(OBJECT_COLOURS) < _HELD_OUT
