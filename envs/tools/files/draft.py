"""An instance in the making: the files as they are and as they shall be, and what is drawn for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tetrathlon.envs.language.chance import Chance

_FOLDERS = """
archive attic basket billing board cabinet cellar census depot desk drafts exports finance garden hangar harbour inbox
kitchen lab ledger library locker market museum office orders outbox parish pantry quarry records registry reports
school shelf shop station stock studio survey tower trips vault workshop yard
"""
_WORDS = """
amber anchor apple arrow bamboo barley basin beacon birch bottle branch bridge bronze bucket butter candle canvas carbon
cedar chalk cherry clay clover cobalt copper coral cotton crystal daisy desert dragon eagle ember falcon feather fennel
fiddle forest fossil garlic ginger glacier granite harvest hazel heron honey indigo island ivory jacket jasmine juniper
kettle lagoon lantern lemon lichen linen lobster magnet maple marble meadow mirror mosaic nettle nickel nutmeg oak ocean
olive onion orchid otter oyster paddle paper pebble pepper pigeon pillow plum pocket pollen poppy quartz quilt rabbit
raven ribbon river rocket saddle saffron salmon sandal scarlet shadow silver sparrow spruce summit sunset tallow temple
thistle timber topaz trumpet tulip turnip valley velvet violet walnut willow window winter yellow zebra zinc
"""
_NAMES = """
Ada Amir Anna Bela Bruno Carla Chen Dora Edgar Elif Emil Fatma Finn Gita Hana Hugo Ida Igor Jan Jun Kai Lena Lars Mara
Milo Nadia Nils Olga Omar Petra Quinn Rosa Ravi Sara Sven Tara Timo Uma Vera Wim Yuki Zoe
"""
_CITIES = "Accra Bergen Cadiz Delft Espoo Fes Ghent Hobart Izmir Jaffa Kyoto Lagos Malmo Nantes Oslo Porto"
FOLDERS, WORDS, NAMES, CITIES = (tuple(some.split()) for some in (_FOLDERS, _WORDS, _NAMES, _CITIES))
SIGNS = ("ERROR", "WARN", "INFO", "DEBUG")
"""How bad a line of a log is."""


class Draft(Chance):
    """An instance in the making, which one job after another adds to.

    Args:
        rng: What everything is drawn from.
        level: 1 to 3; from 2 on there are more files, with more that look alike.
    """

    def __init__(self, rng: np.random.Generator, level: int) -> None:
        super().__init__(rng)
        self.hard = level > 1
        """Whether there are more files, with more that look alike."""
        self.start: dict[str, str] = {}
        """Path -> text, before anything is done."""
        self.goal: dict[str, str] = {}
        """Path -> text, when all is done."""
        self.moved: dict[str, str] = {}
        """Where a file shall be -> where it was."""
        self.deleted: list[list[str]] = []
        """The paths that each job wants deleted."""
        self.lines: list[str] = []
        """Files of lines that a job made."""
        self.tables: list[str] = []
        """Files of comma-separated values that a job made."""
        self._folders: set[str] = set()

    def count(self, few: int, many: int) -> int:
        """Draw how many: about ``few`` where it is easy, about ``many`` where it is hard."""
        return (many if self.hard else few) + self.below(2)

    def folder(self) -> str:
        """Draw a folder that no job has used."""
        name = self.pick([name for name in FOLDERS if name not in self._folders])
        self._folders.add(name)
        return name

    def free(self, ending: str) -> str:
        """Draw a path in a folder that no job has used."""
        return f"{self.folder()}/{self.pick(WORDS)}{ending}"

    def sentence(self, least: int = 3, most: int = 6) -> str:
        """Draw a line of lower-case words."""
        return " ".join(self.pick(WORDS) for _ in range(self.between(least, most)))

    def sentences(self, n: int) -> list[str]:
        """Draw n lines with different first words."""
        return [f"{word} {self.sentence(2, 4)}" for word in self.some(WORDS, n)]

    def prose(self) -> str:
        """Draw the text of a file that only has to be there."""
        return text(self.sentence() for _ in range(self.between(1, 3)))

    def code(self) -> str:
        """Draw a mark such as KX-4821."""
        letters = "".join(self.pick("ABCDEFGHKLMNPRSTUVWXYZ") for _ in range(2))
        return f"{letters}-{self.between(1_000, 9_999)}"

    def date(self, year: int | None = None) -> str:
        """Draw a date such as 2023-04-17."""
        year = self.between(2019, 2025) if year is None else year
        return f"{year}-{self.between(1, 12):02}-{self.between(1, 28):02}"

    def table(self, n: int) -> list[list[str]]:
        """Draw n rows of id, name, city and stock, with different ids, under their header."""
        ids = self.some(range(100, 1_000), n)
        rows = [[str(i), self.pick(NAMES), self.pick(CITIES), str(self.between(1, 99))] for i in ids]
        return [["id", "name", "city", "stock"], *rows]

    def add(self, path: str, content: str) -> str:
        """Put a file there from the start; return its path."""
        self.start[path] = self.goal[path] = content
        return path

    def make(self, path: str, content: str) -> None:
        """Let a job make or change a file."""
        self.goal[path] = content

    def move(self, source: str, target: str) -> None:
        """Let a job move a file."""
        self.goal[target] = self.goal.pop(source)
        self.moved[target] = self.moved.pop(source, source)

    def delete(self, paths: Sequence[str]) -> None:
        """Let a job delete files."""
        for path in paths:
            del self.goal[path]
        self.deleted.append(list(paths))

    def add_others(self) -> None:
        """Add files that no job is about."""
        self.add("README.md", f"# {self.sentence(2, 3)}\n\n{self.prose()}")
        folder = self.folder()
        for word in self.some(WORDS, self.count(1, 3)):
            self.add(f"{folder}/{word}{self.pick(['.txt', '.md', '.log', '.csv'])}", self.prose())

    def changes(self) -> dict[str, str | None]:
        """Return what the jobs so far want: path -> text, or None for what shall not be there."""
        every = [*self.goal, *(path for path in self.start if path not in self.goal)]
        return {path: self.goal.get(path) for path in every if self.goal.get(path) != self.start.get(path)}

    def units(self) -> list[list[str]]:
        """Return the changes, each as the paths that it is about: a move is one, and so is all that a job deletes.

        Whoever deletes at random, or deletes what was to be moved, has done none of them.
        """
        left = self.changes()
        units: list[list[str]] = []
        for unit in [*self.deleted, *([target, source] for target, source in self.moved.items())]:
            units.append([path for path in unit if path in left])
            for path in units[-1]:
                del left[path]
        gone = [path for path, wanted in left.items() if wanted is None]
        units += [gone, *([path] for path, wanted in left.items() if wanted is not None)]
        return [unit for unit in units if unit]


def text(lines: Iterable[str]) -> str:
    """Return lines as what a file holds: each with its line end."""
    return "".join(f"{line}\n" for line in lines)


def csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as comma-separated values; none of them has a comma in it."""
    return text(",".join(map(str, row)) for row in rows)


def rows(content: str) -> list[list[str]]:
    """Return the rows of comma-separated values, the header first."""
    return [line.split(",") for line in content.splitlines()]
