"""What one step of N copies came to: pay, ends, and the infos that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tetrathlon.envs.robots.instance import Instance


class Outcome:
    """What N copies were paid in one step, and how it ended."""

    def __init__(self, n: int, chunk: int, played: np.ndarray) -> None:
        self.played = played
        self.live = played.copy()
        self.rewards = np.zeros((n, chunk))
        self.executed = np.zeros(n, dtype=np.int64)
        self.terminated = np.zeros(n, dtype=bool)
        self.truncated = np.zeros(n, dtype=bool)
        self.reasons = np.full(n, None, dtype=object)
        self._paid = np.zeros((n, chunk))
        self._gained = np.zeros((n, chunk))

    def pay(self, success: np.ndarray, gain: np.ndarray | None) -> None:
        """Pay one control step to the copies that live."""
        rows = np.flatnonzero(self.live)
        at = self.executed[rows]
        self._paid[rows, at] = success[rows]
        if gain is not None:
            self._gained[rows, at] = gain[rows]
        self.rewards[rows, at] = self._paid[rows, at] + self._gained[rows, at]
        self.executed[rows] += 1

    def end(self, which: np.ndarray, reason: str, *, truncated: bool = False) -> None:
        """End the copies ``which`` that live."""
        which = which & self.live
        (self.truncated if truncated else self.terminated)[which] = True
        self.reasons[which] = reason
        self.live &= ~which

    def terms(self, reward: str) -> dict[str, np.ndarray]:
        """Return what the reward is the sum of."""
        terms = {"success": self._paid.sum(axis=1)}
        return terms | {"progress": self._gained.sum(axis=1)} if reward == "dense" else terms

    def reward(self, kind: str) -> np.ndarray:
        """Return the sum of the terms, [N]."""
        return np.sum(list(self.terms(kind).values()), axis=0)

    def step_rewards(self) -> np.ndarray:
        """Return the rewards of the control steps that were done, as lists."""
        lists = np.full(len(self.executed), None, dtype=object)
        for i, count in enumerate(self.executed):
            lists[i] = self.rewards[i, :count].tolist()
        return lists

    def infos(self, more: Mapping[str, Any], reward: str) -> dict[str, Any]:
        """Return what is told of the step beside ``more``, batched as Gymnasium batches infos."""
        told: dict[str, Any] = {
            "is_success": self.reasons == "success",
            "reward_terms": masked(self.terms(reward), self.played),
            **more,
        }
        if self.rewards.shape[1] > 1:
            told |= {"env_steps": self.executed.copy(), "step_rewards": self.step_rewards()}
        infos = masked(told, self.played)
        over = self.terminated | self.truncated
        return infos | masked({"stop_reason": self.reasons.copy()}, over) if over.any() else infos


def start_infos(instances: Sequence[Instance | None], max_steps: int, ids: np.ndarray) -> dict[str, Any]:
    """Return the infos of the copies ``ids``, whose episodes begin."""
    mask = np.zeros(len(instances), dtype=bool)
    mask[ids] = True
    names = np.array([None if each is None else each.id for each in instances], dtype=object)
    limits = masked({"steps": np.full(len(instances), max_steps)}, mask)
    return masked({"task_id": names, "limits": limits}, mask)


def masked(values: Mapping[str, Any], mask: np.ndarray) -> dict[str, Any]:
    """Return infos with the mask that Gymnasium puts beside each key."""
    return {key: value for name, item in values.items() for key, value in ((name, item), (f"_{name}", mask.copy()))}


def only(infos: Mapping[str, Any], mask: np.ndarray) -> dict[str, Any]:
    """Return infos of the copies in ``mask`` alone."""
    kept: dict[str, Any] = {}
    for key, value in infos.items():
        if isinstance(value, dict):
            kept[key] = only(value, mask)
        else:
            kept[key] = value & mask if key.startswith("_") else value
    return kept
