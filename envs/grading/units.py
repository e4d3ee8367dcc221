r"""The unit at the end of an answer: ``5\text{ cm}``, ``72 clips``, ``$5``, ``90^\circ``."""

from __future__ import annotations

import re

from tetrathlon.envs.grading.amounts import SCALES
from tetrathlon.envs.grading.hedges import NO_UNITS, word_set

_ALIASES = {
    alias: name
    for name, aliases in {
        "mm": "millimeter millimetre",
        "cm": "centimeter centimetre",
        "m": "meter metre",
        "km": "kilometer kilometre",
        "in": "inch inche",
        "ft": "foot feet",
        "yd": "yard",
        "mi": "mile",
        "g": "gram",
        "kg": "kilogram",
        "pound": "lb",
        "s": "sec second",
        "day": "d",
        "gallon": "gal",
        "c": "celsiu celsius",
        "f": "fahrenheit",
        "min": "minute",
        "h": "hr hour",
        "l": "liter litre",
        "ml": "milliliter millilitre",
        "mi per h": "mph",
        "km per h": "kph kmh",
        "dollar": "usd buck",
        "euro": "eur",
        "degree": "deg",
        "unit": "u",
    }.items()
    for alias in aliases.split()
}
_SHORT = word_set(
    "mm cm km in ft yd mi kg mg lb lbs oz ml min hr hrs sec ms mph kph kmh am pm hz rad sq cubic usd",
    "eur gbp deg day gal per",
)
_LETTERS = "ghlmsCFL"
"""Units of one letter, behind a blank and a number; others are variables."""
_WRAPPED_LETTERS = frozenset("gGhHlLmsSdCFANWVJu")
_MONEY = {"$": "dollar", r"\$": "dollar", "€": "euro", "£": "pound"}
_WRAPPED = re.compile(
    r"[\s~]*\\(?:text|textrm|textbf|mathrm|mbox|operatorname)\s?\{\s?(?P<unit>[A-Za-z /.]{1,40}?)\s?"
    r"(?:\^\s?\{?\s?(?P<inner>[23])\s?\}?)?\s?\}(?:\s?\^\s?(?:\{\s?)?(?P<outer>[23])(?:\s?\})?)?$"
)
_WORDS = re.compile(
    r"(?<![\\A-Za-z])(?P<unit>[A-Za-z]{2,24}(?: [A-Za-z]{1,24}){0,2})\.?"
    r"(?:\s?\^\s?(?:\{\s?)?(?P<outer>[23])(?:\s?\})?)?$"
)
_SYMBOLS = re.compile(
    rf"(?<=\d)\s(?P<unit>[{_LETTERS}]|(?:[a-z]{{1,3}}|mile|meter)/(?:s|h|hr|min|sec|day|hour|second|kg|g|ml|l|L|m|cm))"
    r"(?:\s?\^\s?(?:\{\s?)?(?P<outer>[23])(?:\s?\})?)?$"
)
_SIGNS = re.compile(
    r"\s?(?:(?P<degree>\^\s?\{?\s?\\circ\s?\}?|°|\\degree)\s?"
    r"(?:\\(?:text|mathrm)\s?\{\s?(?P<wrapped>[CF])\s?\}|(?P<scale>[CF]))?|(?P<money>[€£]))$"
)
_ANGLE_OF = re.compile(r"(?:sin|cos|tan|cot|sec|csc)")
_MONEY_BEFORE = re.compile(r"([+-]?)\s?(\\?\$|[€£])\s?(?=[\d.+-])")
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")
_WINDOW = 100


def split_unit(text: str) -> tuple[str, str] | None:
    """Return what stands before the unit of ``text``, and the unit; None where it has none."""
    if money := _MONEY_BEFORE.match(text):
        return money[1] + text[money.end() :], _MONEY[money[2]]
    start = max(len(text) - _WINDOW, 0)
    if sign := _SIGNS.search(text, start):
        before = text[: sign.start()]
        if sign["money"]:
            return before, _MONEY[sign["money"]]
        scale = sign["scale"] or sign["wrapped"]
        return None if _ANGLE_OF.search(before) else (before, f"degree {scale.lower()}" if scale else "degree")
    is_wrapped = (match := _WRAPPED.search(text, start)) is not None
    if match is None:
        match = None if _LETTER.search(text[: text.rfind(" ")]) else _SYMBOLS.search(text, start)
    if match is None:
        match = _WORDS.search(text, start)
        if match is None or not all(len(word) > 3 or word.lower() in _SHORT for word in match["unit"].split()[:1]):
            return None
    before = text[: match.start()].rstrip()
    if not before or not (
        before[-1] in "0123456789})!" or (is_wrapped and before[-1].isalpha()) or before.endswith(r"\pi")
    ):
        return None
    if not (unit := _normal(match["unit"])) or (len(match["unit"]) == 1 and match["unit"] not in _WRAPPED_LETTERS):
        return None
    groups = match.groupdict()
    power = groups["outer"] or groups.get("inner")
    return before, f"{unit}^{power}" if power else unit


def _normal(unit: str) -> str:
    words = unit.lower().replace(".", " ").replace("/", " per ").split()
    named = words[:-1] if words[-1:] in (["sec"], ["second"]) else words  # no secant, no ordinal: nothing follows
    if not words or not NO_UNITS.isdisjoint(named) or not SCALES.isdisjoint(map(_singular, named)):
        return ""
    power = ""
    if len(words) > 1 and words[0] in ("square", "sq", "cubic"):
        power, words = ("^3" if words[0] == "cubic" else "^2"), words[1:]
    name = " ".join(_ALIASES.get(word, word) for word in map(_singular, words))
    return _ALIASES.get(name, name) + power


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
