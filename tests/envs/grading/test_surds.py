"""Sums of square roots, powers of π and letters, and that they are what the prover says."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.grading import prover
from tetrathlon.envs.grading.gold import read_gold, same_answer
from tetrathlon.envs.grading.reading import read
from tetrathlon.envs.grading.surds import Surd, _square_part, surd
from tetrathlon.envs.grading.values import Expression, Set

EQUAL = [
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
    (r"\frac{1}{1+\sqrt2}", r"\sqrt{2}-1"),
    (r"\frac{3\pi}{4}", r"\frac34\pi"),
    (r"\frac{3\pi}{4}", "3*pi/4"),
    (r"1+\sqrt{5}", r"\sqrt5+1"),
    (r"\frac{1+\sqrt5}{2}", r"\frac12+\frac{\sqrt{5}}{2}"),
    (r"(\sqrt{2}+\sqrt{3})^2", r"5+2\sqrt{6}"),
    (r"\sqrt{0.5}", r"\frac{\sqrt2}{2}"),
    (r"\pi^{-1}", r"\frac{1}{\pi}"),
    ("(x+1)^2", "x^2+2x+1"),
    ("(a+b)(a-b)", "a^2-b^2"),
    ("-2^2", "0-4"),
    (r"\frac{x^3}{x}", "x^2"),
    (r"\sqrt{10^{12}}", "1000000*1"),
]
DIFFERENT = [
    (r"2\sqrt{3}", r"3\sqrt{2}"),
    (r"\frac{3\pi}{4}", r"\frac{4\pi}{3}"),
    (r"1+\sqrt{5}", r"\sqrt{6}"),
    (r"\pi", r"\frac{22}{7}\cdot 1"),
    (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5}"),
    ("x^2+1", "(x+1)^2"),
    ("2x", "2y"),
    ("x^2", "x^3"),
]
LEFT_TO_THE_PROVER = [
    *(
        r"\sqrt{x}",
        r"\sqrt[3]{2}",
        r"\sqrt{1+\sqrt{2}}",
        r"\sqrt{-4}",
        "2^{1/2}",
        "2^x",
        "x^{100}",
        "e^2",
        "3i",
        "f(2)",
    ),
    *("1/2x", "x2", "2 3", r"2\frac{1}{2}x", r"\sqrt23", r"\frac123", r"\frac12^2", "2^34", "x^2^3", "xy", "x!", "|x|"),
    *(
        "x_1",
        r"\sin(2)",
        "1,000x",
        "--2",
        r"2\cdot-3",
        "{2}x",
        r"\frac{1}{x+1}",
        r"\frac{1}{x-x}",
        "0^0",
        "(2",
        "2)",
        "2+",
    ),
    *(
        "",
        "/2",
        "2/",
        r"\frac{1}",
        "2^{",
        "²x",
        "٣x",
        r"\pia",
        "(x+1)^{60}",
        r"\frac{1}{1+\sqrt{2}+\sqrt{3}}",
        "2^{64}2^{64}" * 3,
    ),
    *(
        "(" * 60 + "x" + ")" * 60,
        "9" * 59 + "x",
        r"\sqrt{" + "9" * 30 + "}",
        "-" * 900 + "x",
        "x+" * 499 + "x",
        "^^",
        ".",
    ),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_one_value_has_one_form(left: str, right: str) -> None:
    one, other = surd(left), surd(right)
    assert one is not None and one == other and hash(one) == hash(other) and one.latex == other.latex
    assert same_answer(left, read_gold(right)) and same_answer(right, read_gold(left))


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_other_values_have_others(left: str, right: str) -> None:
    assert surd(left) != surd(right) and None not in (surd(left), surd(right))
    assert not same_answer(left, read_gold(right)) and not same_answer(right, read_gold(left))


@pytest.mark.parametrize("text", LEFT_TO_THE_PROVER)
def test_what_is_not_plainly_one_is_left_to_the_prover(text: str) -> None:
    started = time.process_time()
    assert surd(text) is None
    assert time.process_time() - started < 0.2


def test_a_rational_one_is_the_number() -> None:
    six = surd(r"\sqrt{3}\cdot\sqrt{12}")
    assert six is not None and six == Fraction(6) and Fraction(6) == six and hash(six) == hash(Fraction(6))
    assert surd("x-x") == Fraction(0) and surd("x") != Fraction(0) and six != Fraction(5)
    assert six != 6.5 and surd("x") != "x"
    assert same_answer(r"\sqrt{3}\cdot\sqrt{12}", read_gold("6")) and same_answer("6", read_gold(r"\sqrt{36}"))
    assert read(r"\{\sqrt{4}, 3\}") == Set(frozenset({Fraction(2), Fraction(3)}))


def test_a_worked_number_is_no_written_one() -> None:
    assert not same_answer(r"6 \cdot 7", read_gold("42", kind="number"))
    assert same_answer(r"6 \cdot 7", read_gold("42"))


def test_without_the_prover_a_gold_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "is_installed", lambda: False)
    with pytest.raises(Exception, match="math-verify"):
        read_gold(r"\sqrt{2}")


def test_they_compare_with_what_only_the_prover_reads() -> None:
    assert isinstance(read(r"2\sin(\frac{\pi}{4})"), Expression)
    assert same_answer(r"2\sin(\frac{\pi}{4})", read_gold(r"\sqrt{2}"))
    assert not same_answer(r"2\sin(\frac{\pi}{4})", read_gold(r"\sqrt{3}"))
    assert same_answer(r"2\sin(\frac{\pi}{6})+3^{0}", read_gold("2")) and same_answer(
        r"\sqrt{4}", read_gold(r"2^{2/2}")
    )


def test_the_prover_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(scalars: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(prover, "classified", refuse)
    for left, right in EQUAL:
        assert same_answer(left, read_gold(right))


@given(st.integers(1, 10**12))
@settings(max_examples=200, deadline=None)
def test_the_square_part_is_all_of_it(number: int) -> None:
    outside, inside = _square_part(number)
    assert outside * outside * inside == number
    assert all(inside % (divisor * divisor) for divisor in range(2, min(math.isqrt(inside) + 1, 2_000)))


@given(st.integers(1, 1_000), st.integers(1, 1_000))
def test_squares_come_out(outside: int, inside: int) -> None:
    root, rest = _square_part(outside * outside * inside)
    assert root % outside == 0 and root * root * rest == outside * outside * inside


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(["+", "-", " + ", r" \cdot ", "*", r"\times ", "/", "", " "])
    powers = st.sampled_from(["", "", "", "^2", "^3", "^{-1}", "^{-2}", "^{0}", "^{7}"])
    return st.one_of(
        st.builds("{}{}{}{}".format, parts, signs, parts, powers),
        st.builds("({}){}".format, parts, powers),
        st.builds(r"\frac{{{}}}{{{}}}".format, parts, parts),
        st.builds(r"\sqrt{{{}}}".format, parts),
        st.builds("-{}".format, parts),
    )


WRITTEN = st.recursive(
    st.sampled_from(
        [*"12358xyna", "12", "18", "50", "0.5", r"\pi ", "pi", r"\sqrt2", r"\sqrt{12}", "sqrt(8)", r"\frac12"]
    ),
    _joined,
    max_leaves=7,
)


@given(WRITTEN)
@settings(max_examples=150, deadline=None)
def test_the_prover_agrees(text: str) -> None:
    found = surd(text)
    if found is None:
        return
    written, canonical = Expression(text), Expression(found.latex)
    said = prover.classified([written, canonical])
    if said is None:  # then it cannot read the text at all
        assert prover.classified([written]) is None and prover.classified([canonical]) is not None
    else:
        assert said[written] == said[canonical]


@given(WRITTEN, WRITTEN)
@settings(max_examples=60, deadline=None)
def test_the_prover_agrees_on_two(left: str, right: str) -> None:
    one, other = surd(left), surd(right)
    if one is None or other is None:
        return
    said = prover.classified([Expression(left), Expression(right)])
    assert said is None or (said[Expression(left)] == said[Expression(right)]) == (one == other)


@given(WRITTEN)
@settings(max_examples=100, deadline=None)
def test_its_own_writing_is_read_back(text: str) -> None:
    found = surd(text)
    assert found is None or (isinstance(found, Surd) and surd(found.latex) == found)
