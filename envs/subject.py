"""An environment under test: bare copies of it, here and in a new process, and episodes played in them."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from tetrathlon.envs.codec import decode, encode, fingerprint
from tetrathlon.envs.registry import make

MOST_STEPS = 200
"""Steps after which a probing episode is left alone where the environment does not end it."""
LONGEST_EPISODE = 20_000
"""Steps within which an expert must come to an end."""
CHILD_TIMEOUT = 120
"""Seconds that a new process may take to make the environment and to reset it."""

_PLAIN = frozenset({str, int, bool, bytes, type(None)})
"""Types whose values are equal where ``==`` says so."""

_in_child = False

_CHILD = """
import json, sys
order = json.load(sys.stdin)
sys.path[:] = order["path"]
from tetrathlon.envs import subject
subject.answer(order)
"""


class ContractError(AssertionError):
    """An environment breaks its contract.

    Args:
        check: Name of the check that it fails.
        message: What was seen and what would be right.
    """

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"[{check}] {message}")
        self.check = check


class CopyError(Exception):
    """No copy of an environment can be made; the message says how to make it possible."""


@dataclass(slots=True)
class Moment:
    """What one reset (``action`` is None) or one step returned."""

    action: Any
    observation: Any
    reward: Any = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)
    mark: str = ""
    """Equal for equal moments."""

    @property
    def ended(self) -> bool:
        """Whether the episode ended here."""
        return bool(self.terminated or self.truncated)


class Subject:
    """Makes bare copies (no wrappers) of the environment under test.

    Args:
        env: An id, or an environment with a ``spec``, or one whose class can be called again as it was.
        kwargs: Constructor arguments, with an id.

    Raises:
        CopyError: No copy could be made.
    """

    def __init__(self, env: str | gym.Env[Any, Any], kwargs: Mapping[str, Any] | None = None) -> None:
        if _in_child:
            raise RuntimeError(
                "the file of this environment checks it whenever it is imported, in the check's own process too: "
                "put the call under if __name__ == '__main__':"
            )
        self._made: list[gym.Env[Any, Any]] = []
        if isinstance(env, str):
            first = make(env, **(kwargs or {}), disable_env_checker=True)
            self._made.append(first)
            bare = first.unwrapped
        elif not isinstance(env, gym.Env):
            raise TypeError(f"give an id or a gymnasium.Env, got {env!r}")
        elif kwargs:
            raise TypeError("kwargs go with an id; an environment that is made has its own")
        else:
            bare = env.unwrapped
        self.cls = type(bare)
        self.spec = bare.spec
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = dict(self.spec.kwargs) if self.spec is not None else {}
        if self.spec is None:
            if hasattr(bare, "_ezpickle_args"):
                self.args, self.kwargs = vars(bare)["_ezpickle_args"], dict(vars(bare)["_ezpickle_kwargs"])
            else:
                _refuse_other_settings(bare)
        self.label = self.spec.id if self.spec is not None else self.cls.__qualname__
        example = self.make()
        self.observation_space = example.observation_space
        self.action_space = example.action_space
        self.render_modes = list(self.cls.metadata.get("render_modes", []))

    def make(self, **overrides: Any) -> Any:
        """Make a bare copy.

        Args:
            **overrides: Constructor arguments that differ.

        Raises:
            CopyError: The class takes arguments that nobody knows.
        """
        if self.spec is not None:
            env = gym.make(self.spec, disable_env_checker=True, **overrides).unwrapped
        else:
            try:
                env = self.cls(*self.args, **{**self.kwargs, **overrides})
            except TypeError as error:
                raise CopyError(
                    f"no copy of {self.label} can be made ({error}): register it and give its id, or make it with "
                    "gymnasium.make, so that its spec knows the arguments"
                ) from error
        self._made.append(env)
        return env

    def close(self) -> None:
        """Close every copy."""
        for env in self._made:
            env.close()
        self._made.clear()

    @property
    def language(self) -> bool:
        """Whether what is done, or all that is seen, is text."""
        return any(isinstance(space, spaces.Text) for space in (self.action_space, self.observation_space))

    def takes(self, argument: str) -> bool:
        """Tell whether the constructor takes ``argument``."""
        return argument in self.kwargs or argument in _parameters(self.cls)

    def first_marks_elsewhere(self, seeds: Iterable[int]) -> list[str]:
        """Return the marks of the first observations in a new process with another PYTHONHASHSEED.

        Raises:
            CopyError: The new process cannot make the environment.
        """
        order = {**self._recipe(), "path": [os.path.abspath(part) for part in sys.path], "seeds": list(seeds)}
        other = "4711" if os.environ.get("PYTHONHASHSEED") != "4711" else "4712"
        child = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            timeout=CHILD_TIMEOUT,
            env={**os.environ, "PYTHONHASHSEED": other},
        )
        if child.returncode:
            raise CopyError(f"a new process could not make {self.label} and reset it:\n{child.stderr.strip()[-2000:]}")
        return json.loads(child.stdout.splitlines()[-1])

    def _recipe(self) -> dict[str, Any]:
        """Return how another process makes the environment."""
        if self.spec is not None and isinstance(self.spec.entry_point, str):
            try:
                return {"spec": self.spec.to_json()}
            except (TypeError, ValueError) as error:
                raise CopyError(
                    f"the spec of {self.label} cannot be written as JSON ({error}): let its arguments be plain data"
                ) from error
        maker = self.cls if self.spec is None else self.spec.entry_point
        qualname = getattr(maker, "__qualname__", repr(maker))
        module = sys.modules.get(getattr(maker, "__module__", ""))
        if "<" in qualname or getattr(module, "__file__", None) is None:
            raise CopyError(
                f"a new process cannot find {qualname}, which is no class or function at the top of a file: "
                "move it there, or register it with an entry point 'module:Class'"
            )
        try:
            arguments = encode([list(self.args), self.kwargs])
        except TypeError as error:
            raise CopyError(f"the arguments of {self.label} cannot be written as JSON: {error}") from error
        assert module is not None
        file = os.path.abspath(str(module.__file__))
        return {"module": module.__name__, "file": file, "qualname": qualname, "arguments": arguments}


def answer(order: dict[str, Any]) -> None:
    """Print, in a new process, the marks of the first observations that ``order`` asks for."""
    global _in_child
    _in_child = True
    if "spec" in order:
        env = gym.make(EnvSpec.from_json(order["spec"]), disable_env_checker=True).unwrapped
    else:
        maker: Any = _module(order["module"], order["file"])
        for name in order["qualname"].split("."):
            maker = getattr(maker, name)
        args, kwargs = decode(order["arguments"])
        env = maker(*args, **kwargs).unwrapped
    marks = [first_mark(env, seed=seed) for seed in order["seeds"]]
    print(json.dumps(marks), flush=True)


def _module(name: str, file: str) -> Any:
    try:
        known = importlib.util.find_spec(name) if name != "__main__" else None
    except (ImportError, ValueError):
        known = None
    if known is not None and known.origin is not None and os.path.samefile(known.origin, file):
        return importlib.import_module(name)
    found = importlib.util.spec_from_file_location("_tetrathlon_contract", file)
    if found is None or found.loader is None:
        raise CopyError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """Return the named constructor parameters, those of the bases included as far as ``**kwargs`` lead."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters
        found = {**parameters, **found}
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()):
            break
    return found


def _refuse_other_settings(env: gym.Env[Any, Any]) -> None:
    """Raise where a copy by ``cls()`` would silently have other settings than ``env``."""
    plain = (str, int, float, bool, type(None))
    for name, parameter in _parameters(type(env)).items():
        default = parameter.default
        if default is parameter.empty or not isinstance(default, plain) or name not in vars(env):
            continue
        if isinstance(value := vars(env)[name], plain) and value != default and default is not None:
            raise CopyError(
                f"{type(env).__qualname__} was made with {name}={value!r}, and without a spec a copy would have "
                f"{name}={default!r}: register it and give its id and kwargs, or make it with gymnasium.make"
            )


def mark(*values: Any) -> str:
    """Return a name that is equal for equal values; bit-equal where they can be written as JSON."""
    try:
        return fingerprint(list(values))
    except TypeError:
        return hashlib.sha256(pickle.dumps(values)).hexdigest()


def first_mark(env: Any, **reset: Any) -> str:
    """Return the mark of the first observation and of the task's id after ``env.reset(**reset)``."""
    observation, info = env.reset(**reset)
    return mark(observation, info.get("task_id"))


def has(env: Any, method: str) -> bool:
    """Tell whether ``env`` has ``method``."""
    return callable(getattr(env, method, None))


def play(
    env: Any, resets: Iterable[dict[str, Any]], *, how: str = "mixed", seed: int = 0, most: int = MOST_STEPS
) -> Iterator[Moment]:
    """Play one episode for each of ``resets``, moment by moment.

    Args:
        env: A bare environment.
        resets: Arguments of the resets.
        how: ``random``, ``expert`` (where there is one), or ``mixed``.
        seed: Fixes what is done.
        most: Steps after which an episode is left alone.
    """
    for reset in resets:
        observation, info = env.reset(**reset)
        yield Moment(None, observation, info=info, mark=mark(observation, info))
        yield from go_on(env, how=how, seed=seed, most=most)


def go_on(env: Any, *, how: str = "mixed", seed: int = 0, most: int = MOST_STEPS) -> Iterator[Moment]:
    """Play on in an episode that is under way; see :func:`play`."""
    rng, space = np.random.default_rng(seed), copy.deepcopy(env.action_space)
    space.seed(seed)
    for _ in range(most):
        action = space.sample()
        if has(env, "expert_action") and (how == "expert" or (how == "mixed" and rng.random() < 0.6)):
            action = env.expert_action()
        observation, reward, terminated, truncated, info = env.step(action)
        seen = mark(observation, reward, terminated, truncated, info)
        moment = Moment(action, observation, reward, terminated, truncated, info, seen)
        yield moment
        if moment.ended:
            return


def marks(moments: Iterable[Moment]) -> list[str]:
    """Return the marks of ``moments``."""
    return [moment.mark for moment in moments]


def equal(one: Any, other: Any) -> bool:
    """Tell whether two states are equal, arrays and NaN included."""
    if type(one) is not type(other):
        return False
    if type(one) in _PLAIN:
        return bool(one == other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray) and one.dtype != object:
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if dataclasses.is_dataclass(one):
        return all(equal(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    try:
        return bool(one == other) or pickle.dumps(one) == pickle.dumps(other)
    except ValueError:  # an array of objects has no one truth
        return pickle.dumps(one) == pickle.dumps(other)
