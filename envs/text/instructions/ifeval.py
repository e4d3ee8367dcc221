"""Rows of IFEval (Zhou et al. 2023, arXiv:2311.07911): its names and arguments, graded by the instructions here.

The words of its prompts are its own; where they leave open what a word, a sentence or a section is, this package's
rules hold, which are stricter than the published checkers in places (a keyword is a word of its own, a bullet point
is not indented, a section stands under its name and number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tetrathlon.envs.text.dataset import Row
from tetrathlon.envs.text.instructions import data_formats, layouts, lengths, marks, wording
from tetrathlon.envs.text.instructions.catalog import write_example
from tetrathlon.envs.text.instructions.instruction import Count, Instruction
from tetrathlon.envs.text.languages import LANGUAGES
from tetrathlon.envs.text.task import Task

_LEAST_WORDS = 1  # a prompt of theirs may ask for one word


class _Arguments:
    """The arguments of one instruction; null ones are as good as missing."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name, self.values = name, {key: value for key, value in values.items() if value is not None}

    def __call__(self, key: str, kind: type) -> Any:
        value = self.values.get(key)
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # tables that mix rows write every number as a float
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{self.name} needs {key!r} as {kind.__name__}, got {value!r}")
        if kind in (str, list) and not value:
            raise ValueError(f"{self.name} needs {key!r}, which is empty")
        return value

    def count(self, number: str, relation: str) -> Count:
        """Return what "less than" and "at least" mean."""
        wanted, how = self(number, int), self(relation, str)
        if how not in ("less than", "at least"):
            raise ValueError(f"{self.name} needs {relation!r} as 'less than' or 'at least', got {how!r}")
        return Count(least=wanted) if how == "at least" else Count(most=wanted - 1)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self(key, list)
        if not all(isinstance(value, str) and value.strip() for value in values):
            raise ValueError(f"{self.name} needs {key!r} as texts, got {values!r}")
        return tuple(values)

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
    "keywords:frequency": lambda a: wording.Keyword(a("keyword", str).strip(), a.count("frequency", "relation")),
    "keywords:forbidden_words": lambda a: wording.ForbiddenWords(a.texts("forbidden_words")),
    "keywords:letter_frequency": lambda a: wording.LetterCount(
        a("letter", str), a.count("let_frequency", "let_relation")
    ),
    "language:response_language": lambda a: wording.InLanguage(a.language()),
    "length_constraints:number_sentences": lambda a: lengths.Sentences(a.count("num_sentences", "relation")),
    "length_constraints:number_paragraphs": lambda a: lengths.Paragraphs(_exactly(a("num_paragraphs", int)), "***"),
    "length_constraints:number_words": lambda a: lengths.Words(a.count("num_words", "relation")),
    "length_constraints:nth_paragraph_first_word": lambda a: lengths.FirstWord(
        a("num_paragraphs", int), a("nth_paragraph", int), a("first_word", str)
    ),
    "detectable_content:number_placeholders": lambda a: marks.Placeholders(Count(least=a("num_placeholders", int))),
    "detectable_content:postscript": lambda a: marks.Postscript(a("postscript_marker", str), is_last_line=False),
    "detectable_format:number_bullet_lists": lambda a: layouts.Bullets(_exactly(a("num_bullets", int))),
    "detectable_format:constrained_response": lambda a: wording.Verdict(),
    "detectable_format:number_highlighted_sections": lambda a: marks.Highlights(Count(least=a("num_highlights", int))),
    "detectable_format:multiple_sections": lambda a: layouts.NamedSections(
        a("section_spliter", str).strip(), Count(least=a("num_sections", int))
    ),
    "detectable_format:json_format": lambda a: data_formats.Json(may_be_fenced=True),
    "detectable_format:title": lambda a: marks.TitleInAngles(),
    "combination:two_responses": lambda a: layouts.TwoReplies(),
    "combination:repeat_prompt": lambda a: marks.RepeatRequest(a("prompt_to_repeat", str)),
    "startend:end_checker": lambda a: marks.EndsWith(a("end_phrase", str), ignores_case=True),
    "startend:quotation": lambda a: marks.Quoted(is_strict=False),
    "change_case:capital_word_frequency": lambda a: wording.CapitalWords(
        a.count("capital_frequency", "capital_relation")
    ),
    "change_case:english_capital": lambda a: wording.Uppercase(),
    "change_case:english_lowercase": lambda a: wording.Lowercase(),
    "punctuation:no_comma": lambda a: wording.NoCommas(),
}


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
    fits = isinstance(arguments, list) and len(arguments) == len(ids)
    if not fits or not all(value is None or isinstance(value, Mapping) for value in arguments):
        raise ValueError(f"kwargs must be a list of {len(ids)} objects, one for each instruction, got {arguments!r}")
    instructions: list[Instruction] = []
    for name, values in zip(ids, arguments, strict=True):
        made = _MAKERS[name](_Arguments(name, values or {}))
        instructions += made if isinstance(made, list) else [made]
    # Theirs have no worked replies; where ours is one (it says nothing to the point) the expert has it.
    example = write_example(np.random.default_rng(0), instructions, "this", prompt)
    if not all(item.check(example) for item in instructions):
        example = ""
    return Task(prompt, example, {"instructions": tuple(instructions), "topic": "", "least_words": _LEAST_WORDS})
