"""A vision task of a single turn: one picture, one question, one answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from tetrathlon.envs.grading.writing import plain
from tetrathlon.envs.language.formats import BOXED, LINE, TAG, AnswerFormat
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.vision.environment import UNSEEN, VisionEnv
from tetrathlon.envs.vision.task import View, VisionTask


def is_unseen(answer: str) -> bool:
    """Tell whether ``answer`` says that what is asked cannot be seen."""
    return plain(answer).strip(" .").lower() == UNSEEN


class VisionBandit(VisionEnv, TextBandit):
    """A question about a picture, answered in one turn.

    Subclasses give :meth:`generate` with a ``VisionTask``, :meth:`matches`, and the best blind answer.

    ## Observation Space
    `Dict`: ``image``, uint8 [size, size, 3], and ``text``: the prompt, as one user message. In the variant
    ``no_image``, and only there, ``info["has_image"]`` is False and the picture is grey.

    ## Action Space
    `UnicodeText`: the whole completion.

    ## Rewards
    1 for a right final answer, else 0; where the evidence is covered, ``unseen`` is right and nothing else is. With
    ``format_weight`` w, another w for an answer in the format that was asked for, right or wrong.

    ## Episode End
    Terminated after one step; ``stop_reason`` is ``answered`` or ``no_answer``.

    Args:
        **kwargs: Those of ``VisionEnv`` and of ``TextBandit``.
    """

    formats: Mapping[str, AnswerFormat] = {"tag": TAG, "boxed": BOXED, "plain": LINE}

    @abstractmethod
    def matches(self, view: View, answer: str) -> bool:
        """Tell whether ``answer`` is right for ``view``, whose evidence is there to see."""

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer`` is right for what is shown."""
        assert isinstance(task, VisionTask)
        view = task.seen_as(self._shown)
        if is_unseen(answer):
            return view.is_hidden
        return not view.is_hidden and self.matches(view, answer)

    def write_answer(self, task: Task) -> str:
        """See :meth:`LanguageEnv.write_answer`."""
        assert isinstance(task, VisionTask)
        view = task.seen_as(self._shown)
        return UNSEEN if view.is_hidden else view.answer
