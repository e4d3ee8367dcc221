"""Words right beside a number that change it: ``minus 3``, ``half of 5``, ``5 million``, ``3 below zero``."""

from __future__ import annotations

import re

from tetrathlon.envs.grading.hedges import word_set

SCALES = word_set(
    "hundred thousand million billion trillion quadrillion dozen lakh crore ten half halve third fourth fifth sixth",
    "seventh eighth ninth tenth hundredth thousandth millionth billionth",
)
"""Words that make another number of the one before them, in the singular."""
_FRACTIONS = "half|halves|(?:thir|four|fif|six|seven|eigh|nin|ten|hundred|thousand|million|billion)ths?|thirds?"
_SCALES = "hundred|thousand|million|billion|trillion|quadrillion|dozen|lakh|crore|score|grand|bn|mn|k"
_BEHIND = re.compile(
    r"[\s$*)-]{0,4}(?:"
    rf"(?:{_SCALES})s?\b"
    rf"|(?:{_FRACTIONS})\b(?![ -][a-z])|(?:{_FRACTIONS.replace('?', '')}) of\b"  # not "5 third graders"
    r"|(?:squared|cubed|factorial|plus|minus|divided|doubled|tripled|halved|negative|opposite)\b"
    r"|and (?:a|one) (?:half|third|quarter|fourth|fifth)\b"
    r"|(?:ten|hundred)[- ]thousandths?\b|(?:basis|percentage) points?\b"
    r"|(?:degrees? |° ?)?(?:[CF] |celsius |fahrenheit )?(?:below|under) (?:zero|freezing)\b"
    r"|times (?!as |more|less|per |in |on |at |each|every|a (?:day|week|month|year|hour|minute)|total|so\b))",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?<!\w)(?:twice|thrice|doubled?|tripled?|quadruple|half|plus|less|times|above|below|beyond|point|mod|modulo"
    r"|(?:divided|multiplied) by"
    r"|(?:roots?|half|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth|hundredth|percent|reciprocal|opposite"
    r"|negative|negation|inverse|square|cube|power|factorial|log|logarithm|sine|cosine|tangent|multiple) of(?: the)?)"
    r"[\s$*(\"'`\\]{0,4}$",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?<![\w-])(?P<word>minus|negative)[\s$*(\\]{0,4}$", re.IGNORECASE)
_OPERAND = re.compile(
    r"(?:[\d)\]}%!²+*/^-]|(?<![\w'])(?:[a-z]|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve))\s*$",
    re.IGNORECASE,
)
_LINKS = r"(?:(?:it|that|this|the|answer|value|result|is|was|be|equal|to|s)\W+){0,5}"
_UNLESS = re.compile(
    rf"\b(?:unless\W+|if\W+{_LINKS}(?:not|isn't|isn’t|wasn't|wrong)\W+){_LINKS}\d"
    rf"|\bif\W+{_LINKS}\d[\d.,/]{{0,20}}\W+(?:is|was)(?:n't|n’t|\W+(?:not|wrong|incorrect))",
    re.IGNORECASE,
)


def changes(before: str, after: str) -> bool:
    """Tell whether words right before or right behind a number make another one of it."""
    return _BEHIND.match(after) is not None or _BEFORE.search(before) is not None


def minus_word(before: str) -> tuple[str, bool] | None:
    """Return what stands before the word for a minus that ends ``before``, and whether the word subtracts.

    None where there is no such word.
    """
    match = _MINUS.search(before)
    if match is None:
        return None
    rest = before[: match.start()]
    operand = _OPERAND.search(rest)
    is_article = operand is not None and match["word"].lower() == "negative" and operand.group().strip() in ("a", "A")
    return rest, operand is not None and not is_article


def is_second_choice(sentence: str) -> bool:
    """Tell whether ``sentence`` says what is so if another number is not (``if it is not 4, then``)."""
    return _UNLESS.search(sentence) is not None
