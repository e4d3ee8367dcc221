"""What the words of a command stand for, or what is wrong with them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from tetrathlon.envs.registry import known_id, make

if TYPE_CHECKING:
    from tetrathlon.agents.policy import Policy


class UsageError(Exception):
    """The command is wrong; the message is one line that says what would be right."""


def environment(name: str, split: str, settings: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return the full id and the constructor arguments, ``split`` among them where it is taken."""
    from tetrathlon.envs.registry import split_argument

    kwargs: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"--env takes KEY=VALUE, got {setting!r}")
        try:
            kwargs[key] = json.loads(value)
        except json.JSONDecodeError:
            kwargs[key] = value
    try:
        env_id = known_id(name)
        return env_id, {**split_argument(env_id, split), **kwargs}
    except gym.error.Error as error:
        raise UsageError(f"{error} (tetrathlon envs lists them)") from error
    except ModuleNotFoundError as error:
        if ":" in name and error.name == name.partition(":")[0]:
            raise UsageError(f"environment {name!r}: there is no module {error.name!r}") from error
        raise


def made(env_id: str, kwargs: dict[str, Any]) -> gym.Env[Any, Any]:
    """Make an environment once, to find out what is wrong with its arguments."""
    from tetrathlon.envs.registry import constructor_arguments

    try:
        return make(env_id, **kwargs)
    except TypeError as error:
        known = constructor_arguments(env_id)
        if unknown := [key for key in kwargs if key not in known]:
            raise UsageError(
                f"{env_id} has no argument {unknown[0]!r}{nearest(unknown[0], known)} "
                f"(it takes {', '.join(sorted(known))})"
            ) from error
        raise UsageError(f"{env_id}: {error.__cause__ or error}") from error
    except (ValueError, gym.error.Error) as error:  # what a constructor says of a bad value or of what it lacks
        raise UsageError(f"{env_id}: {error}") from error


def policy_of(name: str, env: gym.Env[Any, Any], seed: int, temperature: float) -> Policy:
    """Return the policy that ``name`` stands for."""
    from tetrathlon.agents.naming import PolicyError, make_policy

    if not temperature > 0:
        raise UsageError(f"--temperature must be above 0, got {temperature}; --greedy takes the most likely")
    try:
        return make_policy(name, env, seed=seed, temperature=temperature)
    except PolicyError as error:
        raise UsageError(str(error)) from error


def check_video(env_id: str, path: Path) -> None:
    """Refuse an environment that renders no pictures, and a file that is no GIF."""
    from tetrathlon.envs.registry import creator_of

    modes = getattr(creator_of(env_id), "metadata", {}).get("render_modes", [])
    if "rgb_array" not in modes:
        raise UsageError(f"--video needs an environment that renders 'rgb_array'; {env_id} renders {modes}")
    if path.suffix.lower() != ".gif":
        raise UsageError(f"--video writes a GIF; name the file *.gif, not {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {str(path.parent)!r} for --video")


def new_folder(folder: Path | None) -> Path | None:
    """Make the folder now: an hour's evaluation must not end at a path that cannot be written."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"--out must be a folder, {str(folder)!r} is none") from error
    return folder


def at_least(name: str, value: int | None, least: int) -> None:
    """Refuse an option whose number is too low."""
    if value is not None and value < least:
        raise UsageError(f"--{name} must be at least {least}, got {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at what may have been meant, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(close)}?" if close else ""
