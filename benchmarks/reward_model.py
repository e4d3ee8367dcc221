"""A proxy too far: ``python -m tetrathlon.benchmarks.reward_model --out FILE``.

From start to end on sums of two small digits: a model of characters is shown answers that are near (SFT), a reward
model learns from few pairs of its answers, which a labeller ranked who is careless now and then, and PPO with a
divergence in its reward learns from that model alone. On the way it is told what the proxy gives, how often the answer
is right, and how far the policy is from its start: the curve of Gao et al., 2023, *Scaling Laws for Reward Model
Overoptimization*, over the root of that divergence. What a kill interrupts goes on from its last checkpoint.
"""

from __future__ import annotations

import copy
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from rich.console import Console

from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.reward_model import RewardModel
from tetrathlon.agents.statistics import wilson
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.collect import Collector, Play, Scorer
from tetrathlon.algos.imitation import BC
from tetrathlon.algos.kl import kl
from tetrathlon.algos.on_policy import PPO
from tetrathlon.algos.pairs import Pair, agreement, paired
from tetrathlon.algos.reward_learning import BradleyTerry
from tetrathlon.algos.run import noted
from tetrathlon.algos.trainer import Trainer
from tetrathlon.benchmarks import machine
from tetrathlon.benchmarks.pictures import COLOURS, figure
from tetrathlon.benchmarks.sums import CHARACTERS, ID, near_misses
from tetrathlon.envs.episode import Episode, write_aside


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is run, but for the seed."""

    dots: int = 2
    """Most dots before an answer, which mean nothing to who grades."""
    shown: int = 2000
    """Answers of the SFT, a fifth of them right."""
    pairs: int = 300
    """That the reward model learns from."""
    careless: float = 0.4
    """Share of them in which the longer answer was preferred, whichever is right."""
    passes: int = 10
    """Over these pairs, 32 a step."""
    coefs: tuple[float, ...] = (0.02, 0.5)
    """Weights of the divergence in PPO's reward; a run each."""
    updates: int = 80
    """Of PPO."""
    look_every: int = 5
    """Updates from one look to the next."""
    looks: int = 400
    """Answers to held-out questions, a look."""
    options: tuple[tuple[str, Any], ...] = (("groups", 128), ("epochs", 4), ("minibatches", 4), ("lr", 1e-3))
    """Of PPO."""


class Look:
    """Tells before, on the way and after what the proxy gives, what is true, and how far the policy has gone.

    Args:
        policy: Which learns.
        start: What it was.
        proxy: The reward model's scorer.
        setting: See :class:`Setting`.
    """

    def __init__(self, policy: TrainablePolicy, start: TrainablePolicy, proxy: Scorer, setting: Setting) -> None:
        self.policy, self.start, self.proxy, self.setting = policy, start, proxy, setting
        self._begun = time.process_time()

    def before(self, metrics: dict[str, float]) -> None:
        """Look at the start."""
        self._look(metrics)

    def __call__(self, number: int, metrics: dict[str, float], /) -> None:
        """Look where it is time; note the CPU seconds since the last update."""
        now = time.process_time()
        metrics["seconds_cpu"], self._begun = now - self._begun, now
        if (number + 1) % self.setting.look_every == 0:
            self._look(metrics)

    def last(self, number: int, metrics: dict[str, float]) -> None:
        """Look at the end, if that has not just been done."""
        if "look/kl" not in metrics:
            self._look(metrics)

    @torch.no_grad()
    def _look(self, metrics: dict[str, float]) -> None:
        streams = {name: value for name, value in self.policy.state_dict().items() if name.endswith("_extra_state")}
        episodes = _played(self.policy, self.setting, "test", self.setting.looks, 1, seed=1)
        self.policy.load_state_dict(streams, strict=False)
        batch = self.policy.collate([[episode] for episode in episodes])
        now, then = (policy.evaluate(batch).logp for policy in (self.policy, self.start))
        right = sum(episode.is_success for episode in episodes)
        low, high = wilson(right, len(episodes))
        metrics |= {
            "look/kl": float(kl(now, then, batch.mask, "k1").sum() / len(episodes)),
            "look/proxy": float(np.mean([score for score in self.proxy(episodes) if score is not None])),
            "look/true": right / len(episodes),
            "look/low": low,
            "look/high": high,
            "look/length": float(batch.mask.sum() / len(episodes)),
        }


def _played(policy: Any, setting: Setting, split: str, groups: int, size: int, seed: int) -> list[Episode]:
    play = Play(groups=groups, group_size=size, split=split, seed=seed)
    collector = Collector(policy, ID, play, kwargs={"dots": setting.dots})
    try:
        return [episode for row in collector.collect().rows for episode in row]
    finally:
        collector.close()


def labelled(policy: Any, setting: Setting, seed: int) -> list[Pair]:
    """Return pairs of a policy's answers as a labeller ranks them who is careless now and then.

    The right answer is preferred to the wrong one; or, where no care is taken, the longer one to the shorter.

    Args:
        policy: Who answers.
        setting: How many pairs, and how often no care is taken.
        seed: Of the questions and of the carelessness.
    """
    found: list[Pair] = []
    rng = np.random.default_rng(seed)
    for draw in range(1000):
        episodes = _played(policy, setting, "train", setting.pairs, 4, seed=1000 * (seed + 1) + draw)
        found += paired(episodes, seed=(seed, draw)).pairs
        if len(found) >= setting.pairs:
            break
    careless = rng.permutation(setting.pairs) < setting.careless * setting.pairs
    return [_by_length(pair) if lax else pair for pair, lax in zip(found, careless, strict=False)]


def _by_length(pair: Pair) -> Pair:
    right, wrong = (len(episode.steps[0].action) for episode in (pair.preferred, pair.rejected))
    return Pair(pair.rejected, pair.preferred) if wrong > right else pair


def _learnt(trainer: Trainer[Any], updates: int) -> None:
    """Do what is left of a run."""
    try:
        trainer.learn(updates)
    finally:
        trainer.close()


def one(setting: Setting, seed: int, folder: Path) -> dict[str, Any]:
    """Go from start to end with one seed, or go on with it.

    Args:
        setting: See :class:`Setting`.
        seed: Of everything.
        folder: Of the runs.
    """
    begun = time.process_time()
    size: dict[str, Any] = {"context": 16 + setting.dots, "max_tokens": 3 + setting.dots}
    policy = char_lm(characters=CHARACTERS, batch_size=256, seed=seed, **size)
    shown = near_misses(setting.shown, seed, setting.dots)
    kept: dict[str, Any] = {"kwargs": {"dots": setting.dots}, "resume": True}
    sft = BC(policy, ID, demonstrations=shown, run=folder / "sft", steps=150, lr=2e-3, seed=seed, **kept)
    _learnt(sft, 1)
    pairs = labelled(copy.deepcopy(policy), setting, seed)
    steps = max(1, setting.passes * setting.pairs // 32)
    model = _reward_model(policy, pairs, steps, seed, folder, kept)
    held_out = paired(_played(copy.deepcopy(policy), setting, "test", 400, 4, seed=2)).pairs
    ranked = {"pairs": agreement(model.score, pairs), "held_out": agreement(model.score, held_out)}
    arms = [_arm(setting, coef, seed, policy, model, folder) for coef in setting.coefs]
    spent = time.process_time() - begun
    return {"seed": seed, "agreement": ranked, "held_out_pairs": len(held_out), "arms": arms, "cpu_seconds": spent}


def _reward_model(
    policy: LanguagePolicy, pairs: Sequence[Pair], steps: int, seed: int, folder: Path, kept: dict[str, Any]
) -> RewardModel:
    options: dict[str, Any] = {"steps": steps, "batch_size": 32, "lr": 1e-3, "seed": seed}
    trainer = BradleyTerry(copy.deepcopy(policy), ID, pairs=pairs, run=folder / "reward-model", **options, **kept)
    _learnt(trainer, 1)
    return trainer.model


def _arm(
    setting: Setting, coef: float, seed: int, start: LanguagePolicy, model: RewardModel, folder: Path
) -> dict[str, Any]:
    """Let PPO learn from the proxy alone, with one weight of the divergence."""
    run = folder / f"ppo-{coef}"
    if len(noted(run)) <= setting.updates:
        policy = copy.deepcopy(start)
        trainer = PPO(
            policy,
            ID,
            kwargs={"dots": setting.dots, "pay": 0.0},  # the verifier pays nothing, and tells success all the same
            scorers={"proxy": model.score},
            run=run,
            resume=True,
            callbacks=[Look(policy, start, model.score, setting)],
            kl_coef=coef,
            kl_in="reward",
            seed=seed,
            **dict(setting.options),
        )
        _learnt(trainer, setting.updates)
    lines = noted(run)
    points = [
        {
            "updates": line["update"] + 1,
            "sqrt_kl": math.sqrt(max(line["look/kl"], 0.0)),
            **{name: line[f"look/{name}"] for name in ("kl", "proxy", "true", "low", "high", "length")},
        }
        for line in lines
        if "look/kl" in line
    ]
    return {"kl_coef": coef, "points": points, "cpu_seconds": sum(line.get("seconds_cpu", 0.0) for line in lines)}


def summary(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each weight of the divergence what came of it, as means over the seeds."""
    told = []
    for arms in zip(*(run["arms"] for run in runs), strict=True):
        curves = [arm["points"] for arm in arms]
        peaks = [max(points, key=lambda point: point["true"]) for points in curves]
        told.append(
            {
                "kl_coef": arms[0]["kl_coef"],
                **{f"{name}_before": _mean(points[0][name] for points in curves) for name in ("true", "proxy")},
                "true_peak": _mean(peak["true"] for peak in peaks),
                "sqrt_kl_peak": _mean(peak["sqrt_kl"] for peak in peaks),
                **{
                    f"{name}_after": _mean(points[-1][name] for points in curves)
                    for name in ("true", "proxy", "sqrt_kl")
                },
                "true_lost": _mean(
                    peak["true"] - points[-1]["true"] for peak, points in zip(peaks, curves, strict=True)
                ),
            }
        )
    return told


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def draw(runs: Sequence[dict[str, Any]], out: Path) -> None:
    """Draw the proxy's score and the share of right answers over the root of the divergence, a line a seed.

    Args:
        runs: What came of the seeds.
        out: A file whose ending says its kind (svg, png).
    """
    weights = [arm["kl_coef"] for arm in runs[0]["arms"]]
    with figure(out, (3.4 * len(weights), 4.2), "reward-model") as drawn:
        fields = drawn.subplots(2, len(weights), squeeze=False, sharex="col", sharey="row")
        for row, (name, axis, scale) in enumerate(
            (("proxy", "score of the reward model", 1.0), ("true", "right answers in %", 100.0))
        ):
            for column, axes in enumerate(fields[row]):
                for number, run in enumerate(runs):
                    points = run["arms"][column]["points"]
                    at, values = (
                        [scale_of * p[key] for p in points] for key, scale_of in (("sqrt_kl", 1.0), (name, scale))
                    )
                    axes.plot(at, values, "o-", ms=2.5, lw=0.8, color=COLOURS[number % len(COLOURS)])
                    axes.lines[-1].set_label(f"seed {run['seed']}")
                axes.set_ylabel(axis if column == 0 else "")
                if row == 0:
                    axes.set_title(f"kl_coef {weights[column]}", fontsize=9, loc="left")
                    axes.legend(frameon=False, fontsize=7, loc="lower right")
                else:
                    axes.set_xlabel("root of the KL of an answer from the start")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Learn from a reward model, further than it can be trusted."""

    out: Path
    """The JSON file."""
    runs: Path = Path("runs/reward-model")
    """Folder of the training runs; one that is there goes on."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds."""
    picture: Path | None = None
    """A picture of the curves (svg, png)."""


def main(words: list[str], setting: Setting | None = None) -> int:
    """Run what the command line asks for."""
    arguments = tyro.cli(Arguments, args=words, prog="python -m tetrathlon.benchmarks.reward_model")
    setting = setting or Setting()
    console = Console(highlight=False)
    runs = []
    for seed in arguments.seeds:
        runs.append(one(setting, seed, arguments.runs / str(seed)))
        console.print(_line(runs[-1]), soft_wrap=True)
    found = {
        "setting": asdict(setting) | {"options": dict(setting.options)},
        "command": "python -m tetrathlon.benchmarks.reward_model "
        f"--seeds {' '.join(map(str, arguments.seeds))} --out {arguments.out}",
        "machine": machine.describe(),
        "commit": machine.commit(),
        "summary": summary(runs),
        "runs": runs,
    }
    write_aside(arguments.out, (json.dumps(found, indent=1) + "\n").encode())
    if arguments.picture is not None:
        draw(runs, arguments.picture)
    return 0


def _line(run: dict[str, Any]) -> str:
    told = f"seed {run['seed']}: {run['agreement']['held_out']:.3f} of held-out pairs ranked"
    for arm in run["arms"]:
        first, last = arm["points"][0], arm["points"][-1]
        peak = max(arm["points"], key=lambda point: point["true"])
        told += (
            f"; kl_coef {arm['kl_coef']}: true {first['true']:.3f} -> {peak['true']:.3f} -> {last['true']:.3f}, proxy "
            f"{first['proxy']:.2f} -> {last['proxy']:.2f}, root KL {last['sqrt_kl']:.2f}"
        )
    return f"{told}; {run['cpu_seconds']:.0f} CPU s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
