"""First observations of every registered environment, pinned: a seed fixes its instance for ever.

``python -m tests.envs.golden [ID ...]`` writes ``golden.json`` anew, for all ids or for those named. A change of an
entry that exists already is a new version of that environment (``-vN``), unless it was never released.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium as gym

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.registry import domain_of, known_id, listings

FILE = Path(__file__).with_name("golden.json")
COMMAND = "python -m tests.envs.golden"
SEEDS = range(5)


def load() -> dict[str, dict[str, list[str]]]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def measure(env_id: str) -> dict[str, list[str]]:
    """Return split -> hashes of the first observations of seeds 0 to 4.

    Of robots and pictures the instances are pinned: what a picture and a simulation look like to the last bit is the
    business of the driver, of the font library and of the processor.
    """
    hashes = {}
    for split in ("train", "test"):
        if domain_of(env_id) == "robots":
            env = gym.make(env_id, split=split, observation="state", disable_env_checker=True)
            hashes[split] = [env.reset(seed=seed)[1]["task_id"] for seed in SEEDS]
        elif domain_of(env_id) == "vision":
            env = gym.make(env_id, split=split, disable_env_checker=True)
            hashes[split] = [env.reset(seed=seed)[1]["task_id"] for seed in SEEDS]
        else:
            env = gym.make(env_id, split=split, disable_env_checker=True)
            hashes[split] = [fingerprint(env.reset(seed=seed)[0])[:16] for seed in SEEDS]
        env.close()
    return hashes


def main(ids: list[str]) -> None:
    entries = load()
    for env_id in [known_id(name) for name in ids] or [listing.id for listing in listings()]:
        entries[env_id] = measure(env_id)
    FILE.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
