"""The expert on every combination that is drawn, substance, hostile replies."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs import hostile
from tetrathlon.envs.text.instructions.catalog import (
    KINDS,
    WRITTEN_LANGUAGES,
    Prompt,
    clash,
    draw_prompt,
    most_together,
    names,
)
from tetrathlon.envs.text.instructions.data_formats import Json, parse_json
from tetrathlon.envs.text.instructions.draft import phrases
from tetrathlon.envs.text.instructions.instruction import Count
from tetrathlon.envs.text.instructions.layouts import (
    TwoReplies,
)
from tetrathlon.envs.text.instructions.marks import (
    Quoted,
    Title,
    TitleInAngles,
)
from tetrathlon.envs.text.instructions.substance import is_substantial, own_words
from tetrathlon.envs.text.instructions.wording import (
    InLanguage,
    LetterCount,
    Lowercase,
    NoCommas,
    Uppercase,
)


@pytest.mark.parametrize(
    ("count", "said", "allowed"),
    [
        (Count(3, 3), "exactly 3 words", {3}),
        (Count(least=1), "at least 1 word", {1, 2, 3, 4, 5}),
        (Count(most=1), "at most 1 word", {0, 1}),
        (Count(2, 4), "from 2 to 4 words", {2, 3, 4}),
    ],
)
def test_counts(count: Count, said: str, allowed: set[int]) -> None:
    assert count.of("word") == said
    assert {number for number in range(6) if count.holds(number)} == allowed


@cache
def drawn(number: int, kind: str | None = None, count: tuple[int, int] = (1, 5), seed: int = 0) -> list[Prompt]:
    rng = np.random.default_rng(seed)
    prompts: list[Prompt] = []
    for _ in range(20 * number):
        wanted = int(rng.integers(count[0], count[1] + 1))
        prompt = draw_prompt(rng, [kind] if kind else list(KINDS), wanted, WRITTEN_LANGUAGES)
        if prompt is not None:
            prompts.append(prompt)
        if len(prompts) == number:
            return prompts
    raise AssertionError(f"only {len(prompts)} prompts came out of {20 * number} draws")


@pytest.mark.parametrize(
    "kinds",
    [
        ("bullets", "quoted"),
        ("numbered_list", "quoted"),
        ("sections", "quoted"),
        ("named_sections", "quoted"),
        ("json_schema", "lowercase"),
        ("repeat_request", "capital_words"),
        ("words", "language"),
    ],
)
def test_the_expert_follows_pairs_that_hang_on_each_other(kinds: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    assert sum(draw_prompt(rng, kinds, 2, WRITTEN_LANGUAGES) is not None for _ in range(20)) >= 10


def test_how_many_kinds_go_together() -> None:
    assert most_together(KINDS, WRITTEN_LANGUAGES) == 8
    assert most_together(["json", "csv", "lowercase", "no_commas"], ["de"]) == 2
    assert most_together(["language", "words", "no_commas"], ["de"]) == 3
    assert most_together(["language", "words", "no_commas"], ["zh"]) == 2


def test_no_letter_at_all_is_said_so() -> None:
    assert LetterCount("j", Count(most=0)).describe() == (
        'Do not use the letter "j" at all, neither capital nor small.'
    )
    assert "at most 2 times" in LetterCount("j", Count(most=2)).describe()


def test_the_expert_follows_whatever_is_drawn() -> None:
    prompts = drawn(500)
    for prompt in prompts:
        assert [item for item in prompt.instructions if not item.check(prompt.example)] == [], prompt.question
        assert [item for item in prompt.instructions if not item.check(prompt.example.replace("\n", "\r\n"))] == []
        assert names(prompt.example, prompt.topic) and f'"{prompt.topic}"' in prompt.question
        assert is_substantial(prompt.example, prompt.question, prompt.least_words)
        assert all(item.describe() in prompt.question for item in prompt.instructions)
        assert pickle.loads(pickle.dumps(prompt)) == prompt
        kinds = [type(item) for item in prompt.instructions]
        assert not any(clash(one, other) for i, one in enumerate(kinds) for other in kinds[:i])
    sizes = Counter(len(prompt.instructions) for prompt in prompts)
    assert set(sizes) == {1, 2, 3, 4, 5} and min(sizes.values()) > 50
    assert {item.kind for prompt in prompts for item in prompt.instructions} == set(KINDS)
    assert len({prompt.question for prompt in prompts}) > 490


def test_a_topic_is_a_word_that_can_be_seen() -> None:
    assert all(names(text, "travel") for text in ("Travel!", "a _travel_ b", "**travel**", "tra\u00advel"))
    assert not any(names(text, "travel") for text in ("travels", "tr\u0430vel", "trav-el", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_alone_is_drawn_with_many_parameters(kind: str) -> None:
    prompts = drawn(30, kind, (1, 1), seed=1)
    assert len({prompt.example for prompt in prompts}) > 15
    fixed = {Json, Quoted, Title, TitleInAngles, Lowercase, Uppercase, NoCommas, TwoReplies}
    parameters = {prompt.instructions for prompt in prompts}
    assert len(parameters) == 1 if KINDS[kind] in fixed else len(parameters) > 1


BREAKERS: dict[str, Callable[[str, Any], str]] = {
    "no_commas": lambda text, item: text.replace(" ", ", ", 1),
    "placeholders": lambda text, item: text.replace("[", "(").replace("]", ")"),
    "highlights": lambda text, item: text.replace(".*", "._").replace(" *", " _"),
    "keyword": lambda text, item: text.replace(item.word, "sky").replace(item.word.upper(), "SKY"),
    "forbidden_words": lambda text, item: text.replace("This ", f"{item.forbidden[0].capitalize()} ", 1),
    "ends_with": lambda text, item: text[:-1],
    "starts_with": lambda text, item: text.replace(item.phrase, item.phrase.swapcase(), 1),
    "postscript": lambda text, item: text.replace(item.marker, item.marker.lower()),
    "title_in_angles": lambda text, item: text.replace("<<", "<").replace(">>", ">"),
    "title": lambda text, item: text.replace("# Some Words", "# Some words"),
    "quoted": lambda text, item: f"'{text[1:-1]}'",
    "two_replies": lambda text, item: text.replace("\n******\n", "\n*****\n"),
    "numbered_list": lambda text, item: text.replace("\n2. ", "\n3. "),
    "bullets": lambda text, item: text.replace("* ", "+ ", 1),
    "sections": lambda text, item: text.replace("## ", "### ", 1),
    "verdict": lambda text, item: text.replace(item.options[0], item.options[0].replace("e", "é")),
}


@pytest.mark.parametrize("kind", BREAKERS)
def test_a_reply_that_breaks_one_instruction_fails_that_one(kind: str) -> None:
    broken = alone = 0
    for prompt in drawn(120, None, (2, 3), seed=2) + drawn(20, kind, (1, 1), seed=3):
        for item in prompt.instructions:
            if item.kind != kind:
                continue
            reply = BREAKERS[kind](prompt.example, item)
            if reply == prompt.example:
                continue
            broken += 1
            assert not item.check(reply), (reply, item)
            alone += all(other.check(reply) for other in prompt.instructions if other is not item)
    assert broken >= 5
    assert alone >= 0.7 * broken  # what else a broken one fails hangs on it: a word more or less, a capital letter


@pytest.mark.parametrize("code", WRITTEN_LANGUAGES)
def test_the_phrase_book_is_in_its_languages(code: str) -> None:
    book = phrases()["languages"][code]
    instruction = InLanguage(code)
    for start in range(0, len(book["sentences"]) - 2, 3):
        assert instruction.check(" ".join(book["sentences"][start : start + 3]))
    everything = " ".join(book["sentences"])
    assert [other for other in WRITTEN_LANGUAGES if InLanguage(other).check(everything)] == [code]
    assert all(len(topic) > 0 and NoCommas().check(topic) for topic in book["topics"].values())
    assert len(set(book["sentences"])) == len(book["sentences"]) and NoCommas().check(everything)


def test_hostile_replies_are_judged_without_raising_and_in_time() -> None:
    rng = np.random.default_rng(4)
    items = [prompt.instructions[0] for kind in KINDS for prompt in drawn(1, kind, (1, 1), seed=int(rng.integers(99)))]
    begun = time.process_time()
    for text in hostile.TEXTS.values():
        for item in items:
            assert item.check(text[:20_000]) in (True, False)
    assert time.process_time() - begun < 60


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "*",
        "<<",
        "|",
        ". ",
        '."',
        "\n",
        " \n",
        '"',
        '\\"',
        "a.",
        "a@",
        "`",
        "1. a\n",
        "* a\n",
        "\u0301\u0327",
        "雨",
        "a ",
        "_",
        "&",
        "<a",
        "***",
        "\n#",
        "my ",
        "\ufdfa",
    ],
)
def test_the_time_is_linear(unit: str) -> None:
    items = [prompt.instructions[0] for kind in KINDS for prompt in drawn(1, kind, (1, 1))]

    def spent(size: int) -> float:
        text = "x" + (unit * size)[:size] + "x"
        begun = time.process_time()
        for item in items:
            item.check(text)
        is_substantial(text, "Write a short note about rain.", 8)
        return time.process_time() - begun

    spent(1_000)  # loads the model
    assert spent(40_000) < 3.0  # one letter may stand for 18; a check in quadratic time would take minutes


@pytest.mark.parametrize(
    "text", ["", "nan", "{", "1e999", "[1, 2", '"\ud800', "[" * 65 + "]" * 65, "9" * 401, "0." + "1" * 500]
)
def test_json_that_is_refused(text: str) -> None:
    assert parse_json(text) == (None, False)


def test_json_at_the_limits_is_taken() -> None:
    assert parse_json("[" * 64 + "]" * 64)[1]
    assert parse_json("9" * 400) == (int("9" * 400), True)
    assert parse_json('"' + "[" * 1000 + '"') == ("[" * 1000, True)


PROMPT = 'Write a short note about rain. Use the word "rain" in it.\n\nFollow these:\n- Do not use any commas.'


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("The rain fell all night and nobody could sleep.", True),
        ("", False),
        ("rain", False),
        ("rain " * 20, False),
        ("rain falls " * 20, False),
        ("All that rain fell here " * 20, False),
        (PROMPT, False),
        (PROMPT.upper(), False),
        (PROMPT[:-9], False),
        (PROMPT[10:].replace("\n", " "), False),
        (PROMPT.replace(" in it", "!"), False),
        (PROMPT + "\n\nThe rain fell all night and nobody could sleep.", True),
        ("a b c d e f g h" + " the" * 40, False),
        ("a b c d e f g h i j k l m n o p q r s" + " the" * 10, True),
        ("a b c d e f g h i j k l m n o p q r s" + " the" * 11, False),
        ("name,colour\n" + "\n".join(f"{name},green" for name in ("grass", "frog", "moss", "leaf", "lime")), True),
        ("r\u200ba\u200bi\u200bn f\u00ada\u00adl\u00adl\u00ads", False),
        (PROMPT[:50].replace("o", "o\u200b"), False),
        ("雨雨雨雨雨雨雨雨雨雨雨雨", False),
        ("早上经常下雨孩子们非常高兴", True),
    ],
)
def test_substance(reply: str, expected: bool) -> None:
    assert is_substantial(reply, PROMPT, 8) is expected


def test_own_words() -> None:
    assert own_words("Write a short note: hi there", PROMPT) == ["hi", "there"]
    assert own_words("write a short story", PROMPT) == ["write", "a", "short", "story"]
