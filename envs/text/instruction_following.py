"""Follow instructions that a program can check."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from tetrathlon.envs.arguments import whole
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.grading.thinking import count_thoughts, visible
from tetrathlon.envs.language.dataset import Dataset
from tetrathlon.envs.language.formats import AnswerFormat
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.rubric import Rubric, Term
from tetrathlon.envs.text.bandit import TextBandit
from tetrathlon.envs.text.instructions.catalog import (
    KINDS,
    MOST_TOGETHER,
    WRITTEN_LANGUAGES,
    check_kinds,
    draw_prompt,
    most_together,
    names,
)
from tetrathlon.envs.text.instructions.ifeval import make_task
from tetrathlon.envs.text.instructions.instruction import Instruction
from tetrathlon.envs.text.instructions.substance import is_substantial
from tetrathlon.envs.text.instructions.wording import InLanguage
from tetrathlon.envs.text.languages import language_term, model

_MOST_TRIES = 2_000
_LONGEST = 100_000
_LONGEST_COMPLETION = 200_000


class WholeReply(AnswerFormat):
    """All that is visible of a reply is the answer; nothing asks for it."""

    def __init__(self) -> None:
        super().__init__("", "%s")

    def write(self, answer: str) -> str:
        """See :meth:`AnswerFormat.write`."""
        return answer

    def read(self, completion: str, echoes: Iterable[str] = ()) -> str | None:
        """See :meth:`AnswerFormat.read`; a reply that is blank, or the prompt and nothing else, has no answer.

        Nor has a completion of more than 200,000 characters; thinking is looked for in no longer ones.
        """
        if len(completion) > _LONGEST_COMPLETION:
            return None
        reply = (visible(completion) or "").strip()
        return None if not reply or reply in {echo.strip() for echo in echoes} else reply

    def keeps(self, completion: str) -> bool:
        """See :meth:`AnswerFormat.keeps`."""
        if len(completion) > _LONGEST_COMPLETION:
            return False
        return bool((visible(completion) or "").strip()) and count_thoughts(completion) <= 1


class Format(TextBandit):
    r"""Write a text on a topic and follow instructions on its form, all of which a program can check.

    ## Description
    In the manner of IFEval (Zhou et al. 2023, arXiv:2311.07911): a request (``Write a short note about rain.``), a
    word that the reply must hold (``Use the word "rain" in it.``), how many words must be its own, and ``count``
    instructions of these ``kinds``:

    * length: ``words``, ``sentences``, ``paragraphs``, ``lines`` (at least, at most, exactly, from .. to ..);
    * layout: ``first_word`` (of a paragraph), ``bullets``, ``numbered_list``, ``sections`` (given headings in order),
      ``named_sections`` (``Day 1``, ``Day 2``), ``two_replies`` (``******`` between), ``table`` (Markdown);
    * the whole reply as data: ``json``, ``json_schema``, ``csv``;
    * marks: ``title`` (in title case), ``title_in_angles`` (``<<...>>``), ``repeat_request``, ``starts_with``,
      ``ends_with``, ``quoted``, ``postscript``, ``placeholders`` (``[name]``), ``highlights`` (``*part*``);
    * wording: ``keyword`` (n times), ``forbidden_words``, ``letter_count``, ``lowercase``, ``uppercase``,
      ``capital_words``, ``no_commas``, ``verdict`` (one of given sentences), ``language``.

    The prompt says exactly what is counted. For all of them:

    * A word is what stands between blanks and holds a letter or a digit. A sentence ends where ``.``, ``!`` or ``?``
      comes before a blank or the end. Paragraphs stand apart by blank lines; blank lines are no lines. A list point, a
      cell, a placeholder and a part between asterisks hold a letter or a digit.
    * What is to be found word for word must be so: ``P.S.`` is not ``p.s.``, ``"`` is not ``'`` or ``“``, a letter
      that only looks like another is another. Keywords and forbidden words are words of their own, in any case;
      ``_`` is no part of a word.
    * What nobody sees (zero-width characters, soft hyphens, variation selectors, controls) does not count, and what
      must not come is not hidden by full width, mathematical letters or loose marks (Unicode's NFKC).
    * Blanks around the reply do not count, and a line may end in CRLF.
    * JSON and CSV stand alone, without a code fence; a byte order mark is skipped. NaN, Infinity, numbers beyond a
      double or of more than 400 digits, a name that comes twice in an object, and more than 64 brackets in one another
      are no JSON here; 3.0 is an integer of a schema, as JSON Schema has it.
    * The language is judged by script, and by the package py3langid among those that share one, sentence by sentence:
      four fifths must be in the language. Code and addresses are cut out, but where they hold more than a fifth of the
      letters they are judged too. A reply too short to judge is not in it.

    ## Observation Space
    `UnicodeText`: the request, then the instructions as a list.

    ## Action Space
    `UnicodeText`: the completion; what follows its thinking is the reply, as it stands.

    ## Rewards
    1 if the reply follows every instruction (``followed``), else 0. With ``partial_credit`` p, ``followed`` pays 1 - p
    and the share of the instructions that are followed (``share``) pays p; beware: an instruction like ``no_commas``
    is followed by chance. ``share`` is among the scores in any case.

    Nothing pays, not even in part, for a reply that (the prompt says the first three)

    * does not hold the topic's word (in scripts with capital letters as a word of its own);
    * has fewer than 8 words of its own (3 where JSON of a schema is asked for): runs of four or more words that stand
      in the prompt too are copied, and are not its own. A Chinese or Japanese character counts as a word here;
    * says the same over and over: of n words of its own 2 sqrt(n) must be different (20 of 100), and from 30 on none
      may make up more than a quarter;
    * is longer than 100,000 characters, or 200,000 with its thinking;
    * is not the JSON or CSV that the whole reply was to be.

    Whether it is to the point, true or well written is not graded. With ``language_gate`` a reply in another language
    than the one asked for (English, where none was) is paid nothing; what is too short to judge passes.

    ## Starting State
    The number of instructions is uniform within ``count``, then the kinds are drawn without those that exclude each
    other, so that kinds which exclude many (``csv``, ``table``) come less often than others, up to nine times. Then the
    topic (30; 10 where ``language`` is among them) and the parameters. A draw that the expert cannot follow is thrown
    away (about one in six), so every prompt can be followed.

    ## Episode End
    Terminated after one step; ``stop_reason`` is ``no_answer`` for a reply that is blank, cut inside its thinking, or
    the prompt itself.

    ## Arguments
    * ``kinds``: None for all, or some of those above.
    * ``count``: instructions a prompt, a number or the fewest and the most, 1 to 8; the most is cut to what of
      ``kinds`` goes together, and a fewest beyond that is an error.
    * ``languages``: codes for the kind ``language``: ``ar de el en es fr hi it ja ko nl pl pt ru zh``; None: all but
      ``en``. ``words``, ``sentences`` and the kinds of casing stand beside those with Latin, Cyrillic or Greek letters
      only.
    * ``partial_credit``: from 0 to less than 1; ``language_gate``: see Rewards.
    * ``data``: a JSONL file, files by split, or a data set of the hub, with IFEval's fields ``prompt``,
      ``instruction_id_list`` and ``kwargs``, instead of generated prompts; see ``instructions/ifeval.py``. There the
      topic's word is not asked for, and one word of its own is enough. ``skip_unreadable`` leaves out rows with
      instructions or arguments that are not supported, with a warning; else they are an error that names them. The
      expert has no reply for prompts that are too much for it.
    * Those of ``TextBandit``, but for ``format_weight``: the instructions are the format.

    ## Version History
    * v0: first version, with py3langid 0.4.0.

    Raises:
        ValueError: An argument is out of its range or has no use.
        gymnasium.error.DependencyNotInstalled: A package is missing: py3langid for ``language``, jsonschema for
            ``json_schema``.
        gymnasium.error.Error: On reset, where the kinds leave no prompt.
    """

    default_max_tokens = 512
    formats: Mapping[str, AnswerFormat] = {"reply": WholeReply()}

    kinds: ClassVar[tuple[str, ...]] = tuple(KINDS)
    """All kinds."""

    def __init__(
        self,
        *,
        kinds: Collection[str] | None = None,
        count: int | Sequence[int] = (1, 5),
        languages: Sequence[str] | None = None,
        partial_credit: float = 0.0,
        language_gate: bool = False,
        data: str | Path | Mapping[str, str | Path] | None = None,
        skip_unreadable: bool = False,
        **kwargs: Any,
    ) -> None:
        if (
            isinstance(partial_credit, bool)
            or not isinstance(partial_credit, int | float)
            or not 0 <= partial_credit < 1
        ):
            raise ValueError(f"partial_credit must be a number from 0 to less than 1, got {partial_credit!r}")
        if kwargs.get("format_weight"):
            raise ValueError(
                f"format_weight must be 0: the instructions are the format, got {kwargs['format_weight']!r}"
            )
        if not isinstance(language_gate, bool):
            raise ValueError(f"language_gate must be True or False, got {language_gate!r}")
        self.partial_credit, self.language_gate = float(partial_credit), language_gate
        if language_gate:
            model()
        super().__init__(**kwargs)
        if data is not None:
            if kinds is not None or languages is not None or count != (1, 5):
                raise ValueError("with data nothing is done with kinds, count and languages; leave them out")
            self.dataset = Dataset.read(data, make_task, skip_unreadable=skip_unreadable)
            self.dataset.require(self.split)
            return
        if skip_unreadable:
            raise ValueError("without data nothing is done with skip_unreadable; leave it out, or give data")
        self._kinds = tuple(KINDS) if kinds is None else kinds
        self._languages = tuple(code for code in WRITTEN_LANGUAGES if code != "en") if languages is None else languages
        check_kinds(self._kinds, self._languages)
        low, high = (count, count) if isinstance(count, int | np.integer) else _pair(count)
        self._most, self._fewest = (whole("count", number, 1, MOST_TOGETHER) for number in (high, low))
        if self._fewest > self._most:
            raise ValueError(f"count must be the fewest and the most, in this order, got {count!r}")
        together = most_together(self._kinds, self._languages)
        if self._fewest > together:
            raise ValueError(
                f"count must be at most {together}, as many of these kinds go together, got {count!r} for "
                f"{tuple(self._kinds)}"
            )
        self._most = min(self._most, together)

    def make_rubric(self, format_weight: float) -> Rubric:
        """Return the rubric; ``followed`` means success."""
        terms = [
            Term("followed", self._grade_answer, 1.0 - self.partial_credit),
            Term("share", self._grade_share, self.partial_credit),
        ]
        if self.language_gate:
            terms.append(language_term(asked_language, gate=True))
        return Rubric(*terms, success="followed")

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a prompt that can be followed."""
        wanted = int(rng.integers(self._fewest, self._most + 1))  # kept, or the numbers that are hard would be rare
        for _ in range(_MOST_TRIES):
            # What the kinds rule out at once may be many draws; they cost microseconds.
            prompt = draw_prompt(rng, self._kinds, wanted, self._languages)
            if prompt is not None:
                data = {
                    "instructions": prompt.instructions,
                    "topic": prompt.topic,
                    "least_words": prompt.least_words,
                }
                return Task(prompt.question, prompt.example, data)
        raise gym.error.Error(
            f"Format found no prompt in {_MOST_TRIES} draws; {tuple(self._kinds)} leave none of {wanted} instructions "
            "that the expert can follow"
        )

    def is_right(self, task: Task, answer: str) -> bool:
        """Tell whether ``answer``, the reply, says something of its own and follows every instruction."""
        return all(self.results(task, answer).values())

    def check_task(self, task: Task) -> None:
        """Refuse a task without instructions.

        Raises:
            ValueError: There are none.
        """
        given = task.data.get("instructions")
        if not given or not all(isinstance(item, Instruction) for item in given):
            raise ValueError(f"a task of Format needs Instructions in its data, under 'instructions', got {given!r}")

    def results(self, task: Task, reply: str) -> dict[Instruction, bool]:
        """Return for each instruction of ``task`` whether ``reply`` follows it; nothing is by one without substance."""
        is_reply = (
            len(reply) <= _LONGEST
            and names(reply, task.data.get("topic", ""))
            and is_substantial(reply, task.question, task.data.get("least_words", 1))
        )
        results = {item: is_reply and item.check(reply) for item in task.data["instructions"]}
        if not all(follows for item, follows in results.items() if item.is_data):
            return dict.fromkeys(results, False)  # half an object is no reply, whatever is not in it
        return results

    def write_answer(self, task: Task) -> str:
        """Return a reply that follows every instruction.

        Raises:
            gymnasium.error.Error: The expert has none; that is so for some rows of ``data`` only.
        """
        if not task.answer:
            raise gym.error.Error(f"the expert has no reply to the prompt {task.question[:200]!r}")
        return task.answer

    def _grade_share(self, task: Task, episode: Episode) -> float:
        answer = self.answer_in(episode.steps[-1].action)
        results = [False] if answer is None else list(self.results(task, answer).values())
        return sum(results) / len(results)


def asked_language(task: Task) -> str:
    """Return the code of the language that ``task`` asks for; English where it asks for none."""
    return next((item.code for item in task.data["instructions"] if isinstance(item, InLanguage)), "en")


def _pair(count: Sequence[int]) -> tuple[int, int]:
    if isinstance(count, str) or not isinstance(count, Sequence) or len(count) != 2:
        raise ValueError(f"count must be a number, or the fewest and the most, got {count!r}")
    return count[0], count[1]
