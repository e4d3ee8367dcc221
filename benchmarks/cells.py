"""A run of a suite on disk: what it measures, and one folder for each finished cell."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tetrathlon.agents.lock import LOCK, lock_folder
from tetrathlon.benchmarks.files import read_json
from tetrathlon.benchmarks.results import row
from tetrathlon.benchmarks.suites import Entry, Suite
from tetrathlon.envs.episode import Episode, load_episodes, write_aside

_MUST_MATCH = {
    "suite": "suite",
    "version": "suite version",
    "digest": "entries of the suite",
    "seed": "seed",
    "episodes": "episodes",
    "tetrathlon": "tetrathlon version",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One evaluation: an entry, a policy, a seed."""

    entry: Entry
    policy: str
    seed: int
    """The run's seed plus the entry's."""

    @property
    def slug(self) -> str:
        """Its folder's name: readable, and different for different cells."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.policy} {self.entry.name}".lower()).strip("-")[:60]
        mark = sha256(f"{self.policy}\n{self.entry.name}".encode("utf-8", "surrogatepass")).hexdigest()[:6]
        return f"{words}-{mark}-s{self.seed}"


class Ledger:
    """The folder of a run.

    A finished cell is a folder below ``cells/`` that holds ``result.json`` and ``episodes.jsonl``, as an
    evaluation of its own does. It is written below ``unfinished/``, where an evaluation that died goes on, and
    renamed, so it is there complete or not at all.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def look(self, identity: dict[str, Any], default: Sequence[str], resume: bool) -> dict[str, Any]:
        """Say what a run in this folder will measure: a new one, or the one that is there; nothing is written.

        Args:
            identity: What the run measures; ``policies`` and ``domains`` may be None for whatever the run
                that is resumed had.
            default: The policies of a new run that asks for none.
            resume: Go on with an earlier run.

        Returns:
            The identity of the run, for :meth:`begin`.

        Raises:
            FileExistsError: The folder is not empty and ``resume`` is false.
            ValueError: The earlier run is another one, or its ``run.json`` is damaged; the message names each
                difference.
        """
        path = self.folder / "run.json"
        held = self.folder.exists() and any(there.name != LOCK for there in self.folder.iterdir())
        if not resume:
            if held:
                what = "an earlier run" if path.exists() else "other files"
                hint = "go on with it by --resume, or give" if path.exists() else "give"
                raise FileExistsError(f"{self.folder} holds {what}; {hint} another folder by --out")
            known = {**identity, "policies": identity["policies"] or list(default)}
        elif not path.exists():
            if held:
                raise ValueError(f"{self.folder} holds no run of a suite (no run.json) to resume")
            known = {**identity, "policies": identity["policies"] or list(default)}
        else:
            known = read_json(path)
            if not isinstance(known, dict) or not {*_MUST_MATCH, "policies", "domains"} <= known.keys():
                raise ValueError(f"{path} is not what a bench wrote; give another folder by --out")
            if differences := [
                f"{words}: {known.get(key)!r} there, {identity[key]!r} now"
                for key, words in _MUST_MATCH.items()
                if known.get(key) != identity[key]
            ]:
                raise ValueError(
                    f"{self.folder} cannot be resumed, it is a run of something else ({'; '.join(differences)})"
                )
            for key in ("policies", "domains"):  # asking for more of them adds to the run; None is all there are
                if identity[key] is not None and known[key] is not None:
                    known[key] = list(dict.fromkeys([*known[key], *identity[key]]))
        return known

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other bench out of the folder, which is made if it is not there.

        Raises:
            ValueError: Another one is at work in it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(self.folder)
        if lock is None:
            raise ValueError(f"another bench is at work in {self.folder}; wait for it, or give another folder by --out")
        with lock:
            yield

    def begin(self, known: dict[str, Any]) -> None:
        """Write what the run measures."""
        (self.folder / "cells").mkdir(exist_ok=True)
        self.write_run(known)

    def write_run(self, identity: dict[str, Any]) -> None:
        """Write ``run.json``."""
        write_aside(self.folder / "run.json", _json(identity))

    def write(self, name: str, data: Any) -> Path:
        """Write ``data`` as strict JSON into the run's folder."""
        write_aside(self.folder / name, _json(data))
        return self.folder / name

    def path(self, cell: Cell) -> Path:
        """Return the folder of ``cell``, there or not."""
        return self.folder / "cells" / cell.slug

    def has(self, cell: Cell) -> bool:
        """Tell whether ``cell`` is finished and whole."""
        return self.path(cell).exists() and self.fault(cell) is None

    def fault(self, cell: Cell) -> str | None:
        """Return in words what is wrong with a cell that is there; None: it can be counted."""
        folder = self.path(cell)
        try:
            result = self.result(cell)
            row(cell.entry, cell.policy, [result], [cell.slug])  # what it is for, hence what it must hold
            expected = result["episodes"] * cell.entry.samples - result["crashes"]["count"]
            with open(folder / "episodes.jsonl", "rb") as lines:
                whole = sum(line.endswith(b"\n") for line in lines)
        except (FileNotFoundError, NotADirectoryError) as error:
            return f"there is no {error.filename}"
        except ValueError as error:
            return str(error)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            return f"{folder / 'result.json'} is not the result of a cell: {error!r}"
        return None if whole == expected else f"{folder / 'episodes.jsonl'} holds {whole} of {expected} episodes"

    def drop(self, cell: Cell) -> None:
        """Remove a cell."""
        path = self.path(cell)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def unfinished(self, cell: Cell) -> Path:
        """Return the folder in which ``cell`` is evaluated, there or not."""
        return self.folder / "unfinished" / cell.slug

    def keep(self, cell: Cell, result: dict[str, Any]) -> None:
        """Take over a cell whose episodes are saved in :meth:`unfinished`, in place of what is there."""
        aside, target = self.unfinished(cell), self.path(cell)
        write_aside(aside / "result.json", _json(result))
        if target.exists():
            self.drop(cell)
        os.rename(aside, target)
        with contextlib.suppress(OSError):  # others are still in there
            aside.parent.rmdir()

    def result(self, cell: Cell) -> dict[str, Any]:
        """Read the result of a finished cell."""
        return read_json(self.path(cell) / "result.json")

    def episodes(self, cell: Cell) -> list[Episode]:
        """Read the episodes of a finished cell."""
        return load_episodes(self.path(cell))


def identity_of(
    suite: Suite,
    *,
    seed: int,
    episodes: int | None,
    version: str,
    policies: Sequence[str] | None,
    domains: Sequence[str] | None,
) -> dict[str, Any]:
    """Return what a run measures, as ``run.json`` holds it once it began; None where nothing was asked for."""
    return {
        "suite": suite.name,
        "version": suite.version,
        "digest": suite.digest,
        "seed": seed,
        "episodes": episodes,
        "tetrathlon": version,
        "policies": None if policies is None else list(policies),
        "domains": None if domains is None else list(domains),
    }


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
