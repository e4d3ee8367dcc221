"""What every single-turn language task shares: instances, splits, prompts, one answer, one reward."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import gymnasium as gym

from tetrathlon.envs.arguments import share
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.language.environment import LanguageEnv
from tetrathlon.envs.language.formats import is_one_letter, says_something
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Score, Term


class TextBandit(LanguageEnv):
    """A single-turn language task: one prompt, one completion, one reward.

    Subclasses give :meth:`generate`, or set ``dataset`` in their constructor, and :meth:`is_right`; everything else is
    here.

    ## Observation Space
    `UnicodeText`: the prompt, as one user message.

    ## Action Space
    `UnicodeText`: the whole completion.

    ## Rewards
    1 for a right final answer, else 0. With ``format_weight`` w, another w for an answer in the format that was
    asked for, right or wrong.

    ## Episode End
    Terminated after one step; ``stop_reason`` is ``answered`` or ``no_answer``.

    Args:
        format_weight: What the right format pays, from 0 to less than the 1 of a right answer.
        **kwargs: Those of ``LanguageEnv``. ``answer_format`` is ``"boxed"``, ``"tag"`` or ``"plain"`` (the reply is
            the answer) in most tasks; a worked example is a message of a user and one of an assistant.

    Raises:
        ValueError: An argument is none of those.
    """

    def __init__(self, *, format_weight: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        format_weight = share("format_weight", format_weight)
        self.rubric = self.make_rubric(format_weight)
        self._answer_terms = self.rubric.terms if self._pays_the_answer_alone(format_weight) else None
        self._prompt = ""
        self._completion: str | None = None
        self._read: tuple[str, str | None] | None = None  # the completion that was read last, and its answer

    @abstractmethod
    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer``, a final answer out of a completion, is right."""

    def make_rubric(self, format_weight: float) -> Rubric:
        """Return the rubric; ``correct`` means success."""
        terms = [Term("correct", self._grade_answer)]
        if format_weight:
            terms.append(Term("format", self._grade_format, format_weight))
        return Rubric(*terms, success="correct")

    def begin(self, task: Task) -> tuple[Any, dict[str, Any]]:
        """See :meth:`LanguageEnv.begin`."""
        self._prompt = self._write_question(task)
        self._completion = self._read = None
        return self.observed(self._prompt), self.start_info(task)

    def demonstrate(self, task: Task) -> list[dict[str, str]]:
        """See :meth:`LanguageEnv.demonstrate`."""
        return [
            {"role": "user", "content": self._write_question(task)},
            {"role": "assistant", "content": self._write_solution(task)},
        ]

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Grade the completion ``action`` and end the episode.

        Raises:
            gymnasium.error.ResetNeeded: There is no episode under way.
        """
        task = self._task
        if task is None or self._completion is not None:
            raise gym.error.ResetNeeded("the episode is over; call reset() before step()")
        self._completion = completion = action if isinstance(action, str) else str(action)
        if self.rubric.terms is self._answer_terms:
            try:
                answer = self.answer_in(completion)
                is_right = answer is not None and self.is_right(task, answer)
            except Exception:  # a grader's: the rubric, which grades once more, tells what it was
                is_right = None
            if is_right is True or is_right is False:  # all that the rubric would make of it, in a tenth of the time
                reward = 1.0 if is_right else 0.0
                return (
                    self.observed(""),
                    reward,
                    True,
                    False,
                    {
                        "is_success": is_right,
                        "stop_reason": "no_answer" if answer is None else "answered",
                        "reward_terms": {"correct": reward},
                        "scores": {"correct": reward},
                    },
                )
        score, info = self._grade(task)
        return self.observed(""), score.reward, True, False, info

    def _pays_the_answer_alone(self, format_weight: float) -> bool:
        """Tell whether the rubric is the usual one and asks for nothing but :meth:`is_right`."""
        cls = type(self)
        return (
            not format_weight
            and cls.make_rubric is TextBandit.make_rubric
            and cls._grade is TextBandit._grade
            and cls._grade_answer is TextBandit._grade_answer
        )

    def _grade(self, task: Task) -> tuple[Score, dict[str, Any]]:
        assert self._completion is not None
        score = self.rubric.score(task, Episode([Step(self._prompt, self._completion)]))
        info: dict[str, Any] = {
            "is_success": score.is_success,
            "stop_reason": "no_answer" if self.answer_in(self._completion) is None else "answered",
            "reward_terms": score.terms,
            "scores": score.scores,
        }
        if score.error is not None:
            info["grader_error"] = score.error
        return score, info

    def answer_in(self, completion: str) -> str | None:
        """Return the final answer of ``completion``, or None where it has none."""
        read = self._read
        if read is not None and read[0] is completion:  # graders and the info ask for the same
            return read[1]
        task = self._task
        answer = self._format.read(completion, (self._prompt, "" if task is None else task.question))
        self._read = (completion, answer)
        return answer

    def expert_action(self, k: int = 1) -> Any:
        """Return the worked answer; nothing changes by asking.

        Args:
            k: 1 gives the completion, more gives a list of k completions.
        """
        if self._task is None:
            raise gym.error.ResetNeeded("there is no instance yet; call reset() first")
        action = self._write_solution(self._task)
        return action if k == 1 else [action] * k

    def get_state(self) -> dict[str, Any]:
        """Return the exact state, randomness included."""
        return self._save(prompt=self._prompt, completion=self._completion)

    def set_state(self, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Restore what :meth:`get_state` returned.

        Returns:
            The observation and the info that belong to the state.

        Raises:
            ValueError: It is no state of this class of environments; nothing has changed then.
        """
        self._check_state(state, "prompt", "completion")
        self.np_random.bit_generator.state = copy.deepcopy(state["rng"])
        self._task = state["task"]
        self._prompt = state["prompt"]
        self._completion = state["completion"]
        self._read = None
        if self._task is None:
            return self.observed(""), {}
        if self._completion is None:
            return self.observed(self._prompt), self.start_info(self._task)
        return self.observed(""), self._grade(self._task)[1]

    def render(self) -> str | None:
        """Return the prompt, and what was answered and paid, as text."""
        if self.render_mode != "ansi":
            return None
        if self._completion is None or self._task is None:
            return self._prompt
        score, info = self._grade(self._task)
        return f"{self._prompt}\n\n> {self._completion}\n\nreward {score.reward:g} ({info['stop_reason']})"

    def _grade_answer(self, task: Task, episode: Episode) -> float:
        answer = self.answer_in(episode.steps[-1].action)
        return float(answer is not None and self.is_right(task, answer))

    def _grade_format(self, task: Task, episode: Episode) -> float:
        completion = episode.steps[-1].action
        if not self._format.keeps(completion):
            return 0.0
        answer = self.answer_in(completion) or ""
        if says_something(task.answer) and not says_something(answer):
            return 0.0
        # One letter is no attempt, unless letters are what is asked for.
        return float(not is_one_letter(answer) or is_one_letter(task.answer))
