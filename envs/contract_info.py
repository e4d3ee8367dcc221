"""The part of the contract that is about infos: their form, how they batch, and what they must not tell."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tetrathlon.envs import hostile
from tetrathlon.envs.codec import encode
from tetrathlon.envs.spaces import stack, unbatch_info
from tetrathlon.envs.subject import ContractError, Moment, Subject, has, mark, play

_CANARY = "918273645546372819"  # digits, so that graders that read a number out of the answer can
_SHOWN_HOSTILE = ("empty", "injection", "cut JSON in a tool call", "tool call without a name", "open box")


def check_info(subject: Subject) -> None:
    """Infos are strict JSON, fresh, hold what they must, and give a key one type for ever."""
    types: dict[str, tuple[type, str]] = {}
    env = subject.make()
    for how in ("expert", "random", "mixed"):
        held: list[tuple[str, Any]] = []  # keeps every mutable part alive, so that no id comes twice by chance
        for moment in play(env, [{"seed": 0}, {"seed": 1}, {}], how=how):
            where = "reset" if moment.action is None else "step"
            for path, value in _parts(moment.info, "", where):
                known, first = types.setdefault(path, (type(value), where))
                if "[]" not in path and known is not type(value):
                    raise ContractError(
                        "info",
                        f"{path} was {known.__name__} in an info of {first} and {type(value).__name__} ({value!r}) in "
                        f"one of {where}: give a key one type, floats always as floats (a vector environment types "
                        "a key by the first value that it meets)",
                    )
                if isinstance(value, dict | list):
                    if any(value is other for _, other in held):
                        raise ContractError(
                            "info", f"{path} is an object of an earlier info: build a fresh one at every call"
                        )
                    held.append((path, value))
            _require(subject, moment)


def _parts(value: Any, path: str, where: str) -> Iterator[tuple[str, Any]]:
    """Yield every part of an info with its path.

    Raises:
        ContractError: A part is not strict JSON.
    """
    yield path or "info", value
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise ContractError("info", f"{path or 'info'} of {where} has the key {key!r}; keys are strings")
            yield from _parts(item, f"{path}.{key}" if path else key, where)
    elif type(value) is list:
        for item in value:
            yield from _parts(item, f"{path}[]", where)
    elif type(value) not in (str, bool, int, float, type(None)):
        raise ContractError(
            "info",
            f"{path} of {where} is a {type(value).__name__} ({str(value)[:80]}): infos are JSON, so give str, bool, "
            "int, float, None, lists and dicts of them",
        )
    elif value != value or value in (float("inf"), float("-inf")):
        raise ContractError("info", f"{path} of {where} is {value}, which JSON has no word for")


def _require(subject: Subject, moment: Moment) -> None:
    wanted: dict[str, type] = {}
    if moment.action is None:
        where = "reset"
        wanted = {"task_id": str} | ({"system": str, "tools": list} if subject.language else {})
    else:
        where = "a step" if not moment.ended else "the last step"
        wanted = {"reward_terms": dict} | ({"is_success": bool, "stop_reason": str} if moment.ended else {})
    for key, kind in wanted.items():
        if not isinstance(seen := moment.info.get(key), kind):
            raise ContractError(
                "info",
                f"the info of {where} has {key} {seen!r}; it must be there, as a {kind.__name__} "
                "(an environment of another contract: skip='info')",
            )
    for name, paid in moment.info.get("reward_terms", {}).items():
        if type(paid) is not float:
            raise ContractError("info", f"reward_terms[{name!r}] is {paid!r}, a {type(paid).__name__}; give a float")


def check_vector(subject: Subject) -> None:
    """In a ``SyncVectorEnv`` every copy gives the observations, rewards and infos that it gives alone."""
    for seed, hows in ((0, ("expert", "random")), (1, ("random", "expert"))):
        alone = [list(play(subject.make(), [{"seed": seed + i}], how=how, seed=seed)) for i, how in enumerate(hows)]
        vector = SyncVectorEnv([subject.make, subject.make], autoreset_mode=AutoresetMode.DISABLED)
        space = vector.single_observation_space
        observations, infos = vector.reset(seed=[seed, seed + 1])
        for number, moments in enumerate(zip(*alone, strict=False)):  # up to the first end
            if number:
                actions = stack(vector.single_action_space, [moment.action for moment in moments])
                observations, rewards, *_, infos = vector.step(actions)
                if rewards.tolist() != [float(moment.reward) for moment in moments]:
                    wanted = [moment.reward for moment in moments]
                    raise ContractError("vector", f"rewards were {rewards.tolist()} batched and {wanted} alone")
            if mark(observations) != mark(stack(space, [moment.observation for moment in moments])):
                raise ContractError("vector", f"observation {number} was another batched than alone")
            for i, moment in enumerate(moments):
                if mark(got := unbatch_info(infos, i)) != mark(moment.info):
                    raise ContractError(
                        "vector",
                        f"the info {str(moment.info)[:500]} came out of a SyncVectorEnv as {str(got)[:500]}: give a "
                        "key one type and plain values",
                    )


def check_no_answer(subject: Subject) -> bool | None:
    """No observation, info or text rendering gives away the answer of a frozen task.

    A canary is planted in the task's ``answer`` and in the private strings of its ``data``. ``grader_error`` is not
    looked at: a grader may well quote a task that was never meant to be.
    """
    modes = [None, *(["ansi"] if "ansi" in subject.render_modes else [])]
    for mode in modes:
        env = subject.make(render_mode=mode) if mode is not None else subject.make()
        planted = None
        for seed in range(3):
            observation, info = env.reset(seed=seed)
            planted = _plant(env, _shown(observation, info))
            if planted is None:
                return False
            for action in (None, *hostile.WRONG, *(hostile.TEXTS[name] for name in _SHOWN_HOSTILE)):
                seen = list(env.reset(seed=seed, options={"task": planted}))
                _look(env, "reset", seen, mode)
                if action is None and has(env, "expert_action"):
                    action = env.expert_action()
                for _ in range(10):
                    observation, _, terminated, truncated, info = env.step(action)
                    # Whatever repeats the agent's own words tells it nothing.
                    own = action if isinstance(action, str) else ""
                    _look(env, f"the action {str(action)[:60]!r}", [observation, info], mode, own)
                    if terminated or truncated:
                        break
    return None


def _plant(env: Any, shown: str) -> Any:
    """Return the task that ``env`` plays with canaries for secrets, or None where there is none to plant in."""
    tasks: list[Any] = [
        value
        for value in vars(env).values()
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "answer")
    ]
    if not tasks:
        return None

    def secret(value: Any) -> Any:
        if isinstance(value, str):
            return value if value in shown else _CANARY
        if isinstance(value, dict):
            return {key: secret(item) for key, item in value.items()}
        return type(value)(map(secret, value)) if type(value) in (list, tuple) else value

    task = tasks[0]
    changes: dict[str, Any] = {"data": secret(task.data)} if isinstance(getattr(task, "data", None), dict) else {}
    if isinstance(task.answer, str):
        changes["answer"] = _CANARY
    return dataclasses.replace(task, **changes) if _CANARY in str(changes) else None


def _shown(*values: Any) -> str:
    return json.dumps(encode(list(values), lambda picture: ""), ensure_ascii=False)  # no text is read off a picture


def _look(env: Any, where: str, values: list[Any], mode: str | None, own: str = "") -> None:
    observation, info = values
    told = {key: value for key, value in info.items() if key != "grader_error"}
    seen = {"the observation": _shown(observation), "the info": _shown(told)}
    if mode is not None:
        seen["the rendering"] = _shown(env.render())
    for name, text in seen.items():
        if _CANARY in text.replace(_shown(own)[2:-2] if own else "\0", ""):
            raise ContractError(
                "no_answer", f"after {where}, {name} gives the answer away: {text[:500]}; keep it in the task"
            )
