"""Which environments there are, and how one is made from an id and arguments."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import find_highest_version, load_env_creator

NAMESPACE = "tetrathlon"
PLUGIN_GROUP = "tetrathlon.envs"
"""Entry points of this group are called once, to register environments of other packages."""
_OF_MAKE = frozenset({"max_episode_steps", "disable_env_checker"})

_IDS: dict[str, str] = {
    "Arithmetic-v0": "tetrathlon.envs.text.arithmetic:Arithmetic",
    "Box-v0": "tetrathlon.envs.vision.box:Box",
    "Chart-v0": "tetrathlon.envs.vision.chart.environment:Chart",
    "Code-v0": "tetrathlon.envs.text.coding.environment:Code",
    "Count-v0": "tetrathlon.envs.vision.count:Count",
    "Countdown-v0": "tetrathlon.envs.text.countdown:Countdown",
    "Files-v0": "tetrathlon.envs.tools.files.environment:Files",
    "Format-v0": "tetrathlon.envs.text.instruction_following:Format",
    "LetterCount-v0": "tetrathlon.envs.text.letter_count:LetterCount",
    "Lookup-v0": "tetrathlon.envs.tools.lookup:Lookup",
    "Math-v0": "tetrathlon.envs.text.mathematics:Math",
    "OCR-v0": "tetrathlon.envs.vision.ocr:OCR",
    "PickAndLift-v0": "tetrathlon.envs.robots.lift:PickAndLift",
    "PlaceIn-v0": "tetrathlon.envs.robots.place:PlaceIn",
    "PlaceOn-v0": "tetrathlon.envs.robots.place:PlaceOn",
    "Point-v0": "tetrathlon.envs.vision.point:Point",
    "PushFragile-v0": "tetrathlon.envs.robots.push_fragile:PushFragile",
    "PushToZone-v0": "tetrathlon.envs.robots.push:PushToZone",
    "Python-v0": "tetrathlon.envs.tools.python.environment:Python",
    "Reach-v0": "tetrathlon.envs.robots.reach:Reach",
    "ReasoningGym-v0": "tetrathlon.envs.text.reasoning_gym:ReasoningGym",
    "RepoRepair-v0": "tetrathlon.envs.tools.repo.environment:RepoRepair",
    "SQL-v0": "tetrathlon.envs.tools.sql.environment:SQL",
    "ServiceDesk-v0": "tetrathlon.envs.tools.desk.environment:ServiceDesk",
    "Symbolic-v0": "tetrathlon.envs.text.symbolic:Symbolic",
    "Zoom-v0": "tetrathlon.envs.vision.zoom:Zoom",
}


@dataclass(frozen=True, slots=True)
class Listing:
    """One registered environment."""

    id: str
    """What ``gymnasium.make`` takes."""
    domain: str
    """``text``, ``tools``, ``vision`` or ``robots``."""
    entry_point: str
    """``module:Class``."""


def register() -> None:
    """Register every environment of this package with Gymnasium; a second call changes nothing."""
    for name, entry_point in _IDS.items():
        if (env_id := f"{NAMESPACE}/{name}") not in gym.registry:
            batched = f"{entry_point}Vector" if _domain(entry_point) == "robots" else None
            gym.register(env_id, entry_point=entry_point, vector_entry_point=batched)


def load_plugins() -> list[str]:
    """Call the entry points of group ``tetrathlon.envs``, which register environments of other packages.

    One that raises keeps no other from being called.

    Returns:
        Their names.

    Raises:
        RuntimeError: Some of them raised; the message names each.
    """
    loaded, failed = [], []
    for plugin in entry_points(group=PLUGIN_GROUP):
        try:
            plugin.load()()
        except Exception as error:  # another package's code
            failed.append((plugin, error))
        else:
            loaded.append(plugin.name)
    if failed:
        said = "; ".join(f"{p.name} ({p.value}): {type(e).__name__}: {e}" for p, e in failed)
        raise RuntimeError(f"these plug-ins failed: {said}") from failed[0][1]
    return loaded


def listings(domain: str | None = None) -> list[Listing]:
    """Return this package's environments in the order of their ids.

    Args:
        domain: Only those of one domain.

    Raises:
        ValueError: There is no such domain.
    """
    every = [
        Listing(f"{NAMESPACE}/{name}", _domain(entry_point), entry_point) for name, entry_point in sorted(_IDS.items())
    ]
    if domain is None:
        return every
    domains = sorted({listing.domain for listing in every})
    if domain not in domains:
        raise ValueError(f"domain must be one of {domains}, got {domain!r}")
    return [listing for listing in every if listing.domain == domain]


def _domain(entry_point: str) -> str:
    return entry_point.split(".")[2]


def domain_of(env_id: str) -> str:
    """Return the domain of an environment of this package, ``other`` for any other."""
    return next((listing.domain for listing in listings() if listing.id == env_id), "other")


def make(env_id: str, /, **kwargs: Any) -> gym.Env[Any, Any]:
    """Make an environment; an unknown id is answered with the nearest known ones.

    Args:
        env_id: An id that Gymnasium knows, with or without the ``tetrathlon/`` before it; without a version the
            newest is made.
        **kwargs: Constructor arguments.

    Raises:
        gymnasium.error.UnregisteredEnv: There is no such id.
    """
    return gym.make(known_id(env_id), **kwargs)


def make_batched(env_id: str, n: int, /, **kwargs: Any) -> gym.vector.VectorEnv[Any, Any, Any] | None:
    """Make N copies that step as one; None where an environment has no batched form of its own.

    What Gymnasium's ``make`` puts around an environment no batch has: where a wrapper is asked for there is none.

    Args:
        env_id: As :func:`make` takes it.
        n: N.
        **kwargs: Constructor arguments.
    """
    env_id = known_id(env_id)
    spec = gym.spec(env_id.rpartition(":")[2])
    if spec.vector_entry_point is None or spec.additional_wrappers or _OF_MAKE & kwargs.keys():
        return None
    return gym.make_vec(env_id, n, vectorization_mode="vector_entry_point", **kwargs)


def has_seeded_batch(env_id: str) -> bool:
    """Tell whether an environment has a batched form that says that it can start each copy from a seed of its own."""
    entry = gym.spec(known_id(env_id).rpartition(":")[2]).vector_entry_point
    made_by = load_env_creator(entry) if isinstance(entry, str) else entry
    return bool(getattr(made_by, "metadata", {}).get("masked_reset"))


def known_id(env_id: str) -> str:
    """Return the full id that ``env_id`` stands for.

    Raises:
        gymnasium.error.UnregisteredEnv: There is no such id; the message names the nearest.
    """
    if ":" in env_id:  # module:id, which Gymnasium imports by itself
        return env_id
    candidates = (env_id, f"{NAMESPACE}/{env_id}")
    for candidate in candidates:
        if candidate in gym.registry:
            return candidate
    for candidate in candidates:
        namespace, _, name = candidate.rpartition("/")
        if (version := find_highest_version(namespace or None, name)) is not None:
            return f"{candidate}-v{version}"
    short = {name.split("/")[-1].lower(): name for name in gym.registry}
    near = difflib.get_close_matches(env_id.split("/")[-1].lower(), short, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(short[name] for name in near)}?" if near else ""
    raise gym.error.UnregisteredEnv(f"there is no environment {env_id!r}{hint}")


def split_argument(env_id: str, split: str) -> dict[str, str]:
    """Return ``{"split": split}`` for an environment whose constructor takes it, else an empty dict."""
    names = constructor_arguments(env_id)
    return {"split": split} if "split" in names else {}


def constructor_arguments(env_id: str) -> frozenset[str]:
    """Return the names of the arguments that an environment's constructor is known to take.

    Those of base classes count where the class passes ``**kwargs`` on.

    Args:
        env_id: A full id.
    """
    creator = creator_of(env_id)
    names = set(gym.spec(env_id.rpartition(":")[2]).kwargs)
    calls: list[Any] = [creator]
    if inspect.isclass(creator):
        calls = [vars(c)["__init__"] for c in creator.__mro__ if "__init__" in vars(c) and c is not object]
    for call in calls:
        parameters = list(inspect.signature(call).parameters.values())[int(call is not creator) :]  # without self
        names |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return frozenset(names)


def creator_of(env_id: str) -> Callable[..., Any]:
    """Return what makes an environment: its class, or a function.

    Args:
        env_id: A full id; of ``module:id`` the module is imported first.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    entry_point = gym.spec(name).entry_point
    if isinstance(entry_point, str):
        return gym.envs.registration.load_env_creator(entry_point)
    if entry_point is None:
        raise ValueError(f"{name} has no entry point: it exists only as a vector environment")
    return entry_point
