"""What was said in an episode as one row of token ids: what was given, what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tetrathlon.agents.chat import Chat
from tetrathlon.agents.decisions import Last, Learn, Width
from tetrathlon.agents.dialogue import Dialogue, with_message
from tetrathlon.agents.engine import Completion
from tetrathlon.agents.observed import observed
from tetrathlon.agents.picture import Picture, pictures_at
from tetrathlon.agents.sight import Sight, looked_at
from tetrathlon.envs.episode import Episode


@dataclass(slots=True)
class Transcript:
    """One row: the ids of one episode up to some step."""

    episode: Episode
    """The episode, up to the last step that the row holds."""
    ids: list[int] = field(default_factory=list)
    """Everything that was given and said, [L]; pictures by their codes."""
    pictures: tuple[Picture, ...] = ()
    """Those that were shown."""
    widths: list[Width | int] = field(default_factory=list)
    """As :func:`~tetrathlon.agents.decisions.layout` takes them."""
    logps: list[float] = field(default_factory=list)
    """Of each decided id, as sampled; NaN where it was not the policy's own."""
    cuts: list[bool] = field(default_factory=list)
    """Of each decided id: whether a limit stopped the turn behind it."""
    fresh: list[int] = field(default_factory=list)
    """Where in ``ids`` the template wrote the past anew: what stands before is nothing that the model read there."""


class Transcriber:
    """Writes transcripts: records verbatim, and only what has none (a label, somebody else's action) is encoded.

    Args:
        chat: The chat template.
        start: Ids that stand for an empty text.
        sight: How the model takes pictures; None: it takes none.
    """

    def __init__(self, chat: Chat, start: Sequence[int], sight: Sight | None = None) -> None:
        self.chat = chat
        self.sight = sight
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
            said_text = step.label if is_label else step.action
            if own is not None:
                heard = self._recorded(dialogue, number, info, step.observation, own)
                said = own["ids"].tolist()
            else:
                heard, opened = self._heard(dialogue, info, step.observation)
                said = self.chat.forced(said_text, opened)
            self._give(row, dialogue, heard)
            row.ids += said
            ids = (*heard.ids, *said)
            dialogue = replace(
                with_message(heard, "assistant", said_text),
                ids=ids,
                recorded=len(ids) if own is not None else heard.recorded,
                is_fresh=False,
            )
            decides = {"own": own is not None, "label": is_label, "action": True}[learn]
            row.widths.append((len(row.ids) - len(said) - laid, len(said)) if decides else (len(row.ids) - laid, 0))
            laid = len(row.ids)
            if decides:
                row.logps += own["logps"].tolist() if own is not None else [np.nan] * len(said)
                row.cuts += own["cut"].tolist() if own is not None else [False] * len(said)
            info = step.info
        is_open = last == "always" or (last == "open" and bool(episode.steps) and not episode.steps[-1].terminated)
        if is_open and episode.final_observation and dialogue is not None:
            self._give(row, dialogue, self._heard(dialogue, info, episode.final_observation)[0])
        row.widths.append(len(row.ids) - laid)
        return row

    def _give(self, row: Transcript, before: Dialogue | None, heard: Dialogue) -> None:
        """Write into a row what is new of what the model read."""
        row.pictures = heard.pictures
        old = () if before is None else before.ids
        if heard.ids[: len(old)] == old:
            row.ids += heard.ids[len(old) :]
        else:
            row.fresh.append(len(row.ids))
            row.ids += heard.ids

    def _recorded(
        self, dialogue: Dialogue | None, number: int, info: dict[str, Any], observation: Any, own: dict[str, Any]
    ) -> Dialogue:
        """Return the dialogue in which the policy decided, by its own record."""
        if dialogue is None:
            begun = self._begun(info, observation)
            return replace(begun, ids=tuple(_prompt(own, begun.pictures, number)))
        heard = with_message(dialogue, info.get("role") or "user", *self._observed(observation, info))
        prompt = _prompt(own, heard.pictures, number)
        is_fresh = bool(own.get("fresh", False))
        given = prompt if is_fresh else [*dialogue.ids[: dialogue.recorded], *prompt]
        if not is_fresh and tuple(given[: len(dialogue.ids)]) != dialogue.ids:
            raise ValueError(
                f"the record of step {number} does not go on where the episode was: its prompt holds {len(given)} ids, "
                f"of which the first {len(dialogue.ids)} should be those of the steps before"
            )
        return replace(heard, ids=tuple(given))

    def _heard(self, dialogue: Dialogue | None, info: dict[str, Any], observation: Any) -> tuple[Dialogue, str]:
        if dialogue is not None:
            return self.chat.heard(dialogue, info.get("role") or "user", *self._observed(observation, info))
        begun = self._begun(info, observation)
        text, picture = self._observed(observation, info)
        added, opened = self.chat.first(begun.system, begun.tools, begun.messages[:-1], text, picture=picture)
        return replace(begun, ids=tuple(added or self.start)), opened

    def _begun(self, info: dict[str, Any], observation: Any) -> Dialogue:
        dialogue = Dialogue(
            messages=tuple(info.get("examples") or ()),
            system=info.get("system") or "",
            tools=tuple(info.get("tools") or ()),
        )
        return with_message(dialogue, "user", *self._observed(observation, info))

    def _observed(self, observation: Any, info: dict[str, Any]) -> tuple[str, Picture | None]:
        text, array = observed(observation, info)
        return text, looked_at(self.sight, array)


def _prompt(own: dict[str, Any], pictures: Sequence[Picture], number: int) -> list[int]:
    """Return what a record was given, with the codes of pictures where they stood."""
    prompt: list[int] = own["prompt"].tolist()
    for at, which in own["pictures"].tolist() if "pictures" in own else ():
        if which >= len(pictures) or tuple(prompt[at : at + len(pictures[which].ids)]) != pictures[which].ids:
            raise ValueError(
                f"the record of step {number} has picture {which} at id {at}, which is not how this policy reads what "
                f"the episode showed until then ({len(pictures)} pictures)"
            )
        prompt[at : at + len(pictures[which].ids)] = pictures[which].codes
    return prompt


def record_of(dialogue: Dialogue, completion: Completion) -> dict[str, Any] | None:
    """Return the record of a turn, see :class:`~tetrathlon.agents.language.LanguagePolicy`; None: nothing was said."""
    if not completion.ids:
        return None
    cut = np.zeros(len(completion.ids), dtype=np.bool_)
    cut[-1] = completion.stop != "eos"
    prompt = dialogue.ids[dialogue.recorded :]
    shown = pictures_at(prompt, dialogue.pictures)
    for at, which in shown:
        ids = dialogue.pictures[which].ids
        prompt = (*prompt[:at], *ids, *prompt[at + len(ids) :])
    record = {
        "prompt": np.asarray(prompt, dtype=np.int32),
        "ids": np.asarray(completion.ids, dtype=np.int32),
        "logps": np.asarray(completion.logps, dtype=np.float32),
        "cut": cut,
    }
    if shown:
        record["pictures"] = np.asarray(shown, dtype=np.int32)
    return record | ({"fresh": np.ones((), dtype=np.bool_)} if dialogue.is_fresh else {})
