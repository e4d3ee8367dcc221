"""Rows of IFEval (Zhou et al. 2023, arXiv:2311.07911): its names and arguments, graded by the instructions here.

The words of its prompts are its own; where they leave open what a word, a sentence or a section is, this package's
rules hold, which are stricter than the published checkers in places (a keyword is a word of its own, a bullet point
is not indented, a section stands under its name and number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tetrathlon.envs.language.dataset import Row
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.instructions import data_formats, layouts, lengths, marks, wording
from tetrathlon.envs.text.instructions.catalog import write_example
from tetrathlon.envs.text.instructions.instruction import Count, Instruction
from tetrathlon.envs.text.instructions.units import is_filled, shown
from tetrathlon.envs.text.languages import LANGUAGES

_LEAST_WORDS = 1  # a prompt of theirs may ask for one word
_MOST = 1_000
_MOST_WORDS = 20_000  # of a reply's 100,000 characters
_MOST_TEXTS = 100
_LONGEST_TEXT = 10_000
_LARGEST_EXAMPLE = 300  # the phrase book is at its end there, and writing more is slow


class _Arguments:
    """The arguments of one instruction; null ones are as good as missing."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name, self.values = name, {key: value for key, value in values.items() if value is not None}

    def __call__(self, key: str, kind: type) -> Any:
        value = self.values.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{self.name} needs {key!r} as {kind.__name__}, got {value!r}")
        return value

    def whole(self, key: str, least: int = 0, most: int = _MOST) -> int:
        """Return an integer from ``least`` to ``most``."""
        value = self.values.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # tables that mix rows write every number as a float
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{self.name} needs {key!r} as an int from {least} to {most}, got {value!r:.50}")
        return value

    def count(self, number: str, relation: str, *, nothing: int = 0, most: int = _MOST) -> Count:
        """Return what "less than" and "at least" mean; at most ``nothing`` is what nobody could be asked for."""
        how = self(relation, str)
        if how not in ("less than", "at least"):
            raise ValueError(f"{self.name} needs {relation!r} as 'less than' or 'at least', got {how!r}")
        if how == "at least":
            return Count(least=self.whole(number, most=most))
        return Count(most=self.whole(number, nothing + 1, most) - 1)

    def text(self, key: str) -> str:
        """Return a text with more than blanks."""
        value = shown(self(key, str))
        if not 1 <= len(value) <= _LONGEST_TEXT:
            raise ValueError(f"{self.name} needs {key!r} as 1 to {_LONGEST_TEXT} characters, got {len(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self(key, list)
        if not 1 <= len(values) <= _MOST_TEXTS:
            raise ValueError(f"{self.name} needs {key!r} as 1 to {_MOST_TEXTS} texts, got {len(values)}")
        if not all(isinstance(value, str) and shown(value) for value in values):
            raise ValueError(f"{self.name} needs {key!r} as texts, got {values!r:.200}")
        return tuple(map(shown, values))

    def letter(self, key: str) -> str:
        """Return one character."""
        value: str = self(key, str).strip()
        if len(value) != 1:
            raise ValueError(f"{self.name} needs {key!r} as one character, got {value!r:.50}")
        return value

    def first_word(self) -> lengths.FirstWord:
        """Return the number of paragraphs, one of these, and a word that it begins with."""
        count, word = self.whole("num_paragraphs", 1), self.text("first_word")
        if len(word.split()) > 1 or not is_filled(word):
            raise ValueError(f"{self.name} needs 'first_word' as one word, got {word!r:.50}")
        return lengths.FirstWord(count, self.whole("nth_paragraph", 1, count), word)

    def language(self) -> str:
        """Return the code of a language that can be told."""
        code = self("language", str)
        if code not in LANGUAGES:
            raise ValueError(f"{self.name} needs a 'language' out of {', '.join(LANGUAGES)}, got {code!r}")
        return code


def _exactly(number: int) -> Count:
    return Count(number, number)


_MAKERS: Mapping[str, Callable[[_Arguments], Instruction | list[Instruction]]] = {
    "keywords:existence": lambda a: [wording.Keyword(word, Count(least=1)) for word in a.texts("keywords")],
    "keywords:frequency": lambda a: wording.Keyword(a.text("keyword"), a.count("frequency", "relation")),
    "keywords:forbidden_words": lambda a: wording.ForbiddenWords(a.texts("forbidden_words")),
    "keywords:letter_frequency": lambda a: wording.LetterCount(
        a.letter("letter"), a.count("let_frequency", "let_relation", most=_LONGEST_TEXT)
    ),
    "language:response_language": lambda a: wording.InLanguage(a.language()),
    "length_constraints:number_sentences": lambda a: lengths.Sentences(a.count("num_sentences", "relation", nothing=1)),
    "length_constraints:number_paragraphs": lambda a: lengths.Paragraphs(_exactly(a.whole("num_paragraphs", 1)), "***"),
    "length_constraints:number_words": lambda a: lengths.Words(
        a.count("num_words", "relation", nothing=1, most=_MOST_WORDS)
    ),
    "length_constraints:nth_paragraph_first_word": lambda a: a.first_word(),
    "detectable_content:number_placeholders": lambda a: marks.Placeholders(Count(least=a.whole("num_placeholders"))),
    "detectable_content:postscript": lambda a: marks.Postscript(a.text("postscript_marker"), is_last_line=False),
    "detectable_format:number_bullet_lists": lambda a: layouts.Bullets(_exactly(a.whole("num_bullets"))),
    "detectable_format:constrained_response": lambda a: wording.Verdict(),
    "detectable_format:number_highlighted_sections": lambda a: marks.Highlights(Count(least=a.whole("num_highlights"))),
    "detectable_format:multiple_sections": lambda a: layouts.NamedSections(
        a.text("section_spliter"), Count(least=a.whole("num_sections", 1))
    ),
    "detectable_format:json_format": lambda a: data_formats.Json(may_be_fenced=True),
    "detectable_format:title": lambda a: marks.TitleInAngles(),
    "combination:two_responses": lambda a: layouts.TwoReplies(),
    "combination:repeat_prompt": lambda a: marks.RepeatRequest(a.text("prompt_to_repeat")),
    "startend:end_checker": lambda a: marks.EndsWith(a.text("end_phrase"), ignores_case=True),
    "startend:quotation": lambda a: marks.Quoted(is_strict=False),
    "change_case:capital_word_frequency": lambda a: wording.CapitalWords(
        a.count("capital_frequency", "capital_relation")
    ),
    "change_case:english_capital": lambda a: wording.Uppercase(),
    "change_case:english_lowercase": lambda a: wording.Lowercase(),
    "punctuation:no_comma": lambda a: wording.NoCommas(),
}
_OPPOSITES = frozenset({"change_case:english_capital", "change_case:english_lowercase"})


def make_task(row: Row) -> Task:
    """Return the task of a row with the fields ``prompt``, ``instruction_id_list`` and ``kwargs``.

    Raises:
        ValueError: An instruction is none of IFEval's, or its arguments do not fit it.
    """
    prompt, ids, arguments = row.text("prompt"), row.get("instruction_id_list"), row.get("kwargs")
    if not isinstance(ids, list) or not ids or not all(isinstance(name, str) for name in ids):
        raise ValueError(f"instruction_id_list must be a list of names, got {ids!r}")
    if unknown := [name for name in ids if name not in _MAKERS]:
        raise ValueError(
            f"these instructions are not supported: {', '.join(unknown)}; supported are {', '.join(_MAKERS)}"
        )
    if len(ids) > _MOST_TEXTS:
        raise ValueError(f"instruction_id_list must have at most {_MOST_TEXTS} names, got {len(ids)}")
    if _OPPOSITES.issubset(ids):
        raise ValueError(f"instruction_id_list must not hold {' and '.join(sorted(_OPPOSITES))} together")
    fits = isinstance(arguments, list) and len(arguments) == len(ids)
    if not fits or not all(value is None or isinstance(value, Mapping) for value in arguments):
        raise ValueError(f"kwargs must be a list of {len(ids)} objects, one for each instruction, got {arguments!r}")
    instructions: list[Instruction] = []
    for name, values in zip(ids, arguments, strict=True):
        made = _MAKERS[name](_Arguments(name, values or {}))
        instructions += made if isinstance(made, list) else [made]
    return Task(
        prompt,
        _write_example(instructions, prompt),
        {"instructions": tuple(instructions), "topic": "", "least_words": _LEAST_WORDS},
    )


def _write_example(instructions: Sequence[Instruction], prompt: str) -> str:
    """Return a reply that follows ``instructions`` and says nothing to the point, or "" where there is none of ours."""
    if sum(map(_size, instructions)) > _LARGEST_EXAMPLE:
        return ""
    example = write_example(np.random.default_rng(0), instructions, "this", prompt)
    return example if all(item.check(example) for item in instructions) else ""


def _size(item: Instruction) -> int:
    """Return how many parts a reply needs for ``item``."""
    values = [getattr(item, field.name) for field in fields(item)]
    counts = [value.least or 0 for value in values if isinstance(value, Count)]
    return sum(counts) + sum(value for value in values if isinstance(value, int))
