"""Look facts up, one after the other: the smallest task whose answer cannot be known without calls."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import flag, whole
from tetrathlon.envs.grading.writing import integer
from tetrathlon.envs.language.chance import Chance
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolError, tool
from tetrathlon.envs.tools.world import World

_LINKS: Mapping[str, Mapping[str, str]] = {
    "person": {"home town": "town", "employer": "company", "mentor": "person"},
    "company": {"seat": "town", "director": "person"},
    "town": {"river": "river", "mayor": "person"},
    "river": {"port": "town"},
}
"""Kind of an entry -> attribute -> kind of the entry that it names."""
_VALUES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "person": {"birth year": (1930, 2006), "badge number": (1_000, 10_000)},
    "company": {"founding year": (1780, 2021), "registration number": (10_000, 100_000)},
    "town": {"postal code": (10_000, 100_000), "population": (800, 90_000)},
    "river": {"length": (12, 900), "gauge number": (100, 1_000)},
}
"""Kind -> attribute -> the range of its numbers, the last one left out."""
ATTRIBUTES = tuple(name for table in (_LINKS, _VALUES) for kind in table.values() for name in kind)
"""All that can be looked up, of whatever kind."""
_DIGITS = {kind: dict.fromkeys(attributes, (10, 100)) for kind, attributes in _VALUES.items()}
_STARTS = "b br d dr f g gr h k kr l m n p pr r s st t tr v z"
_VOWELS = "a e i o u ai ei"
_ENDS = "l n r s th nd lm rk st"
_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "company": (" Works", " Mills", " Lines"),
    "town": ("ford", "by", "ham"),
    "river": (" Water", " Burn"),
}
_MOST_TRIES = 1_000


class Register(World):
    """Entries with attributes.

    Args:
        entries: Name -> attribute -> value.
    """

    def __init__(self, entries: Mapping[str, Mapping[str, str]]) -> None:
        self.entries = entries
        self.seen: list[list[str]] = []
        """Which name and attribute were looked up, in order."""

    @tool
    def lookup(self, name: str, attribute: str) -> str:
        """Look up one attribute of one entry of the register.

        Args:
            name: The name of a person, company, town or river.
            attribute: What to look up of it, such as "mayor" or "birth year".
        """
        entry = next((key for key in self.entries if key.casefold() == name.strip().casefold()), None)
        if entry is None:
            raise ToolError(f"there is no entry {name[:60]!r}")
        known = self.entries[entry]
        wanted = attribute.strip().casefold().replace("_", " ")
        if wanted not in known:
            raise ToolError(f"{entry} has no {attribute[:60]!r}; it has {', '.join(known)}")
        if [entry, wanted] not in self.seen:
            self.seen.append([entry, wanted])
        return known[wanted]

    def get_state(self) -> Any:
        """See :meth:`World.get_state`; the entries never change."""
        return [list(pair) for pair in self.seen]

    def set_state(self, state: Any) -> None:
        """See :meth:`World.set_state`."""
        self.seen = [list(pair) for pair in state]


class Lookup(ToolEnv):
    """Answer a question by looking up facts that hang together.

    ## Description
    A register of invented people, companies, towns and rivers is drawn for each instance. The question names one of
    them and asks for an attribute of an attribute of it, two to four deep ("What is the postal code of the home town of
    the director of Brunei Works?"). Each hop is one call of ``lookup``, whose result the next one needs; the answer, a
    number, is nowhere else.

    ## Observation Space
    `UnicodeText`: the question, then results of calls.

    ## Action Space
    `UnicodeText`: a call of ``lookup(name, attribute)``, or the answer.

    ## Rewards
    1 for the right number, else 0. Progress is the share of the hops that were looked up.

    ## Starting State
    A chain is drawn, then the entries: ``entries`` of each of the four kinds, each with all of its attributes.

    ## Episode End
    See ``ToolEnv``.

    ## Arguments
    ``least_hops`` and ``most_hops`` (1 to 6, by default 2 and 4), ``entries`` (2 to 200 of each kind, by default 6),
    ``letters`` (names are letters, enough for 6 entries of each kind, and numbers have two digits: for
    models too small to copy more), and those of ``ToolEnv``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    default_max_tokens: ClassVar[int] = 128
    default_max_turns: ClassVar[int] = 10
    default_max_calls: ClassVar[int] = 20
    knows_progress: ClassVar[bool] = True
    system: ClassVar[str] = "Use the tool to find the answer; do not guess."

    def __init__(
        self, *, least_hops: int = 2, most_hops: int = 4, entries: int = 6, letters: bool = False, **kwargs: Any
    ) -> None:
        self.least_hops = whole("least_hops", least_hops, 1, 6)
        self.most_hops = whole("most_hops (from least_hops)", most_hops, self.least_hops, 6)
        self.letters = letters = flag("letters", letters)
        self.words = _WORDS if letters else ()
        self.entries = whole("entries (of a kind)", entries, 2, len(ascii_uppercase) // len(_LINKS) if letters else 200)
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a register, and a chain of facts in it."""
        draw = Chance(rng)
        hops = self.least_hops + draw.below(self.most_hops - self.least_hops + 1)
        names = (_draw_letters if self.letters else _draw_names)(draw, self.entries)
        ranges = _DIGITS if self.letters else _VALUES
        entries = {
            name: {attribute: draw.pick(names[other]) for attribute, other in _LINKS[kind].items()}
            | {attribute: str(low + draw.below(high - low)) for attribute, (low, high) in ranges[kind].items()}
            for kind, some in names.items()
            for name in some
        }
        kinds = {name: kind for kind, some in names.items() for name in some}
        for _ in range(_MOST_TRIES):
            chain = _draw_chain(draw, entries, kinds, hops)
            if len({tuple(link) for link in chain}) == hops:
                break
        last, attribute = chain[-1]
        whole_path = " of the ".join(attribute for _, attribute in reversed(chain))
        question = f"What is the {whole_path} of {chain[0][0]}?"
        return ToolTask(question, entries[last][attribute], {"chain": chain}, {"entries": entries})

    def open(self, task: ToolTask) -> Register:
        """See :meth:`ToolEnv.open`."""
        return Register(task.world["entries"])

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether ``answer`` is the number that the last call gives."""
        return answer is not None and integer(answer) == int(task.answer)

    def progress(self, play: Play) -> float:
        """Return the share of the chain that was looked up."""
        return 1.0 - len(self._left(play)) / len(play.task.data["chain"])

    def expert(self, play: Play) -> str:
        """Look up the next link of the chain, or answer."""
        left = self._left(play)
        if not left:
            return self._write_solution(play.task)
        name, attribute = left[0]
        return write_call("lookup", {"name": name, "attribute": attribute})

    def _left(self, play: Play) -> list[list[str]]:
        assert isinstance(play.world, Register)
        return [link for link in play.task.data["chain"] if list(link) not in play.world.seen]


_WORDS = (*Register.words(), "<answer>", "</answer>", "What is the ", " of the ", " of ", *ATTRIBUTES)


def _draw_names(draw: Chance, n: int) -> dict[str, list[str]]:
    """Return n names of each kind, all different."""
    names: dict[str, list[str]] = {}
    taken: set[str] = set()
    for kind in _LINKS:
        names[kind] = []
        while len(names[kind]) < n:
            name = _word(draw) + (f" {_word(draw)}" if kind == "person" else draw.pick(_SUFFIXES[kind]))
            if name not in taken:
                taken.add(name)
                names[kind].append(name)
    return names


def _draw_letters(draw: Chance, n: int) -> dict[str, list[str]]:
    """Return n letters for each kind, all different."""
    letters = draw.rng.permutation(list(ascii_uppercase)).tolist()
    return {kind: letters[at * n : (at + 1) * n] for at, kind in enumerate(_LINKS)}


def _word(draw: Chance) -> str:
    starts, vowels, ends = _STARTS.split(), _VOWELS.split(), _ENDS.split()
    syllables = [draw.pick(starts) + draw.pick(vowels) for _ in range(1 + draw.below(2))]
    return ("".join(syllables) + draw.pick(ends)).capitalize()


def _draw_chain(
    draw: Chance, entries: Mapping[str, Mapping[str, str]], kinds: Mapping[str, str], hops: int
) -> list[list[str]]:
    """Return the (name, attribute) of each hop; each names the next, the last a number."""
    name = draw.pick(list(entries))
    chain = []
    for _ in range(hops - 1):
        attribute = draw.pick(list(_LINKS[kinds[name]]))
        chain.append([name, attribute])
        name = entries[name][attribute]
    return [*chain, [name, draw.pick(list(_VALUES[kinds[name]]))]]
