"""The policy of a training run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.checkpoint import Checkpoints

_CONFIG = "config.json"
_STREAM = "_extra_state"


def trained_policy(
    folder: str | os.PathLike[str], env: Any, *, seed: int = 0, temperature: float = 1.0
) -> TrainablePolicy:
    """Return the policy that a run trained, with the weights of its newest whole checkpoint.

    It is made by the name that the run's configuration gives it. Of its state all is loaded but what
    ``get_extra_state`` of the policy itself keeps, the stream of its samples: an evaluation draws from its own seed.

    Args:
        folder: Of the run, finished or under way.
        env: The environment that it will act in.
        seed: See :func:`~tetrathlon.agents.naming.make_policy`.
        temperature: See :func:`~tetrathlon.agents.naming.make_policy`.

    Raises:
        PolicyError: The folder holds no run, or one without a whole checkpoint or without a name of its policy; or
            the policy of that name is not what was trained there.
    """
    folder = Path(folder).expanduser()
    told = _told(folder)
    name, arguments = _named(folder)
    try:
        found = Checkpoints(folder / "checkpoints").load()
    except ValueError as error:
        raise PolicyError(f"{told}: {error}") from error
    if found is None:
        raise PolicyError(f"{told}: there is no checkpoint in {folder / 'checkpoints'} yet")
    policy = make_policy(name, env, seed=seed, temperature=temperature, arguments=arguments)
    if not isinstance(policy, TrainablePolicy):
        raise PolicyError(f"{told} was trained as {name!r}, which now is a {type(policy).__name__}: no TrainablePolicy")
    weights = dict(found[1]["learner"]["policy"])
    of_critic = {key for key in weights if key.startswith("critic.")}
    if any(key.startswith("critic.ensemble.") for key in of_critic):  # of actions: every offline run makes its own
        weights = {key: value for key, value in weights.items() if key not in of_critic}
        weights |= {key: value for key, value in policy.state_dict().items() if key.startswith("critic.")}
    elif of_critic and getattr(policy, "critic", None) is None and callable(add := getattr(policy, "add_critic", None)):
        add()
    own = policy.state_dict()
    if _STREAM in own:
        weights[_STREAM] = own[_STREAM]
    try:
        policy.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise PolicyError(f"{told}: {name!r} is not what was trained there: {reason}") from error
    return policy


def trained_kwargs(folder: str | os.PathLike[str], env_id: str) -> dict[str, Any]:
    """Return the constructor arguments of the environment that a run is trained in; none where that is another one.

    The split is not among them: it says which instances the run learns from.

    Args:
        folder: Of the run, finished or under way.
        env_id: Full id of the environment that its policy will act in.

    Raises:
        PolicyError: The folder holds no run.
    """
    config = _config(Path(folder).expanduser())
    if str(config.get("env")).rpartition(":")[2] != env_id.rpartition(":")[2]:  # module:id is the same one
        return {}
    kwargs = config.get("kwargs")
    return {key: value for key, value in kwargs.items() if key != "split"} if isinstance(kwargs, dict) else {}


def _told(folder: Path) -> str:
    return f"policy 'run:{folder}'"


def _config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run."""
    path, told = folder / _CONFIG, _told(folder)
    if not folder.is_dir():
        raise PolicyError(f"{told}: there is no folder {str(folder)!r}")
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise PolicyError(f"{told}: the folder holds no {_CONFIG}; give that of a training run") from error
    except ValueError as error:
        raise PolicyError(f"{told}: {path} is not JSON: {error}") from error
    if not isinstance(config, dict) or "algorithm" not in config:
        raise PolicyError(f"{told}: {path} is not that of a training run")
    return config


def _named(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return by what name, and with which arguments, a run made its policy."""
    config = _config(folder)
    name = config.get("policy")
    if not isinstance(name, str):
        raise PolicyError(
            f"{_told(folder)}: the run was given a policy that has no name; make that policy, and load the weights by "
            "Checkpoints(folder).load()"
        )
    return name, config.get("policy_arguments") or {}
