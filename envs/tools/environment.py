"""What every tool task shares: turns, calls and what became of them, budgets, rewards by turn and at the end."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym

from tetrathlon.envs.arguments import flag, share, whole
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.language.environment import LanguageEnv
from tetrathlon.envs.language.formats import BOXED, LINE, TAG, AnswerFormat
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Score, Term
from tetrathlon.envs.tools.calls import MOST_CALLS, read_calls
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.results import ERRORS, Result, cut, failed, run, spoken
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolDown
from tetrathlon.envs.tools.world import World

_MOST = 10_000
_MOST_TOKENS = 10_000_000
_LEAST_OUTPUT = 100
_LONGEST_FAULT = 500


class ToolEnv(LanguageEnv):
    """A task of several turns: the agent calls tools, reads what they say, and answers.

    Subclasses give :meth:`generate`, :meth:`open`, :meth:`is_right` and :meth:`expert`; everything else is here.

    ## Observation Space
    `UnicodeText`: the newest message: first the question, then what the calls of the last turn came to.
    ``info["role"]`` is ``"tool"`` for that, and ``"user"`` for what else the environment says.

    ## Action Space
    `UnicodeText`: a turn: tool calls in one of the forms of :func:`~tetrathlon.envs.tools.calls.read_calls`, or,
    without any, the final answer. A turn with calls is no answer, whatever else stands in it.

    ## Rewards
    1 for a right final answer, else 0. With ``progress_weight`` w, another w in parts, when the agent comes further
    than before (where a task knows how far that is). With ``error_cost`` c, each turn in which a call failed costs c.

    ## Episode End
    Terminated; ``stop_reason`` is ``answered``, or the budget that is spent: ``max_turns`` or ``max_calls``. Where a
    tool itself does not work, ``tool_down``, with a ``grader_error``: such an episode has no score.

    Args:
        max_turns: Turns; None: the task's own number, as for the next three.
        max_calls: Calls in all; who makes one more has spent it.
        max_tokens: Token limit of a turn, stated in ``info["limits"]`` and kept by the policy.
        max_episode_tokens: Likewise, of all turns together.
        max_parallel: Calls that are run in one turn; those beyond are not.
        max_output: Characters of what one call may say; more is cut, with a note.
        progress_weight: What all progress together pays, from 0 to less than the 1 of a right answer.
        error_cost: What a turn with a failed call costs, from 0 to 1.
        brief: The first observation is the question alone, and the info names no tools: for small models that learn
            both.
        **kwargs: Those of ``LanguageEnv``.

    Raises:
        ValueError: An argument is none of those.
    """

    default_max_tokens: ClassVar[int] = 256
    default_max_turns: ClassVar[int] = 8
    """Twice what the expert needs, or more."""
    default_max_calls: ClassVar[int] = 32
    formats: Mapping[str, AnswerFormat] = {"tag": TAG, "boxed": BOXED, "plain": LINE}
    world_decides: ClassVar[bool] = False
    """Whether the state of the world at the end is graded, however the episode came to its end."""
    knows_progress: ClassVar[bool] = False
    """Whether there is a :meth:`progress`."""

    def __init__(
        self,
        *,
        max_turns: int | None = None,
        max_calls: int | None = None,
        max_episode_tokens: int | None = None,
        max_parallel: int = 8,
        max_output: int = 4_000,
        progress_weight: float = 0.0,
        error_cost: float = 0.0,
        brief: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        turns = self.default_max_turns if max_turns is None else max_turns
        self.max_turns = whole("max_turns", turns, 1, _MOST)
        self.max_calls = whole("max_calls", self.default_max_calls if max_calls is None else max_calls, 1, _MOST)
        tokens = self.max_turns * self.max_tokens if max_episode_tokens is None else max_episode_tokens
        self.max_episode_tokens = whole("max_episode_tokens", tokens, 1, _MOST_TOKENS * _MOST)
        self.max_parallel = whole("max_parallel", max_parallel, 1, MOST_CALLS)
        self.max_output = whole("max_output", max_output, _LEAST_OUTPUT, 100_000)
        self.progress_weight = share("progress_weight", progress_weight)
        self.error_cost = share("error_cost", error_cost, last=True)
        if self.progress_weight and not self.knows_progress:
            raise ValueError(
                f"{type(self).__name__} knows no progress; progress_weight must be 0, got {progress_weight}"
            )
        self.brief = flag("brief", brief)
        self.rubric = Rubric(Term("correct", self._grade))
        self._play: Play | None = None

    @abstractmethod
    def open(self, task: ToolTask) -> World:
        """Return what the tools of an episode of ``task`` work on, as it is at its start."""

    @abstractmethod
    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether the task is solved.

        Args:
            task: The task.
            answer: The final answer; None (only where ``world_decides``): there is none.
            world: As the agent left it.
        """

    @abstractmethod
    def expert(self, play: Play) -> str:
        """Return a good next turn from privileged knowledge; nothing changes by asking."""

    def progress(self, play: Play) -> float:
        """Return how far the agent has come, from 0 to 1."""
        raise NotImplementedError

    def reply(self, play: Play, text: str) -> str | None:
        """Return what somebody says to a turn without calls; None, as by default: nobody hears it.

        Unheard, it is the final answer, or is told that it has none; heard, it is no answer. Who ends the episode
        sets ``play.stop``.

        Raises:
            tetrathlon.envs.tools.tool.ToolDown: Who should hear it cannot.
        """
        return None

    def begin(self, task: Task) -> tuple[Any, dict[str, Any]]:
        """See :meth:`LanguageEnv.begin`.

        Raises:
            TypeError: ``task`` is no ``ToolTask``.
        """
        if not isinstance(task, ToolTask):
            raise TypeError(f"{type(self).__name__} plays a ToolTask, got {type(task).__name__}")
        self.close()
        self._play = play = self._start(task)
        play.info = self.start_info(task)
        if not self.brief:
            play.info["tools"] = [tool.schema() for tool in play.world.tools().values()]
        return self.observed(play.observation), copy.deepcopy(play.info)

    def start_info(self, task: Task) -> dict[str, Any]:
        """See :meth:`LanguageEnv.start_info`."""
        limits = {
            "tokens": self.max_tokens,
            "episode_tokens": self.max_episode_tokens,
            "turns": self.max_turns,
            "calls": self.max_calls,
        }
        return {**super().start_info(task), "limits": limits, "role": "user"}

    def as_openai_tools(self) -> list[dict[str, Any]]:
        """Return the tools of the episode as OpenAI's API takes them, for an agent loop outside of this library."""
        return [tool.schema() for tool in self._underway().world.tools().values()]

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a turn.

        Raises:
            gymnasium.error.ResetNeeded: There is no episode under way.
        """
        play = self._play
        if play is None or play.stop:
            raise gym.error.ResetNeeded("the episode is over; call reset() before step()")
        reward = self._turn(play, action if isinstance(action, str) else str(action))
        return self.observed(play.observation), reward, bool(play.stop), False, copy.deepcopy(play.info)

    def answer_in(self, completion: str) -> str | None:
        """Return the final answer of a turn, or None where it has none: one with calls, for example."""
        if read_calls(completion):
            return None
        return self._answer_to(self._task, completion)

    def demonstrate(self, task: Task) -> list[dict[str, str]]:
        """See :meth:`LanguageEnv.demonstrate`: what the expert does."""
        assert isinstance(task, ToolTask)
        play = self._start(task)
        messages = [{"role": "user", "content": play.observation}]
        while not play.stop:
            said = self.expert(play)
            self._turn(play, said)
            messages.append({"role": "assistant", "content": said})
            if not play.stop:
                messages.append({"role": play.info["role"], "content": play.observation})
        play.world.close()
        return messages

    def expert_action(self, k: int = 1) -> Any:
        """Return the expert's next turn; nothing changes by asking.

        Args:
            k: 1 gives the turn; more gives a list of k turns, each in the state that the one before leads to.
        """
        play = self._underway()
        if k == 1:
            return self.expert(play)
        twin = self._copied(play)
        turns: list[str] = []
        try:
            for _ in range(k):
                turns.append(turns[-1] if twin.stop and turns else self.expert(twin))
                if not twin.stop:
                    self._turn(twin, turns[-1])
        finally:
            twin.world.close()
        return turns

    def get_state(self) -> dict[str, Any]:
        """Return the exact state, randomness included."""
        play = self._play
        return self._save(play=None if play is None else play.save())

    def set_state(self, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Restore what :meth:`get_state` returned.

        Returns:
            The observation and the info that belong to the state.

        Raises:
            ValueError: It is no state of this class of environments; nothing has changed then.
        """
        self._check_state(state, "play", task=ToolTask)
        task, saved = state["task"], state["play"]
        # Before the running episode is let go: a world may not take its state.
        try:
            play = None if task is None or saved is None else Play.load(task, self.open(task), saved)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            name = type(self).__name__
            raise ValueError(f"a state must be what get_state() of {name} returned, got one that is none") from error
        self.close()
        self.np_random.bit_generator.state = copy.deepcopy(state["rng"])
        self._task, self._play = task, play
        if play is None:
            return self.observed(""), {}
        return self.observed(play.observation), copy.deepcopy(play.info)

    def render(self) -> str | None:
        """Return the episode so far as text."""
        if self.render_mode != "ansi" or self._play is None:
            return None
        play = self._play
        parts = [part for step in play.steps for part in (step.observation, f"> {step.action}")]
        parts.append(play.observation if not play.stop else f"({play.stop})")
        return "\n\n".join(parts)

    def close(self) -> None:
        """Let go of what the episode holds."""
        if self._play is not None:
            self._play.world.close()
            self._play = None

    @cached_property
    def _demonstrations(self) -> list[dict[str, str]]:
        return super()._write_examples()

    def _write_examples(self) -> list[dict[str, str]]:
        return [dict(message) for message in self._demonstrations]  # whose episodes are played once

    def _underway(self) -> Play:
        if self._play is None:
            raise gym.error.ResetNeeded("there is no instance yet; call reset() first")
        return self._play

    def _start(self, task: ToolTask) -> Play:
        world = self.open(task)
        play = Play(task, world, self._write_question(task))
        if self.knows_progress:
            play.progress = self.progress(play)
        return play

    def _copied(self, play: Play) -> Play:
        return Play.load(play.task, self.open(play.task), play.save())

    def _write_question(self, task: Task) -> str:
        if self.brief:
            return task.question
        budget = f"You have {self.max_turns} turns and {self.max_calls} calls."
        return f"{super()._write_question(task)}\n{budget}"

    def _turn(self, play: Play, text: str) -> float:
        """Take a turn of ``play``; return what it pays."""
        play.steps.append(Step(play.observation, text))
        try:
            results = self._run_calls(play, text)
        except ToolDown as error:
            return self._ended_without_score(play, str(error))
        if results:
            play.observation = spoken(results)
        if not play.stop and play.turns >= self.max_turns:
            play.stop = "max_turns"
        if play.stop == "answered":
            play.observation = ""
        return self._pay(play, results)

    def _run_calls(self, play: Play, text: str) -> list[Result]:
        """Run the calls of a turn, or let it be heard where it has none."""
        calls = read_calls(text)
        if not calls:
            self._hear(play, text)
            return []
        tools = play.world.tools()
        results = []
        for number, call in enumerate(calls):
            if number >= self.max_parallel:
                why = call.error or f"not run: the limit is {self.max_parallel} calls a turn"
                results.append(failed(call.name, why, "not_run", self.max_output))
            elif play.calls >= self.max_calls:
                why = f"not run: the limit is {self.max_calls} calls in all"
                results.append(failed(call.name, why, "not_run", self.max_output))
                play.stop = "max_calls"
            else:
                play.calls += 1
                results.append(run(call, tools, self.max_output))
        return results

    def _hear(self, play: Play, text: str) -> None:
        """Let somebody hear a turn without calls, or take its answer."""
        said = self.reply(play, text)
        if said is None:
            play.answer = self._answer_to(play.task, text)
            if play.answer is not None:
                play.stop = "answered"
            said = f"There is neither a tool call nor a final answer in this turn. {self._format.request}"
        play.observation = said

    def _answer_to(self, task: Task | None, text: str) -> str | None:
        return self._format.read(text, () if task is None else (self._write_question(task), task.question))

    def _pay(self, play: Play, results: list[Result]) -> float:
        score = self._score(play)
        terms, scores = dict(score.terms), dict(score.scores)
        if self.knows_progress and score.error is None:
            reached = max(self.progress(play), play.progress)
            if self.progress_weight:
                terms["progress"] = self.progress_weight * (reached - play.progress)
                scores["progress"] = reached
            play.progress = reached
        elif self.progress_weight:
            terms["progress"] = scores["progress"] = 0.0
        if self.error_cost:
            wrong = float(score.error is None and any(result.error for result in results))
            terms["errors"], scores["errors"] = -self.error_cost * wrong, wrong
        play.info = {
            "role": "tool" if results else "user",
            "reward_terms": terms,
            "scores": scores,
            "tool_results": [
                {"name": result.name, "content": result.content, "error": result.error} for result in results
            ],
            "tool_errors": {kind: sum(result.error == kind for result in results) for kind in ERRORS},
        }
        if play.stop:
            play.info |= {"is_success": score.is_success, "stop_reason": play.stop}
        if score.error is not None:
            play.info["grader_error"] = score.error
        return float(sum(terms.values()))

    def _score(self, play: Play) -> Score:
        if not play.stop or play.fault:
            return Score(0.0, {"correct": 0.0}, {"correct": 0.0}, error=play.fault or None)
        return self.rubric.score(play, Episode(play.steps))

    def _ended_without_score(self, play: Play, error: str) -> float:
        play.stop, play.fault, play.observation = "tool_down", cut(error, _LONGEST_FAULT) or "a tool does not work", ""
        return self._pay(play, [])

    def _grade(self, play: Play, episode: Episode) -> float:
        if play.answer is None and not self.world_decides:
            return 0.0
        return float(self.is_right(play.task, play.answer, play.world))
