"""All kinds of instructions, and prompts drawn from them that can be followed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tetrathlon.envs.arguments import some_of
from tetrathlon.envs.text.instructions import data_formats, layouts, lengths, marks, wording
from tetrathlon.envs.text.instructions.draft import Draft, phrases
from tetrathlon.envs.text.instructions.instruction import Instruction, Scene, pick, pick_some
from tetrathlon.envs.text.instructions.substance import describe_substance, is_substantial
from tetrathlon.envs.text.instructions.units import occurrences, shown
from tetrathlon.envs.text.languages import model

KINDS: Mapping[str, type[Instruction]] = {
    cls.kind: cls
    for cls in (
        lengths.Words,
        lengths.Sentences,
        lengths.Paragraphs,
        lengths.Lines,
        lengths.FirstWord,
        layouts.Bullets,
        layouts.NumberedList,
        layouts.Sections,
        layouts.NamedSections,
        layouts.TwoReplies,
        layouts.Table,
        data_formats.Json,
        data_formats.JsonSchema,
        data_formats.Csv,
        marks.Title,
        marks.TitleInAngles,
        marks.RepeatRequest,
        marks.StartsWith,
        marks.EndsWith,
        marks.Quoted,
        marks.Postscript,
        marks.Placeholders,
        marks.Highlights,
        wording.Keyword,
        wording.ForbiddenWords,
        wording.LetterCount,
        wording.Lowercase,
        wording.Uppercase,
        wording.CapitalWords,
        wording.NoCommas,
        wording.Verdict,
        wording.InLanguage,
    )
}
"""Name -> class."""

MOST_TOGETHER = 8
"""The most instructions of a prompt."""

WRITTEN_LANGUAGES: tuple[str, ...] = tuple(phrases()["languages"])
"""Codes of the languages that the expert can write."""

_REQUESTS = (
    "Write a short note about {}.",
    "Tell me something about {}.",
    "Write a short text about {} for a local newspaper.",
    "Explain to a child what is special about {}.",
    "Write a message to a friend about {}.",
    "Describe what {} can mean to people.",
)
_LEAST_WORDS = Instruction.least_words


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, what it asks for, and a reply that does it."""

    question: str
    """The prompt."""
    topic: str
    """The word that a reply must name."""
    instructions: tuple[Instruction, ...]
    """What a reply must follow."""
    example: str
    """A reply that follows all."""

    @property
    def least_words(self) -> int:
        """How many words of its own a reply needs."""
        return least_words(self.instructions)


def least_words(instructions: Sequence[Instruction]) -> int:
    """Return how many words of its own a reply needs that follows ``instructions``."""
    return min((_LEAST_WORDS, *(item.least_words for item in instructions)))


@cache
def clash(one: type[Instruction], other: type[Instruction]) -> bool:
    """Tell whether two kinds never stand in one prompt."""
    return (
        one is other
        or other.kind in one.conflicts
        or one.kind in other.conflicts
        or (one.is_layout and other.is_layout)
        or (one is wording.InLanguage and other.is_english)
        or (other is wording.InLanguage and one.is_english)
    )


def fits(kind: str, chosen: Collection[str], languages: Sequence[str]) -> bool:
    """Tell whether ``kind`` may stand beside those ``chosen``; ``language`` needs one of ``languages`` that does."""
    if any(clash(KINDS[kind], KINDS[other]) for other in chosen):
        return False
    together = (kind, *chosen)
    return "language" not in together or bool(wording.InLanguage.codes(languages, together))


def most_together(kinds: Collection[str], languages: Sequence[str], chosen: tuple[str, ...] = ()) -> int:
    """Return how many of ``kinds`` may stand in one prompt with those ``chosen``, 8 where more may."""
    best, left = len(chosen), [kind for kind in sorted(set(kinds)) if fits(kind, chosen, languages)]
    while left and best < min(len(chosen) + len(left), MOST_TOGETHER):
        best = max(best, most_together(left[1:], languages, (*chosen, left[0])))
        del left[0]
    return best


def draw_prompt(
    rng: np.random.Generator, kinds: Collection[str], wanted: int, languages: Sequence[str]
) -> Prompt | None:
    """Draw a prompt, or None where what was drawn cannot be followed, as far as the expert knows.

    Args:
        rng: Decides everything.
        kinds: Keys of :data:`KINDS`, in an order of their own.
        wanted: The number of instructions.
        languages: Codes out of :data:`WRITTEN_LANGUAGES` for the kind ``language``.
    """
    drawn: list[str] = []
    for name in pick_some(rng, sorted(set(kinds)), len(set(kinds))):
        if len(drawn) < wanted and fits(name, drawn, languages):
            drawn.append(name)
    if len(drawn) < wanted:
        return None
    chosen = [KINDS[name] for name in drawn]
    english = phrases()["topics"]
    topics = list(phrases()["languages"]["de"]["topics"] if wording.InLanguage in chosen else english)
    topic = pick(rng, topics)
    request = pick(rng, _REQUESTS).format(topic)
    scene = Scene(topic, request, wording.draw_related(rng, topic), frozenset(drawn), tuple(languages))
    instructions = tuple(cls.draw(rng, scene) for cls in chosen)
    code = next((item.code for item in instructions if isinstance(item, wording.InLanguage)), "en")
    named = wording.topic_in(topic, code) or topic
    example = write_example(rng, instructions, named, request)
    prompt = Prompt(_write_question(request, named, instructions), named, instructions, example)
    is_good = all(item.check(example) for item in instructions) and names(example, named)
    return prompt if is_good and is_substantial(example, prompt.question, prompt.least_words) else None


def _write_question(request: str, topic: str, instructions: Sequence[Instruction]) -> str:
    listed = "\n".join(f"- {item.describe()}" for item in instructions)
    substance = describe_substance(least_words(instructions))
    return f'{request} Use the word "{topic}" in it. {substance}\n\nFollow every one of these instructions:\n{listed}'


def write_example(rng: np.random.Generator, instructions: Sequence[Instruction], topic: str, request: str) -> str:
    """Return the expert's reply; the caller checks it."""
    draft = Draft(topic, request)
    for item in sorted(instructions, key=lambda item: item.is_layout):  # a layout counts the blocks around it
        item.shape(draft)
    return draft.write(rng)


def names(reply: str, topic: str) -> bool:
    """Tell whether ``topic`` stands in ``reply``, in any case: in scripts with case as a word of its own."""
    text = shown(reply).lower()
    if topic.lower() == topic.upper():  # other scripts glue endings, or have no blanks at all
        return topic in text
    return occurrences(text, topic) > 0


def check_kinds(kinds: Collection[str], languages: Collection[str]) -> None:
    """Refuse names that there are not, and kinds whose packages are missing.

    Raises:
        ValueError: A kind or a language is unknown, or there is none.
        gymnasium.error.DependencyNotInstalled: A package is missing.
    """
    some_of("kinds", kinds, KINDS)
    some_of("languages", languages, WRITTEN_LANGUAGES)
    if "json_schema" in kinds:
        data_formats.needs_validator()
    if "language" in kinds:
        model()
