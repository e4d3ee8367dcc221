"""What the words of a command stand for, or what is wrong with them."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from tetrathlon.envs.registry import known_id, make

if TYPE_CHECKING:
    from tetrathlon.agents.policy import Policy


_OF_PYTHON = {"True": True, "False": False, "None": None}


class UsageError(Exception):
    """The command is wrong; the message is one line that says what would be right."""


def arguments(option: str, settings: Iterable[str]) -> dict[str, Any]:
    """Return what the words KEY=VALUE of an option say; a value is JSON, True, False or None, or else text."""
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"--{option} takes KEY=VALUE, got {setting!r}")
        try:
            found[key] = _OF_PYTHON[value] if value in _OF_PYTHON else json.loads(value)
        except json.JSONDecodeError:
            found[key] = value
    return found


def environment(name: str, split: str, settings: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return the full id and the constructor arguments, ``split`` among them where it is taken."""
    from tetrathlon.agents.naming import look_here
    from tetrathlon.envs.registry import split_argument

    kwargs = arguments("env", settings)
    module, colon, _ = name.partition(":")
    here = look_here() if colon else ""  # as for a policy that is named module:object
    try:
        env_id = known_id(name)
        return env_id, {**split_argument(env_id, split), **kwargs}
    except gym.error.UnregisteredEnv as error:
        raise UsageError(f"{error} (tetrathlon envs lists them)") from error
    except gym.error.Error as error:  # a package that it needs is missing
        raise UsageError(f"{name}: {error}") from error
    except ModuleNotFoundError as error:
        # Only the module that was named is the caller's mistake; what it imports itself is its own.
        if colon and error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise UsageError(
                f"environment {name!r}: there is no module {error.name!r}, neither installed nor in {here}"
            ) from error
        raise


def as_trained(policy: str, env_id: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``kwargs`` and, of ``run:DIR``, what they do not say and that run is trained with in this environment.

    A line on standard error says what is taken over.
    """
    scheme, _, folder = policy.partition(":")
    if scheme != "run" or not folder:
        return dict(kwargs)
    from tetrathlon.agents.naming import PolicyError
    from tetrathlon.algos.trained import trained_kwargs

    try:
        theirs = trained_kwargs(folder, env_id)
    except PolicyError as error:
        raise UsageError(str(error)) from error
    taken = {key: value for key, value in theirs.items() if key not in kwargs}
    if taken:
        said = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in taken.items())
        print(f"as in the run: --env {' '.join(said)}", file=sys.stderr)
    return {**taken, **kwargs}


def made(env_id: str, kwargs: dict[str, Any]) -> gym.Env[Any, Any]:
    """Make an environment once, to find out what is wrong with its arguments."""
    from tetrathlon.envs.registry import constructor_arguments

    defaults = _defaults(env_id)
    for key, value in kwargs.items():
        default = defaults.get(key)
        if isinstance(value, bool) and isinstance(default, int | float) and not isinstance(default, bool):
            # Python would count with true as with 1.
            raise UsageError(f"{env_id}: {key} must be a number as {default!r} is, got {json.dumps(value)}")
    try:
        return make(env_id, **kwargs)
    except TypeError as error:
        known = constructor_arguments(env_id)
        if unknown := [key for key in kwargs if key not in known]:
            raise UsageError(
                f"{env_id} has no argument {unknown[0]!r}{nearest(unknown[0], known)} "
                f"(it takes {', '.join(sorted(known))})"
            ) from error
        bad = [key for key in kwargs if _can_be_made(env_id, {k: v for k, v in kwargs.items() if k != key})]
        which = f"cannot take {', '.join(f'{key}={json.dumps(kwargs[key])}' for key in bad)}: " if bad else ""
        raise UsageError(f"{env_id}: {which}{error.__cause__ or error}") from error
    except (ValueError, gym.error.Error) as error:  # what a constructor says of a bad value or of what it lacks
        raise UsageError(f"{env_id}: {error}") from error


def _can_be_made(env_id: str, kwargs: dict[str, Any]) -> bool:
    try:
        make(env_id, **kwargs).close()
    except Exception:  # it is only asked whether
        return False
    return True


def _defaults(env_id: str) -> dict[str, Any]:
    """Return the arguments of an environment's constructor that have a default, those of base classes included."""
    from tetrathlon.envs.registry import creator_of

    creator = creator_of(env_id)
    calls: list[Any] = [creator]
    if inspect.isclass(creator):
        calls = [vars(c)["__init__"] for c in reversed(creator.__mro__) if c is not object and "__init__" in vars(c)]
    parameters = [p for call in calls for p in inspect.signature(call).parameters.values()]
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def policy_of(
    name: str,
    env: gym.Env[Any, Any],
    seed: int,
    temperature: float,
    arguments: Mapping[str, Any] | None = None,
) -> Policy:
    """Return the policy that ``name`` stands for."""
    from tetrathlon.agents.naming import PolicyError, make_policy

    try:
        return make_policy(name, env, seed=seed, temperature=check_temperature(temperature), arguments=arguments)
    except PolicyError as error:
        raise UsageError(str(error)) from error


def check_temperature(temperature: float) -> float:
    """Return ``temperature``, or refuse one that no model samples at."""
    if not 0 < temperature < float("inf"):
        raise UsageError(f"--temperature must be a number above 0, got {temperature}; --greedy takes the most likely")
    return temperature


def render_modes(env_id: str) -> list[str]:
    """Return the ways in which an environment can be rendered."""
    from tetrathlon.envs.registry import creator_of

    return list(getattr(creator_of(env_id), "metadata", {}).get("render_modes", []))


def new_folder(folder: Path | None) -> Path | None:
    """Make the folder now: an hour's evaluation must not end at a path that cannot be written."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"--out must be a folder, {str(folder)!r} is none") from error
        except OSError as error:
            raise UsageError(f"--out cannot be made: {error}") from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(f"--out must be a folder that can be written to, {str(folder)!r} is none")
    return folder


def at_least(name: str, value: int | None, least: int) -> None:
    """Refuse an option whose number is too low."""
    if value is not None and value < least:
        raise UsageError(f"--{name} must be at least {least}, got {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at what may have been meant, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(close)}?" if close else ""
