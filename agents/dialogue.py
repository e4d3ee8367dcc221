"""What was said in an episode so far, as a language model read it: the memory of its policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tetrathlon.agents.picture import Picture


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The memory of one episode."""

    ids: tuple[int, ...] = ()
    """What the model reads and has said, verbatim; where the template wrote the past anew, from there on. Pictures are
    among them by their codes."""
    recorded: int = 0
    """How many of them are in the records of decisions so far."""
    is_fresh: bool = False
    """Whether the template wrote the past anew, and no record says so yet."""
    messages: tuple[dict[str, Any], ...] = ()
    """All messages so far but the system's, worked examples included; one that shows a picture has it as
    ``"picture"``."""
    pictures: tuple[Picture, ...] = ()
    """Those that the environment has shown so far, in order."""
    system: str = ""
    """As the reset's info said."""
    tools: tuple[Any, ...] = ()
    """As the reset's info said."""
    limit: int | None = None
    """Most tokens of a turn, as the newest info that names one said."""
    left: int | None = None
    """How many tokens the episode has left, where the reset's info limited them."""


def with_message(dialogue: Dialogue, role: str, content: str, picture: Picture | None = None) -> Dialogue:
    """Return a dialogue in which a message was said; its ids are left to the caller."""
    shown = dialogue.pictures if picture is None else (*dialogue.pictures, picture)
    messages = (*dialogue.messages, message_of(role, content, picture))
    return replace(dialogue, messages=messages, pictures=shown)


def message_of(role: str, content: str, picture: Picture | None = None) -> dict[str, Any]:
    """Return a message, with the picture that it shows."""
    return {"role": role, "content": content} | ({} if picture is None else {"picture": picture})
