"""The part of the contract that is about pay: what is no answer, or a wrong one, earns less than the expert's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gymnasium import spaces

from tetrathlon.envs import hostile
from tetrathlon.envs.subject import MOST_STEPS, ContractError, Subject, has, play

_SEEDS = range(8)
_PLAIN_ECHOES = len(_SEEDS) // 2
"""Seeds on which the echo of a prompt may be right where the reply is the answer: by chance its last word is."""
_CLOSING_TAG = re.compile(r"</\w+>\Z")


def check_no_answer_no_pay(subject: Subject) -> bool | None:
    """A completion without a finished answer of its own earns nothing, in a task of a single turn.

    Cut inside the thinking or inside the answer, or the prompt repeated: for a policy each is easier to come by than
    the right answer, and what pays is learned. A plain reply has no field around its answer, so the last word of its
    prompt may be right by chance; there the echo must not be right as a rule.
    """
    env = subject.make()
    if not isinstance(env.action_space, spaces.Text):
        return False
    for action in (lambda: hostile.WRONG[0], getattr(env, "expert_action", lambda: hostile.WRONG[0])):
        env.reset(seed=0)
        _, _, terminated, truncated, _ = env.step(action())
        if not (terminated or truncated):
            return False
    echoes: list[str] = []
    plain = False
    for seed in _SEEDS:
        observation, _ = env.reset(seed=seed)
        expert = env.expert_action() if has(env, "expert_action") else None
        # What every wrong answer is paid is no pay for an answer; what one format is paid, is.
        wrongs = [_paid(env, seed, wrong)[0] for wrong in hostile.WRONG]
        floor = max(0.0, min(wrongs))
        if isinstance(expert, str):
            plain = not (_CLOSING_TAG.search(expert) or "\\boxed{" in expert)
            for name, action in _unfinished(expert):
                if (fault := _fault(env, seed, action, floor)) is not None:
                    raise ContractError("no_answer_no_pay", f"{name}, {action[-80:]!r}, {fault}: it is no answer")
        prompt = observation.get("text") if isinstance(observation, dict) else observation
        if (
            isinstance(prompt, str)
            and (
                # A prompt that says "<answer> and </answer>" holds a wrong answer in its format.
                fault := _fault(env, seed, prompt, max(0.0, *wrongs))
            )
            is not None
        ):
            echoes.append(f"on seed {seed}, the observation sent back as the action {fault}")
    if len(echoes) > (_PLAIN_ECHOES if plain else 0):
        raise ContractError(
            "no_answer_no_pay",
            f"{echoes[0]} ({len(echoes)} of {len(_SEEDS)} seeds): who repeats a prompt answers nothing",
        )
    return None


def _unfinished(expert: str) -> Iterator[tuple[str, str]]:
    yield "the expert's action inside thinking that never ends", f"<think>{expert}"
    if (tag := _CLOSING_TAG.search(expert)) is not None:
        yield "the expert's action without its closing tag", expert[: tag.start()]
        yield "the expert's action without its last '>'", expert[:-1]
    elif expert.endswith("}"):
        yield "the expert's action without its last '}'", expert[:-1]


def _paid(env: Any, seed: int, action: str) -> tuple[float, bool]:
    env.reset(seed=seed)
    _, reward, _, _, info = env.step(action)
    return float(reward), bool(info.get("is_success"))


def _fault(env: Any, seed: int, action: str, floor: float) -> str | None:
    reward, success = _paid(env, seed, action)
    if success:
        return "was a success"
    return f"was paid {reward} (at most {floor} is right)" if reward > floor else None


def check_expert_pay(subject: Subject) -> None:
    """Where actions are texts, the expert earns more than whoever gives an ordinary wrong answer at every turn."""
    env = subject.make()
    if not isinstance(env.action_space, spaces.Text):
        return
    for seed in _SEEDS:
        expert = sum(float(moment.reward) for moment in play(env, [{"seed": seed}], how="expert"))
        for wrong in hostile.WRONG:
            env.reset(seed=seed)
            total = 0.0
            for _ in range(MOST_STEPS):
                _, reward, terminated, truncated, _ = env.step(wrong)
                total += float(reward)
                if terminated or truncated:
                    break
            if total >= expert:
                raise ContractError(
                    "expert",
                    f"on seed {seed} it was paid {expert}, and {wrong!r} at every turn {total}: a right answer must "
                    "pay more than a wrong one",
                )
