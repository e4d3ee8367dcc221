"""Right answers, and what equals them."""

from __future__ import annotations

import time
from fractions import Fraction

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrathlon.envs.grading import prover
from tetrathlon.envs.grading.answers import _final_answer, final_answer
from tetrathlon.envs.grading.gold import read_gold, same_answer, same_value
from tetrathlon.envs.grading.numbers import _NUMBER, _last, _marked, is_value, last_value
from tetrathlon.envs.grading.reading import read
from tetrathlon.envs.grading.values import Infinity, Quantity, Set, Several, Text, Tuple, Union

WRITINGS = [
    [
        "3/4",
        r"\frac{3}{4}",
        r"\dfrac34",
        r"\tfrac{6}8",
        "0.75",
        ".75",
        "75%",
        r"75\%",
        "75 percent",
        "7.5e-1",
        "¾",
        "x = 3/4",
    ],
    [
        "12500",
        "12,500",
        "12{,}500",
        r"12\,500",
        "12500.0",
        "1.25e4",
        r"1.25 \times 10^{4}",
        "+12500",
        "$12500$",
        "(12500)",
    ],
    ["-7/2", "−7/2", "-3.5", r"-3\frac{1}{2}", r"-\frac{7}{2}", r"\frac{-7}{2}", "-3 1/2", "-350%", "- 7/2"],
    ["1/3", r"0.\overline{3}", r"\frac13", r"0.\bar{3}"],
    ["(0,4)", r"\left(0, 4\right)", "(0, 4.0)", "$(0,4)$"],
    [r"(-\infty, 3]", r"x \le 3", "x <= 3", r"3 \geq x", r"(-\infty,\; 3]"],
    ["(1,2)", r"1 < x < 2", r"2 > t > 1", r"x \in (1,2)"],
    [r"\{1, 2\}", "{2, 1}", r"\left\{1,2\right\}", r"\{1,1,2\}"],
    ["8 and 27", "27, 8", "8 or 27", r"x=8 \text{ and } x=27", "27; 8", "$8$ and $27$"],
    [r"\emptyset", r"\varnothing", r"\{\}", "∅"],
    [r"5\text{ cm}^2", "5 square centimeters", r"5~\mathrm{cm}^{2}", "5 cm²", "5.0 sq cm"],
    ["$5", r"\$5.00", "5 dollars", r"5\text{ dollars}"],
    [r"90^\circ", "90°", "90 degrees", r"90^{\circ}"],
    ["B", "(B)", "b", "B.", r"\text{B}", r"\textbf{(B)}"],
    [r"\pm 2", "2, -2", "-2 and 2"],
    [r"\sqrt{8}", r"2\sqrt{2}", r"2\sqrt2", "sqrt(8)", "2√2", r"8^{1/2}"],
    ["x^2-1", "(x-1)(x+1)", "-1+x^2", "x**2 - 1", "x²−1"],
    ["x+y=5", "5=x+y", "2x+2y=10", "x+y-5=0"],
    ["$1,200", r"\$1,200.00", "1,200 dollars", r"1,200\text{ dollars}", "1200 USD"],
    ["x", "1x", "x+0", "2x-x", r"\text{x}"],
    ["e", "e^1", r"\exp(1)", "E"],
    ["5 m/s", r"5\text{ m/s}", "5 meters per second", r"5\text{ meters per second}"],
    [r"(-\infty,-2)\cup(3,\infty)", "x<-2 or x>3", r"x > 3 \text{ or } x < -2"],
    ["[2,5)", r"x \ge 2 \text{ and } x<5", r"2 \le x < 5"],
    ["120", "5! = 120", "x = 120", "60 + 60 = 120"],
]


@pytest.mark.parametrize("writings", WRITINGS, ids=lambda writings: writings[0])
def test_every_writing_of_a_value_equals_every_other(writings: list[str]) -> None:
    for text in writings:
        gold = read_gold(text)
        assert [answer for answer in writings if not same_answer(answer, gold)] == [], text


def test_no_writing_of_a_value_equals_another_value() -> None:
    values = [read_gold(writings[0]) for writings in WRITINGS]
    for index, writings in enumerate(WRITINGS):
        others = [gold for number, gold in enumerate(values) if number != index]
        assert [gold.text for gold in others if any(same_answer(answer, gold) for answer in writings[:4])] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000, 2,000", Several((Fraction(1000), Fraction(2000)))),
        ("(1,234)", Tuple((Fraction(1), Fraction(234)))),
        ("12,50", Several((Fraction(12), Fraction(50)))),
        (r"\infty", Infinity(1)),
        (r"\text{dog}", Text("dog")),
        ("72 clips", Quantity(Fraction(72), "clip")),
        ("1101_2", Quantity(Fraction(1101), "base 2")),
        (r"[1,2] \cup {5}", None),
        (r"(1,2) \cup (3,4)", Union(frozenset({Tuple((Fraction(1), Fraction(2))), Tuple((Fraction(3), Fraction(4)))}))),
        ("dog", None),
        ("$1,200", Quantity(Fraction(1200), "dollar")),
        ("-1,234.5 cm", Quantity(Fraction("-1234.5"), "cm")),
        ("1,200 and 300", Several((Fraction(1200), Fraction(300)))),
        ("1,,2", None),
        ("N/A", None),
        ("n / a", None),
        ("5_2", None),
        ("I get 5", None),
        ("5*", None),
        ("2 + 3 = 5", Fraction(5)),
        ("x = 10/2 = 5", Fraction(5)),
        ("2 = 3 = 5", None),
        ("x < 1 and x > 2", Set(frozenset())),
        (r"x \ge 1 \text{ and } x \le 1", Set(frozenset({Fraction(1)}))),
        ("X", Text("X")),
        ("c", Text("c")),
        ("C", Text("c")),
        ("12 500", None),
        ("1,23,456.", Several((Fraction(1), Fraction(23), Fraction(456)))),
        ("~5", None),
        ("5 million", None),
        ("9" * 500, None),
        ("1e500", None),
        ("1,2;3", None),
        ("(1,2", None),
        ("1/0", None),
    ],
)
def test_read(text: str, value: object) -> None:
    assert read(text) == value


def test_kinds() -> None:
    assert same_answer("6*7", read_gold("42"))
    assert not same_answer("6*7", read_gold("42", kind="number"))
    assert same_answer("84/2", read_gold("42", kind="number"))
    assert same_answer("4, 0", read_gold("0, 4", kind="set"))
    assert not same_answer("(0, 4)", read_gold("0, 4", kind="set"))
    assert same_answer("0, 4", read_gold("0, 4", kind="tuple"))
    assert not same_answer("4, 0", read_gold("0, 4", kind="tuple"))
    assert same_answer("(c).", read_gold("C", kind="choice"))
    assert not same_answer("B or C", read_gold("C", kind="choice"))
    assert same_answer("Golden  Retriever", read_gold("golden retriever", kind="text"))
    with pytest.raises(ValueError, match="got 'label'"):
        read_gold("5", kind="label")
    with pytest.raises(ValueError, match="got 'both'"):
        read_gold("5", percent="both")
    with pytest.raises(ValueError, match="'two'"):
        read_gold("two", kind="choice")


def test_letters_do_not_blur_what_is_equal() -> None:
    letters = ["x", "X", "x+0", "X+0", "b", "B", "b+0", "B+0", "e", "E", r"\exp(1)"]
    equal = {(one, two): same_answer(one, read_gold(two)) for one in letters for two in letters}
    for one in letters:
        for two in letters:
            assert equal[one, two] == equal[two, one], (one, two)
            assert all(equal[one, three] for three in letters if equal[one, two] and equal[two, three]), (one, two)
    assert not equal["x", "X"] and equal["b", "B"] and equal["x", "x+0"] and equal["e", r"\exp(1)"]


def test_without_math_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "is_installed", lambda: False)
    with pytest.raises(gym.error.DependencyNotInstalled, match=r'pip install "tetrathlon\[llm\]"'):
        read_gold(r"\sqrt{2}")
    assert same_answer(r"\sqrt{4}", read_gold("2"))  # a surd needs no prover
    assert not same_answer(r"\sqrt[3]{8}", read_gold("2"))
    assert same_answer("4/2", read_gold("2"))


numbers = st.fractions(min_value=-1000, max_value=1000, max_denominator=50)


@st.composite
def writings(draw: st.DrawFn) -> str:
    """Draw one writing of a number."""
    number = draw(numbers)
    top, below = number.numerator, number.denominator
    forms = [
        f"{top}/{below}",
        rf"\frac{{{top}}}{{{below}}}",
        f"{100 * top}/{below}%",
        f"x = {top}/{below}",
        f"${top}/{below}$",
    ]
    if below == 1:
        forms += [f"{top:,}", f"{top}.0", f"{top}e0", f"{top * 100}\\%"]
    return draw(st.sampled_from(forms))


@settings(max_examples=80, deadline=None)
@given(st.lists(writings(), min_size=3, max_size=3))
def test_equality_is_symmetric_and_transitive(texts: list[str]) -> None:
    one, two, three = texts
    assert same_answer(one, read_gold(two)) == same_answer(two, read_gold(one))
    if same_answer(one, read_gold(two)) and same_answer(two, read_gold(three)):
        assert same_answer(one, read_gold(three))
    assert same_answer(one, read_gold(one))


values = st.one_of(
    numbers,
    st.lists(numbers, min_size=2, max_size=3).map(lambda items: Tuple(tuple(items))),
    st.lists(numbers, min_size=2, max_size=3).map(lambda items: Several(tuple(items))),
    numbers.map(lambda number: Quantity(number, "cm")),
)


@settings(max_examples=80, deadline=None)
@given(values, values)
def test_sameness_is_symmetric(left: object, right: object) -> None:
    assert same_value(left, right) == same_value(right, left)  # type: ignore[arg-type]
    assert same_value(left, left)  # type: ignore[arg-type]


PIECES = [
    "\\boxed{",
    "}",
    "{",
    "42",
    "16",
    " ",
    ".",
    "not ",
    "is wrong",
    "or ",
    "####",
    "\n",
    "-",
    "$",
    "\\frac{1}{2}",
    "*",
    "answer is ",
    "cannot be ",
    "can't be ",
    " cannot be right",
    "the other ",
    "so also ",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_the_fast_paths_find_what_the_whole_rule_finds(text: str) -> None:
    assert final_answer(text) == _final_answer(text)
    quick = _marked(text)
    assert quick is None or quick == _last(text, _NUMBER)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_anything_is_read_without_an_exception(text: str) -> None:
    assert is_value(text) in (True, False)
    assert last_value(text) is None or isinstance(last_value(text), str)
    assert same_answer(text, read_gold("42", kind="number")) in (True, False)


@pytest.mark.parametrize(
    "unit",
    [
        "9",
        "1,",
        "(",
        ")",
        "{",
        r"\frac{",
        r"\text{",
        "1 and ",
        "^{",
        "x = ",
        "1/",
        "°",
        "<",
        r"\cup(",
        "%",
        "!",
        "½",
        "a ",
        "1.",
        "answer is ",
        "half of ",
        "_5_",
        "if not 5 ",
        "1=",
        r"\,",
        "\\",
    ],
)
def test_time_is_linear(unit: str) -> None:
    gold = read_gold("42")
    for size in (900, 1_000_000):
        text = unit * (size // len(unit))
        started = time.process_time()
        same_answer(text, gold)
        last_value(text)
        assert time.process_time() - started < 4.0
