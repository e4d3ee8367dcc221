"""Where episodes begin: seeds without an end, or those of a set of instances again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

_STREAM = 0x51A27
_ORDER, _CHANCE = 1, 2


class Starts:
    """The seeds of starts; the n-th is the same in every run of one seed.

    Args:
        seed: Seed of the seeds.
        instances: How many different starts there are, dealt in a new order each time that all have come; 0: every
            start is a new one.
        solved_weight: Chance that a start which is :meth:`noted <note>` as solved is dealt when its turn comes.
    """

    def __init__(self, seed: int, instances: int = 0, solved_weight: float = 1.0) -> None:
        self.seed, self.instances, self.solved_weight = seed, instances, solved_weight
        self.cursor = 0
        self._solved: set[int] = set()

    def next(self) -> int:
        """Return the seed of the next start."""
        if not self.instances:
            self.cursor += 1
            return self._seed_of(self.cursor - 1)
        passed = 0
        while True:
            lap, at = divmod(self.cursor, self.instances)
            order = np.random.default_rng([_STREAM, self.seed, _ORDER, lap]).permutation(self.instances)
            seed = self._seed_of(int(order[at]))
            chance = np.random.default_rng([_STREAM, self.seed, _CHANCE, self.cursor]).random()
            self.cursor += 1
            passed += 1
            # A lap in which nothing was dealt: all is solved, and something must be played.
            if seed not in self._solved or chance < self.solved_weight or passed > self.instances:
                return seed

    def note(self, seed: int, solved: bool) -> None:
        """Note whether every episode from a start succeeded, the last time that it was played."""
        (self._solved.add if solved else self._solved.discard)(seed)

    @property
    def solved(self) -> int:
        """How many starts are noted as solved."""
        return len(self._solved)

    def state_dict(self) -> dict[str, Any]:
        """Return what the next starts depend on."""
        return {"cursor": self.cursor, "solved": sorted(self._solved)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.cursor, self._solved = state["cursor"], set(state["solved"])

    def _seed_of(self, number: int) -> int:
        return int(np.random.SeedSequence([_STREAM, self.seed, number]).generate_state(1)[0])
