"""What happened: one record of an episode for every domain, and its files."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tetrathlon.envs.codec import decode, encode, fingerprint


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
        """Whether the task was solved."""
        return bool(self.last_info.get("is_success", False))

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
    """
    return Episode(
        steps=[
            Step(
                observation=decode(step["observation"], image),
                action=decode(step["action"], image),
                reward=decode(step["reward"]),
                terminated=step["terminated"],
                truncated=step["truncated"],
                info=decode(step["info"], image),
                label=decode(step.get("label"), image),
            )
            for step in data["steps"]
        ],
        final_observation=decode(data["final_observation"], image),
        env=data["env"],
        kwargs=decode(data["kwargs"]),
        seed=data["seed"],
        options=decode(data["options"]),
        info=decode(data["info"], image),
        group=data["group"],
    )


def save_episodes(folder: str | os.PathLike[str], episodes: Iterable[Episode]) -> Path:
    """Write ``episodes.jsonl``, the pictures in ``images/`` and the policies' notes in ``records.npz``.

    The files are written aside and renamed, so a reader never meets half of one.

    Args:
        folder: Made if it is not there.
        episodes: What to write; an older ``episodes.jsonl`` in the folder is replaced.

    Returns:
        The path of ``episodes.jsonl``.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines, records = [], {}

    def keep_image(array: np.ndarray) -> str:
        name = f"{fingerprint(array)[:20]}.png"
        path = folder / "images" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            picture = io.BytesIO()
            Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array).save(picture, "PNG")
            write_aside(path, picture.getvalue())
        return name

    for number, episode in enumerate(episodes):
        lines.append(json.dumps(to_json(episode, keep_image), ensure_ascii=True) + "\n")
        for position, step in enumerate(episode.steps):
            for name, value in (step.record or {}).items():
                records[f"{number}/{position}/{name}"] = np.asarray(value)
    if records:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
            for name, array in records.items():
                with bundle.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        write_aside(folder / "records.npz", archive.getvalue())
    else:
        (folder / "records.npz").unlink(missing_ok=True)
    path = folder / "episodes.jsonl"
    write_aside(path, "".join(lines).encode("ascii"))
    return path


def load_episodes(folder: str | os.PathLike[str]) -> list[Episode]:
    """Read what :func:`save_episodes` wrote.

    Raises:
        FileNotFoundError: There is no ``episodes.jsonl`` in the folder.
        ValueError: A line is not an episode; the message names it.
    """
    folder = Path(folder)

    def read_image(name: str) -> np.ndarray:
        with Image.open(folder / "images" / Path(name).name) as picture:
            array = np.asarray(picture).copy()
        return array[..., None] if array.ndim == 2 else array

    episodes = []
    with open(folder / "episodes.jsonl", "rb") as lines:
        for number, line in enumerate(lines):
            try:
                episodes.append(from_json(json.loads(line), read_image))
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise ValueError(
                    f"line {number + 1} of {folder / 'episodes.jsonl'} is not an episode: {error!r}"
                ) from error
    if (folder / "records.npz").exists():
        with np.load(folder / "records.npz", allow_pickle=False) as records:
            for key in records.files:
                episode, position, name = key.split("/", 2)
                step = episodes[int(episode)].steps[int(position)]
                step.record = {**(step.record or {}), name: records[key]}
    return episodes


def write_aside(path: Path, data: bytes) -> None:
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
