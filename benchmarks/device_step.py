"""Seconds and memory of GRPO updates on a device: ``python -m tetrathlon.benchmarks.device_step --out FILE``.

The model has the shape of SmolLM2-135M; with ``--weights random`` nothing but torch and transformers is needed.
"""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console

from tetrathlon.agents.char_lm import CHARACTERS, character_tokenizer
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos import GRPO
from tetrathlon.benchmarks import machine
from tetrathlon.envs.episode import write_aside

_SMOLLM2: dict[str, Any] = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "rope_theta": 100_000.0,
    "tie_word_embeddings": True,
}


def made(weights: str, dtype: str, device: str) -> LanguagePolicy:
    """Return the policy that is measured.

    Args:
        weights: ``"random"``: the shape of SmolLM2-135M over characters; else a folder, or ``"smollm2"``.
        dtype: ``"float32"`` or ``"mixed"``.
        device: Where.
    """
    if weights != "random":
        from tetrathlon.agents import smollm2

        return LanguagePolicy.from_pretrained(
            smollm2() if weights == "smollm2" else weights, dtype=dtype, device=device
        )
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = character_tokenizer(CHARACTERS)
    eos = tokenizer.eos_token_id
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = LlamaForCausalLM(LlamaConfig(**_SMOLLM2, bos_token_id=None, eos_token_id=eos, pad_token_id=eos))
    return LanguagePolicy(model.to(device).eval(), tokenizer, autocast=torch.bfloat16 if dtype == "mixed" else None)


def measure(arguments: Arguments, dtype: str) -> dict[str, Any]:
    """Return medians over the updates but the first."""
    policy = made(arguments.weights, dtype, arguments.device)
    on_cuda = torch.device(arguments.device).type == "cuda"
    if on_cuda:
        torch.cuda.reset_peak_memory_stats()
    history = GRPO(
        policy,
        "tetrathlon/Arithmetic-v0",
        kwargs={"max_tokens": arguments.max_tokens},
        groups=arguments.groups,
        group_size=arguments.group_size,
        lr=1e-6,
    ).learn(arguments.updates + 1)[1:]
    phases = {
        name: statistics.median(metrics[f"seconds_{name}"] for metrics in history)
        for name in ("play", "prepare", "optimize")
    }
    return {
        "dtype": dtype,
        "seconds": sum(phases.values()),
        **phases,
        "decisions": statistics.median(metrics["decisions"] for metrics in history),
        "cost": statistics.median(metrics["cost"] for metrics in history),
        "sampler_drift": max(metrics["sampler_drift"] for metrics in history),
        "first_ratio_error": max(metrics["first_ratio_error"] for metrics in history),
        "peak_gb": torch.cuda.max_memory_allocated() / 2**30 if on_cuda else None,
    }


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Measure updates."""

    out: Path
    """JSON file."""
    device: str = "cuda"
    """Where the model is."""
    weights: Annotated[str, tyro.conf.arg(metavar="random|smollm2|DIR")] = "random"
    """Which model."""
    dtype: tuple[Literal["float32", "mixed"], ...] = ("float32", "mixed")
    """What is computed in."""
    groups: int = 8
    """Prompts an update."""
    group_size: int = 8
    """Completions a prompt."""
    max_tokens: int = 48
    """Most tokens a completion."""
    updates: int = 5
    """Updates that count, after one that does not."""


def main(words: list[str]) -> int:
    """Measure what the command line asks for."""
    arguments = tyro.cli(Arguments, args=words, prog="python -m tetrathlon.benchmarks.device_step")
    console = Console(highlight=False)
    rows = []
    for dtype in arguments.dtype:
        rows.append(measure(arguments, dtype))
        console.print(rows[-1])
    name = torch.cuda.get_device_name() if torch.device(arguments.device).type == "cuda" else "cpu"
    found = {
        "command": f"python -m tetrathlon.benchmarks.device_step {' '.join(words)}",
        "device": name,
        "machine": machine.describe(),
        "commit": machine.commit(),
        "updates": rows,
    }
    write_aside(arguments.out, (json.dumps(found, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
