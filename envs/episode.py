"""What happened: one record of an episode for every domain, and its files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tetrathlon.envs.codec import decode, encode, fingerprint

_DAMAGE = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError, OSError),
    *(zipfile.BadZipFile, zlib.error, Image.DecompressionBombError, SyntaxError, NotImplementedError, EOFError),
)
"""What damaged files make JSON, NumPy, zip and PIL raise."""


@dataclass(slots=True)
class Step:
    """One environment step: what was seen, done and paid."""

    observation: Any
    """What the agent saw before it acted."""
    action: Any
    """What it did."""
    reward: float = 0.0
    """What it was paid for it."""
    terminated: bool = False
    """The task ended here, by itself or by a limit that the agent was told of."""
    truncated: bool = False
    """A limit outside the task ended it here."""
    info: dict[str, Any] = field(default_factory=dict)
    """The info that came with the reward."""
    record: dict[str, Any] | None = None
    """The policy's own note of its decision (ids, log-probabilities); None: the policy did not decide here."""
    label: Any = None
    """The expert's action for the same observation, where it was asked."""


@dataclass(slots=True)
class Episode:
    """Steps from one reset, up to an end or to where recording stopped."""

    steps: list[Step] = field(default_factory=list)
    """In order."""
    final_observation: Any = None
    """The true last observation, after the last step."""
    env: str = ""
    """Id of the environment."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Constructor arguments of the environment."""
    seed: int | None = None
    """Seed of the reset."""
    options: dict[str, Any] | None = None
    """Options of the reset."""
    info: dict[str, Any] = field(default_factory=dict)
    """The info of the reset: ``task_id``, and for language domains ``system`` and ``tools``."""
    group: int | None = None
    """Episodes of one group began at the same start."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def total_reward(self) -> float:
        """The undiscounted sum of rewards."""
        return float(sum(step.reward for step in self.steps))

    @property
    def ended(self) -> bool:
        """Whether the environment ended the episode."""
        return bool(self.steps) and (self.steps[-1].terminated or self.steps[-1].truncated)

    @property
    def last_info(self) -> dict[str, Any]:
        """The info of the last step, or of the reset when there was no step."""
        return self.steps[-1].info if self.steps else self.info

    @property
    def is_success(self) -> bool:
        """Whether the task was solved: ``is_success`` is True, and not merely something that counts as true."""
        told = self.last_info.get("is_success")
        return isinstance(told, bool | np.bool_) and bool(told)

    @property
    def stop_reason(self) -> str | None:
        """Why it ended, in the environment's or the policy's word."""
        return self.last_info.get("stop_reason")

    @property
    def grader_error(self) -> str | None:
        """What went wrong in the grader; such an episode is counted, and kept out of training and of success."""
        return next((step.info["grader_error"] for step in self.steps if step.info.get("grader_error")), None)


def to_json(episode: Episode, image: Any = None) -> dict[str, Any]:
    """Return ``episode`` as JSON data, without the policy's records.

    Args:
        episode: The episode.
        image: As in :func:`tetrathlon.envs.codec.encode`.
    """
    return {
        "env": episode.env,
        "kwargs": encode(episode.kwargs),
        "seed": episode.seed,
        "options": encode(episode.options),
        "group": episode.group,
        "info": encode(episode.info, image),
        "steps": [
            {
                "observation": encode(step.observation, image),
                "action": encode(step.action, image),
                "reward": encode(float(step.reward)),
                "terminated": bool(step.terminated),
                "truncated": bool(step.truncated),
                "info": encode(step.info, image),
                **({"label": encode(step.label, image)} if step.label is not None else {}),
            }
            for step in episode.steps
        ],
        "final_observation": encode(episode.final_observation, image),
    }


def from_json(data: dict[str, Any], image: Any = None) -> Episode:
    """Undo :func:`to_json`.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is of another type.
    """
    return Episode(
        steps=[
            Step(
                observation=decode(step["observation"], image),
                action=decode(step["action"], image),
                reward=float(_typed("reward", decode(step["reward"]), float, int)),
                terminated=_typed("terminated", step["terminated"], bool),
                truncated=_typed("truncated", step["truncated"], bool),
                info=_typed("info", decode(step["info"], image), dict),
                label=decode(step.get("label"), image),
            )
            for step in _typed("steps", data["steps"], list)
        ],
        final_observation=decode(data["final_observation"], image),
        env=_typed("env", data["env"], str),
        kwargs=_typed("kwargs", decode(data["kwargs"]), dict),
        seed=_typed("seed", data["seed"], int, type(None)),
        options=_typed("options", decode(data["options"]), dict, type(None)),
        info=_typed("info", decode(data["info"], image), dict),
        group=_typed("group", data["group"], int, type(None)),
    )


def _typed(name: str, value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name} is {str(value)[:80]!r}, a {type(value).__name__}; it must be a {wanted}")
    return value


def save_episodes(folder: str | os.PathLike[str], episodes: Iterable[Episode]) -> Path:
    """Write ``episodes.jsonl``, the pictures in ``images/`` and the policies' notes in ``records-*.npz``.

    The files are written aside and renamed, so a reader never meets half of one. The notes' file is named by its
    content and each episode says which notes are its own, so a reader never meets the notes of other episodes.

    Args:
        folder: Made if it is not there.
        episodes: What to write; an older ``episodes.jsonl`` in the folder is replaced.

    Returns:
        The path of ``episodes.jsonl``.

    Raises:
        TypeError: A part of an episode cannot be written as JSON.
        ValueError: A note is no array of numbers; the message names the step.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[dict[str, Any]] = []
    records: dict[str, np.ndarray] = {}

    for number, episode in enumerate(episodes):
        written.append(to_json(episode, partial(keep_image, folder)))
        for position, step in enumerate(episode.steps):
            for name, value in (step.record or {}).items():
                records[f"{number}/{position}/{name}"] = _noted(value, f"episode {number}, step {position}: {name!r}")
    noted = _write_records(folder, records) if records else None
    for number in {int(key.partition("/")[0]) for key in records}:
        written[number]["records"] = [noted, number]
    path = folder / "episodes.jsonl"
    # Last of all, and in one rename: it names the notes that belong to it.
    write_aside(path, "".join(json.dumps(data, ensure_ascii=True) + "\n" for data in written).encode("ascii"))
    for old in folder.glob("records*.npz"):
        if old.name != noted:
            old.unlink(missing_ok=True)
    return path


def keep_image(folder: Path, array: np.ndarray) -> str:
    """Write an image into ``folder`` unless it is there already; return its name."""
    name = f"{fingerprint(array)[:20]}.png"
    path = folder / "images" / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        picture = io.BytesIO()
        Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array).save(picture, "PNG")
        write_aside(path, picture.getvalue())
    return name


def read_image(folder: Path, name: str) -> np.ndarray:
    """Return the image that :func:`keep_image` wrote."""
    with Image.open(folder / "images" / Path(name).name) as picture:
        array = np.asarray(picture).copy()
    return array[..., None] if array.ndim == 2 else array


def _noted(value: Any, where: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{where} in its record is no array: {error}") from error
    if array.dtype.hasobject:
        raise ValueError(f"{where} in its record is {str(value)[:80]}; a record holds arrays of numbers")
    return array


def _write_records(folder: Path, records: dict[str, np.ndarray]) -> str:
    """Write the notes; return the name of their file."""
    digest, archive = hashlib.sha256(), io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, array in records.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            digest.update(_entry(name, member.getvalue()))
            bundle.writestr(f"{name}.npy", member.getvalue())
    name = f"records-{digest.hexdigest()[:20]}.npz"
    write_aside(folder / name, archive.getvalue())
    return name


def _entry(name: str, data: bytes) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0" + data).digest()


def _read_records(path: Path) -> dict[int, dict[int, dict[str, np.ndarray]]]:
    """Return the notes of a file: number of the episode -> number of the step -> name -> array."""
    digest = hashlib.sha256()
    records: dict[int, dict[int, dict[str, np.ndarray]]] = {}
    with zipfile.ZipFile(path) as bundle:
        for member in bundle.namelist():
            key, data = member.removesuffix(".npy"), bundle.read(member)
            digest.update(_entry(key, data))
            number, position, name = key.split("/", 2)
            array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            records.setdefault(int(number), {}).setdefault(int(position), {})[name] = array
    if path.name != f"records-{digest.hexdigest()[:20]}.npz":
        raise ValueError(f"{path.name} holds other records than those that were saved with the episodes")
    return records


def load_episodes(folder: str | os.PathLike[str]) -> list[Episode]:
    """Read what :func:`save_episodes` wrote.

    Raises:
        FileNotFoundError: There is no ``episodes.jsonl`` in the folder.
        ValueError: A line is not an episode, or its pictures or records are gone; the message names it.
    """
    folder = Path(folder)

    episodes = []
    bundles: dict[str, dict[int, dict[int, dict[str, np.ndarray]]]] = {}

    def read_episode(data: Any) -> Episode:
        episode = from_json(_typed("the line", data, dict), partial(read_image, folder))
        if "records" in data:
            name, number = data["records"]
            if name not in bundles:
                bundles[name] = _read_records(folder / Path(name).name)
            for position, record in bundles[name][number].items():
                episode.steps[position].record = record
        return episode

    with open(folder / "episodes.jsonl", "rb") as lines:
        for number, line in enumerate(lines):
            try:
                episodes.append(read_episode(json.loads(line)))
            except _DAMAGE as error:
                raise ValueError(
                    f"line {number + 1} of {folder / 'episodes.jsonl'} is not an episode: "
                    f"{type(error).__name__}: {str(error)[:500]}"
                ) from error
    return episodes


def write_aside(path: Path, data: bytes | memoryview) -> None:
    """Write ``data`` to ``path`` so that a kill at any moment leaves the old file or the new one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def scorable(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes whose grader did not fail."""
    return [episode for episode in episodes if episode.grader_error is None]
