r"""One spelling for each sign of an answer, in the LaTeX that everything else here reads."""

from __future__ import annotations

import re
import unicodedata

_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits)(?![a-zA-Z])\s?|\\!|\{\\!\}")
_GROUP = re.compile(r"(?<=\d)(?:\{,\}|\\,|\{\\,\})(?=\d{3}(?!\d))")
_COMMA = re.compile(r"\{([,;:])\}")
_BLANKS = re.compile(r"(?:(?<!\\)\\[,;: ]|\\q?quad(?![a-zA-Z])|(?<!\\)~|\s)+")
_NAMES = {
    r"\\[dt]binom(?![a-zA-Z])": r"\\binom",
    r"\\[dtc]frac(?![a-zA-Z])": r"\\frac",
    r"\\lbrace(?![a-zA-Z])": r"\\{",
    r"\\rbrace(?![a-zA-Z])": r"\\}",
    r"\\(?:leq|leqslant|le)(?![a-zA-Z])|≤|<=|⩽": r"\\le ",
    r"\\(?:geq|geqslant|ge)(?![a-zA-Z])|≥|>=|⩾": r"\\ge ",
    r"\\lt(?![a-zA-Z])": "<",
    r"\\gt(?![a-zA-Z])": ">",
    r"\\(?:bar|overline)(?![a-zA-Z])": r"\\overline",
    "∞": r"\\infty ",
    "π": r"\\pi ",
    "∪": r"\\cup ",
    "∈": r"\\in ",
    "∅": r"\\emptyset ",
    "√": r"\\sqrt ",
    "°": r"^\\circ ",
    "⁄": "/",
    "×": r"\\times ",
    "·": r"\\cdot ",
    "÷": "/",
}
_RENAMED = re.compile("|".join(f"({pattern})" for pattern in _NAMES))
_NEW_NAMES = [name.replace("\\\\", "\\") for name in _NAMES.values()]
VULGAR = {ord(sign): " " + unicodedata.normalize("NFKC", sign).replace("⁄", "/") for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
"""Fractions of one sign, for ``str.translate``; 1½ is one and a half."""
_PREFIX = {"over": "frac", "choose": "binom"}
_ROOT = re.compile(r"√\s?(?:\(([^()]*)\)|(\d+(?:\.\d+)?|[A-Za-z](?![A-Za-z])))")
_CYCLE = re.compile(r"\\overline\s?(\d)")
_INFIX = re.compile(r"(?:^|\{)([^{}]{1,40}?)\\(over|choose)(?![a-zA-Z])([^{}]{1,40})(?:\}|$)")
r"""``{7\over 2}``; a lone pair of braces was taken away before."""


def cleaned(text: str) -> str:
    """Return ``text`` with one spelling for each sign, and single blanks."""
    text = _GROUP.sub(",", _SIZES.sub("", text))
    text = _COMMA.sub(r"\1", text) if "{" in text else text
    text = _ROOT.sub(lambda match: rf"\sqrt{{{match[1] or match[2]}}}", text) if "√" in text else text
    text = _RENAMED.sub(lambda match: _NEW_NAMES[(match.lastindex or 1) - 1], text)
    if "\\over" in text or "\\choose" in text:
        text = _INFIX.sub(lambda match: rf"\{_PREFIX[match[2]]}{{{match[1].strip()}}}{{{match[3].strip()}}}", text)
        text = _CYCLE.sub(r"\\overline{\1}", text)
    return _BLANKS.sub(" ", text).strip()
