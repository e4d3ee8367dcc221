"""What all single-turn language tasks share, tried on every one of them."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tetrathlon  # noqa: F401
from tetrathlon.envs.language.formats import answer_formats
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Term
from tetrathlon.envs.text.arithmetic import Arithmetic
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.text.countdown import Countdown
from tetrathlon.envs.text.letter_count import LetterCount
from tetrathlon.envs.text.mathematics import Math
from tetrathlon.envs.text.symbolic import Symbolic

TASKS = [Arithmetic, Symbolic, LetterCount, Countdown, Math]
every = pytest.mark.parametrize("cls", TASKS)


@every
@pytest.mark.filterwarnings("ignore")
def test_gymnasium_checks(cls: type[TextBandit]) -> None:
    check_env(cls(), skip_render_check=True)
    check_env(gym.make(f"tetrathlon/{cls.__name__}-v0").unwrapped, skip_render_check=True)


@every
def test_seeds_and_indices_fix_the_instance(cls: type[TextBandit]) -> None:
    # By default half of its sums are of the few of one digit.
    settings: dict[str, Any] = {"digits": 2} if cls is Arithmetic else {}
    one, two = cls(**settings), cls(**settings)
    two.reset(seed=99)
    assert one.reset(seed=5) == two.reset(seed=5)
    assert one.reset() == two.reset()
    assert one.reset(options={"index": 7}) == two.reset(options={"index": 7})
    by_seed = {one.reset(seed=seed)[0] for seed in range(100)}
    by_index = {one.reset(options={"index": index})[0] for index in range(100)}
    assert len(by_seed) > 90 and len(by_index) > 90


@every
def test_an_index_does_not_move_the_seeded_stream(cls: type[TextBandit]) -> None:
    one, two = cls(), cls()
    one.reset(seed=3)
    two.reset(seed=3)
    two.reset(options={"index": 4})
    two.expert_action()
    assert one.reset()[0] == two.reset()[0]


def test_instances_are_the_same_in_every_process() -> None:
    code = (
        "from tests.envs.text.test_bandit import TASKS;"
        "print([[cls(split=s, shots=2).reset(seed=11)[0] for s in ('train', 'test')] for cls in TASKS])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": "", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = [[cls(split=split, shots=2).reset(seed=11)[0] for split in ("train", "test")] for cls in TASKS]
    assert outputs == {f"{here}\n"}


@every
def test_splits_share_nothing(cls: type[TextBandit]) -> None:
    ids: dict[str, set[str]] = {}
    for split in ("train", "test"):
        env = cls(split=split)
        ids[split] = {env.reset(options={"index": index})[1]["task_id"] for index in range(500)}
        ids[split] |= {env.reset(seed=seed)[1]["task_id"] for seed in range(500)}
    assert not ids["train"] & ids["test"]
    assert min(map(len, ids.values())) > 400


@every
def test_a_fifth_of_all_instances_is_test(cls: type[TextBandit]) -> None:
    rng = np.random.default_rng(0)
    env = cls()
    share = np.mean([env.generate(rng).split == "test" for _ in range(2_000)])
    assert 0.15 < share < 0.25


@every
@pytest.mark.parametrize("split", ["train", "test"])
def test_worked_examples(cls: type[TextBandit], split: str) -> None:
    env = cls(shots=3, split=split, answer_format="boxed")
    examples = env.reset(seed=0)[1]["examples"]
    assert [message["role"] for message in examples] == ["user", "assistant"] * 3
    asked = [message["content"].split("\n")[0] for message in examples[::2]]
    assert all(r"\boxed{" in message["content"] for message in examples)  # each asks for the format, then keeps it
    for seed in range(200):
        question, info = env.reset(seed=seed)
        assert info["examples"] == examples
        assert question.split("\n")[0] not in asked
        assert env._task is not None and info["task_id"] == env._task.id
    assert {Task(question, "").split for question in asked} == {"train"}


@every
@pytest.mark.parametrize("answer_format", answer_formats())
def test_formats(cls: type[TextBandit], answer_format: str) -> None:
    env = cls(answer_format=answer_format, format_weight=0.25)
    for seed in range(20):
        prompt, _ = env.reset(seed=seed)
        assert prompt.endswith("\n" + answer_formats()[answer_format].request)
        _, reward, terminated, truncated, info = env.step(env.expert_action())
        assert (reward, terminated, truncated) == (1.25, True, False)
        assert info["reward_terms"] == {"correct": 1.0, "format": 0.25}
        assert info["is_success"] is True and info["stop_reason"] == "answered"


@pytest.mark.parametrize(
    ("answer_format", "completion", "terms"),
    [
        ("boxed", r"\boxed{7}", (1.0, 0.25)),
        ("boxed", r"\boxed{8}", (0.0, 0.25)),
        ("boxed", "<answer>7</answer>", (1.0, 0.0)),
        ("boxed", r"\boxed{7} \boxed{7}", (1.0, 0.0)),
        ("boxed", r"\boxed{}", (0.0, 0.0)),
        ("boxed", "7", (0.0, 0.0)),
        ("boxed", r"<think>\boxed{7}</think>\boxed{7}", (1.0, 0.25)),
        ("boxed", r"<think>\boxed{7}", (0.0, 0.0)),
        ("tag", "<answer>7</answer>", (1.0, 0.25)),
        ("tag", r"<answer>\boxed{7}</answer>", (1.0, 0.0)),
        ("tag", "<think>a</think><think>b</think><answer>8</answer><answer>7</answer>", (0.0, 0.0)),
        ("plain", "7", (1.0, 0.25)),
        ("plain", "It is 7.", (1.0, 0.0)),
        ("plain", "The answer is 7", (1.0, 0.0)),
        ("plain", "6 or 7", (0.0, 0.0)),
        ("plain", "<think>x</think>\n7\n", (1.0, 0.25)),
        ("plain", r"\boxed {7}", (1.0, 0.0)),
        ("boxed", r"\fboxed{7}", (1.0, 0.25)),
        ("boxed", r"\boxed {7}", (1.0, 0.25)),
        ("boxed", r"\boxed {6}. Then \boxed{7}", (1.0, 0.0)),
        ("boxed", r"<think>a</think><think>b</think>\boxed{7}", (1.0, 0.0)),
        ("boxed", r"a</think>b</think>\boxed{7}", (1.0, 0.0)),
        ("boxed", r"\boxed{7} <answer >7</answer>", (1.0, 0.0)),
        ("tag", "<answer>7</answer> <answer >6</answer>", (0.0, 0.0)),
        ("tag", '<answer id="1">7</answer>', (1.0, 0.25)),
        ("plain", r"\boxed{7}", (1.0, 0.0)),
        ("plain", "", (0.0, 0.0)),
    ],
)
def test_format_pay(answer_format: str, completion: str, terms: tuple[float, float]) -> None:
    env = Arithmetic(answer_format=answer_format, format_weight=0.25)
    env.reset(options={"task": Task("What is 3 + 4?", "7")})
    _, reward, _, _, info = env.step(completion)
    assert info["reward_terms"] == {"correct": terms[0], "format": terms[1]}
    assert reward == sum(terms)
    assert info["is_success"] is (terms[0] == 1.0)


@every
@pytest.mark.parametrize(
    "completion", ["", "\0\ud800", "x" * 100_000, "\\boxed{" * 10_000, "\\boxed{nan}", "(" * 50_000]
)
def test_hostile_completions_pay_nothing(cls: type[TextBandit], completion: str) -> None:
    env = cls()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(completion)
    assert (reward, terminated, info["is_success"]) == (0.0, True, False)
    assert "grader_error" not in info


@every
def test_a_step_needs_a_reset(cls: type[TextBandit]) -> None:
    env = cls()
    with pytest.raises(gym.error.ResetNeeded):
        env.step("a")
    with pytest.raises(gym.error.ResetNeeded):
        env.expert_action()
    env.reset(seed=0)
    env.step("a")
    with pytest.raises(gym.error.ResetNeeded):
        env.step("a")
    env.reset()
    env.step("a")


@every
def test_state_round_trip(cls: type[TextBandit]) -> None:
    env, other = cls(shots=1), cls(shots=1)
    first, info = env.reset(seed=1)
    state = pickle.loads(pickle.dumps(env.get_state()))
    after = env.step(env.expert_action())
    ended = env.get_state()
    following = [env.reset()[0] for _ in range(3)]

    assert other.set_state(state) == (first, info)
    assert other.step(other.expert_action()) == after
    assert [other.reset()[0] for _ in range(3)] == following

    assert other.set_state(ended) == ("", after[4])
    with pytest.raises(gym.error.ResetNeeded):
        other.step("a")
    fresh = cls().get_state()
    assert other.set_state(fresh) == ("", {})


@every
def test_info_is_plain_and_keeps_the_answer(cls: type[TextBandit]) -> None:
    env = cls(max_tokens=9)
    _, info = env.reset(seed=0)
    assert info["limits"] == {"tokens": 9} and info["tools"] == [] and info["system"] == ""
    assert set(info) == {"task_id", "system", "tools", "examples", "limits"}
    end = env.step("nothing")[4]
    assert set(end) == {"is_success", "stop_reason", "reward_terms", "scores"}
    assert end["stop_reason"] == "no_answer"
    assert json.loads(json.dumps([info, end])) == [info, end]


@every
def test_global_generators_are_left_alone(cls: type[TextBandit]) -> None:
    before = (random.getstate(), str(np.random.get_state()))
    env = cls(shots=2)
    env.reset(seed=0)
    env.step(env.expert_action(k=2)[1])
    assert (random.getstate(), str(np.random.get_state())) == before


def test_render() -> None:
    env = Arithmetic(render_mode="ansi")
    prompt, _ = env.reset(seed=0)
    assert env.render() == prompt
    env.step("who knows")
    text = env.render()
    assert text is not None and "> who knows" in text and "reward 0 (no_answer)" in text
    assert Arithmetic().render() is None


@pytest.mark.parametrize(
    "kwargs",
    [
        {"split": "dev"},
        {"answer_format": "xml"},
        {"shots": -1},
        {"shots": True},
        {"shots": 65},
        {"shots": 1.0},
        {"max_tokens": 0},
        {"max_tokens": 1.5},
        {"max_tokens": True},
        {"max_tokens": "5"},
        {"format_weight": 1.0},
        {"format_weight": -0.1},
        {"format_weight": float("nan")},
        {"format_weight": True},
        {"render_mode": "human"},
    ],
)
def test_arguments_out_of_range(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        Arithmetic(**kwargs)


@pytest.mark.parametrize("index", [-1, 1.5, True, "1", None])
def test_wrong_indices(index: Any) -> None:
    with pytest.raises(ValueError, match="index"):
        Arithmetic().reset(options={"index": index})
    with pytest.raises(TypeError, match="Task"):
        Arithmetic().reset(options={"task": "x"})


def test_unknown_options_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="may be 'index' and 'task', got 'indx'"):
        Arithmetic().reset(options={"indx": 3})
    Arithmetic().reset(options={})


@pytest.mark.parametrize("digits", [1, 2])
def test_an_echo_of_the_prompt_is_not_paid(digits: int) -> None:
    env = Arithmetic(digits=digits, answer_format="plain")
    for index in range(200):
        prompt, _ = env.reset(options={"index": index})
        question = prompt.splitlines()[0]
        expression = question.removeprefix("What is ").rstrip("?")
        for echo in (prompt, question, expression, f"{question} {expression}", prompt + prompt):
            env.reset(options={"index": index})
            assert env.step(echo)[1] == 0.0, echo
        env.reset(options={"index": index})
        right = env.get_state()["task"].answer
        assert env.step(f"{question}\n{right}")[1] == 1.0
        env.reset(options={"index": index})
        assert env.step(f"{expression} = {right}")[1] == 1.0


def test_too_few_instances_is_an_error() -> None:
    class One(Arithmetic):
        def generate(self, rng: np.random.Generator) -> Task:
            rng.random()
            return Task("What is 1 + 1?", "2")

    splits = []
    for split in ("train", "test"):
        try:
            One(split=split).reset(seed=0)
            splits.append(split)
        except gym.error.Error as error:
            assert "too few instances" in str(error)
    assert len(splits) == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors(mode: Any) -> None:
    envs = gym.make_vec("tetrathlon/Arithmetic-v0", 3, vectorization_mode=mode, digits=1)
    try:
        prompts, _ = envs.reset(seed=4)
        single = [gym.make("tetrathlon/Arithmetic-v0", digits=1).reset(seed=4 + i)[0] for i in range(3)]
        assert list(prompts) == single
        answers = envs.call("expert_action")  # type: ignore[attr-defined]
        _, rewards, terminated, _, _ = envs.step(tuple(answers))
        assert list(rewards) == [1.0] * 3 and all(terminated)
    finally:
        envs.close()


class _Odd(Arithmetic):
    """Fails, or finds something that is neither right nor wrong, where it is told to."""

    says: Any = None

    def is_right(self, task: Task, answer: str) -> bool:
        if isinstance(self.says, Exception):
            raise self.says
        return super().is_right(task, answer) if self.says is None else self.says


@pytest.mark.parametrize("answer_format", ["boxed", "tag", "plain"])
@pytest.mark.parametrize("says", [None, True, False, 1, 0.5, np.True_, float("nan"), ValueError("broken")])
def test_a_step_pays_what_the_rubric_does(answer_format: str, says: Any) -> None:
    env = _Odd(answer_format=answer_format)
    env.says = says
    for seed in range(5):
        for completion in (None, "", "5", r"\boxed{5}", "<answer>5</answer>", "words", r"\boxed{5} or \boxed{6}"):
            env.reset(seed=seed)
            observation, reward, terminated, truncated, info = env.step(completion or env.expert_action())
            score, expected = env._grade(env._task)  # type: ignore[arg-type]
            assert (observation, reward, terminated, truncated) == ("", score.reward, True, False)
            assert info == expected and list(info) == list(expected)
            assert type(info["is_success"]) is bool and ("grader_error" in info) == (score.error is not None)


@every
def test_a_step_pays_what_the_rubric_does_in_every_task(cls: type[TextBandit]) -> None:
    env = cls(answer_format="plain")
    for seed in range(20):
        env.reset(seed=seed)
        for completion in (env.expert_action(), "#### 3", "-4", "I do not know", r"so \boxed{2}"):
            env.reset(seed=seed)
            _, reward, _, _, info = env.step(completion)
            score, expected = env._grade(env._task)  # type: ignore[arg-type]
            assert reward == score.reward and info == expected


def test_a_rubric_of_ones_own_is_asked() -> None:
    env = Arithmetic()
    env.rubric = Rubric(Term("correct", lambda task, episode: 0.25))
    env.reset(seed=0)
    assert env.step(env.expert_action())[1] == 0.25
    assert Arithmetic(format_weight=0.5).reset(seed=0) is not None


def test_a_seed_is_kept_as_gymnasium_keeps_it() -> None:
    env = Arithmetic()
    for seed in (3, 4, 5, 3):
        env.reset(seed=seed)
        assert env.np_random_seed == seed
    state = env.np_random.bit_generator.state
    env.reset(seed=3)
    assert env.np_random.bit_generator.state == state
