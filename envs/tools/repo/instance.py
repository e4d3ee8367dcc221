"""Instances: a library of a family, its tests, and one or two faults that the tests are known to tell."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np

from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.repo.edges import edges_of
from tetrathlon.envs.tools.repo.families import FAMILIES
from tetrathlon.envs.tools.repo.family import DO, PACKAGE, Case, Chooser, Family
from tetrathlon.envs.tools.repo.library import Library, agree_all
from tetrathlon.envs.tools.repo.mutation import Fault, find_faults, own_fault, planted
from tetrathlon.envs.tools.repo.writing import Trial, Writer, has_errors, imports_of, literal, with_ups, write_tests

TESTS = "tests"
"""The folder of the visible tests."""
_MOST_TRIES = 60
_PLAIN_TOO = 4
"""Of so many instances one has tests as methods; the others have functions."""
_MOST_SHOWN = 14
_MORE, _MORE_FAR = 3, 10
"""How often each case about a repaired function is tried with other values, and with those at the edges."""
_ALIKE = {"Return": ("Return", "Give", "Give back"), "Tell": ("Tell", "Say"), "Make": ("Make", "Build")}
"""Words of docstrings, in all families."""


@dataclass(frozen=True)
class Instance:
    """A repository with faults, and what is known of it."""

    package: str
    """The name of its package."""
    files: Mapping[str, str]
    """Path -> text."""
    repaired: Mapping[str, str]
    """Path -> right text, of the files with faults."""
    cases: Sequence[Mapping[str, Any]]
    """``lines`` and ``expected`` of each visible and hidden case."""
    faults: tuple[Fault, ...]
    """What was planted."""
    shown: frozenset[tuple[str, str]]
    """Module and function that each visible test is about that fails."""


@dataclass(frozen=True)
class Workshop:
    """What is known of a family before anything is drawn."""

    family: Family
    """The family."""
    faults: Mapping[str, tuple[Fault, ...]]
    """Kind -> faults."""
    public: Mapping[str, str]
    """Public name -> its module."""
    imports: Mapping[str, str]
    """Key of a case -> what it imports."""


@cache
def workshop(family: str) -> Workshop:
    """Return what is known of a family, by its name."""
    found = FAMILIES[family]
    faults: dict[str, list[Fault]] = {}
    public: dict[str, str] = {}
    for module, text in found.modules.items():
        for fault in find_faults(module, text):
            faults.setdefault(fault.kind, []).append(fault)
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                public[node.name] = module
    for module, old, new in found.faults:
        faults.setdefault("own", []).append(own_fault(module, found.modules[module], old, new))
    imports = {case.key: imports_of(found, public, case.words) for case in found.cases}
    return Workshop(found, {kind: tuple(some) for kind, some in faults.items()}, public, imports)


def draw_instance(draw: Draw, level: int, families: Sequence[str]) -> Instance:
    """Draw an instance.

    Whatever is drawn is tried here, in this process, where only our own text runs: the right library gives what is
    expected, and with its faults some visible test fails, and of each fault alone some hidden one that no visible one
    is equal to.

    Args:
        draw: Where everything comes from.
        level: From 1 to 3.
        families: Names to draw from.
    """
    while True:
        bench = _Bench(draw, workshop(draw.pick(families)))
        for _ in range(_MOST_TRIES):
            if (faults := bench.draw_faults(level)) and (shown := bench.draw_shown(level, faults)):
                failing = bench.failing(shown, faults)
                if _fits(level, faults, failing):
                    return bench.write(shown, faults, failing)


def _fits(level: int, faults: Sequence[Fault], failing: Iterable[Trial]) -> bool:
    about = {(trial.case.module, trial.case.function) for trial in failing}
    fault = faults[0]
    if level == 1:
        return (fault.module, fault.function) in about
    return bool(about) and (level == 3 or all(module != fault.module for module, _ in about))


class _Bench:
    """A library with names and numbers, and trials of all of its cases."""

    def __init__(self, draw: Draw, shop: Workshop) -> None:
        self._draw, self._shop, family = draw, shop, shop.family
        words = {key: draw.pick(options) for key, options in {**_ALIKE, **family.words}.items()}
        self.package = draw.pick(family.packages)
        drawn = {key: choose(draw) for key, choose in family.constants.items()}
        self._constants = with_ups(drawn)
        self._writer = Writer({**words, PACKAGE: self.package}, self._constants)
        self._right = Library(family, self._constants)
        self.candidates = [self._trial(case) for case in family.cases]
        """Of each case a trial that may be shown."""
        self._twins: dict[str, Trial] = {}

    def twin(self, trial: Trial) -> Trial | None:
        """Return the trial of the case of a candidate that is hidden in any case, if other values can be drawn."""
        if not trial.case.values:
            return None
        if trial.case.key not in self._twins:
            self._twins[trial.case.key] = self._trial(trial.case)
        return self._twins[trial.case.key]

    def _places(self, fault: Fault) -> list[tuple[str, str]]:
        """Return the function that has a fault, or those that show it where no case is about that one."""
        place = (fault.module, fault.function)
        if any((case.module, case.function) == place for case in self._shop.family.cases):
            return [place]
        return [(one.case.module, one.case.function) for one in self.failing(self.candidates, [fault])]

    def around(self, module: str, function: str, draw: Draw) -> list[Trial]:
        """Draw trials of a function that was repaired, on all that it is to work on, its edges too; no two are equal.

        Where the right library raises what a case does not expect, nobody has said what is right.
        """
        edges = edges_of(self._shop.family.name, module, function)
        found: dict[str, Trial] = {}
        for case in self._shop.family.cases:
            if (case.module, case.function) == (module, function) and case.values:
                far = {key: edges.get(key, choose) for key, choose in case.values.items()}
                for choosers in [case.values] * _MORE + [far] * (_MORE_FAR if edges else 0):
                    trial = self._trial(case, choosers, draw)
                    if not has_errors(trial):
                        found[f"{case.key} {trial.values}"] = trial
        return list(found.values())

    def _trial(self, case: Case, choosers: Mapping[str, Chooser] | None = None, draw: Draw | None = None) -> Trial:
        choosers, draw = choosers or case.values, draw or self._draw
        values = {key: choose(draw) for key, choose in choosers.items()}
        return Trial(case, values, self._right.run(case, values))

    def draw_faults(self, level: int) -> list[Fault]:
        """Draw a fault, or at level 3 two in different functions; none where that cannot be."""
        faults: list[Fault] = []
        for _ in range(2 if level == 3 else 1):
            faults.append(self._draw.pick(self._shop.faults[self._draw.pick(list(self._shop.faults))]))
        places = {(fault.module, fault.function) for fault in faults}
        return faults if len(places) == len(faults) else []

    def draw_shown(self, level: int, faults: Sequence[Fault]) -> list[Trial]:
        """Draw the visible tests; none where they cannot be as the level asks for."""
        candidates, fault = self.candidates, faults[0]
        # What cannot be is found out before everything is tried.
        near = [trial for trial in candidates if self._is_near(level, fault, trial)]
        wanted = self.failing(near, [fault])
        if not wanted:
            return []
        kills = [self.failing(candidates, [fault]) for fault in faults]
        barred: list[Trial] = []
        if level == 2:
            barred = [trial for trial in kills[0] if trial.case.module == fault.module]
        elif level == 3 and self._draw.between(0, 1):
            barred = kills[1]  # of the second fault nothing is seen
        wanted = [trial for trial in wanted if not _is_in(trial, barred)]
        if not wanted:
            return []
        must = [self._draw.pick(wanted)]
        if level == 3 and not barred and kills[1]:
            must.append(self._draw.pick(kills[1]))
        chance = min(0.7, _MOST_SHOWN / len(candidates))
        shown = [
            trial
            for trial in candidates
            if _is_in(trial, must) or (self._draw.rng.random() < chance and not _is_in(trial, barred))
        ]
        return shown if all(map(self._is_told, faults, kills, [shown] * len(faults))) else []

    def failing(self, trials: Sequence[Trial], faults: Sequence[Fault]) -> list[Trial]:
        """Return those of ``trials`` that fail where the library has the faults."""
        library = self._with(faults)
        return [trial for trial in trials if _fails(library, trial)]

    def _with(self, faults: Sequence[Fault]) -> Library | None:
        """Return the library with faults; None where it cannot be imported."""
        modules = self._shop.family.modules
        texts = {}
        for fault in faults:
            here = [other for other in faults if other.module == fault.module]
            texts[fault.module] = planted(modules[fault.module], here)
        try:
            return Library(self._shop.family, self._constants, texts)
        except Exception:  # every operator leaves whole Python, but a default may be computed with a fault
            return None

    def write(self, shown: Sequence[Trial], faults: tuple[Fault, ...] | list[Fault], failing: list[Trial]) -> Instance:
        """Return the instance."""
        family, write = self._shop.family, self._writer.write
        title = self.package.replace("_", " ")
        lines = [f"- `{write(module)}`: {_first_line(write(text))}" for module, text in family.modules.items()]
        files = {
            "README.md": f"# {title}\n\n{write(family.about).strip()}\n\nModules:\n\n" + "\n".join(lines) + "\n",
            f"{self.package}/__init__.py": f'"""{_first_line(write(family.about))}"""\n',
        }
        repaired = {}
        for module, text in family.modules.items():
            path = f"{self.package}/{write(module)}.py"
            here = [fault for fault in faults if fault.module == module]
            files[path] = write(planted(text, here))
            if here:
                repaired[path] = write(text)
        twins = [twin for one in self.candidates if (twin := self.twin(one)) is not None]
        hidden = [one for one in self.candidates if not _is_in(one, shown)] + twins
        # A generator of its own, so that nothing that is drawn later is another for it.
        apart = Draw(np.random.default_rng(list(sha256("".join(files.values()).encode()).digest())))
        places = dict.fromkeys(place for fault in faults for place in self._places(fault))
        hidden += [trial for place in places for trial in self.around(*place, apart)]
        in_class = self._draw.between(1, _PLAIN_TOO) == 1
        for module in family.modules:
            if some := [trial for trial in shown if trial.case.module == module]:
                words = {word for trial in some for word in trial.case.words}
                words |= {error for trial in some for out in trial.expected for error in out.get("error", [])[:1]}
                imports = write(imports_of(family, self._shop.public, words))
                files[f"{TESTS}/test_{write(module)}.py"] = write_tests(module, some, imports, self._writer, in_class)
        cases = [{"lines": [[DO, self._interface()]], "expected": []}, *map(self._plain, [*shown, *hidden])]
        about = frozenset((trial.case.module, trial.case.function) for trial in failing)
        return Instance(self.package, files, repaired, cases, tuple(faults), about)

    def _is_near(self, level: int, fault: Fault, trial: Trial) -> bool:
        """Tell whether the failure of a trial would be what the level asks for."""
        module = trial.case.module
        if level == 1:
            return (module, trial.case.function) == (fault.module, fault.function)
        places = list(self._shop.family.modules)
        return places.index(module) >= places.index(fault.module) + (level == 2)

    def _is_told(self, fault: Fault, kill: Sequence[Trial], shown: Sequence[Trial]) -> bool:
        """Tell whether a hidden trial fails by a fault that no visible one is equal to."""
        library = self._with([fault])
        for one in kill:
            if not _is_in(one, shown):
                return True
            twin = self.twin(one)
            if twin is not None and twin.values != one.values and _fails(library, twin):
                return True
        return False

    def _interface(self) -> str:
        return self._writer.write(imports_of(self._shop.family, self._shop.public, self._shop.public))

    def _plain(self, trial: Trial) -> dict[str, Any]:
        """Return a trial as data."""
        imports = self._writer.write(self._shop.imports[trial.case.key])
        begin = "\n".join([imports, *(f"{key} = {literal(value)}" for key, value in trial.values.items())])
        lines = zip((kind for kind, _ in trial.case.steps), self._writer.write_all(trial.case), strict=True)
        return {"lines": [[DO, begin], *map(list, lines)], "expected": trial.expected}


def _fails(library: Library | None, trial: Trial) -> bool:
    return library is not None and not agree_all(library.run(trial.case, trial.values), trial.expected)


def _is_in(trial: Trial, trials: Sequence[Trial]) -> bool:
    return any(trial is other for other in trials)


def _first_line(text: str) -> str:
    return text.strip().strip('"').split("\n")[0].strip('"')
