"""An evaluation on disk: every finished episode at once, so that a run which dies can go on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from tetrathlon.agents.lock import lock_folder
from tetrathlon.envs.codec import decode, encode
from tetrathlon.envs.episode import (
    Episode,
    from_json,
    keep_image,
    load_episodes,
    read_image,
    save_episodes,
    to_json,
    write_aside,
)

_CONFIG, _UNFINISHED, _EPISODES, _RESULT = "config.json", "unfinished.jsonl", "episodes.jsonl", "result.json"


class JournalError(ValueError):
    """A folder holds another evaluation than the one that is to be written there, or one that is under way."""


class Journal:
    """The folder of an evaluation; nothing is written before the first episode has finished.

    ``config.json`` says what is evaluated. While it runs, each finished episode is a line of ``unfinished.jsonl``,
    written in one piece and handed to the system at once: killing the process at any moment loses none. At the end
    ``episodes.jsonl`` and ``result.json`` take its place.

    Args:
        folder: Made if it is not there.
        config: What is evaluated, as JSON data; ``episodes`` may grow from one run to the next.
        resume: Go on with what the folder holds.

    Raises:
        JournalError: The folder holds an evaluation and ``resume`` is false, or it holds another one, or one that is
            under way.
    """

    def __init__(self, folder: str | os.PathLike[str], config: dict[str, Any], resume: bool) -> None:
        self.folder = Path(folder)
        self._file: IO[bytes] | None = None
        self._lock: IO[bytes] | None = None
        self._config = config
        held = self._held()
        if held and not resume:
            raise JournalError(
                f"{str(self.folder)!r} holds an evaluation ({held}); go on with it by --resume, or give another "
                "folder by --out"
            )
        if held:
            self._check(config)
            self._lock_it()
        self._began = bool(held)

    def finished(self) -> list[Episode]:
        """Return the episodes of earlier runs; a line that is none, cut by a kill, is left out."""
        found = load_episodes(self.folder) if (self.folder / _EPISODES).exists() else []
        path = self.folder / _UNFINISHED
        if path.exists():
            with open(path, "rb") as lines:
                for line in lines:
                    try:
                        found.append(self._read(json.loads(line)))
                    except Exception:  # whatever damage makes JSON, NumPy and PIL raise
                        continue
        return found

    def keep(self, episode: Episode) -> None:
        """Write an episode that has just finished.

        Raises:
            OSError: The disk is full, say; what is half written does no harm.
            TypeError: A part of it cannot be written as JSON.
        """
        if self._file is None:
            self._begin()
            self._file = open(self.folder / _UNFINISHED, "ab", buffering=0)  # noqa: SIM115
            self._write(b"\n")  # ends what a kill may have left half written
        data = to_json(episode, partial(keep_image, self.folder))
        data["records"] = [encode(step.record) for step in episode.steps]
        self._write(json.dumps(data, ensure_ascii=True).encode("ascii") + b"\n")

    def finish(self, episodes: Iterable[Episode], result: dict[str, Any]) -> None:
        """Write the episodes and the result in place of what was unfinished."""
        self._begin()
        save_episodes(self.folder, episodes)
        write_aside(self.folder / _RESULT, _json(result))
        self._close_file()
        (self.folder / _UNFINISHED).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file, what is in it stays, and let others into the folder."""
        self._close_file()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        path = str(self.folder / _UNFINISHED)
        while data:  # a disk that becomes full takes a part, and says so at the next
            try:
                data = data[self._file.write(data) :]
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error

    def _held(self) -> str | None:
        """Return the first file of an evaluation that the folder holds."""
        names = (_CONFIG, _UNFINISHED, _EPISODES, _RESULT)
        return next((name for name in names if (self.folder / name).exists()), None)

    def _lock_it(self) -> None:
        self._lock = lock_folder(self.folder)
        if self._lock is None:
            raise JournalError(
                f"another evaluation is at work in {str(self.folder)!r}; wait for it, or give another folder by --out"
            )

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._lock is None:
            self._lock_it()
        if not self._began and self._held():
            raise JournalError(f"another evaluation has begun in {str(self.folder)!r}; give another folder by --out")
        self._began = True
        write_aside(self.folder / _CONFIG, _json(self._config))

    def _check(self, config: dict[str, Any]) -> None:
        path = self.folder / _CONFIG
        try:
            there = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise JournalError(f"{str(self.folder)!r} cannot be resumed: it has no {_CONFIG}") from error
        except ValueError as error:
            raise JournalError(f"{path} is no JSON; give another folder by --out") from error
        if not isinstance(there, dict):
            raise JournalError(f"{path} is not what an evaluation wrote; give another folder by --out")
        now = json.loads(_json(config))
        different = [name for name in now if name != "episodes" and there.get(name) != now[name]]
        episodes = there.get("episodes")
        if type(episodes) is not int or not 0 < episodes <= now["episodes"]:
            different.append("episodes")
        if different:
            said = "; ".join(f"{name}: {there.get(name)!r} there, {now[name]!r} now" for name in different)
            raise JournalError(
                f"{str(self.folder)!r} cannot be resumed, it holds an evaluation of something else ({said})"
            )

    def _read(self, data: dict[str, Any]) -> Episode:
        episode = from_json(data, partial(read_image, self.folder))
        for step, record in zip(episode.steps, data["records"], strict=True):
            step.record = decode(record)
        return episode


def by_start(episodes: Iterable[Episode], seeds: Sequence[int], samples: int) -> dict[int, Episode]:
    """Return the episodes by the number of their start; those of one group are alike and take its numbers in turn.

    Args:
        episodes: In any order. One that began elsewhere, as only a damaged file can say, is left out.
        seeds: Of the groups.
        samples: Episodes a group.
    """
    placed: dict[int, Episode] = {}
    for episode in episodes:
        group = episode.group
        if group is None or not 0 <= group < len(seeds) or episode.seed != seeds[group]:
            continue
        first = group * samples
        free = next((number for number in range(first, first + samples) if number not in placed), None)
        if free is not None:  # else a kill came between the final file and the end of the other one
            placed[free] = episode
    return placed


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode("ascii")
