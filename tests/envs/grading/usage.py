"""What words, units and LaTeX around a number make of it: (gold, completion), wrong ones and right ones by kind."""

from __future__ import annotations


def boxed(gold: str, *answers: str) -> list[tuple[str, str]]:
    """Return completions that answer ``answers`` in a box."""
    return [(gold, rf"\boxed{{{answer}}}") for answer in answers]


def replied(gold: str, *replies: str) -> list[tuple[str, str]]:
    """Return completions as they are."""
    return [(gold, reply) for reply in replies]


WRONG = {
    "thousands": [
        *boxed("$1,200", "(1, 200)", "1", "200", "[1,200]"),
        *boxed("70,000 dollars", "0, 70", "70"),
        *boxed("1200", "1, 200", "(1,200)", "1,20,0", "12,00", r"\{1,200\}"),
        *boxed("1,200 apples", "1", "200 apples"),
    ],
    "sign word": [
        *replied("3", "The answer is negative 3.", "minus 3", "3 degrees below zero", "the opposite of 3"),
        *replied("3", "It is negative three, that is minus 3.", "⁻3", "—3"),
        *replied("-3", "It is the opposite of -3.", "negative -3", "3"),
        *replied("5", "6 minus 5", "6 + minus 5", "x minus 5", "six minus 5", "> 5", "3 < 5"),
        *replied("17", "The answer is ⁻17."),
    ],
    "amount": [
        *replied("5", "5 million", "$5 million", "5 thousand", "5 hundred", "5 dozen", "5 billion dollars"),
        *replied("5", "5 and a half", "5 halves", "5 thirds", "5 squared", "5 cubed", "5 factorial", "5 times the sum"),
        *replied("5", "It is 5 hundredths.", "5 ten-thousandths", "That makes 5 lakh.", "5 K", "5 basis points"),
        *boxed("5", "5 thousands", "5 millions", "5 billions", "5 hundreds", r"5\text{ dozens}", "5 hundredths"),
        *boxed("5", "5 tenths", "5 sixths", "5 thousandths", r"5\text{K}", r"5\text{k}", r"5\text{ lakh}", "5 crores"),
        *boxed("5", "5 score", "5 percentage points", "5 basis points", "5 negative", "5 below", "5 doubled"),
        *boxed("5", "5 opposite", r"5\text{M}", "5 K", "5 eighths", "5 trillions", "5 tens"),
    ],
    "operator word": [
        *replied("5", "square root of 5", "half of 5", "twice 5", "double 5", "a third of 5", "the reciprocal of 5"),
        *replied("5", "6 plus 5", "6 times 5", "above 5", "below 5", "6 less 5", "If not 4 then 5", "10 divided by 5"),
        *replied(
            "5", "The answer is the square root of 5.", "It is half of $5$.", "the cube of 5", "unless it is 4, 5"
        ),
    ],
    "no value": [
        *boxed("6", "2 3", "6*", "*6", "/6", "2 abc"),
        *replied("6", "n/a 6", "N/A"),
    ],
    "product after a fraction": [
        *boxed(r"\frac{3}{4\pi}", r"3/4\pi", "3/4 π"),
        *boxed(r"\frac{1}{2x}", "1/2x", "1/2 x"),
        *boxed(r"\frac{1}{2\sqrt3}", r"1/2\sqrt3", r"1/2\sqrt{3}"),
        *boxed(r"\frac{x}{2y}", "x/2y"),
        *boxed(r"\frac{xy}{2}", "x/2y"),
    ],
    "denial and list": [
        *replied(
            "3", r"\boxed{3} cannot be right", r"It can't be \boxed{3}", "cannot be 3", r"It couldn't be \boxed{3}"
        ),
        *replied("3", r"It can’t be \boxed{3}", "It can't be 3.", r"\boxed{3} can't be correct.", "It must not be 3."),
        *replied("3", r"One root is \boxed{2}, the other root is \boxed{3}", r"\boxed{2} and another one is \boxed{3}"),
        *replied("3", r"I am unsure: \boxed{2}, so also \boxed{3}", r"\boxed{2}, I am not sure. \boxed{3}"),
        *replied("8 and 27", "The answers are 8 and 2.", "The answers are 8, 27 and 64."),
        *replied("3", "The answers are 2 and 3.", "The answer is 2, 3."),
    ],
    "letter and base": [
        *boxed("x", "X", "X+0", "x+1"),
        *boxed("e", "2.718281828"),
        *boxed(r"\text{Evelyn}", "Eve", "evelyn smith", "not Evelyn"),
        *boxed("2", "5_2", "2_2"),
        *boxed("i", "-i", "1"),
    ],
    "unequal sides": [
        *boxed("5", "2+3 = 6", "5 = 6", "5! = 5", "x = 10/3 = 5", "2 = 3 = 5", "5 = x + 1"),
        *boxed("10/2", "2 = 5", "10/2 = 6"),
    ],
    "bounds": [
        *boxed(r"(-\infty,-2)\cup(3,\infty)", r"x<-2 \text{ and } x>3", r"x \le -2 \text{ or } x>3", "x<-2, x>3"),
        *boxed("[2,5)", r"x \ge 2 \text{ or } x<5", r"x > 2 \text{ and } x<5", r"x \ge 2 \text{ and } y<5"),
        *boxed("5 cm", "5 m", "5 km", "5 cm^2"),
        *boxed("5 m/s", "5 km/h", "5 m", "5 m^2"),
    ],
}
"""Attacks, and what a careless reader would pay."""
RIGHT = {
    "grouped thousands": [
        *boxed("1200", r"\$1,200", "1,200 apples", r"1,200\text{ cm}", r"1,200^\circ", "x=1,200", "€1,200", "1,200"),
        *replied("1200", "$1,200", "It costs $1,200.", "The answer is 1,200 apples."),
        *boxed("$1,200", "1200", "1,200", r"\$1200.00"),
        *boxed("2469/2", "$1,234.50", r"\$1,234.5"),
        *boxed("-1200", r"-\$1,200", "-1,200 dollars"),
        *boxed("1,200,300 people", "1200300", "1,200,300"),
        *boxed("1,200 and 300", "300, 1,200"),
    ],
    "words around a number": [
        *replied("-3", "negative 3", "The answer is minus 3.", "x = minus 3", "It is negative $3$."),
        *replied("5", "I get 5", "Ans 5", "5 per day", "He went there 5 times.", "It is positive 5.", "So, 5 it is!"),
        *replied("5", "It goes up by 5", "She needs 5 more.", "As shown above, 5", "He can buy at most 5 apples."),
        *replied("5", "If it does not rain he has 5.", r"\boxed{5}, which cannot be simplified", "The total of 5."),
        *replied("8 and 27", "The answers are 8 and 27.", "The solutions are 27 and 8"),
        *replied("3/4", "It is ¾.", r"The answer is $\dfrac{3}{4}$.", r"\frac{3}{4} cannot be simplified further."),
        *replied("(0,4)", "The answer is (0,4).", "So the solution is $(0, 4)$."),
        *replied("5", "*5*", "_5_", "<b>5</b>", "**5**", "The answer is *5*.", "The answer is <strong>5</strong>."),
        *replied("3", r"\boxed{2}. Wait, that is wrong: on the other hand, \boxed{3}"),
        *replied("12", "He has 12 quarters.", "It took 12 seconds.", "12 o'clock", "12 pm"),
    ],
    "equation of numbers": [
        *replied("-3", "2 - 5 = -3", "$2 - 5 = -3$"),
        *replied("5", "3 + 2 = 5", "$2 + 3 = 5$", "10 ÷ 2 = 5", "2 + 3 = 5 apples", "x = 2 + 3 = 5"),
        *replied("15", "5 x 3 = 15", "5 × 3 = 15", "5 * 3 = 15.", "5 apples x 3 = 15 apples"),
        *replied("3/4", "1 - 1/4 = 3/4", "6/8 = 3/4", r"\frac{6}{8} = \frac{3}{4}"),
        *replied("2.5", "3 - 0.5 = 2.5"),
        *boxed("5", "2+3 = 5", "x=10/2=5", r"\frac{10}{2} = 5", r"2+3 = 5\text{ apples}"),
        *boxed("120", "5! = 120"),
        *boxed(r"2\sqrt{2}", r"\sqrt{8} = 2\sqrt{2}"),
    ],
    "name and letter": [
        *boxed(r"\text{Evelyn}", "Evelyn", "evelyn", r"\text{Evelyn}", "Evelyn."),
        *boxed(r"\text{even}", "even"),
        *boxed(r"\text{Monday}", "Monday"),
        *boxed(r"\text{no solution}", "no solution", r"\text{No solution}"),
        *boxed("x", "1x", "x"),
        *boxed("e", "e^1", r"\exp(1)"),
        *boxed("i", r"\sqrt{-1}"),
        *boxed("n", "n+0"),
        *boxed("B", "b"),
    ],
    "marks of mathematics": [
        *boxed(r"\frac{\sqrt{2}}{2}", r"\frac{\sqrt2}2", r"\frac{\sqrt{2}}2", r"\sqrt2/2"),
        *boxed(r"\frac{\sqrt2}2", r"\frac{\sqrt{2}}{2}"),
        *boxed(r"\frac{3\sqrt{2}}2", r"1.5\sqrt2"),
        *boxed(r"\frac{e\sqrt{2}}2", r"\frac{e\sqrt{2}}{2}"),
        *boxed(r"\frac{3\pi}{4}", r"3/4\pi", "3/4 π"),
        *boxed(r"\frac{x}{2}", "1/2x", "x/2"),
        *boxed(r"\frac{\sqrt3}{2}", r"1/2\sqrt3"),
        *boxed(r"\sum_{k=1}^{3} k", "6"),
        *boxed("6", r"\sum_{k=1}^{3} k"),
        *boxed("10", r"\binom52", r"\dbinom{5}{2}", r"{5\choose 2}", r"\binom{5}{2}"),
        *boxed("7/2", r"{7\over 2}", r"7 \over 2"),
        *boxed(r"2\sqrt{13}", "2√13", "√52", "2√(13)"),
        *boxed("1/3", r"0.\bar3", r"0.\overline3"),
        *boxed(r"2\sin x", "2 sin x", r"2 \sin x", "2 sin(x)"),
        *boxed("2xy", "2 x y", "xy + xy"),
        *boxed(r"\tan x", r"\sin x/\cos x", r"\frac{\sin x}{\cos x}"),
    ],
    "unit as it is written": [
        *boxed("5 dollars", "5 USD", "$5"),
        *boxed(r"5\text{ euros}", "5 eur", "5 EUR"),
        *boxed("5", "5 USD", "5 deg", r"5\text{ sec}", "5 day", "5 gal", "5 m/s", "5 km/h", "5 m^2", "5 °C", "5 days"),
        *boxed("90^\\circ", "90 deg", "90 degrees"),
        *boxed("5 seconds", "5 sec", r"5\text{ s}", "5 s", "5"),
        *replied("-3", "-3°C", "It is -3 °C."),
        *boxed(r"20^\circ\text{C}", "20 °C", "20 degrees Celsius", "20"),
        *boxed(r"5\text{ m}", "5 m", "5", "5 meters"),
        *boxed("5 m", "5", r"5\text{ m}"),
        *boxed("5 m/s", r"5\text{ m/s}", "5 meters per second", "5"),
        *boxed("60 mph", "60 miles per hour", "60"),
        *boxed("35%", r"35\text{ percent}", r"35\text{\%}", r"35\%"),
        *boxed(r"3\pi\text{ cm}", r"3\pi", r"3\pi\text{ cm}", r"3\pi cm"),
        *boxed(r"12\pi\text{ cm}^2", r"12\pi"),
    ],
    "union and intersection": [
        *boxed(r"(-\infty,-2)\cup(3,\infty)", r"x<-2 \text{ or } x>3", "x > 3 or x < -2"),
        *boxed("[2,5)", r"x \ge 2 \text{ and } x<5", r"x < 5 \text{ and } x \ge 2"),
    ],
}
"""Honest answers, as small models write them."""
