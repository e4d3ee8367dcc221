"""What an imitator learns from: episodes with labels, aggregated, and kept in shards."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tetrathlon.agents.decisions import Learn
from tetrathlon.envs.episode import Episode, load_episodes, save_episodes, to_json

_SHARD = "shard-"


class Dataset:
    """Episodes that only grow in number.

    On disk they are shards, each an ``episodes.jsonl`` as any other, written once: a checkpoint names those that were
    there. The digest says what was added in which order.

    Args:
        learn: What of them is learnt; see :data:`~tetrathlon.agents.decisions.Learn`.
        folder: Of the shards; None: they are in memory alone.
    """

    def __init__(self, learn: Learn, folder: Path | None = None) -> None:
        self.learn, self.folder = learn, folder
        self._clear()

    def _clear(self) -> None:
        self.episodes: list[Episode] = []
        self.digest = hashlib.sha256().hexdigest()
        self._lessons = self._saved = 0
        self._shards: list[tuple[str, str]] = []  # the name of each, and the digest up to its end

    def __len__(self) -> int:
        """Return how many steps can be learnt."""
        return self._lessons

    def add(self, episodes: Iterable[Episode]) -> None:
        """Add those of ``episodes`` in which there is something to learn."""
        for episode in episodes:
            lessons = sum(self.learn == "action" or step.label is not None for step in episode.steps)
            if not lessons:
                continue
            told = json.dumps(to_json(episode), sort_keys=True).encode("ascii")
            self.digest = hashlib.sha256(bytes.fromhex(self.digest) + told).hexdigest()
            self._lessons += lessons
            self.episodes.append(episode)

    def save(self, update: int) -> None:
        """Write what was added since the last time as the shard of an update.

        A shard that no checkpoint came to name is removed: what it held was done again.
        """
        if self.folder is None:
            return
        named = {name for name, _ in self._shards}
        for left in self.folder.glob(f"{_SHARD}*"):
            if left.name not in named:
                shutil.rmtree(left)
        if fresh := self.episodes[self._saved :]:
            name = f"{_SHARD}{update:08d}"
            save_episodes(self.folder / name, fresh)
            self._saved = len(self.episodes)
            self._shards.append((name, self.digest))

    def state_dict(self) -> dict[str, Any]:
        """Return which shards there are."""
        return {"shards": list(self._shards)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Read the shards that :meth:`state_dict` named; what is in memory alone stays.

        Raises:
            ValueError: A shard is gone or is not what was written.
        """
        if self.folder is None:
            return
        self._clear()
        for name, digest in state["shards"]:
            path = self.folder / name
            try:
                self.add(load_episodes(path))
            except FileNotFoundError as error:
                raise ValueError(f"the run's data set lacks {path}; start a new run") from error
            if self.digest != digest:
                raise ValueError(f"{path} does not hold what was written there; start a new run")
            self._shards.append((name, digest))
        self._saved = len(self.episodes)
