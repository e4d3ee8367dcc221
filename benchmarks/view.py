"""Episodes as HTML, turn by turn: of text, tools, pictures and robots alike."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tetrathlon.benchmarks.evidence import truth_of
from tetrathlon.benchmarks.excerpt import escape, excerpt, line
from tetrathlon.benchmarks.files import load_result
from tetrathlon.benchmarks.page import facts, page
from tetrathlon.benchmarks.video import encode_gif, picture_in
from tetrathlon.envs.codec import is_image
from tetrathlon.envs.episode import Episode, load_episodes, write_aside

_MOST_EPISODES = 200
_MOST_TURNS = 40
_MOST_BYTES = 12_000_000  # of pictures; a page of more is slow to open
_WIDEST_PICTURE = 480
_LEAST_FRAMES, _MOST_FRAMES = 8, 120
_FILM_FPS = 10.0
_SHOWN_APART = frozenset(
    {
        "reward_terms",
        "is_success",
        "stop_reason",
        "scores",
        "expert_action",
        "system",
        "tools",
        "limits",
        "task_id",
        "role",
        "tool_results",
        "tool_errors",
        "has_image",
    }
)


class Pictures:
    """Turns arrays into ``<img>`` elements, as long as a page can bear it.

    Args:
        most: Bytes of all of them.
    """

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self.left = most

    def img(self, array: np.ndarray, label: str) -> str:
        """Return the element, or a note where there were too many."""
        if self.left <= 0:
            return '<span class="note">[a picture, left out: this page holds enough]</span>'
        picture = Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array)
        picture.thumbnail((_WIDEST_PICTURE, _WIDEST_PICTURE))
        file = io.BytesIO()
        picture.save(file, "PNG")
        return self._element("png", file.getvalue(), picture.size, label)

    def film(self, frames: Sequence[np.ndarray], label: str) -> str:
        """Return an element that shows the frames one after the other, or nothing where there were too many."""
        if self.left <= 0:
            return ""
        height, width = frames[0].shape[:2]
        scale = max(1, _WIDEST_PICTURE // 2 // max(height, width))  # by the page, so that its bytes stay as they are
        return self._element("gif", encode_gif(frames, _FILM_FPS), (scale * width, scale * height), label)

    def _element(self, kind: str, picture: bytes, size: tuple[int, int], label: str) -> str:
        data = base64.b64encode(picture).decode("ascii")
        self.left -= len(data)
        source = f"data:image/{kind};base64,{data}"
        return f'<img src="{source}" width="{size[0]}" height="{size[1]}" alt="{escape(line(label))}">'


def episode_html(episode: Episode, pictures: Pictures, *, name: str = "", turns: int = _MOST_TURNS) -> str:
    """Return one episode as an ``<article>``.

    Args:
        episode: The episode.
        pictures: Makes its pictures.
        name: What to call it.
        turns: Most turns that are shown.
    """
    head = [_badge(episode)]
    if name:
        head.insert(0, f"<strong>{escape(name)}</strong>")
    if episode.seed is not None:
        head.append(f'<span class="dim">seed {episode.seed}</span>')
    head.append(f'<span class="dim">reward {episode.total_reward:g}</span>')
    if episode.stop_reason is not None:
        head.append(f'<span class="dim">{escape(line(episode.stop_reason))}</span>')
    if len(episode) > 1:
        head.append(f'<span class="dim">{len(episode)} steps</span>')
    shown = list(range(len(episode)))
    if len(shown) > turns:
        shown = [*range(turns - turns // 4), *range(len(episode) - turns // 4, len(episode))]
    parts = []
    if film := _film(episode, pictures):
        parts.append(f'<div class="seen">{film}</div>')
    if system := episode.info.get("system"):
        parts.append(_block("system", system))
    if examples := episode.info.get("examples"):
        messages = "".join(_block(message["role"], message["content"]) for message in examples)
        parts.append(f"<details><summary>{len(examples) // 2} worked examples before it</summary>{messages}</details>")
    for before, i in zip([-1, *shown], shown, strict=False):
        if i != before + 1:
            parts.append(f'<p class="note">… {i - before - 1:,} turns left out …</p>')
        parts.append(_turn(episode, i, pictures))
    if (last := _observation(episode.final_observation, pictures)) and len(episode) > 1:
        parts.append(f'<div class="turn"><div class="label">last observation</div>{last}</div>')
    if (truth := truth_of(episode)) is not None:
        shown_truth = f'<div class="seen">{pictures.img(truth.picture, "evidence and answer")}</div>'
        parts.append(
            f'<div class="turn"><div class="label">right</div><pre>{_value(truth.answer)}</pre>{shown_truth}</div>'
        )
    turns_html = f'<div class="turns">{"".join(parts)}</div>'
    return f'<article class="episode"><div class="head">{" ".join(head)}</div>{turns_html}</article>'


def write_view(folder: str | os.PathLike[str]) -> Path:
    """Write ``view.html``, which shows the episodes of an evaluation or a recording turn by turn.

    Args:
        folder: Holds ``episodes.jsonl``, and ``result.json`` where it was an evaluation.

    Returns:
        The path of the page.

    Raises:
        FileNotFoundError: There is no ``episodes.jsonl`` in the folder.
        ValueError: A line of it is not an episode, or ``result.json`` is not a result.
    """
    folder = Path(folder)
    if not (folder / "episodes.jsonl").exists():
        raise FileNotFoundError(f"{folder} holds no episodes.jsonl; give the folder of an evaluation or a recording")
    episodes = load_episodes(folder)
    result: dict[str, Any] = {}
    if (folder / "result.json").exists():
        result = load_result(folder / "result.json")
    env = result.get("env") or next((episode.env for episode in episodes), "") or folder.name
    pictures = Pictures()
    shown = episodes[:_MOST_EPISODES]
    right = sum(episode.is_success for episode in episodes)
    body = [
        f'<header><div class="brand">tetrathlon · episodes</div><h1>{escape(line(env))}</h1>'
        f'<p class="dim">{len(episodes):,} episodes, {right:,} successful</p></header>'
    ]
    if result:
        body.append(facts(_summary(result)))
    if len(shown) < len(episodes):
        body.append(f'<p class="note">The first {len(shown):,} of {len(episodes):,} episodes.</p>')
    articles = [episode_html(episode, pictures, name=f"#{i}") for i, episode in enumerate(shown)]
    body.append(f'<section class="episodes">{"".join(articles)}</section>')
    path = folder / "view.html"
    write_aside(path, page(f"{line(env)} · episodes", "\n".join(body)).encode("utf-8"))
    return path


def _summary(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [(key, escape(line(result[key]))) for key in ("policy", "split", "seed") if result.get(key) is not None]
    success = result.get("success") or {}
    if success.get("mean") is not None:
        rate = f"{100 * success['mean']:.1f} % [{100 * success['low']:.1f}, {100 * success['high']:.1f}]"
        rows.append(("success", f"{rate} of {success.get('n', '?')}"))
    if result.get("kwargs"):
        rows.append(("arguments", f"<code>{escape(excerpt(_json(result['kwargs']), 400))}</code>"))
    if stops := result.get("stop_reasons"):
        rows.append(("stop reasons", escape(", ".join(f"{line(name)} {n}" for name, n in stops.items()))))
    return rows


def _film(episode: Episode, pictures: Pictures) -> str:
    """Return what was seen as one moving picture, where an episode is long and each observation has a picture."""
    seen = [*(step.observation for step in episode.steps), episode.final_observation]
    frames = [frame for observation in seen if (frame := picture_in(observation)) is not None]
    if len(frames) < max(_LEAST_FRAMES, len(seen)) or len({frame.shape for frame in frames}) > 1:
        return ""
    return pictures.film(frames[:: -(-len(frames) // _MOST_FRAMES)], "the episode")


def _badge(episode: Episode) -> str:
    if episode.grader_error is not None:
        return f'<span class="badge none">not graded: {escape(line(episode.grader_error))}</span>'
    if not episode.ended:
        return '<span class="badge none">unfinished</span>'
    if episode.last_info.get("is_success") is None:  # an environment that knows rewards alone
        return '<span class="badge none">over</span>'
    word = "right" if episode.is_success else "wrong"
    return f'<span class="badge {word}">{word}</span>'


def _turn(episode: Episode, i: int, pictures: Pictures) -> str:
    step = episode.steps[i]
    number = f"{i + 1} · " if len(episode) > 1 else ""
    parts = [f'<div class="label">{number}observation</div>{_observation(step.observation, pictures)}']
    parts.append(f'<div class="label">{number}action</div><pre class="said">{_value(step.action)}</pre>')
    if step.label is not None:
        parts.append(f'<div class="label">expert</div><pre>{_value(step.label)}</pre>')
    if calls := step.info.get("tool_results"):
        parts.append(f'<div class="label">calls</div><p>{" ".join(_call(call) for call in calls)}</p>')
    paid = [f"reward {step.reward:g}"]
    terms = step.info.get("reward_terms") or {}
    if isinstance(terms, Mapping) and terms:
        paid.append("(" + ", ".join(f"{line(name)} {_number(value)}" for name, value in terms.items()) + ")")
    parts.append(f'<div class="label">{escape(" ".join(paid))}</div>')
    rest = {key: value for key, value in step.info.items() if key not in _SHOWN_APART}
    if rest:
        parts.append(f'<div class="label">info</div><pre>{escape(excerpt(_json(rest), 800, 20))}</pre>')
    return f'<div class="turn">{"".join(parts)}</div>'


def _call(result: Mapping[str, Any]) -> str:
    """Return what became of a call; its result is the next observation."""
    error = line(result.get("error") or "", 40)
    said = f"{line(result.get('name') or 'a call', 64)}{': ' + error if error else ''}"
    return f'<span class="badge {"wrong" if error else "right"}">{escape(said)}</span>'


def _observation(observation: Any, pictures: Pictures) -> str:
    if observation is None or (isinstance(observation, str) and not observation):
        return ""
    if is_image(observation):
        return f'<div class="seen">{pictures.img(observation, "observation")}</div>'
    if isinstance(observation, Mapping):
        images = [pictures.img(value, str(key)) for key, value in observation.items() if is_image(value)]
        rest = [_block(key, value) for key, value in observation.items() if not is_image(value)]
        return (f'<div class="seen">{"".join(images)}</div>' if images else "") + "".join(rest)
    return f"<pre>{_value(observation)}</pre>"


def _block(label: object, value: Any) -> str:
    return f'<div class="label">{escape(line(label))}</div><pre>{_value(value)}</pre>'


def _value(value: Any) -> str:
    """Return any observation or action as safe text."""
    if isinstance(value, str):
        return escape(excerpt(value)) if value else '<span class="dim">(empty)</span>'
    if isinstance(value, np.ndarray):
        return escape(excerpt(np.array2string(value, precision=4, suppress_small=True, threshold=48), 800, 16))
    return escape(excerpt(_json(value), 800, 20))


def _json(value: Any) -> str:
    """Return ``value`` as people read JSON; what JSON lacks is written as Python writes it."""
    return json.dumps(value, ensure_ascii=False, default=_written, indent=1 if _is_long(value) else None)


def _is_long(value: Any) -> bool:
    return isinstance(value, Mapping | Sequence) and len(str(value)) > 90


def _written(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.size <= 64:
        return value.tolist()
    return line(value, 200)


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else line(value, 20)
