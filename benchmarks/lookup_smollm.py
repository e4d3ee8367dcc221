"""SmolLM2 learns to look things up: ``python -m tetrathlon.benchmarks.lookup_smollm --out FILE``.

Cloning of expert episodes first, then GRPO; test success and valid calls before, after, and after both. What is in the
file of the result already is not run again.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console

from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.smollm import smollm2
from tetrathlon.algos import BC, GRPO
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.lookups import ENV
from tetrathlon.envs.episode import Episode, write_aside

KWARGS: Mapping[str, Any] = {
    "least_hops": 1,
    "most_hops": 2,
    "entries": 3,
    "brief": True,
    "max_turns": 4,
    "max_tokens": 40,
}
"""Real words in the names; the prompt is the question alone, so that all of the protocol has to be learnt."""
CLONING: Mapping[str, Any] = {"episodes": 160, "batch_size": 16, "steps": 20, "lr": 2e-5}
PAID: Mapping[str, Any] = {"groups": 8, "group_size": 8, "lr": 1e-5, "max_cost": 4096.0}
UPDATES = 6


@dataclass(frozen=True, kw_only=True)
class LookupSmolLM:
    """Clone, then learn from pay; tell success and valid calls on held-out instances after each."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """Where the result is, and grows."""
    weights: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs/lookup_smollm")
    """Folder of the weights after cloning, from which a run goes on."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds."""
    episodes: int = 100
    """Test instances of a look, greedy."""

    def run(self) -> int:
        """Run what is missing."""
        result: dict[str, Any] = json.loads(self.out.read_text("utf-8")) if self.out.exists() else {"runs": {}}
        self.weights.mkdir(parents=True, exist_ok=True)
        console = Console(highlight=False)
        for seed in self.seeds:
            for stage in ("start", "described", "cloned", "paid"):
                run = result["runs"].setdefault(str(seed), {})
                if stage in run or (seed != self.seeds[0] and stage in ("start", "described")):
                    continue  # the model is the same before it learns, whatever the seed
                run[stage] = self._stage(stage, seed)
                result |= {
                    "command": f"python -m tetrathlon.benchmarks.lookup_smollm --out FILE --episodes {self.episodes}",
                    "made": machine.now(),
                    "commit": machine.commit(),
                    **machine.describe(),
                    "settings": {"env": ENV, "kwargs": dict(KWARGS), "cloning": dict(CLONING), "paid": dict(PAID)},
                }
                write_aside(self.out, (json.dumps(result, indent=1) + "\n").encode())
                told = run[stage]
                console.print(
                    f"seed {seed} {stage}: success {told['success']['mean']:.3f} "
                    f"[{told['success']['low']:.3f}, {told['success']['high']:.3f}], valid calls "
                    f"{told['valid_calls']:.3f}, {told['cpu_seconds']:.0f} CPU s",
                    soft_wrap=True,
                )
        return 0

    def _stage(self, stage: str, seed: int) -> dict[str, Any]:
        policy = LanguagePolicy.from_pretrained(smollm2(), dtype="float32", max_tokens=64, seed=seed)
        wall, cpu = time.perf_counter(), time.process_time()
        train: list[dict[str, float]] = []
        path = self.weights / f"cloned-{seed}.pt"
        if stage == "cloned":
            with contextlib.closing(BC(policy, ENV, kwargs=dict(KWARGS), seed=seed, **CLONING)) as cloning:
                train = cloning.learn(1)
            torch.save(policy.state_dict(), path)
        elif stage == "paid":
            policy.load_state_dict(torch.load(path))
            with contextlib.closing(GRPO(policy, ENV, kwargs=dict(KWARGS), seed=seed, **PAID)) as learner:
                train = learner.learn(UPDATES)
        spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        kept = [{name: line[name] for name in ("bc_loss", "reward", "success") if name in line} for line in train]
        return {**self._look(policy, stage == "described"), **spent, "train": kept}

    def _look(self, policy: LanguagePolicy, described: bool) -> dict[str, Any]:
        kwargs = {**KWARGS, "brief": not described}
        found = evaluate(policy, ENV, kwargs=kwargs, episodes=self.episodes, slots=50, greedy=True)
        return {"success": dict(found.success), "stops": dict(found.stop_reasons), **calls(found.episodes_played)}


def calls(episodes: tuple[Episode, ...]) -> dict[str, float]:
    """Return the share of turns but the last that were a call which ran, and calls that failed, an episode."""
    turns = [step for episode in episodes for step in episode.steps if step.info.get("stop_reason") != "answered"]
    results = [result for step in turns for result in step.info.get("tool_results", ())]
    right = [step for step in turns if step.info.get("tool_results") and not step.info["tool_results"][0]["error"]]
    return {
        "valid_calls": len(right) / max(len(turns), 1),
        "calls": len(results) / max(len(episodes), 1),
        "failed_calls": sum(bool(result["error"]) for result in results) / max(len(episodes), 1),
    }


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        return tyro.cli(LookupSmolLM, prog="python -m tetrathlon.benchmarks.lookup_smollm").run()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
