"""Faults as people make them, planted into a right text by operators over its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARED: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
}
_COUNTED: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Div: ("/", "*"),
}
_TWINS = (
    ("min", "max"), ("any", "all"), ("startswith", "endswith"), ("lstrip", "rstrip"), ("upper", "lower"),
    ("ljust", "rjust"), ("find", "rfind"), ("partition", "rpartition"),
)  # fmt: skip
_TWIN = {one: other for pair in _TWINS for one, other in (pair, pair[::-1])}
_COPIES = ("list", "dict", "sorted", "set", "tuple")
UP = "_UP"
"""What stands behind a constant for its value and one more."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that can be planted."""

    kind: str
    """The operator that makes it, or ``own`` for one that its family has."""
    module: str
    """Where it is."""
    function: str
    """The function, ``Class.method`` or ``Class`` (for its constructor) that it is in."""
    start: int
    """Where in the text of its module what it replaces begins."""
    end: int
    """And ends."""
    text: str
    """What stands there instead."""


def planted(text: str, faults: Iterator[Fault] | list[Fault]) -> str:
    """Return a module's text with faults in it that do not overlap."""
    for fault in sorted(faults, key=lambda fault: -fault.start):
        text = text[: fault.start] + fault.text + text[fault.end :]
    return text


def own_fault(module: str, text: str, old: str, new: str) -> Fault:
    """Return a fault that a family has.

    Raises:
        ValueError: ``old`` is not there exactly once.
    """
    if text.count(old) != 1:
        raise ValueError(f"{old!r} must occur once in {module}, got {text.count(old)}")
    start = text.index(old)
    line = text.count("\n", 0, start + len(old) - len(old.lstrip())) + 1
    return Fault("own", module, _Finder(module, text).function_at(line), start, start + len(old), new)


def find_faults(module: str, text: str) -> list[Fault]:
    """Return all faults that the operators make in a module.

    What is in a ``while`` loop is left alone, for it might not end.
    """
    return list(_Finder(module, text).all())


class _Finder:
    def __init__(self, module: str, text: str) -> None:
        self._module, self._text = module, text
        self._tree = ast.parse(text)
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def all(self) -> Iterator[Fault]:
        for name, function in self._functions():
            for operator in _OPERATORS:
                for start, end, text in operator(self, function):
                    if self._text[start:end] != text:
                        yield Fault(operator.__name__, self._module, name, start, end, text)

    def function_at(self, line: int) -> str:
        found = (n for n, node in self._functions() if node.lineno <= line <= (node.end_lineno or 0))
        return next(found, "")

    def _functions(self) -> Iterator[tuple[str, ast.FunctionDef]]:
        for node in self._tree.body:
            if isinstance(node, ast.FunctionDef):
                yield node.name, node
            elif isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef):
                        is_start = inner.name == "__init__"
                        yield node.name if is_start else f"{node.name}.{inner.name}", inner

    def at(self, line: int, column: int) -> int:
        return self._lines[line - 1] + column

    def span(self, node: Any) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def source(self, node: Any) -> str:
        start, end = self.span(node)
        return self._text[start:end]

    def lines_of(self, node: Any) -> tuple[int, int]:
        return self._lines[node.lineno - 1], self._lines[node.end_lineno]

    def between(self, left: Any, right: Any, old: str, new: str) -> Iterator[tuple[int, int, str]]:
        start, end = self.span(left)[1], self.span(right)[0]
        piece = self._text[start:end]
        if piece.count(old) == 1:
            yield start, end, piece.replace(old, new)


_Edits = Iterator[tuple[int, int, str]]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a node, without ``while`` loops and texts for readers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.While) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        if isinstance(child, ast.Raise | ast.JoinedStr):
            continue  # what an error says is nobody's business
        yield child
        yield from _walk(child)


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in [function, *_walk(function)]:
        for key in ("body", "orelse"):
            block = getattr(node, key, None)
            if isinstance(block, list) and block:
                yield [s for s in block if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def wrong_comparison(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Compare with the neighbour of an operator, or its contrary."""
    for node in _walk(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from find.between(node.left, node.comparators[0], *_COMPARED[type(node.ops[0])])


def off_by_one(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Count one more or less."""
    for node in _walk(function):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield *find.span(node), str(node.value + 1)
            if node.value > 0:
                yield *find.span(node), str(node.value - 1)
        elif isinstance(node, ast.Name) and node.id.startswith("N_"):
            yield *find.span(node), node.id + UP
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            last = node.args[-1]
            yield *find.span(last), f"{find.source(last)} - 1"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            yield *find.span(node), f"{find.source(node)} - 1"


def wrong_operator(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Calculate, or join conditions, with another operator."""
    for node in _walk(function):
        if isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
            yield from find.between(node.left, node.right, *_COUNTED[type(node.op)])
        elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
            swapped = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
            yield from find.between(node.values[0], node.values[1], *swapped)


def swapped_arguments(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Swap two arguments, or the sides of what is not symmetric."""
    for node in _walk(function):
        pair: list[ast.expr] = []
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            pair = node.args[:2]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.FloorDiv | ast.Mod):
            pair = [node.left, node.right]
        if pair and all(isinstance(one, ast.Name | ast.Attribute) for one in pair):
            (start, _), (_, end) = find.span(pair[0]), find.span(pair[1])
            middle = find._text[find.span(pair[0])[1] : find.span(pair[1])[0]]
            yield start, end, f"{find.source(pair[1])}{middle}{find.source(pair[0])}"


def missing_edge_case(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Leave out a check, or what is done where it fails."""
    for block in _blocks(function):
        for node in block:
            if not isinstance(node, ast.If) or node.orelse or len(node.body) > 1 or len(block) == 1:
                continue
            if isinstance(node.body[0], ast.Raise | ast.Return | ast.Continue | ast.Assign):
                yield *find.lines_of(node), ""


def missing_statement(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Leave out a statement."""
    for block in _blocks(function):
        for node in block:
            if len(block) > 1 and isinstance(node, ast.AugAssign | ast.Expr):
                yield *find.lines_of(node), ""


def wrong_accumulator(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Replace what was to be added to, or add with the wrong sign."""
    for node in _walk(function):
        if isinstance(node, ast.AugAssign):
            yield *find.span(node), f"{find.source(node.target)} = {find.source(node.value)}"
            if isinstance(node.op, ast.Add | ast.Sub):
                sign = "-" if isinstance(node.op, ast.Add) else "+"
                yield *find.span(node), f"{find.source(node.target)} {sign}= {find.source(node.value)}"


def missing_return(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Compute the result and do not return it."""
    last = function.body[-1]
    if isinstance(last, ast.Return) and last.value is not None and len(function.body) > 2:
        yield *find.span(last), find.source(last.value)


def early_return(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Return within a loop what was to be returned behind it."""
    last = function.body[-1]
    before = function.body[-2] if len(function.body) > 2 else None
    if isinstance(last, ast.Return) and isinstance(before, ast.For):
        start, _ = find.lines_of(last)
        yield start, start, "    "


def forgotten_copy(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Use the original in place of a copy, or of a sorted one."""
    for node in _walk(function):
        if isinstance(node, ast.Call) and not node.keywords:
            of_name = isinstance(node.func, ast.Name) and node.func.id in _COPIES and len(node.args) == 1
            if of_name and isinstance(node.args[0], ast.Name | ast.Attribute):
                yield *find.span(node), find.source(node.args[0])
            if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
                yield *find.span(node), find.source(node.func.value)


def wrong_default(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Take another default."""
    for node in [*function.args.defaults, *function.args.kw_defaults]:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield *find.span(node), str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield *find.span(node), str(node.value + 1)


def wrong_function(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Call the counterpart of a function, or sort the other way round."""
    for node in _walk(function):
        if isinstance(node, ast.Call):
            named = node.func
            called = named.id if isinstance(named, ast.Name) else named.attr if isinstance(named, ast.Attribute) else ""
            if called in _TWIN:
                _, end = find.span(named)
                yield end - len(called), end, _TWIN[called]
            for keyword in node.keywords:
                if keyword.arg == "reverse" and isinstance(keyword.value, ast.Constant):
                    yield *find.span(keyword.value), str(not keyword.value.value)


def wrong_key(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Look up another key."""
    keys = [n.slice for n in ast.walk(find._tree) if isinstance(n, ast.Subscript) and _is_text(n.slice)]
    every = sorted({find.source(key) for key in keys})
    for node in _walk(function):
        if isinstance(node, ast.Subscript) and _is_text(node.slice) and len(every) > 1:
            at = every.index(find.source(node.slice))
            yield *find.span(node.slice), every[(at + 1) % len(every)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def wrong_variable(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Use another parameter."""
    given = [one.arg for one in function.args.args if one.arg != "self"]
    for node in _walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in given and len(given) > 1:
            other = given[(given.index(node.id) + 1) % len(given)]
            yield *find.span(node), other


def missing_not(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """Leave out a not."""
    for node in _walk(function):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield *find.span(node), find.source(node.operand)


def wrong_jump(find: _Finder, function: ast.FunctionDef) -> _Edits:
    """End a loop in place of a round of it, or the other way round."""
    for node in _walk(function):
        if isinstance(node, ast.Continue):
            yield *find.span(node), "break"
        elif isinstance(node, ast.Break):
            yield *find.span(node), "continue"


_OPERATORS: tuple[Callable[[_Finder, ast.FunctionDef], _Edits], ...] = (
    wrong_comparison,
    off_by_one,
    wrong_operator,
    swapped_arguments,
    missing_edge_case,
    missing_statement,
    wrong_accumulator,
    missing_return,
    early_return,
    forgotten_copy,
    wrong_default,
    wrong_function,
    wrong_key,
    wrong_variable,
    missing_not,
    wrong_jump,
)
KINDS = (*(operator.__name__ for operator in _OPERATORS), "own")
"""Kinds of faults."""
