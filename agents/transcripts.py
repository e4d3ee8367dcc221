"""What was said in an episode as one row of token ids: what was given, what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tetrathlon.agents.chat import Chat, Dialogue
from tetrathlon.agents.decisions import Last, Learn, Width
from tetrathlon.envs.episode import Episode


@dataclass(slots=True)
class Transcript:
    """One row: the ids of one episode up to some step."""

    episode: Episode
    """The episode, up to the last step that the row holds."""
    ids: list[int] = field(default_factory=list)
    """Everything that was given and said, [L]."""
    widths: list[Width | int] = field(default_factory=list)
    """As :func:`~tetrathlon.agents.decisions.layout` takes them."""
    logps: list[float] = field(default_factory=list)
    """Of each decided id, as sampled; NaN where it was not the policy's own."""
    cuts: list[bool] = field(default_factory=list)
    """Of each decided id: whether a limit stopped the turn behind it."""


class Transcriber:
    """Writes transcripts: records verbatim, and only what has none (a label, somebody else's action) is encoded.

    Args:
        chat: The chat template.
        start: Ids that stand for an empty text.
    """

    def __init__(self, chat: Chat, start: Sequence[int]) -> None:
        self.chat = chat
        self.start = list(start)

    def transcripts(self, episode: Episode, learn: Learn, last: Last) -> list[Transcript]:
        """Return the rows that an episode becomes: one, or one a label.

        Raises:
            ValueError: A record does not go on where the episode was.
        """
        if learn == "label":
            asked = [i for i, step in enumerate(episode.steps) if step.label is not None]
            return [self._write(replace(episode, steps=episode.steps[: end + 1]), learn, "never") for end in asked]
        return [self._write(episode, learn, last)]

    def _write(self, episode: Episode, learn: Learn, last: Last) -> Transcript:
        row = Transcript(episode)
        dialogue: Dialogue | None = None
        info = episode.info
        laid = 0  # ids that the widths speak of so far
        for number, step in enumerate(episode.steps):
            is_label = learn == "label" and number == len(episode) - 1
            own = None if is_label else step.record
            if own is not None:
                before = row.ids[: dialogue.recorded] if dialogue is not None else []
                given = [*before, *own["prompt"].tolist()]
                if given[: len(row.ids)] != row.ids:
                    raise ValueError(
                        f"the record of step {number} does not go on where the episode was: its prompt holds "
                        f"{len(given)} ids, of which the first {len(row.ids)} should be those of the steps before"
                    )
                said = own["ids"].tolist()
            else:
                added, opened = self._given(dialogue, info, step.observation)
                given = [*row.ids, *added]
                said = self.chat.forced(step.label if is_label else step.action, opened)
            row.ids = [*given, *said]
            if dialogue is None:
                dialogue = Dialogue(system=info.get("system") or "", tools=tuple(info.get("tools") or ()))
            recorded = len(row.ids) if own is not None else dialogue.recorded
            dialogue = replace(dialogue, ids=tuple(row.ids), recorded=recorded)
            decides = {"own": own is not None, "label": is_label, "action": True}[learn]
            row.widths.append((len(row.ids) - len(said) - laid, len(said)) if decides else (len(row.ids) - laid, 0))
            laid = len(row.ids)
            if decides:
                row.logps += own["logps"].tolist() if own is not None else [np.nan] * len(said)
                row.cuts += own["cut"].tolist() if own is not None else [False] * len(said)
            info = step.info
        tail: list[int] = []
        if last == "always" or (last == "open" and episode.steps and not episode.steps[-1].terminated):
            if episode.final_observation and dialogue is not None:
                tail = self._given(dialogue, info, episode.final_observation)[0]
            row.ids += tail
        row.widths.append(len(tail))
        return row

    def _given(self, dialogue: Dialogue | None, info: dict[str, Any], observation: Any) -> tuple[list[int], str]:
        if dialogue is not None:
            return self.chat.later(dialogue, info.get("role") or "user", observation)
        added, opened = self.chat.first(
            info.get("system") or "", info.get("tools") or (), info.get("examples") or (), observation
        )
        return added or self.start, opened
