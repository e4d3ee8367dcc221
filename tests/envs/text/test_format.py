"""Format: prompts, pay, arguments, IFEval's rows, the language gate."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.language.dataset import Row
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text import languages
from tetrathlon.envs.text.instruction_following import Format, asked_language
from tetrathlon.envs.text.instructions import data_formats
from tetrathlon.envs.text.instructions.ifeval import _MAKERS, make_task
from tetrathlon.envs.text.instructions.instruction import Count
from tetrathlon.envs.text.instructions.lengths import Words
from tetrathlon.envs.text.instructions.wording import InLanguage, NoCommas

QUESTION = 'Write a short note about rain. Use the word "rain" in it.\n\nFollow these:\n- No commas.\n- Few words.'
DATA = {"instructions": (NoCommas(), Words(Count(most=12))), "topic": "rain", "least_words": 8}
TASK = Task(QUESTION, "The rain fell all night and nobody could sleep.", DATA)
GOOD = "The rain fell all night and nobody could sleep."
GERMAN = "Am Morgen fällt oft rain auf die Stadt und die Kinder freuen sich."


def play(env: Format, reply: str, task: Task = TASK) -> tuple[float, dict[str, Any]]:
    env.reset(options={"task": task})
    _, reward, terminated, truncated, info = env.step(reply)
    assert terminated and not truncated
    return float(reward), info


@pytest.mark.parametrize(
    ("reply", "reward", "share"),
    [
        (GOOD, 1.0, 1.0),
        (f"<think>no, no, no, no</think>\n{GOOD}", 1.0, 1.0),
        (GOOD.replace("night", "night,"), 0.0, 0.5),
        (f"{GOOD} They all sat there waiting.", 0.0, 0.5),
        (GOOD.replace("rain", "snow"), 0.0, 0.0),
        (GOOD.replace("rain", "trains"), 0.0, 0.0),
        (f"<think>{GOOD}", 0.0, 0.0),
        ("", 0.0, 0.0),
        ("<think>x</think>\n \n", 0.0, 0.0),
        (QUESTION, 0.0, 0.0),
        ("rain " * 10, 0.0, 0.0),
        (GOOD + " " * 10 + "\n", 1.0, 1.0),
    ],
)
def test_pay(reply: str, reward: float, share: float) -> None:
    paid, info = play(Format(), reply)
    assert paid == reward and info["is_success"] is (reward == 1.0)
    assert info["scores"] == {"followed": reward, "share": share}
    assert info["reward_terms"] == {"followed": reward, "share": 0.0}
    paid, info = play(Format(partial_credit=0.4), reply)
    assert paid == pytest.approx(0.6 * reward + 0.4 * share)


def test_half_an_object_is_paid_nothing_in_part() -> None:
    task = Task(QUESTION, "", {**DATA, "instructions": (data_formats.Json(), NoCommas())})
    reply = json.dumps({"text": GOOD})
    assert play(Format(partial_credit=0.5), reply, task)[0] == 1.0
    assert play(Format(partial_credit=0.5), reply.replace("fell", "fell,"), task)[0] == 0.25
    assert play(Format(partial_credit=0.5), reply[:-1], task)[0] == 0.0


@pytest.mark.parametrize("reply", ["", " \n", QUESTION, f" {QUESTION}\n", f"<think>{GOOD}"])
def test_what_is_no_answer(reply: str) -> None:
    assert play(Format(), reply)[1]["stop_reason"] == "no_answer"
    assert play(Format(), GOOD)[1]["stop_reason"] == "answered"


def test_a_reply_beyond_the_limit_pays_nothing() -> None:
    words = " ".join(f"word{number}" for number in range(20_000))
    task = Task(QUESTION, "", {**DATA, "instructions": (NoCommas(),)})
    assert play(Format(), f"rain {words[:90_000]}", task)[0] == 1.0
    assert play(Format(), f"rain {words[:100_000]}", task)[0] == 0.0


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_succeeds_and_an_empty_hand_does_not(split: str) -> None:
    env = Format(split=split)
    canned = 0.0
    for seed in range(40):
        prompt, _ = env.reset(seed=seed)
        task = env._task
        assert task is not None and task.split == split
        assert env.step(env.expert_action())[1] == 1.0
        for reply in ("", prompt, "ok", "word " * 60, '{"a": 1}'):
            assert play(env, reply, task)[0] == 0.0
        canned += play(env, GOOD, task)[0]
    assert canned <= 3  # one text for all prompts does not do


def test_kinds_count_and_languages_decide_what_is_drawn() -> None:
    env = Format(kinds=["language", "words", "no_commas"], count=3, languages=["de", "ru", "zh"])
    codes = set()
    for seed in range(12):
        env.reset(seed=seed)
        assert env._task is not None
        given = env._task.data["instructions"]
        assert {item.kind for item in given} == {"language", "words", "no_commas"}
        codes.add(asked_language(env._task))
    assert codes == {"de", "ru"}  # words of a Chinese text are not set apart by blanks


def test_languages_without_case_stand_beside_kinds_that_need_none() -> None:
    kinds = ["language", "words", "no_commas", "lowercase"]
    for code in ("zh", "hi", "ja", "ko", "ar"):
        env = Format(kinds=kinds, count=(1, 4), languages=[code])
        found = set()
        for seed in range(30):
            env.reset(seed=seed)
            assert env._task is not None
            found.add(frozenset(item.kind for item in env._task.data["instructions"]))
        assert {"language", "no_commas"} in found and not any({"language", "words"} <= kinds for kinds in found)


def test_the_number_of_instructions_is_uniform_and_cut_to_what_goes_together() -> None:
    def sizes(seeds: int, **kwargs: Any) -> Counter[int]:
        env = Format(**kwargs)
        found: Counter[int] = Counter()
        for seed in range(seeds):
            env.reset(seed=seed)
            assert env._task is not None
            found[len(env._task.data["instructions"])] += 1
        return found

    assert sizes(5, kinds=["words"]) == {1: 5}
    assert set(sizes(20, kinds=["json", "csv", "lowercase"])) == {1, 2}
    # A pair of these is hard to draw, as most kinds exclude each other: drawn anew it would be one in ten.
    drawn = sizes(200, kinds=["json", "csv", "table", "bullets", "lines", "json_schema", "sections", "no_commas"])
    assert set(drawn) == {1, 2} and 70 <= drawn[2] <= 130


def test_the_prompt_says_how_many_words_must_be_its_own() -> None:
    for kind, least in (("words", 8), ("json_schema", 3)):
        prompt, _ = Format(kinds=[kind]).reset(seed=0)
        assert f"At least {least} words must be your own (runs of 4 or more words of this message do not" in prompt


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"kinds": ["wordz"]}, "kinds must be a list of some of .*'wordz'"),
        ({"kinds": "words"}, "kinds must be a list of some of .* got 'words'"),
        ({"kinds": []}, "kinds must be a list of some of"),
        ({"languages": ["xx"]}, "languages must be a list of some of"),
        ({"languages": "de"}, "languages must be a list of some of .* got 'de'"),
        ({"language_gate": "maybe"}, "language_gate must be True or False, got 'maybe'"),
        ({"kinds": ["words"], "count": 3}, "count must be at most 1, .* got 3 for"),
        ({"kinds": ["json", "csv"], "count": 2}, "count must be at most 1, .* got 2 for"),
        ({"kinds": ["language", "words"], "languages": ["zh"], "count": 2}, "count must be at most 1"),
        ({"count": 0}, "count must be an integer from 1 to"),
        ({"count": (3, 1)}, r"count must be the fewest and the most, in this order, got \(3, 1\)"),
        ({"count": (1, 9)}, "count must be an integer from 1 to 8, got 9"),
        ({"count": 2.5}, "count must be a number, or the fewest and the most, got 2.5"),
        ({"count": (1, 2, 3)}, "the fewest and the most"),
        ({"partial_credit": 1.0}, "partial_credit must be a number"),
        ({"partial_credit": True}, "partial_credit must be a number"),
        ({"format_weight": 0.1}, "the instructions are the format"),
        ({"skip_unreadable": True}, "without data nothing is done with skip_unreadable"),
        ({"data": "x.jsonl", "kinds": ["words"]}, "with data nothing is done with kinds"),
    ],
)
def test_bad_arguments(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Format(**kwargs)


def test_a_task_without_instructions_is_refused() -> None:
    with pytest.raises(ValueError, match="needs Instructions in its data"):
        Format().reset(options={"task": Task("Hello?", "")})


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("py3langid.langid", "jsonschema"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    languages._loaded_model.cache_clear()
    data_formats._validator.cache_clear()
    for kinds in (["language"], ["json_schema"]):
        with pytest.raises(gym.error.DependencyNotInstalled, match=r'pip install "tetrathlon\[llm\]"'):
            Format(kinds=kinds)
    with pytest.raises(gym.error.DependencyNotInstalled):
        Format(kinds=["words"], language_gate=True)
    env = Format(kinds=["words"])
    env.reset(seed=0)
    assert env.step(env.expert_action())[1] == 1.0


def test_the_language_gate() -> None:
    task = Task(QUESTION, "", {**DATA, "instructions": (Words(Count(most=40)),)})
    assert play(Format(), GERMAN, task)[0] == 1.0
    paid, info = play(Format(language_gate=True), GERMAN, task)
    assert paid == 0.0 and not info["is_success"] and info["scores"]["language"] == 0.0
    assert play(Format(language_gate=True), GOOD, task)[0] == 1.0
    german = Task(QUESTION, "", {**DATA, "instructions": (InLanguage("de"),)})
    assert play(Format(language_gate=True), GERMAN.replace("rain auf", "rain und Regen auf"), german)[0] == 1.0


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Bonjour", 1.0),
        ("<think>Je pense que la réponse est très longue et en français.</think>The answer is that rain is wet.", 1.0),
        ("Je pense que la réponse est très longue et en français.", 0.0),
        (
            "Here is the call:\n```python\nnombre = compter_les_lettres(texte_en_entree)\n```\nIt counts all letters.",
            1.0,
        ),
        ('{"raison": "It rains a lot and the streets are wet today."}', 1.0),
        ("The word 雨 means rain and the word 雪 means snow in that language.", 1.0),
        ("我们今天去公园散步，天气很好。The end.", 0.0),
        ('{"This is a long key in English text": "La raison est que la rue est très longue."}', 0.0),
        ('"It is raining in the whole country": je pense que la réponse est très longue.', 0.0),
        ("12 + 30 = 42", 1.0),
        ("<think>never ends", 0.0),
        ("", 0.0),
        ("\u200b \n", 0.0),
        ("The rain fell all night. " * 10_000, 0.0),
    ],
)
def test_the_language_term_for_other_tasks(reply: str, score: float) -> None:
    term = languages.language_term(lambda task: "en", weight=0.5)
    assert (term.name, term.weight, term.gate) == ("language", 0.5, False)
    assert term.grade(None, Episode([Step("q", reply)])) == score


def test_silence_does_not_close_a_gate() -> None:
    term = languages.language_term("de", gate=True)
    assert [term.grade(None, Episode([Step("q", reply)])) for reply in ("", GERMAN * 2, GOOD * 2)] == [1.0, 1.0, 0.0]


def test_a_code_without_a_language_is_refused() -> None:
    with pytest.raises(ValueError, match=r"language must be one of ar, bg, .*, zh, got 'xx'"):
        languages.language_term("xx")
    with pytest.raises(ValueError, match=r"language must be one of ar, bg, .*, zh, got 'xx'"):
        languages.is_in(GOOD, "xx")


def test_threads_share_the_model() -> None:
    from concurrent.futures import ThreadPoolExecutor

    texts = [(GERMAN * 3, "de"), ((GOOD + " ") * 3, "en")] * 50
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda pair: languages.is_in(*pair), texts))


ARGUMENTS: dict[str, Any] = {
    "keywords": ["rain", "sun"], "keyword": "rain", "frequency": 2, "relation": "at least", "forbidden_words": ["wet"],
    "letter": "#", "let_frequency": 3, "let_relation": "less than", "language": "de", "num_sentences": 3,
    "num_paragraphs": 2, "num_words": 20, "nth_paragraph": 1, "first_word": "rain", "num_placeholders": 2,
    "postscript_marker": "P.P.S", "num_bullets": 3, "num_highlights": 2, "section_spliter": "Section",
    "num_sections": 2, "prompt_to_repeat": "Say hi.", "end_phrase": "Bye.", "capital_frequency": 2,
    "capital_relation": "less than",
}  # fmt: skip


def row(ids: list[str], kwargs: list[Any]) -> Row:
    return Row({"key": 1, "prompt": "Say hi.", "instruction_id_list": ids, "kwargs": kwargs}, "line 1")


@pytest.mark.parametrize("name", _MAKERS)
def test_every_instruction_of_ifeval_is_read(name: str) -> None:
    task = make_task(row([name], [{**ARGUMENTS, "more": None}]))
    assert task.question == "Say hi."
    assert len(task.data["instructions"]) == (2 if name == "keywords:existence" else 1)
    assert make_task(row([name], [{**ARGUMENTS, "num_words": 20.0}])) == task
    assert task.answer, "the expert has a reply to each of these"
    assert all(item.check(task.answer) for item in task.data["instructions"])


def test_ifeval_has_25_instructions() -> None:
    assert len(_MAKERS) == 25


@pytest.mark.parametrize(
    ("ids", "kwargs", "said"),
    [
        (["keywords:nonsense", "punctuation:no_comma"], [{}, {}], "not supported: keywords:nonsense; supported are "),
        (["punctuation:no_comma"], [], "kwargs must be a list of 1 objects"),
        ([], [], "instruction_id_list must be a list of names"),
        (
            ["length_constraints:number_words"],
            [{"num_words": "x", "relation": "at least"}],
            "needs 'num_words' as an int from 0",
        ),
        (["length_constraints:number_words"], [{"num_words": 5, "relation": "around"}], "got 'around'"),
        (["language:response_language"], [{"language": "xx"}], "needs a 'language' out of"),
        (["keywords:existence"], [{"keywords": None}], "needs 'keywords' as list, got None"),
        (["keywords:existence"], [{"keywords": []}], "needs 'keywords' as 1 to 100 texts, got 0"),
        (["keywords:existence"], [{"keywords": ["a"] * 101}], "needs 'keywords' as 1 to 100 texts, got 101"),
        (
            ["keywords:frequency"],
            [{"keyword": " \u200b", "frequency": 1, "relation": "at least"}],
            "as 1 to 10000 characters, got 0",
        ),
        (["length_constraints:number_words"], [{"num_words": 0, "relation": "less than"}], "from 2 to 20000, got 0"),
        (["length_constraints:number_sentences"], [{"num_sentences": 1, "relation": "less than"}], "from 2 .* got 1"),
        (["length_constraints:number_paragraphs"], [{"num_paragraphs": 0}], "an int from 1 to 1000, got 0"),
        (
            ["length_constraints:number_paragraphs"],
            [{"num_paragraphs": 10**9}],
            "an int from 1 to 1000, got 1000000000",
        ),
        (["detectable_format:number_bullet_lists"], [{"num_bullets": -1}], "an int from 0 to 1000, got -1"),
        (["detectable_format:number_bullet_lists"], [{"num_bullets": 1.5}], "an int from 0 to 1000, got 1.5"),
        (["detectable_format:number_bullet_lists"], [{"num_bullets": True}], "an int from 0 to 1000, got True"),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{"num_paragraphs": 3, "nth_paragraph": 7, "first_word": "rain"}],
            "needs 'nth_paragraph' as an int from 1 to 3, got 7",
        ),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{"num_paragraphs": 3, "nth_paragraph": 1, "first_word": "the rain"}],
            "needs 'first_word' as one word, got 'the rain'",
        ),
        (
            ["keywords:letter_frequency"],
            [{"letter": "ab", "let_frequency": 1, "let_relation": "at least"}],
            "needs 'letter' as one character, got 'ab'",
        ),
        (
            ["change_case:english_capital", "change_case:english_lowercase"],
            [{}, {}],
            "must not hold change_case:english_capital and change_case:english_lowercase together",
        ),
        (["punctuation:no_comma"] * 101, [{}] * 101, "must have at most 100 names, got 101"),
    ],
)
def test_rows_that_are_refused(ids: list[str], kwargs: list[Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_task(row(ids, kwargs))


def test_large_rows_are_read_in_no_time() -> None:
    begun = time.process_time()
    many: list[tuple[str, dict[str, Any]]] = [
        ("keywords:frequency", {"keyword": "rain", "frequency": 1000, "relation": "at least"}),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 1000}),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 300}),
    ]
    for name, arguments in many:
        task = make_task(row([name] * 3, [arguments] * 3))
        assert task.answer == "" and len(task.data["instructions"]) == 3
    assert make_task(row([many[0][0]], [{**many[0][1], "frequency": 300}])).answer.lower().count("rain") == 300
    assert time.process_time() - begun < 2


def test_a_huge_completion_is_no_answer_at_once() -> None:
    env = Format()
    task = Task(QUESTION, "", {**DATA, "instructions": (NoCommas(),)})
    thought = "<think>" + "hm " * 60_000 + "</think>"
    assert play(env, thought + GOOD, task)[0] == 1.0
    begun = time.process_time()
    paid, info = play(env, "<<" * 500_000, task)
    assert (paid, info["stop_reason"]) == (0.0, "no_answer") and time.process_time() - begun < 0.2


def test_the_split_that_has_tasks_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ifeval.jsonl"
    line = {"prompt": "Say hi.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(ValueError, match=r"no tasks of the split 'test'; they have .*; say split='train'"):
        Format(data={"train": str(file)}, split="test")


def test_a_file_of_ifeval_is_played(tmp_path: Path) -> None:
    file = tmp_path / "ifeval.jsonl"
    good = {"prompt": "Say hi without commas.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    bad = {"prompt": "Say hi in rhyme.", "instruction_id_list": ["rhyme"], "kwargs": [{}]}
    file.write_text("".join(json.dumps(line) + "\n" for line in (good, bad)))
    with pytest.raises(ValueError, match=r"ifeval\.jsonl, line 2: these instructions are not supported: rhyme"):
        Format(data={"test": str(file)}, split="test")
    with pytest.warns(UserWarning, match="left out: 1"):
        env = Format(data={"test": str(file)}, split="test", skip_unreadable=True)
    assert env.reset(seed=0)[0] == good["prompt"]
    assert env.step(env.expert_action())[1] == 1.0
    for reply, reward in (("Hi!", 1.0), ("Hi, you!", 0.0), ("", 0.0), ("Say hi without commas", 0.0)):
        env.reset(seed=0)
        assert env.step(reply)[1] == reward
    hard = Task("Write.", "", {"instructions": (Words(Count(least=9_000)),), "topic": "", "least_words": 1})
    env.reset(options={"task": hard})
    with pytest.raises(gym.error.Error, match=r"no reply to the prompt 'Write\.'"):
        env.expert_action()
