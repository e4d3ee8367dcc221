"""Hedges: words that make two answers alternatives instead of a correction."""

from __future__ import annotations

import re

from tetrathlon.envs.grading.writing import integer, usual


def word_set(*lines: str) -> frozenset[str]:
    """Return the words on ``lines``."""
    return frozenset(" ".join(lines).split())


_DISJUNCTIONS = word_set(
    "or either maybe perhaps possibly alternatively otherwise else vs versus nor might could",
    "oder entweder vielleicht sonst ou peut sinon o oppure ovvero forse quizás quizá talvez lub albo czy nebo anebo",
    "eller tai veya yoksa hoặc atau ή или либо або чи vagy sau ali ili أو او या یا או",
)
_UNSPACED = re.compile("或|또는|혹은|아니면|または|又は|あるいは|もしくは|それとも|หรือ|还是|還是")
_CONNECTORS = word_set(
    "and also to through und bis et e y и та و और および 和 及 か と 와 과 và dan ve og och ja en auch bien a",
    "option choice case candidate possibility variant alternative guess first second third try",
)
_MISTAKES = word_set(
    "wrong forgot forgotten no actually instead correct corrected correcting correction wait mistake mistaken error",
    "incorrect fix fixed fixing rather sorry oops recheck rechecking falsch vergessen nein doch faux non erreur pardon",
    "нет",
)
_CORRECTIONS = _MISTAKES | word_set(
    "so therefore then hence thus checked should must final finally daher richtig donc entonces luego quindi dunque",
    "значит поэтому",
)
_FURTHER = re.compile(
    r"\b(?:(?:the other|another)\b(?! (?:hand|way|method|approach|look|time|try|check)\b)"
    r"|also(?: \w+){0,3}\W{0,8}$|unsure\b|not sure\b)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|unless|falls|wenn|si|se|если)\b\W{1,4}(?:\w{1,12}\W{1,3}){0,4}?"
    r"(?:not|wrong|incorrect|mistaken|no|nicht|falsch|non|pas|нет)\b",
    re.IGNORECASE,
)
DOUBTS = word_set(
    "not isn t nor never except without than about approximately approx around roughly nearly almost over under",
    "nicht kein keine pas no",
)
"""Words before a number that rule it out or make it a rough one."""
_NEGATIONS = word_set("not never cannot isn wasn aren doesn nicht kein keine pas")
_LINKS = word_set("t equal to be")
_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\W{0,8}(?:(?:is|was|are|were)(?:n['’]t|\s{1,3}(?:not|never|wrong|incorrect|false|an? (?:mistake|error)))"
    r"|(?:can(?:['’]t|\s?not)|(?:could|must|should)(?:n['’]t|\snot))\sbe\s(?:right|correct|true|it|the\b))\b",
    re.IGNORECASE,
)
NO_UNITS = (
    _DISJUNCTIONS
    | _CONNECTORS
    | _CORRECTIONS
    | DOUBTS
    | word_set(
        "hundred thousand million billion trillion dozen half halves third thirds quarter quarters fifth fifths",
        "percent zero one two three four five six seven eight nine ten eleven twelve twenty thirty squared cubed",
        "factorial less more plus minus times divided point root if unless is was are be been sin cos tan cot sec csc",
        "log ln exp pi sqrt mod infinity answer solution right percentage basis negative opposite below above under",
        "over doubled tripled halved score grand k",
    )
)
"""Words that are no unit behind a number: they change it, doubt it or join it with another."""
_LABEL = re.compile(
    r"\b(?:option|answer|choice|candidate|possibility|variant|guess)\s{0,3}[#(]?(?:\d|[a-h]\b)", re.IGNORECASE
)
_LATEX_OR = re.compile(r"\\(?:lor|vee)(?![a-zA-Z])|∨")
_COMMAND = re.compile(r"\\[a-zA-Z]+|\\.")
_WORD = re.compile(r"[^\s\d!-/:-@\[-`{-~…、。，；：？！–—×÷±·•²³]+")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_NUMBER = re.compile(
    rf"-?\d+(?:[.,]\d+)*|\b(?:{'|'.join(_NUMBER_WORDS.split())}|twenty|thirty|hundred)\b", re.IGNORECASE
)
_CLAUSE_END = re.compile(r"[.!?,;:](?=\s|$)|\n")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_SUSPECT = re.compile("|".join([r"\d", *sorted(_NEGATIONS), *_NUMBER_WORDS.split(), "twenty", "thirty", "hundred"]))
_WINDOW = 200
_NEAR = 80


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case; LaTeX commands are none."""
    text = _LATEX_OR.sub(" or ", text)
    return [word.casefold() for word in _WORD.findall(_COMMAND.sub(" ", text))]


def is_hedge(gap: str) -> bool:
    """Tell whether the text between two answer fields makes them alternatives or a list.

    It does as :func:`is_offer` says, or where it names the second answer as a further one ("the other root", "so also")
    and has no word of a mistake.
    """
    if is_offer(gap):
        return True
    gap = _close(usual(gap))
    return _FURTHER.search(gap) is not None and _MISTAKES.isdisjoint(words(gap))


def is_offer(gap: str) -> bool:
    """Tell whether the text between two answers makes them alternatives or a list.

    It does where it holds nothing but "or", "and", labels, single letters and signs, of any length; or where its
    first or last 200 characters hold "or", "maybe", "otherwise", ... of some language, a label ("Option 2") or a
    condition ("if not") and, but for the condition, no word of a correction ("wrong", "instead", "so").
    """
    found = words(gap := usual(gap))
    if all(
        len(word) == 1 or word in _CONNECTORS or word in _DISJUNCTIONS or _UNSPACED.fullmatch(word) for word in found
    ):
        return True
    gap = _close(gap)
    if _CONDITION.search(gap):
        return True
    near = words(gap)
    if not _CORRECTIONS.isdisjoint(near):
        return False
    return not _DISJUNCTIONS.isdisjoint(near) or bool(_UNSPACED.search(gap) or _LABEL.search(gap))


def _close(gap: str) -> str:
    """Return what of ``gap`` is near one of the answers, with single blanks."""
    gap = " ".join(gap.split())
    return f"{gap[:_WINDOW]} {gap[-_WINDOW:]}" if len(gap) > 2 * _WINDOW else gap


def follows_or(after: str, answer: str) -> str | None:
    """Return another number that is offered right behind an answer (``... or 16``), or None."""
    sentence = usual(after[:_NEAR])
    found = words(sentence)
    if not found or not (found[0] in _DISJUNCTIONS or _UNSPACED.match(found[0])):
        return None
    number = _NUMBER.search(sentence)
    if number is None or re.match(r"\s*[-+*/=×%]", sentence[number.end() :]):
        return None
    between = words(sentence[: number.start()])
    if len(between) > 5 or not _CORRECTIONS.isdisjoint(between):
        return None
    if integer(answer) is not None and integer(answer) == integer(number.group()):
        return None
    return number.group()


def may_hedge(before: str) -> bool:
    """Tell, fast, whether ASCII words before an answer may bear on it: else neither of the next two functions does."""
    return _SUSPECT.search(before.lower()) is not None


def is_denied(before: str, after: str) -> bool:
    """Tell whether the answer between two texts is said to be none (``not 15``, ``15 is wrong``)."""
    found = words(_CLAUSE_END.split(_NOT.sub(" not", usual(before[-_NEAR:])))[-1])
    while found and found[-1] in _LINKS:
        found.pop()
    return bool(found and found[-1] in _NEGATIONS) or _DENIED.match(usual(after[:_NEAR])) is not None


def starts_with_or(after: str) -> bool:
    """Tell whether ``after`` goes on with a word of alternatives."""
    found = words(usual(after[:_NEAR]))
    return bool(found) and (found[0] in _DISJUNCTIONS or _UNSPACED.match(found[0]) is not None)


def precedes_or(before: str, answer: str) -> str | None:
    """Return another number that is offered right before an answer (``either 14 or ...``), or None."""
    sentence = _SENTENCE_END.split(usual(before[-_NEAR:]))[-1]
    numbers = _NUMBER.findall(sentence)
    found = words(sentence)
    if not numbers or not found or not _CORRECTIONS.isdisjoint(found):
        return None
    rest = sentence[sentence.rindex(numbers[-1]) + len(numbers[-1]) :]
    is_last = found[-1] in _DISJUNCTIONS and words(rest) == found[-1:]
    if not (is_last or ("either" in found and not _DISJUNCTIONS.isdisjoint(words(rest)))):
        return None
    if integer(answer) is not None and integer(answer) == integer(numbers[-1]):
        return None
    return str(numbers[-1])
