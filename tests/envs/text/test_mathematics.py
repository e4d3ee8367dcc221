"""Math: word problems that cannot be guessed, data in the usual forms, right answers read once or refused."""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tetrathlon.envs.contract import CHECKS, check
from tetrathlon.envs.grading import prover
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.registry import make
from tetrathlon.envs.text.mathematics import Math


def write(path: Path, rows: Iterable[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def answers(env: Math, split: str = "train") -> list[str]:
    assert env.dataset is not None
    return [task.answer for task in env.dataset.splits[split]]


def graded(env: Math, index: int, reply: str) -> float:
    env.reset(options={"index": index})
    return env.step(reply)[1]


@pytest.mark.filterwarnings("ignore:.*render fps")
def test_the_contract_with_data(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n} / 7?", "answer": f"{n}/7"} for n in range(1, 400)]
    assert len(check("tetrathlon/Math-v0", kwargs={"data": write(tmp_path / "a.jsonl", rows), "shots": 1})) == len(
        CHECKS
    )


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("split", ["train", "test"])
def test_whole_numbers_alone_are_right_four_times_in_ten(level: int, split: str) -> None:
    env, paid = Math(level=level, split=split), {"expert": 0.0, "whole": 0.0, "rounded": 0.0}
    for seed in range(200):
        env.reset(seed=seed)
        assert env._task is not None
        answer = Fraction(env._task.answer)
        whole, rounded = round(answer), round(float(answer), 2)
        for name, action in (
            ("expert", env.expert_action()),
            ("whole", rf"\boxed{{{whole}}}"),
            ("rounded", rf"\boxed{{{rounded}}}"),
        ):
            env.reset(seed=seed)
            paid[name] += env.step(action)[1] / 200
    assert paid["expert"] == pytest.approx(1)
    assert paid["whole"] == pytest.approx(0.4, abs=0.1)
    assert 0.6 < paid["rounded"] < 0.9


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        (
            "3/4",
            [r"\frac{3}{4}", "0.75", "6/8", "75%", r"\frac34", "$3/4$", "3/4 cups"],
            ["0.7", "4/3", "-3/4", "34", "75", "3/4 or 1"],
        ),
        (
            "2.5",
            ["2.50", "$2.50", "5/2", r"2\frac12", "2.5 hours", r"2.5\text{ km}"],
            ["2.05", "25", "2,5", "2 5", "~2.5"],
        ),
        ("1200", ["1,200", "1200.0", r"1{,}200"], ["12,00", "1.200", "1,2,0,0", r"12 \cdot 100", "1200!"]),
        ("2/3", [r"\dfrac{2}{3}", "4/6"], ["0.67", "0.6667", "0.66666666666666666666"]),
    ],
)
def test_equal_values_are_right_in_any_form(answer: str, right: list[str], wrong: list[str]) -> None:
    env = Math()
    for reply, reward in [*((reply, 1.0) for reply in right), *((reply, 0.0) for reply in wrong)]:
        env.reset(options={"task": Task("How many?", answer, {"form": "any"})})
        assert env.step(rf"So it is \boxed{{{reply}}}.")[1] == reward, reply


def test_word_problems_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the prover was asked")

    monkeypatch.setattr(prover, "classified", refuse)
    env = Math()
    for reply in (r"\sqrt{16}", r"\frac{7^{7^{7}}-7}{6}", "x = 3 + y", r"\int_0^1 x", "2 + 3", "{1, 2}", "3 \\pi"):
        env.reset(seed=0)
        _, reward, _, _, info = env.step(rf"\boxed{{{reply}}}")
        assert (reward, "grader_error" in info) == (0.0, False), reply


@pytest.mark.parametrize("answer_format", ["boxed", "tag", "plain"])
def test_formats(answer_format: str) -> None:
    env = Math(answer_format=answer_format, format_weight=0.5, level=3)
    for seed in range(60):
        env.reset(seed=seed)
        action = env.expert_action()
        _, reward, _, _, info = env.step(action)
        assert (reward, info["stop_reason"]) == (1.5, "answered"), action


@pytest.mark.parametrize(
    ("reply", "reward"),
    [("3/4", 1.0), ("The answer is 3/4.", 1.0), ("0.75", 1.0), ("3", 0.0), ("4", 0.0), ("3/4 or 1/2", 0.0), ("", 0.0)],
)
def test_plain_replies(reply: str, reward: float) -> None:
    env = Math(answer_format="plain")
    env.reset(options={"task": Task("What fraction of it?", "3/4")})
    assert env.step(reply)[1] == reward


GSM8K = [
    {"question": "How many clips in May?", "answer": "Half: 48/2=<<48/2=24>>24.\nAll: 48+24=<<48+24=72>>72.\n#### 72"},
    {"question": "How much in total?", "answer": "Adds.\n#### 1,234"},
    {"question": "How much is lost?", "answer": "#### 5 no\n#### -$2.50\nbecause of the rest"},
]
MATH = [
    {
        "problem": "A?",
        "level": "Level 3",
        "type": "Algebra",
        "solution": r"First \boxed{2}, then $\boxed{\frac{3}{4}}$.",
    },
    {"problem": "B?", "level": "Level 5", "type": "Counting", "solution": r"So \fbox{12}."},
    {"problem": "C?", "level": "Level 1", "type": "Algebra", "solution": r"It is $\boxed 7$."},
    {"problem": "D?", "level": "Level 1", "subject": "Geometry", "solution": r"\boxed{8}", "answer": r"(0,4)"},
    {"problem": "E?", "level": "Level 1", "type": "Algebra", "solution": r"\boxed{\text{east}}"},
]


def test_the_fields_of_gsm8k(tmp_path: Path) -> None:
    env = Math(data={"train": write(tmp_path / "a.jsonl", GSM8K)})
    assert answers(env) == ["72", "1,234", "-$2.50"]
    assert graded(env, 0, r"\boxed{72}") == graded(env, 1, r"\boxed{1234}") == graded(env, 2, r"\boxed{-2.5}") == 1
    assert graded(env, 0, r"\boxed{24}") == graded(env, 1, r"\boxed{234}") == graded(env, 2, r"\boxed{2.5}") == 0


def test_the_fields_of_math(tmp_path: Path) -> None:
    env = Math(data={"train": write(tmp_path / "a.jsonl", MATH)})
    assert answers(env) == [r"\frac{3}{4}", "12", "7", "(0,4)", r"\text{east}"]
    assert (
        graded(env, 0, r"\boxed{0.75}")
        == graded(env, 3, r"\boxed{(0, 4)}")
        == graded(env, 4, r"\boxed{\text{East}}")
        == 1
    )
    assert graded(env, 0, r"\boxed{2}") == graded(env, 3, r"\boxed{4}") == graded(env, 4, r"\boxed{\text{west}}") == 0
    assert env.dataset is not None
    kept = [
        {name: task.data.get(name) for name in ("level", "type", "subject")} for task in env.dataset.splits["train"]
    ]
    assert kept[0] == {"level": "Level 3", "type": "Algebra", "subject": None}
    assert kept[3] == {"level": "Level 1", "type": None, "subject": "Geometry"}


def test_fields_by_name(tmp_path: Path) -> None:
    rows = [{"q": "2 + 2?", "a": 4, "question": "no", "answer": "5"}]
    env = Math(data={"train": write(tmp_path / "a.jsonl", rows)}, question_field="q", answer_field="a")
    assert env.reset()[0].startswith("2 + 2?\n") and answers(env) == ["4"]
    with pytest.raises(ValueError, match=r"line 1: there is no field 'b'; the fields are 'q', 'a'"):
        Math(data={"train": str(tmp_path / "a.jsonl")}, question_field="q", answer_field="b")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("see figure", "'see figure'"),
        ("", "''"),
        ("the proof is left to the reader", "'the proof is left to the reader'"),
        (r"so \boxed{4", r"boxed{4"),
        ("all of it\n####", "''"),
        (r"\boxed{}", "''"),
        (None, "'None'"),
    ],
)
def test_unreadable_answers_are_refused_or_counted(tmp_path: Path, answer: str | None, shown: str) -> None:
    path = write(tmp_path / "a.jsonl", [*GSM8K, {"question": "Which one?", "answer": answer}])
    with pytest.raises(ValueError, match=r"a\.jsonl, line 4: .*; skip_unreadable=True leaves such rows out") as error:
        Math(data={"train": path})
    assert shown in str(error.value)
    with pytest.warns(UserWarning, match=r"left out: 1; the first is .*a\.jsonl, line 4"):
        env = Math(data={"train": path}, skip_unreadable=True)
    assert len(answers(env)) == 3


def test_tasks_of_any_kind_may_be_given() -> None:
    env = Math()
    for gold, right, wrong in (("8 and 27", "27, 8", "27"), ("0,4", "(0,4)", "04"), ("[1, 2)", "[1,2)", "(1,2)")):
        for reply, reward in ((right, 1.0), (wrong, 0.0)):
            env.reset(options={"task": Task("Which?", gold)})
            assert env.step(rf"\boxed{{{reply}}}")[1] == reward, reply


def test_a_task_that_nobody_can_be_graded_on_is_refused() -> None:
    with pytest.raises(ValueError, match="see figure"):
        Math().reset(options={"task": Task("How many?", "see figure")})


def test_how_answers_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"question": "How many percent?", "answer": "35%"}])
    fraction, points = Math(data={"train": path}), Math(data={"train": path}, percent="points")
    assert [graded(fraction, 0, rf"\boxed{{{a}}}") for a in ("35%", "0.35", "35")] == [1, 1, 0]
    assert [graded(points, 0, rf"\boxed{{{a}}}") for a in ("35%", "0.35", "35")] == [1, 0, 1]
    path = write(tmp_path / "b.jsonl", [{"question": "Who?", "answer": "Evelyn Smith"}])
    words = Math(data={"train": path}, answer_kind="text")
    assert [graded(words, 0, rf"\boxed{{{a}}}") for a in ("evelyn  smith", "Evelyn")] == [1, 0]


def test_plain_replies_are_read_by_the_kind_of_the_answer() -> None:
    paid = {
        "text": {"golden retriever": ["golden retriever", "Golden Retriever."], "Monday": ["Monday", "**Monday**"]},
        "choice": {"B": ["B", "(b).", "The answer is B.", "Answer: B", "B) 12", "The answer is (B) 12."]},
    }
    unpaid = {
        "text": ["retriever", "Tuesday", ""],
        "choice": ["A", "A or B", "The answer is not B.", "B and C", "12", ""],
    }
    for kind, golds in paid.items():
        env = Math(answer_kind=kind, answer_format="plain", format_weight=0.25)
        for gold, replies in golds.items():
            for reply in [*replies, *unpaid[kind]]:
                env.reset(options={"task": Task("Which?", gold)})
                assert env.step(reply)[4]["scores"]["correct"] == (reply in replies), (gold, reply)
            env.reset(options={"task": Task("Which?", gold)})
            assert env.step(env.expert_action())[1] == 1.25


NOTHING = {
    "tag": ["\u200b", ".", "-", "?", "{}", "...", "**", "and", "e.", r"\text{e}", r"\text{}", "$$", " "],
    "boxed": [r"\,", r"\text{}", "$$", "", r"\quad", "{}", ".", "*e*"],
}


def test_a_field_with_nothing_in_it_pays_no_format() -> None:
    for name, contents in NOTHING.items():
        env = Math(answer_format=name, format_weight=0.25)
        pattern = env.formats[name].pattern
        extra = {"tag": ["<answer>7</answer></answer>"], "boxed": [r"\boxed{5} \boxed{}", r"\boxed{} \boxed{5}"]}[name]
        for completion in [*(pattern % content for content in contents), *extra]:
            env.reset(options={"task": Task("How many?", "4/7")})
            assert env.step(completion)[4]["scores"]["format"] == 0.0, completion
        for content in ("4/7", "0", "no", r"\infty", "∅", r"\{\}", "x+1"):
            env.reset(options={"task": Task("How many?", "4/7")})
            assert env.step(pattern % content)[4]["scores"]["format"] == 1.0, content


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"level": 0}, "level must be an integer from 1 to 3, got 0"),
        ({"level": 2.0}, "level must be an integer"),
        ({"data_config": "main"}, "without data nothing is done with data_config"),
        ({"question_field": "q", "skip_unreadable": True}, "nothing is done with question_field, skip_unreadable"),
        ({"data": "x.jsonl", "level": 2}, "with data nothing is done with level"),
    ],
)
def test_arguments_that_do_not_fit(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Math(**kwargs)


def test_arguments_of_the_grader_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", GSM8K)
    for kwargs in ({"answer_kind": "integer"}, {"percent": "yes"}):
        with pytest.raises(ValueError, match=next(iter(kwargs.values()))):
            Math(data={"train": path}, **kwargs)  # type: ignore[arg-type]


def test_splits_of_data(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(300)]
    path = write(tmp_path / "a.jsonl", rows)
    seen: dict[str, set[str]] = {}
    for split in ("train", "test"):
        env = make("Math-v0", data=path, split=split, shots=2)
        seen[split] = {env.reset(seed=seed)[1]["task_id"] for seed in range(300)}
        assert {message["role"] for message in env.reset()[1]["examples"]} == {"user", "assistant"}
    assert not seen["train"] & seen["test"] and len(seen["test"]) > 30
    with pytest.raises(ValueError, match="no tasks of the split 'test'; they have 300 of train and 0 of test"):
        Math(data={"train": path}, split="test")


def test_the_arguments_are_json(tmp_path: Path) -> None:
    env = make("Math-v0", data={"train": write(tmp_path / "a.jsonl", GSM8K)}, answer_kind="number")
    assert env.spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=3) == env.reset(seed=3)


def test_states_carry_the_right_answer(tmp_path: Path) -> None:
    env = Math(data={"train": write(tmp_path / "a.jsonl", MATH)})
    env.reset(options={"index": 0})
    state = pickle.loads(pickle.dumps(env.get_state()))
    other = copy.deepcopy(env)
    other.reset(options={"index": 1})
    other.set_state(state)
    assert other.step(r"\boxed{3/4}")[1] == 1.0


def test_ten_thousand_rows_load_in_a_moment_and_once(tmp_path: Path) -> None:
    rows = [{"question": f"Tom has {n} and {3 * n}?", "answer": f"Adds.\n#### {4 * n:,}"} for n in range(10_000)]
    path = write(tmp_path / "a.jsonl", rows)
    start = time.process_time()
    first = Math(data=path)
    loaded = time.process_time() - start
    assert loaded < 3
    for _ in range(20):
        assert Math(data=path, split="test").dataset is first.dataset
    assert time.process_time() - start - loaded < loaded / 2
