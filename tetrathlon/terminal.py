"""What the command line shows: observations, actions, episodes and results, readable in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tetrathlon.benchmarks.excerpt import excerpt, line, visible
from tetrathlon.envs.codec import is_image
from tetrathlon.envs.episode import Episode, Step

_WIDEST_PICTURE = 64
_LONGEST_TERM = 24
_LEAST_TASK = 32


def say(console: Console, text: str, style: str = "") -> None:
    """Print text of unknown origin: no markup, no control characters, wrapped at words."""
    console.print(Text(visible(text), style=style))


def heading(console: Console, title: str) -> None:
    """Print a rule with a title."""
    console.print(Rule(Text(line(title, 70)), align="left", style="dim"))


def show_value(console: Console, value: Any, *, name: str = "", whole: bool = False) -> None:
    """Print an observation or an action of any space.

    Args:
        console: Where.
        value: The value.
        name: What to call it, where it is a part of a dict.
        whole: Print all of a text however long it is.
    """
    label = f"{name}: " if name else ""
    if isinstance(value, dict):
        for key, part in value.items():
            show_value(console, part, name=f"{name}.{key}" if name else str(key), whole=whole)
    elif isinstance(value, str):
        say(console, label + (value if whole else excerpt(value)))
    elif is_image(value):
        height, width = value.shape[:2]
        say(console, f"{label}picture, {width} x {height}", "dim")
        if console.color_system is not None:
            console.print(_picture(value, min(_WIDEST_PICTURE, console.width)))
    elif isinstance(value, np.ndarray):
        say(console, label + np.array2string(value, precision=3, suppress_small=True, threshold=50))
    else:
        say(console, label + excerpt(value))


def show_payment(console: Console, step: Step) -> None:
    """Print what a step paid, term by term, and how it ended where it did."""
    terms = step.info.get("reward_terms")
    parts = (
        " (" + ", ".join(f"{line(name, _LONGEST_TERM)} {paid:g}" for name, paid in terms.items()) + ")"
        if isinstance(terms, dict) and terms
        else ""
    )
    say(console, f"reward {step.reward:g}{parts}", "cyan")
    if error := step.info.get("grader_error"):
        say(console, f"the grader failed: {line(error, 200)}", "yellow")


def show_end(console: Console, episode: Episode) -> None:
    """Print how an episode ended."""
    reason = line(episode.stop_reason, 60) if episode.stop_reason else "truncated"
    if not episode.stop_reason and episode.steps and episode.steps[-1].terminated:
        reason = "terminated"
    outcome, style = outcome_of(episode)
    steps = f"{len(episode)} step{'s' if len(episode) != 1 else ''}"
    say(console, f"{outcome} · {reason} · {steps} · total reward {episode.total_reward:g}", f"bold {style}")


def outcome_of(episode: Episode) -> tuple[str, str]:
    """Return a word for an episode's outcome and its colour."""
    if episode.grader_error is not None:
        return "unscorable", "yellow"
    if episode.last_info.get("is_success") is None:
        return "over", "white"
    return ("success", "green") if episode.is_success else ("failure", "red")


def show_episode(console: Console, episode: Episode, number: int) -> None:
    """Print an episode turn by turn."""
    seed = f" · seed {episode.seed}" if episode.seed is not None else ""
    heading(console, f"episode {number} · {episode.env}{seed}")
    show_given(console, episode.info)
    for position, step in enumerate(episode.steps):
        if len(episode) > 1:
            heading(console, f"step {position}")
        show_value(console, step.observation)
        say(console, "> " + step_action(step), "bold")
        show_payment(console, step)
    show_end(console, episode)


def show_given(console: Console, info: dict[str, Any]) -> None:
    """Print what an agent is given before the first observation: the system message and worked examples."""
    if system := info.get("system"):
        say(console, f"system: {excerpt(system)}", "dim")
    for message in info.get("examples") or ():
        say(console, f"{message['role']}: {excerpt(message['content'])}", "dim")


def step_action(step: Step) -> str:
    """Return what was done, as text."""
    if isinstance(step.action, np.ndarray):
        return np.array2string(step.action, precision=3, suppress_small=True, threshold=50)
    return excerpt(step.action)


def episodes_table(episodes: list[Episode], most: int = 20) -> Table:
    """Return one line an episode."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("episode", "seed", "steps", "reward"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("last action", no_wrap=True, overflow="ellipsis")
    for number, episode in enumerate(episodes[:most]):
        outcome, style = outcome_of(episode)
        last = line(step_action(episode.steps[-1]), 60) if episode.steps else ""
        seed = "" if episode.seed is None else str(episode.seed)
        table.add_row(
            str(number), seed, str(len(episode)), f"{episode.total_reward:g}", Text(outcome, style), Text(last)
        )
    if len(episodes) > most:
        table.caption = f"{len(episodes) - most} more"
    return table


def envs_table(rows: Sequence[Mapping[str, str]], width: int) -> Table:
    """Return one line an environment; where that leaves the task no room, the task on a line below.

    Args:
        rows: Mappings with ``id``, ``domain`` and ``description``.
        width: Columns of the terminal.
    """
    longest = {name: max((len(row[name]) for row in rows), default=0) for name in ("id", "domain")}
    if width - sum(longest.values()) < _LEAST_TASK:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(overflow="fold")
        for row in rows:
            table.add_row(Text(f"{row['id']} · {row['domain']}", style="bold"))
            table.add_row(Padding(Text(row["description"]), (0, 0, 0, 2)))
        return table
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, least in longest.items():
        table.add_column(name, no_wrap=True, min_width=least)
    table.add_column("task")
    for row in rows:
        table.add_row(row["id"], row["domain"], Text(row["description"]))
    return table


def result_table(result: Mapping[str, Any]) -> Table:
    """Return an evaluation, as ``Result.to_json`` gives it, one fact a line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()

    def add(name: str, value: str) -> None:
        table.add_row(name, Text(visible(value)))

    samples = f" x {result['samples']} samples" if result["samples"] > 1 else ""
    split = f", {result['split']} split" if result["split"] else ""
    add("environment", f"{result['env']}{split}{_settings(result['kwargs'])}")
    draws = result["policy"] not in ("random", "expert")  # to these greedy means nothing
    add("policy", result["policy"] + (", greedy" if result["greedy"] else ", sampled") * draws)
    add("episodes", f"{result['episodes']}{samples}, seed {result['seed']}")
    add("success", _rate(result["success"]))
    if result["samples"] > 1:
        add("pass@k", _by_k(result["pass_at"]))
        if result["pass_all"]:  # older results have none
            add("pass^k", _by_k(result["pass_all"]))
        if result["majority_at"] is not None:
            add("majority@k", _by_k(result["majority_at"]))
    reward = result["reward"]
    if reward["mean"] is not None:
        add("reward", f"{reward['mean']:.4g}  [{reward['low']:.4g}, {reward['high']:.4g}]")
    if len(result["reward_terms"]) > 1:
        add("reward terms", _numbers(result["reward_terms"]))
    if total := result["costs"].get("total"):
        shares = {name: cost["mean"] for name, cost in result["costs"].items() if name != "total"}
        add("cost", f"{total['mean']:.4g} an episode, {100 * total['share']:.0f} % with any, CVaR {total['cvar']:.4g}")
        add("cost terms", _numbers(shares))
    if result["steps"] is not None and result["steps"] != 1:
        add("steps", f"{result['steps']:.4g} an episode")
    if result["tokens"] is not None:
        add("tokens", f"{result['tokens']['mean']:.4g} an episode, {result['tokens']['total']} in all")
    lengths = {key: result["lengths"][key] for key in ("success", "failure")}
    if any(value is not None for value in lengths.values()) and result["lengths"]["unit"] != "steps":
        add("by outcome", f"{_numbers(lengths)} {result['lengths']['unit']}")
    add("stopped", ", ".join(f"{line(name)} {count}" for name, count in result["stop_reasons"].items()) or "–")
    if result["grader_errors"]:
        first = line(result["grader_messages"][0], 200)
        add("grader errors", f"{result['grader_errors']}, left out of success and reward; first: {first}")
    if result["crashes"]["count"]:
        add("crashes", f"{result['crashes']['count']}, lost; first: {line(result['crashes']['messages'][0], 200)}")
    for name, value in _looks(result.get("dependence") or {}):
        add(name, value)
    add("time", f"{result['seconds']:.1f} s, {result['cpu_seconds']:.1f} s of processor")
    return table


def _looks(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the lines of what answers to pictures depend on."""
    if not found.get("instances"):
        return

    def share(name: str) -> str:
        return f"{100 * found[name]:.1f} %"

    interval = f"[{100 * found['pair_low']:.1f}, {100 * found['pair_high']:.1f}]"
    yield "both twins right", f"{share('pair')}  {interval}; the twin {share('twin')}, another answer {share('flips')}"
    yield "covered", f"says unseen {share('abstains')}, knows what is covered {share('masked')}"
    yield "covered elsewhere", f"{share('distractor_masked')}, a drop of {share('distractor_drop')}"
    yield "without the picture", f"{share('no_image')}; the best blind policy {share('blind_floor')}"


def _settings(kwargs: Mapping[str, Any]) -> str:
    return f" ({', '.join(f'{name}={line(value, 30)}' for name, value in kwargs.items())})" if kwargs else ""


def _rate(rate: Mapping[str, Any]) -> str:
    if rate["mean"] is None:
        return "unknown: no episode said whether it was one"
    interval = f"[{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"
    return f"{100 * rate['mean']:.1f} %  {interval}  (n={rate['n']}, 95 %, {rate['interval']})"


def _by_k(values: Mapping[str, float | None]) -> str:
    return "  ".join(f"{k}: {'–' if value is None else f'{100 * value:.1f} %'}" for k, value in values.items())


def _numbers(values: Mapping[str, float | None]) -> str:
    return ", ".join(
        f"{line(name, _LONGEST_TERM)} {'–' if value is None else f'{value:.4g}'}" for name, value in values.items()
    )


def _picture(array: np.ndarray, columns: int) -> Text:
    """Return a picture as half blocks: two pixels a character, one above the other."""
    image = Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array).convert("RGB")
    image.thumbnail((columns, 2 * columns))
    pixels = np.asarray(image)
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    text = Text(no_wrap=True)
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        for top, bottom in zip(upper.tolist(), lower.tolist(), strict=True):
            text.append("▀", "rgb({},{},{}) on rgb({},{},{})".format(*top, *bottom))
        text.append("\n")
    return text
