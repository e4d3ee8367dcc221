"""Environments with one fault each, and the check that must catch it."""

from __future__ import annotations

import random
import signal
import time
from typing import Any, ClassVar

import numpy as np

from tests.envs.toys import Echo, Reach
from tetrathlon.envs.text.arithmetic import Arithmetic


class NoSeeding(Echo):  # gymnasium
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=None, options=options)


class OutsideSpace(Echo):  # gymnasium
    def look(self) -> Any:
        return super().look().encode()


class GlobalRandom(Echo):  # global_rng
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        random.random()
        return super().reset(seed=seed, options=options)


class GlobalSeed(Echo):  # global_rng
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        np.random.seed(1)
        return super().reset(seed=seed, options=options)


class GlobalExpert(Echo):  # global_rng
    def expert_action(self, k: int = 1) -> Any:
        np.random.random()
        return super().expert_action(k)


class ListensToGlobal(Echo):  # global_rng
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        _, info = super().reset(seed=seed, options=options)
        self.target = 1_000 + hash(repr(np.random.get_state())) % 9_000
        return self.look(), info


class SharedGenerator(Echo):  # interleaving
    shared: ClassVar[np.random.Generator] = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        _, info = super().reset(seed=seed, options=options)
        if seed is not None:
            type(self).shared = np.random.default_rng(seed)
        self.target = int(self.shared.integers(1_000, 10_000))
        return self.look(), info


class HashedText(Echo):  # new_process
    def draw(self, rng: np.random.Generator) -> tuple[Any, int]:
        number, length = super().draw(rng)
        return 1_000 + hash(f"{number}") % 9_000, length


class LeakySplit(Echo):  # splits
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.split = "train"
        return super().reset(seed=seed, options=options)


class RaisesOnBlank(Echo):  # hostile
    def step(self, action: Any) -> Any:
        if isinstance(action, str) and not action.strip():
            raise ValueError("say something")
        return super().step(action)


class RaisesOnNone(Echo):  # hostile
    def step(self, action: Any) -> Any:
        return super().step(action.strip())


class PaysLength(Echo):  # hostile
    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = super().step(action)
        info["reward_terms"]["long"] = float(len(str(action)) > 100_000)
        return observation, float(sum(info["reward_terms"].values())), terminated, truncated, info


class BelievesInjection(Echo):  # hostile
    def step(self, action: Any) -> Any:
        if isinstance(action, str) and "is_success" in action:
            return self.end({"said": 0.0}, "answered", success=True)
        return super().step(action)


class Evaluates(Echo):  # hostile
    def step(self, action: Any) -> Any:
        if isinstance(action, str) and action.startswith("__import__"):
            eval(action)
        return super().step(action)


class Slow(Echo):  # hostile
    limit = 0.05

    def step(self, action: Any) -> Any:
        if isinstance(action, str) and len(action) > 900_000:
            time.sleep(2 * self.limit)
        return super().step(action)


class EchoesAll(Echo):  # hostile
    said = ""

    def look(self) -> str:
        return super().look() + self.said

    def step(self, action: Any) -> Any:
        self.said = action if isinstance(action, str) and len(action) > 1_000 else ""
        return super().step(action)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.said = ""
        return super().reset(seed=seed, options=options)


class TakesNaN(Reach):  # hostile
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if isinstance(action, np.ndarray) and action.dtype.kind == "f" and np.isnan(action).any():
            reward, info["reward_terms"] = -0.5, {"near": -0.5}
        return observation, reward, terminated, truncated, info


class StepsOn(Echo):  # reset_needed
    def step(self, action: Any) -> Any:
        if self.over:
            return self.end({"said": 0.0}, "over")
        return super().step(action)


class RaisesOther(Echo):  # reset_needed
    def step(self, action: Any) -> Any:
        assert not self.over
        return super().step(action)


class Integers(Echo):  # info
    def end(self, terms: dict[str, float], stop_reason: str | None, success: bool = False) -> Any:
        *rest, info = super().end(terms, stop_reason, success)
        return *rest, info | {"exact": 1 if terms["said"] else 0.5}


class NumPyInfo(Echo):  # info
    def end(self, terms: dict[str, float], stop_reason: str | None, success: bool = False) -> Any:
        *rest, info = super().end(terms, stop_reason, success)
        return *rest, info | {"place": np.float64(1.0)}


class NaNInfo(Echo):  # info
    def end(self, terms: dict[str, float], stop_reason: str | None, success: bool = False) -> Any:
        *rest, info = super().end(terms, stop_reason, success)
        return *rest, info | {"ratio": [float("inf")]}


class SharedInfo(Echo):  # info: a list of one dict, which Gymnasium's checker does not look into
    tool: ClassVar[dict[str, Any]] = {"name": "say"}

    def start_info(self) -> dict[str, Any]:
        return super().start_info() | {"tools": [self.tool]}


class NumberKeys(Echo):  # info
    def start_info(self) -> dict[str, Any]:
        return super().start_info() | {"table": {1: "one"}}


class NoTaskId(Echo):  # info
    def start_info(self) -> dict[str, Any]:
        info = super().start_info()
        del info["task_id"]
        return info


class NoSystem(Echo):  # info
    def start_info(self) -> dict[str, Any]:
        info = super().start_info()
        del info["system"]
        return info


class NoStopReason(Echo):  # info
    def end(self, terms: dict[str, float], stop_reason: str | None, success: bool = False) -> Any:
        *rest, info = super().end(terms, stop_reason, success)
        info.pop("stop_reason", None)
        return *rest, info


class IntegerTerms(Echo):  # info
    def end(self, terms: dict[str, float], stop_reason: str | None, success: bool = False) -> Any:
        return super().end(terms | {"strike": -self.strikes}, stop_reason, success)


class HugeInteger(Echo):  # vector: more than an int64, which is what a vector environment keeps integers in
    def start_info(self) -> dict[str, Any]:
        return super().start_info() | {"big": 2**70}


class TellsInInfo(Arithmetic):  # no_answer
    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        assert self._task is not None
        return *rest, info | {"gold": {"values": [self._task.answer]}}


class TellsAfterwards(Arithmetic):  # no_answer
    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        assert self._task is not None
        return f"It was {self._task.answer}.", *rest


class TellsInRendering(Arithmetic):  # no_answer
    def render(self) -> Any:
        return f"{super().render()} = {self._task.answer if self._task else ''}"


class WrongSum(Echo):  # reward_terms
    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, reward * 0.9, *rest


class ForgetsGenerator(Echo):  # state
    def set_state(self, state: dict[str, Any]) -> Any:
        before = self.np_random.bit_generator.state
        answer = super().set_state(state)
        self.np_random.bit_generator.state = before
        return answer


class ForgetsCounter(Echo):  # state
    kept = ("target", "left", "over")


class SharesState(Reach):  # state: the state that it gives goes on changing
    rng: Any = None

    def get_state(self) -> Any:
        self.rng = self.np_random.bit_generator.state
        return vars(self)

    def set_state(self, state: Any) -> Any:
        return super().set_state({name: state[name] for name in (*self.kept, "rng")})


class ReturnsNothing(Echo):  # state
    def set_state(self, state: dict[str, Any]) -> Any:
        super().set_state(state)


class DrawingExpert(Echo):  # expert
    def expert_action(self, k: int = 1) -> Any:
        self.np_random.random()
        return super().expert_action(k)


class CountingExpert(Echo):  # expert: what it counts shows in its state only
    kept = (*Echo.kept, "asked")
    asked = 0

    def expert_action(self, k: int = 1) -> Any:
        self.asked += 1
        return super().expert_action(k)


class WrongExpert(Echo):  # expert
    def expert_action(self, k: int = 1) -> Any:
        return "no idea" if k == 1 else ["no idea"] * k


class ShortExpert(Echo):  # expert
    def expert_action(self, k: int = 1) -> Any:
        return super().expert_action(1) if k == 1 else [super().expert_action(1)]


class WideExpert(Reach):  # expert
    def expert_action(self, k: int = 1) -> Any:
        return super().expert_action(k).astype(np.float64) * 3


class _Signed(str):
    pass


class PaysSignature(Echo):  # replay: what it pays for is lost when an episode is written
    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = super().step(action)
        info["reward_terms"]["signed"] = 0.25 if isinstance(action, _Signed) else 0.0
        return observation, float(sum(info["reward_terms"].values())), terminated, truncated, info

    def expert_action(self, k: int = 1) -> Any:
        action = _Signed(self.target)
        return action if k == 1 else [action] * k


class IndexDraws(Echo):  # random_access
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        _, info = super().reset(seed=seed, options=options)
        if options and "index" in options:
            self.target += int(self.np_random.integers(0, 50))
        return self.look(), info


class IgnoresIndex(Echo):  # random_access
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed)


class OneIndex(Echo):  # random_access
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed, options={"index": 0} if options else None)


class StepsOnAtRandom(Echo):  # reset_needed: after three strikes, where no expert comes
    def step(self, action: Any) -> Any:
        if self.over and self.strikes == 3:
            return self.end({"said": 0.0}, "over")
        return super().step(action)


class StepsOnAfterTime(Reach):  # reset_needed: after a truncated end only
    def step(self, action: Any) -> Any:
        if self.over and self.left == 0:
            return self.look(), 0.0, False, True, {"reward_terms": {"near": 0.0}, "is_success": False}
        return super().step(action)


class PaysCutThinking(Arithmetic):  # no_answer_no_pay
    def step(self, action: Any) -> Any:
        return super().step(action.removeprefix("<think>") if isinstance(action, str) else action)


class PaysEcho(Arithmetic):  # no_answer_no_pay: the prompt holds a field with what is right
    def _write_question(self, task: Any) -> str:
        return f"{super()._write_question(task)} For example: \\boxed{{{task.answer}}}"


class PaysOpenField(Arithmetic):  # no_answer_no_pay: closes by itself what was cut
    def __init__(self, *, answer_format: str = "boxed", **kwargs: Any) -> None:
        super().__init__(answer_format=answer_format, **kwargs)

    def step(self, action: Any) -> Any:
        cut = isinstance(action, str) and action.startswith("\\boxed{") and "}" not in action
        return super().step(action + "}" if cut else action)


class PaysOpenTag(Arithmetic):  # no_answer_no_pay
    def __init__(self, *, answer_format: str = "tag", **kwargs: Any) -> None:
        super().__init__(answer_format=answer_format, **kwargs)

    def step(self, action: Any) -> Any:
        cut = isinstance(action, str) and action.endswith("</answer")
        return super().step(action + ">" if cut else action)


class PaysEveryAnswer(Arithmetic):  # expert: a wrong answer pays as much
    def step(self, action: Any) -> Any:
        observation, _, *ends, info = super().step(action)
        return observation, 1.0, *ends, info | {"reward_terms": {"present": 1.0}}


class Teleports(Reach):  # hostile
    def step(self, action: Any) -> Any:
        far = isinstance(action, np.ndarray) and action.shape == (1,) and action.dtype.kind == "f"
        if far and not self.over and np.isfinite(action).all() and abs(float(action[0])) > 1e6:
            self.place = 0.9 * self.target
        return super().step(action)


class MainThreadOnly(Echo):  # threads: its grader sets an alarm, and what that raises it takes for a wrong answer
    def step(self, action: Any) -> Any:
        try:
            signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        except ValueError:
            action = ""
        return super().step(action)


class LiveLog(Echo):  # state: what it holds goes on changing, though nothing that follows depends on it
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.log: list[str] = []

    def step(self, action: Any) -> Any:
        self.log.append(str(action)[:10])
        return super().step(action)

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"log": self.log}


CAUGHT_BY: dict[type, str] = {
    NoSeeding: "gymnasium",
    OutsideSpace: "gymnasium",
    GlobalRandom: "global_rng",
    GlobalSeed: "global_rng",
    GlobalExpert: "global_rng",
    ListensToGlobal: "global_rng",
    SharedGenerator: "interleaving",
    HashedText: "new_process",
    LeakySplit: "splits",
    RaisesOnBlank: "hostile",
    RaisesOnNone: "hostile",
    PaysLength: "hostile",
    BelievesInjection: "hostile",
    Evaluates: "hostile",
    Slow: "hostile",
    EchoesAll: "hostile",
    TakesNaN: "hostile",
    Teleports: "hostile",
    StepsOn: "reset_needed",
    RaisesOther: "reset_needed",
    StepsOnAtRandom: "reset_needed",
    StepsOnAfterTime: "reset_needed",
    PaysCutThinking: "no_answer_no_pay",
    PaysEcho: "no_answer_no_pay",
    PaysOpenField: "no_answer_no_pay",
    PaysOpenTag: "no_answer_no_pay",
    Integers: "info",
    NumPyInfo: "info",
    NaNInfo: "info",
    SharedInfo: "info",
    NumberKeys: "info",
    NoTaskId: "info",
    NoSystem: "info",
    NoStopReason: "info",
    IntegerTerms: "info",
    HugeInteger: "vector",
    TellsInInfo: "no_answer",
    TellsAfterwards: "no_answer",
    TellsInRendering: "no_answer",
    WrongSum: "reward_terms",
    ForgetsGenerator: "state",
    ForgetsCounter: "state",
    SharesState: "state",
    ReturnsNothing: "state",
    LiveLog: "state",
    MainThreadOnly: "threads",
    DrawingExpert: "expert",
    CountingExpert: "expert",
    WrongExpert: "expert",
    ShortExpert: "expert",
    WideExpert: "expert",
    PaysEveryAnswer: "expert",
    PaysSignature: "replay",
    IndexDraws: "random_access",
    IgnoresIndex: "random_access",
    OneIndex: "random_access",
}
