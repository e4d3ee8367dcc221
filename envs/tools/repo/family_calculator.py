"""A calculator: tokens, their order, values, names."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_calculator import CASES
from tetrathlon.envs.tools.repo.family import Family, whole

_TOKENS = '''"""Tokens of expressions."""

import re

_TOKEN = re.compile(r"\\s*(?:(\\d+)|([a-z]+)|(.))")
SIGNS = "+-*/%()"


class BadInput(ValueError):
    """An expression cannot be read."""


def tokenize(text):
    """Return the tokens of an expression as pairs of a kind and a value.

    Kinds are "number" with an integer, "name" with small letters, and "sign" with one of the signs. Blanks are left
    out. Anything else raises BadInput.
    """
    found = []
    for number, word, sign in _TOKEN.findall(text.strip()):
        if number:
            found.append(("number", int(number)))
        elif word:
            found.append(("name", word))
        elif sign in SIGNS:
            found.append(("sign", sign))
        else:
            raise BadInput("no such sign: " + sign)
    return found


def join_tokens(tokens):
    """Return tokens as a text with a blank between two, but none behind an opening bracket and before a closing one."""
    text = ""
    for _, value in tokens:
        part = str(value)
        if text and part != ")" and not text.endswith("("):
            text += " "
        text += part
    return text


def is_balanced(tokens):
    """Tell whether every bracket is closed behind where it is opened, and no other is closed."""
    depth = 0
    for token in tokens:
        if token == ("sign", "("):
            depth += 1
        if token == ("sign", ")"):
            depth -= 1
        if depth < 0:
            return False
    return depth == 0
'''
_ORDERING = '''"""The order in which the signs of an expression are worked off."""

from PKG.tokens import BadInput, is_balanced, tokenize

_RANKS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def rank_of(sign):
    """Return how strongly a sign binds: 2 for times, division and remainder, 1 for plus and minus, 0 for brackets."""
    return _RANKS.get(sign, 0)


def to_postfix(tokens):
    """Return the tokens with each sign behind what it joins, without brackets; equal signs go from left to right.

    Brackets that do not fit raise BadInput.
    """
    if not is_balanced(tokens):
        raise BadInput("brackets do not fit")
    done, waiting = [], []
    for kind, value in tokens:
        if kind != "sign":
            done.append((kind, value))
        elif value == "(":
            waiting.append(value)
        elif value == ")":
            while waiting[-1] != "(":
                done.append(("sign", waiting.pop()))
            waiting.pop()
        else:
            while waiting and rank_of(waiting[-1]) >= rank_of(value):
                done.append(("sign", waiting.pop()))
            waiting.append(value)
    return done + [("sign", sign) for sign in reversed(waiting)]


def depth_of(text):
    """Return how many brackets of an expression are open at most at a time; a text without any has 0."""
    depth, most = 0, 0
    for _, value in tokenize(text):
        if value == "(":
            depth += 1
            most = max(most, depth)
        elif value == ")":
            depth -= 1
    return most
'''
_VALUES = '''"""Values of expressions."""

from PKG.ordering import to_postfix
from PKG.tokens import BadInput, tokenize


def apply_sign(sign, left, right):
    """Return what a sign makes of two integers.

    Division is rounded towards 0, so that -7 / 2 is -3, and the remainder has the sign of the left side, so that -7 % 2
    is -1. To divide by 0 raises ZeroDivisionError.
    """
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    share = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        share = -share
    return share if sign == "/" else left - share * right


def evaluate(text, names=None):
    """Return the value of an expression.

    Args:
        text: The expression. One that is no whole expression raises BadInput, and so does one of more than N_LONGEST
            tokens.
        names: Name -> value; a name without one raises KeyError.
    """
    tokens = tokenize(text)
    if len(tokens) > N_LONGEST:
        raise BadInput("too long")
    stack = []
    for kind, value in to_postfix(tokens):
        if kind == "number":
            stack.append(value)
        elif kind == "name":
            stack.append((names or {})[value])
        else:
            if len(stack) < 2:
                raise BadInput("something is missing at " + value)
            right = stack.pop()
            left = stack.pop()
            stack.append(apply_sign(value, left, right))
    if len(stack) != 1:
        raise BadInput("this is no whole expression")
    return stack[0]
'''
_SHEET = '''"""Sheets of named expressions."""

from PKG.tokens import BadInput, join_tokens, tokenize
from PKG.values import evaluate


class Sheet:
    """Expressions by names; each may use those that were set before it."""

    def __init__(self, values=None):
        self._values = dict(values or {})
        self._texts = {}

    def assign(self, line):
        """Take a line such as "total = price * 3" and return the value; the name may be set again.

        A line without exactly one equals sign raises BadInput and changes nothing.
        """
        if line.count("=") != 1:
            raise BadInput("one = is needed: " + line)
        name, _, text = line.partition("=")
        value = evaluate(text, self._values)
        self._values[name.strip()] = value
        self._texts[name.strip()] = join_tokens(tokenize(text))
        return value

    def value_of(self, name, default=0):
        """Return the value of a name; the default where there is none."""
        return self._values.get(name, default)

    def uses(self, name):
        """Return the names, in alphabetical order and each once, that stand in the expression of a name."""
        found = []
        for kind, value in tokenize(self._texts[name]):
            if kind == "name" and value not in found:
                found.append(value)
        return sorted(found)

    def lines(self):
        """Return a line "name = expression = value" for each name, in the order in which they came first."""
        return [name + " = " + text + " = " + str(self._values[name]) for name, text in self._texts.items()]


def run_lines(lines, values=None):
    """Return the values of lines that are set one after the other; empty lines are left out."""
    sheet = Sheet(values)
    return [sheet.assign(line) for line in lines if line.strip()]
'''
CALCULATOR = Family(
    "calculator",
    ("sumwright", "exprkit", "abacus_lite", "reckoner", "figuring", "calcleaf"),
    """Works out expressions of integers with + - * / %, brackets and names.

An expression has at most N_LONGEST tokens. Division is rounded towards 0.""",
    {"tokens": _TOKENS, "ordering": _ORDERING, "values": _VALUES, "sheet": _SHEET},
    CASES,
    {
        "tokenize": ("tokenize", "read_tokens", "lex"),
        "join_tokens": ("join_tokens", "tokens_text", "spell_out"),
        "is_balanced": ("is_balanced", "brackets_fit"),
        "rank_of": ("rank_of", "binding_of", "strength"),
        "to_postfix": ("to_postfix", "reordered", "postfix_of"),
        "depth_of": ("depth_of", "bracket_depth"),
        "apply_sign": ("apply_sign", "work_out", "combine"),
        "evaluate": ("evaluate", "value_of_text", "compute"),
        "Sheet": ("Sheet", "Notebook", "Board"),
        "assign": ("assign", "enter", "take_line"),
        "uses": ("uses", "names_in", "needs"),
        "run_lines": ("run_lines", "run_all", "values_of_lines"),
        "share": ("share", "quotient"),
    },
    {"N_LONGEST": whole(15, 60)},
    (
        (
            "ordering",
            "rank_of(waiting[-1]) >= rank_of(value)",
            "rank_of(waiting[-1]) > rank_of(value)",
        ),
        (
            "ordering",
            "rank_of(waiting[-1]) >= rank_of(value)",
            "rank_of(waiting[-1]) <= rank_of(value)",
        ),
        (
            "ordering",
            "for sign in reversed(waiting)]",
            "for sign in waiting]",
        ),
        (
            "ordering",
            '"%": 2}',
            '"%": 1}',
        ),
        (
            "values",
            "            right = stack.pop()\n            left = stack.pop()\n",
            "            left = stack.pop()\n            right = stack.pop()\n",
        ),
        (
            "values",
            "    share = abs(left) // abs(right)\n    if (left < 0) != (right < 0):\n        share = -share\n",
            "    share = left // right\n",
        ),
        (
            "sheet",
            "        self._values = dict(values or {})\n",
            "        self._values = values or {}\n",
        ),
        (
            "sheet",
            "        self._texts[name.strip()] =",
            "        self._texts[name] =",
        ),
    ),
)
