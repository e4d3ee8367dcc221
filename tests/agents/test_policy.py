"""The protocol and the policies without a network."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from tetrathlon.agents.policy import ActionError, ExpertPolicy, FunctionPolicy, Policy, RandomPolicy
from tetrathlon.envs.spaces import UnicodeText

PICTURED = spaces.Dict({"image": spaces.Box(0, 255, (2, 2, 3), np.uint8), "text": UnicodeText(20)})


def test_the_shipped_policies_keep_the_protocol() -> None:
    space = spaces.Discrete(3)
    for policy in (RandomPolicy(space), ExpertPolicy(space), FunctionPolicy(lambda o: 0, space, space)):
        assert isinstance(policy, Policy)
    assert not isinstance(object(), Policy)


def test_random_samples_the_space_and_leaves_its_generator_alone() -> None:
    space = spaces.Box(-1, 1, (2,), np.float32)
    space.seed(5)
    expected = space.sample()
    space.seed(5)
    acted = RandomPolicy(space, seed=1).act(np.zeros((4, 3)))
    assert acted.actions.shape == (4, 2) and acted.actions.dtype == np.float32
    assert acted.records == [None] * 4 and len(acted.memory) == 4
    np.testing.assert_array_equal(space.sample(), expected)


def test_random_is_seeded() -> None:
    space = spaces.Discrete(1000)
    draws = [RandomPolicy(space, seed).act(np.zeros((8, 1))).actions.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize(("observations", "n"), [(("a", "b", "c"), 3), ({"image": np.zeros((2, 2, 2, 3))}, 2)])
def test_random_counts_the_slots(observations: object, n: int) -> None:
    assert len(RandomPolicy(spaces.Discrete(3)).act(observations).actions) == n


def test_expert_does_what_it_was_told() -> None:
    policy = ExpertPolicy(UnicodeText(10))
    assert policy.asks
    acted = policy.act(("a", "b"), infos=[{"expert_action": "x"}, {"expert_action": "y"}])
    assert acted.actions == ("x", "y")
    with pytest.raises(TypeError, match="ask=True"):
        policy.act(("a",), infos=[{}])
    with pytest.raises(TypeError, match="ask=True"):
        policy.act(("a",))


def test_function_sees_one_observation_at_a_time() -> None:
    seen: list[Any] = []

    def act(observation: dict[str, Any]) -> str:
        seen.append(observation)
        return str(observation["text"]).upper()

    batch: dict[str, Any] = {"image": np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3), "text": ("a", "b")}
    acted = FunctionPolicy(act, PICTURED, UnicodeText(10)).act(batch, [None, None])
    assert acted.actions == ("A", "B")
    np.testing.assert_array_equal(seen[1]["image"], batch["image"][1])


def test_forced_actions_win() -> None:
    space = spaces.Discrete(10)
    acted = FunctionPolicy(lambda o: 1, space, space).act(np.zeros(3, np.int64), forced=[None, 5, 0])
    assert acted.actions.tolist() == [1, 5, 0]
    texts = FunctionPolicy(lambda o: "own", UnicodeText(9), UnicodeText(9)).act(("a", "b"), forced=["", None])
    assert texts.actions == ("", "own")


def test_the_package_names_everything_and_imports_no_torch() -> None:
    code = (
        "import sys, tetrathlon.agents as a\n"
        "torch = ('ControlPolicy', 'Decisions', 'Evaluation', 'TrainablePolicy', 'LanguagePolicy', 'VLAPolicy',"
        " 'RewardModel')\n"
        "names = [n for n in a.__all__ if n not in torch]\n"
        "assert all(callable(getattr(a, n)) for n in names), names\n"
        "assert 'torch' not in sys.modules and 'scipy.stats' not in sys.modules\n"
        "assert set(a.__all__) <= set(dir(a))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_every_name_is_there() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import tetrathlon.agents as agents

    for name in agents.__all__:
        assert callable(getattr(agents, name)), name
    with pytest.raises(AttributeError, match="nothing"):
        _ = agents.nothing


def test_smollm2_is_the_function_whatever_was_imported() -> None:
    import tetrathlon.agents.smollm
    from tetrathlon.agents import smollm2

    assert smollm2 is tetrathlon.agents.smollm.smollm2


@pytest.mark.parametrize("value", [3, None, b"text"])
def test_a_function_must_write_text_where_text_is_taken(value: Any) -> None:
    def answer(observation: str) -> Any:
        return value

    with pytest.raises(ActionError, match=rf"'answer' must return a str .*got {type(value).__name__} "):
        FunctionPolicy(answer, UnicodeText(9), UnicodeText(9)).act(("a", "b"))
