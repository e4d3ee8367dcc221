"""ReasoningGym: every task by name, the same in every process, and no text of a model is ever run."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tetrathlon  # noqa: F401
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.reasoning_gym import EXCLUDED, ReasoningGym, _one_antiderivative, tasks
from tetrathlon.envs.text.reasoning_gym_graders import GRADERS

pytest.importorskip("reasoning_gym")

EVALUATED = [
    "binary_matrix",
    "countdown",
    "intermediate_integration",
    "n_queens",
    "polynomial_multiplication",
    "puzzle24",
    "simple_integration",
    "spiral_matrix",
    "string_insertion",
]
"""Tasks whose scorer in the package runs the answer."""

FINGERPRINTS = """
import hashlib, json, sys
import numpy as np
from tetrathlon.envs.text.reasoning_gym import ReasoningGym, tasks
prints = {}
for task in tasks():
    env = ReasoningGym(task=task)
    few = 1 if task in ("zebra_puzzles", "puzzle24", "sudoku", "intermediate_integration", "rearc") else 3
    items = [env.generate(np.random.default_rng(seed)) for seed in range(few)]
    prints[task] = hashlib.sha256(repr([(item.question, item.answer) for item in items]).encode()).hexdigest()
json.dump(prints, sys.stdout)
"""


def grade(task: str, gold: str, metadata: dict[str, Any], answer: str, **kwargs: Any) -> float:
    env = ReasoningGym(task=task, **kwargs)
    item = Task("q", gold, {"entry": {"question": "q", "answer": gold, "metadata": metadata}})
    return env.score(item, answer)


def test_a_hundred_tasks_by_name_are_solved_by_their_experts() -> None:
    names = tasks()
    assert len(names) >= 100
    assert set(names) | set(EXCLUDED) >= {"chain_sum", "sudoku", "boxnet", "rubiks_cube"}
    failed = []
    for name in names:
        env = ReasoningGym(task=name)
        prompt, _ = env.reset(seed=1)
        assert prompt.endswith("Put your final answer between <answer> and </answer>.")
        _, reward, _, _, info = env.step(env.expert_action())
        state = env.get_state()
        item = state["task"]
        pickle.dumps(state)
        if reward != 1.0 or "grader_error" in info or env._ask_package(item, item.answer) < 1.0:
            failed.append((name, "tag", reward, item.answer[:80]))
        if name in GRADERS and not GRADERS[name](item.answer, item.answer, item.data["entry"]["metadata"]):
            failed.append((name, "grader", 0.0, item.answer[:80]))
        boxed = (
            ReasoningGym(task=name, answer_format="boxed") if name in ("sudoku", "graph_color", "futoshiki") else None
        )
        if boxed is not None:
            boxed.reset(options={"task": item})
            if boxed.step(boxed.expert_action())[1] != 1.0:
                failed.append((name, "boxed", 0.0, item.answer[:80]))
    assert not failed


def test_items_are_the_same_in_every_process() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FINGERPRINTS],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_WAIT_POLICY": "PASSIVE"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (json.loads(process.communicate(timeout=250)[0]) for process in running)
    assert len(first) >= 100
    assert {name for name in first if first[name] != second[name]} == set()


def test_an_item_does_not_depend_on_those_before() -> None:
    for name in ("acre", "word_ladder", "list_functions", "gsm_symbolic", "pool_matrix", "quantum_lock"):
        fresh, used = ReasoningGym(task=name), ReasoningGym(task=name)
        for index in range(3):
            used.reset(options={"index": index})
        assert fresh.reset(options={"index": 9}) == used.reset(options={"index": 9}), name


def test_one_antiderivative_of_two_is_written() -> None:
    assert _one_antiderivative("-3*cos(8*x + 2)**2/2 + C") == "3*sin(8*x + 2)**2/2 + C"
    assert _one_antiderivative("cos(x)**2 + C") == "-sin(x)**2 + C"
    assert _one_antiderivative("-cos(x)**3/3 + C") == "-cos(x)**3/3 + C"
    assert grade(
        "intermediate_integration", "", {"variable": "x", "integrand": "8*sin(8*x)*cos(8*x)"}, "-cos(8*x)**2/2"
    )
    assert grade("intermediate_integration", "", {"variable": "x", "integrand": "8*sin(8*x)*cos(8*x)"}, "sin(8*x)**2/2")


def test_splits_share_nothing_and_seeds_vary() -> None:
    train, test = ReasoningGym(task="chain_sum"), ReasoningGym(task="chain_sum", split="test")
    of_train = {train.reset(seed=seed)[1]["task_id"] for seed in range(200)}
    of_test = {test.reset(seed=seed)[1]["task_id"] for seed in range(200)}
    assert len(of_train) > 195 and len(of_test) > 195
    assert not of_train & of_test


def test_global_generators_are_left_alone() -> None:
    random.seed(1)
    np.random.seed(1)
    before = (random.getstate(), str(np.random.get_state()))
    for name in ("pool_matrix", "list_functions", "word_sorting"):
        env = ReasoningGym(task=name)
        env.reset(seed=0)
        env.step("<answer>1</answer>")
    assert (random.getstate(), str(np.random.get_state())) == before


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_checks() -> None:
    check_env(ReasoningGym(), skip_render_check=True)
    env = gym.make("tetrathlon/ReasoningGym-v0", task="spell_backward", config={"min_word_len": 3, "max_word_len": 3})
    prompt, _ = env.reset(seed=0)
    assert env.step(env.unwrapped.expert_action())[1] == 1.0  # type: ignore[attr-defined]
    assert "Spell this word backward" in prompt


@pytest.mark.parametrize("task", [*EVALUATED, "rubiks_cube", "coin_flip", "game_of_life", "prime_factorization"])
@pytest.mark.parametrize("partial_credit", [False, True])
def test_nothing_runs_and_nothing_hangs(task: str, partial_credit: bool, tmp_path: Path) -> None:
    env = ReasoningGym(task=task, partial_credit=partial_credit)
    env.reset(seed=0)
    item = env.get_state()["task"]
    ran = tmp_path / "ran"
    code = f'__import__("os").system("touch {ran}")'
    answers = [
        code,
        f"[{code}]",
        f"[[{code}]]",
        f"({code} or 1) * 0 + 24",
        f"sin({code})",
        f"open({str(ran)!r}, 'w').write('x')",
        f"x.__class__.__init__.__globals__ # {code}",
        "9**9**9",
        "9**9**9**9*x",
        "(9**99)**99**99",
        "x**99**99",
        "((x**99)**99)**99",
        "((x+1)**99*(y+2)**99)**99",
        "exp(exp(exp(exp(exp(9)))))",
        "(" * 900 + "x" + ")" * 900,
        "(" * 100_000 + "x" + ")" * 100_000,
        "[" * 100_000,
        "[" * 1_900,
        "-" * 1_500 + "x",
        "1e999999999",
        "1E+9999",
        "1/1e9999",
        "9" * 5_000,
        "R99999999999",
        "R" * 1_000_000,
        " × ".join(["9" * 390] * 5),
        "factorial(10**9)",
        "10**9!",
        "lambda: 0",
        "\0",
    ]
    for answer in answers:
        env.reset(options={"task": item})
        started = time.process_time()
        _, reward, _, _, info = env.step(f"<answer>{answer}</answer>")
        assert time.process_time() - started < 1.0, answer[:60]
        assert reward < 0.5 and "grader_error" not in info, answer[:60]
    assert not ran.exists()


ORTHO = {"task_type": "orthocenter", "ortho": ("7", "-2")}
COIN = {"rational": {"numerator": 1, "denominator": 4}}
ROLES = "Zoey is a knight, and Ava is a knave."
INTEGRAL = {"variable": "x", "integrand": "x*exp(2*x)"}
CASES = [
    # where the package pays wrong answers in full
    ("game_of_life_halting", "True", {}, "False", 0),
    ("game_of_life_halting", "True", {}, "true", 1),
    ("coin_flip", "0.25", COIN, "0", 0),
    ("coin_flip", "0.25", COIN, "0.2", 0),
    ("coin_flip", "0.25", COIN, "1/4", 1),
    ("coin_flip", "0.25", COIN, "0.25 or 0.5", 0),
    ("coin_flip", "3.051757812e-05", COIN, "0", 0),
    ("number_sorting", "['1', '2', '3']", {"direction": "ascending"}, "[NaN, NaN, NaN]", 0),
    ("number_sorting", "['1', '2', '3']", {"direction": "ascending"}, "['1.5', '2.5', '3.5']", 0),
    ("number_sorting", "['1', '2', '3']", {"direction": "ascending"}, "[1, 2.0, 3]", 1),
    ("complex_arithmetic", "8.0 + 3.0i", {"result": (8, 3)}, "nan", 0),
    ("complex_arithmetic", "8.0 + 3.0i", {"result": (8, 3)}, "8+3i", 1),
    ("calendar_arithmetic", "-1", {"task": "recurring_event_day"}, "31", 0),
    ("calendar_arithmetic", "-1", {"task": "recurring_event_day"}, "-1", 1),
    ("gsm_symbolic", "5", {}, "5 or 6", 0),
    ("gsm_symbolic", "5", {}, "-5", 0),
    ("gsm_symbolic", "5", {}, "5 apples", 1),
    ("gsm_symbolic", "1500", {}, "$1,500", 1),
    ("gsm_symbolic", "580", {}, "not 580", 0),
    ("gsm_symbolic", "580", {}, "~580", 0),
    ("gsm_symbolic", "580", {}, "about 580", 0),
    ("gsm_symbolic", "580", {}, "580 percent", 0),
    ("gsm_symbolic", "580", {}, "580%", 0),
    ("gsm_symbolic", "580", {}, "580?", 0),
    ("gsm_symbolic", "580", {}, "580 thousand", 0),
    ("gsm_symbolic", "580", {}, "580 fish in all.", 1),
    ("advanced_geometry", "(7.000, -2.000)", ORTHO, "(7.000, -2.000)", 1),
    ("advanced_geometry", "(7.000, -2.000)", ORTHO, "7, -2", 1),
    ("advanced_geometry", "(7.000, -2.000)", ORTHO, "(7.000, -2.000), 12", 0),
    ("advanced_geometry", "(7.000, -2.000)", ORTHO, "(7.000, -2.000) or (1, 2)", 0),
    ("game_of_life", "[[0,1]]", {}, "[[0,1,1],[1]]", 0),
    ("game_of_life", "[[0,1]]", {}, "[[0, 1]]", 1),
    ("polynomial_equations", "", {}, "whatever", 0),
    ("polynomial_equations", "", {}, '""', 1),
    ("polynomial_equations", "1.0, 2.0", {}, "1, 2", 1),
    ("polynomial_equations", "1.0, 2.0", {}, "1, 2, 3", 0),
    ("word_sorting", "a, b", {"sorted_words": ["a", "b"]}, "a, b, c", 0),
    ("word_sorting", "a, b", {"sorted_words": ["a", "b"]}, "a,b", 1),
    ("letter_jumble", "a b", {}, "a b c", 0),
    ("figlet_font", "watermelon", {}, "watermelons", 0),
    ("spell_backward", "abcdef", {}, "abcdefg", 0),
    ("time_intervals", "5 days", {"task_type": "date"}, "5 or 6 days", 0),
    ("time_intervals", "5 days", {"task_type": "date"}, "5 days 6 days", 0),
    ("time_intervals", "5 days", {"task_type": "date"}, "5", 0),
    ("time_intervals", "01:30", {"task_type": "time"}, "01:30:00", 1),
    ("fraction_simplification", "$1/2$", {"simplified_numerator": 1, "simplified_denominator": 2}, r"\frac{1}{2}", 1),
    ("fraction_simplification", "$1/2$", {"simplified_numerator": 1, "simplified_denominator": 2}, "1/2 or 3/4", 0),
    ("fraction_simplification", "$1/2$", {"simplified_numerator": 1, "simplified_denominator": 2}, "2/4", 0),
    ("chain_sum", "12", {}, "1,2", 0),
    ("chain_sum", "1200", {}, "1,200", 1),
    ("chain_sum", "12", {}, "$12$", 1),
    ("knights_knaves", ROLES, {}, "Ava is a knave, and Zoey is a knight.", 1),
    ("knights_knaves", ROLES, {}, "not " + ROLES, 0),
    ("knights_knaves", ROLES, {}, "Zoey is a knave, and Ava is a knight.", 0),
    ("quantum_lock", "A → B", {"target_value": 1}, "A → B or else", 0),
    ("prime_factorization", "2 × 3", {}, "two × 3", 0),
    ("prime_factorization", "2 × 3", {}, "3 × 2", 1),
    # where the package runs the answer
    ("puzzle24", "4*8 - 6 - 2", {"numbers": [4, 8, 6, 2]}, "(8 - 2) * (6 - 4) * 2", 0),
    ("puzzle24", "4*8 - 6 - 2", {"numbers": [4, 8, 6, 2]}, "8 * 4 - (6 + 2)", 1),
    ("puzzle24", "4*8 - 6 - 2", {"numbers": [4, 8, 6, 2]}, "6 * 4 * 1 * 1", 0),
    ("countdown", "3*7 + 50", {"numbers": [3, 7, 50], "target": 71}, "50 + 7*3", 1),
    ("countdown", "3*7 + 50", {"numbers": [3, 7, 50], "target": 71}, "71", 0),
    ("binary_matrix", "0 1\n1 0", {}, "0 1 \n1 0", 1),
    ("binary_matrix", "0 1\n1 0", {}, "0 1 1 0", 0),
    ("binary_matrix", "0 1\n1 0", {}, "[[0, 1], [1, 0]]", 0),
    ("n_queens", "Q _\n_ Q", {"valid_answers": ["Q _\n_ Q", "_ Q\nQ _"]}, "_ Q\nQ _", 1),
    ("n_queens", "Q _\n_ Q", {"valid_answers": ["Q _\n_ Q", "_ Q\nQ _"]}, "_ Q\n_ Q", 0),
    ("polynomial_multiplication", "2*x**2 - 2", {"variables": ["x"]}, "-2 + x*x + x^2", 1),
    ("polynomial_multiplication", "2*x**2 - 2", {"variables": ["x"]}, "2*(x - 1)*(x + 1)", 0),
    ("polynomial_multiplication", "2*x**2 - 2", {"variables": ["x"]}, "2*x**2 - 3", 0),
    ("polynomial_multiplication", "2*x**2 - 2", {"variables": ["x"]}, "2x**2 - 2", 0),
    ("simple_integration", "x**2/2 + C", {"variable": "x", "integrand": "x"}, "0.5*x^2", 1),
    ("simple_integration", "x**2/2 + C", {"variable": "x", "integrand": "x"}, "x**2 + C", 0),
    ("simple_integration", "x**2/2 + C", {"variable": "x", "integrand": "x"}, "C", 0),
    ("intermediate_integration", "", INTEGRAL, "x*exp(2*x)/2 - exp(2*x)/4 + C", 1),
    ("intermediate_integration", "", INTEGRAL, "(2*x - 1)*E**(2*x)/4", 1),
    ("intermediate_integration", "", INTEGRAL, "x*exp(2*x)/2 + exp(2*x)/4 + C", 0),
    ("intermediate_integration", "", {"variable": "x", "integrand": "sin(x)**2"}, "x/2 - sin(2*x)/4", 1),
    ("intermediate_integration", "", {"variable": "x", "integrand": "1/(x**2 + 1)"}, "atan(x)", 1),
    ("intermediate_integration", "", {"variable": "x", "integrand": "log(x)"}, "x*log(x) - x + C", 1),
]


@pytest.mark.parametrize(("task", "gold", "metadata", "answer", "expected"), CASES)
def test_grading(task: str, gold: str, metadata: dict[str, Any], answer: str, expected: int) -> None:
    assert grade(task, gold, metadata, answer) == expected


def test_sokoban_pays_no_endless_walks() -> None:
    env = ReasoningGym(task="sokoban")
    env.reset(seed=1)
    item = env.get_state()["task"]
    assert env.score(item, " ".join(item.answer.lower())) in (0.0, 1.0)
    assert env.score(item, item.answer) == 1.0
    back = {"L": "R", "R": "L", "U": "D", "D": "U"}[item.answer[-1]]
    assert env.score(item, item.answer + (back + item.answer[-1]) * 500) == 0.0


def test_plain_replies_of_several_lines() -> None:
    for task in ("sudoku", "spiral_matrix", "binary_matrix", "n_queens", "chain_sum"):
        env = ReasoningGym(task=task, answer_format="plain", format_weight=0.25)
        for seed in range(3):
            env.reset(seed=seed)
            assert env.step(env.expert_action())[1] == 1.25, task
            env.reset(seed=seed)
            assert env.step(f"<think>hm</think>\n{env.expert_action()}\n")[1] == 1.25, task


def test_partial_credit_is_opt_in_and_pays_by_length() -> None:
    assert grade("simple_equations", "8", {}, "The answer is 8") == 0.0
    assert grade("simple_equations", "8", {}, "The answer is 8", partial_credit=True) == pytest.approx(1 / 15)
    assert grade("simple_equations", "8", {}, "8", partial_credit=True) == 1.0
    assert grade("game_of_life_halting", "True", {}, "hm", partial_credit=True) == 0.0
    assert grade("word_sorting", "a, b", {"sorted_words": ["a", "b"]}, "b, a", partial_credit=True) == 0.2
    env = ReasoningGym(task="simple_equations", partial_credit=True)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(f"<answer>about {env.get_state()['task'].answer}</answer>")
    assert 0 < reward < 1 and info["is_success"] is False


def test_a_scorer_that_fails_is_wrong_or_unscorable(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ReasoningGym(task="lcm")
    env.reset(seed=0)
    gold = env.get_state()["task"].answer

    def picky(answer: str, entry: Any) -> float:
        if answer != gold:
            raise RuntimeError("cannot read it")
        return 1.0

    monkeypatch.setattr(env._dataset, "score_answer", picky)
    _, reward, _, _, info = env.step("<answer>x</answer>")
    assert reward == 0.0 and "grader_error" not in info

    def broken(answer: str, entry: Any) -> float:
        raise RuntimeError("no scorer")

    monkeypatch.setattr(env._dataset, "score_answer", broken)
    env.reset(seed=0)
    _, reward, _, _, info = env.step("<answer>x</answer>")
    assert reward == 0.0 and "no scorer" in info["grader_error"]


def test_scorers_do_not_write_into_the_item(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ReasoningGym(task="lcm")
    env.reset(seed=0)
    item = env.get_state()["task"]
    before = pickle.dumps(item.data["entry"])

    def writes(answer: str, entry: Any) -> float:
        entry["metadata"]["x"] = 1
        return 0.0

    monkeypatch.setattr(env._dataset, "score_answer", writes)
    env.step("<answer>x</answer>")
    assert pickle.dumps(item.data["entry"]) == before


def test_unknown_and_refused_tasks() -> None:
    with pytest.raises(ValueError, match=r"did you mean .*chain_sum"):
        ReasoningGym(task="chain_sums")
    with pytest.raises(ValueError, match=r"there is no reasoning-gym task 'qqqqqq'$"):
        ReasoningGym(task="qqqqqq")
    for name, reason in EXCLUDED.items():
        with pytest.raises(ValueError, match=reason.split(";")[0]):
            ReasoningGym(task=name)


def test_configs() -> None:
    env = ReasoningGym(config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1})
    prompt, _ = env.reset(seed=0)
    assert len(prompt) < 200
    with pytest.raises(ValueError, match="does not fit"):
        ReasoningGym(config={"nonsense": 1})
    with pytest.raises(ValueError, match="does not fit"):
        ReasoningGym(config={"min_terms": 5, "max_terms": 2})
    with pytest.raises(ValueError, match="must not hold seed"):
        ReasoningGym(config={"seed": 5})


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(gym.error.DependencyNotInstalled, match=r'pip install "tetrathlon\[llm\]"'):
        ReasoningGym()


def test_the_package_is_imported_only_when_it_is_used() -> None:
    code = (
        "import sys, tetrathlon.envs.text.reasoning_gym; print('reasoning_gym' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
