"""The stories of the word problems: each draws its numbers and works out the exact answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_DRAWS = 24
# fmt: off
_NAMES = (
    "Ada", "Aisha", "Amir", "Anna", "Ben", "Carlos", "Chloe", "Daniel", "David", "Elena", "Emma", "Fatima", "Felix",
    "Grace", "Hana", "Hugo", "Ines", "Jack", "James", "Julia", "Kofi", "Laura", "Leo", "Lucas", "Maria", "Maya",
    "Mei", "Mia", "Nina", "Noah", "Olga", "Omar", "Paul", "Priya", "Rosa", "Sam", "Sara", "Sofia", "Tom",
    "Victor",
)
# fmt: on
_GOODS = ("pencils", "notebooks", "apples", "muffins", "stamps", "candles", "mugs", "postcards", "brushes", "lemons")
_TOYS = ("marbles", "stickers", "cards", "shells", "cookies", "beads", "sweets", "coins", "buttons", "walnuts")
_WARES = ("jacket", "lamp", "tent", "bicycle", "desk", "camera", "carpet", "kettle", "guitar", "watch")
_FOODS = ("rice", "flour", "sugar", "corn", "barley", "semolina")
_COLOURS = ("red", "blue", "green", "yellow", "white", "black")
_PLACES = ("school", "college", "club", "company", "library", "theatre", "hospital", "museum", "bank", "court")
_VEHICLES = ("train", "bus", "car", "van", "truck", "coach")
_UNITS = (
    ("metres", "centimetres", 100, "rope", "is {} long"),
    ("kilometres", "metres", 1_000, "trail", "is {} long"),
    ("kilograms", "grams", 1_000, "parcel", "weighs {}"),
    ("litres", "millilitres", 1_000, "jug", "holds {}"),
)


class Draws:
    """Random choices out of one generator; floats are drawn many at once, which is faster."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._left: list[float] = []

    def below(self, limit: int) -> int:
        """Return an integer from 0 to less than ``limit``."""
        if not self._left:
            self._left = self._rng.random(_DRAWS).tolist()
        return int(limit * self._left.pop())

    def whole(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``."""
        return low + self.below(high - low + 1)

    def one(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return items[self.below(len(items))]

    def two(self, items: Sequence[T]) -> tuple[T, T]:
        """Return two different ones of ``items``."""
        first, step = self.below(len(items)), self.whole(1, len(items) - 1)
        return items[first], items[(first + step) % len(items)]


def decimal(number: Fraction) -> str:
    """Return a number of at most three decimal places, written out."""
    whole, rest = divmod(int(number * 1_000), 1_000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".")


def _money(cents: int) -> str:
    return f"${cents // 100}.{cents % 100:02d}" if cents % 100 else f"${cents // 100}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


def _cents(draws: Draws, form: str, most: int) -> int:
    """Return a price of up to ``most`` dollars in cents: whole dollars for an answer that is an integer."""
    return 100 * draws.whole(2, most) if form == "integer" else 5 * draws.whole(11, 20 * most)


def _shopping(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    name, (first, second) = draws.one(_NAMES), draws.two(_GOODS)
    number, price = draws.whole(2, 12 * level), _cents(draws, form, 12 * level)
    text, total = f"{name} buys {number} {first} at {_money(price)} each", number * price
    if level > 1:
        more, other = draws.whole(2, 12 * level), _cents(draws, form, 12 * level)
        text, total = f"{text} and {more} {second} at {_money(other)} each", total + more * other
    if level < 3:
        return f"{text}. How many dollars does {name} pay?", Fraction(total, 100)
    paid = 1_000 * (total // 1_000 + draws.whole(1, 5))
    text = f"{text}, and pays with {_money(paid)}. How many dollars does {name} get back?"
    return text, Fraction(paid - total, 100)


def _travel(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    vehicle = draws.one(_VEHICLES)
    if form == "fraction":
        way, speed = draws.whole(10, 150 * level), draws.whole(6, 24) * 5
        text, hours = f"A {vehicle} travels {way} km at a steady {speed} km/h", Fraction(way, speed)
        if level > 1:
            rest = draws.whole(1, 11) * 5
            text, hours = f"{text} and then stops for {rest} minutes", hours + Fraction(rest, 60)
        if level > 2:
            way, speed = draws.whole(10, 300), draws.whole(6, 24) * 5
            text = f"{text}. After that it travels another {way} km at {speed} km/h"
            hours += Fraction(way, speed)
        return f"{text}. How many hours does that take altogether?", hours
    legs = [(draws.whole(20, 130), draws.whole(5, 20 + 20 // level)) for _ in range(min(level, 2))]
    (speed, quarters), *more = legs
    text = f"A {vehicle} travels at {speed} km/h for {_hours(quarters)}"
    if more:
        text = f"{text} and then at {more[0][0]} km/h for {_hours(more[0][1])}"
    driven = Fraction(sum(speed * quarters for speed, quarters in legs), 4)
    if level < 3:
        return f"{text}. How many kilometres does it travel?", driven
    whole = int(driven) + draws.whole(5, 500)
    text = f"A {vehicle} has a journey of {whole} km before it. It{text.removeprefix(f'A {vehicle}')}"
    return f"{text}. How many kilometres are left?", whole - driven


def _hours(quarters: int) -> str:
    return f"{decimal(Fraction(quarters, 4))} hours"


def _ratio(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    a, b, c = (draws.whole(1, 6 + 2 * level) for _ in range(3))
    parts = a + b + (c if level > 2 else 0)
    if form == "integer":
        (name, other), toys = draws.two(_NAMES), draws.one(_TOYS)
        total = parts * draws.whole(2, 15 * level)
        third = draws.one([third for third in _NAMES if third not in (name, other)])
        people, ratio = (f"{name} and {other}", f"{a} : {b}")
        if level > 2:
            people, ratio = f"{name}, {other} and {third}", f"{ratio} : {c}"
        text = f"{people} share {total} {toys} in the ratio {ratio}."
        if level == 1:
            return f"{text} How many {toys} does {name} get?", Fraction(total * a, parts)
        if level == 2:
            return f"{text} How many more {toys} does {name} get than {other}?", Fraction(total * (a - b), parts)
        return f"{text} How many {toys} do {name} and {third} get together?", Fraction(total * (a + c), parts)
    first, second = draws.two(_COLOURS)
    total = draws.whole(2, 20 * level)
    if level < 3:
        text = f"{first} and {second} paint are mixed in the ratio {a} : {b} to make {total} litres."
        text = f"{text[0].upper()}{text[1:]}"
        if level == 1:
            return f"{text} How many litres of {first} paint are needed?", Fraction(total * a, parts)
        question = f"How many litres more of {first} than of {second} paint are needed?"
        return f"{text} {question}", Fraction(total * (a - b), parts)
    text = f"Sand, gravel and cement are mixed in the ratio {a} : {b} : {c} to make {total} kg of concrete."
    return f"{text} How many kilograms of sand and cement together are needed?", Fraction(total * (a + c), parts)


def _percentage(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    percent, other = 5 * draws.whole(1, 19), 10 * draws.whole(1, 9)
    if form == "integer":
        people = 20 * draws.whole(2, 90) * (10 if level > 2 else 1)
        text = f"Of the {people} people at a {draws.one(_PLACES)}, {percent}% come by bicycle."
        come = Fraction(people * percent, 100)
        if level == 1:
            return f"{text} How many people come by bicycle?", come
        if level == 2:
            return f"{text} How many people do not come by bicycle?", people - come
        return f"{text} Of these, {other}% wear a helmet. How many cyclists wear no helmet?", come * (100 - other) / 100
    food, weight = draws.one(_FOODS), draws.whole(11, 200 * level)
    text, sold = f"A shop has {weight} kg of {food} and sells {percent}% of it.", Fraction(weight * percent, 100)
    if level == 1:
        return f"{text} How many kilograms does it sell?", sold
    if level == 2:
        return f"{text} How many kilograms are left?", weight - sold
    text = f"{text} Then {other}% of what is left goes bad. How many kilograms go bad?"
    return text, (weight - sold) * other / 100


def _mixture(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    fruit = draws.one(("orange", "apple", "cherry", "mango", "grape", "pear"))
    if form == "fraction":
        name, syrup, water = draws.one(_NAMES), draws.whole(2, 12 * level), draws.whole(2, 20 * level)
        text = f"{name} mixes {syrup} cups of {fruit} syrup with {water} cups of water"
        if level > 1:
            more = draws.whole(2, 20)
            text, water = f"{text} and then adds {more} more cups of water", water + more
        if level > 2:
            more = draws.whole(2, 12)
            text, syrup = f"{text} and {more} more cups of syrup", syrup + more
        return f"{text}. What fraction of the drink is syrup?", Fraction(syrup, syrup + water)
    drinks = [(draws.whole(2, 90 * level), draws.whole(1, 19) * 5) for _ in range(level)]
    listed = [f"{litres} litres of a drink with {percent}% {fruit} juice" for litres, percent in drinks]
    juice = Fraction(sum(litres * percent for litres, percent in drinks), 100)
    if level == 1:
        return f"How many litres of juice are in {listed[0]}?", juice
    mixed = f"{', '.join(listed[:-1])} and {listed[-1]}"
    return f"A cook mixes {mixed}. How many litres of juice are in the mixture?", juice


def _time(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    event = draws.one(("film", "concert", "lesson", "match", "play", "meeting"))
    start, length = draws.whole(7 * 60, 17 * 60), draws.whole(31, 150 + 60 * level)
    text, minutes = f"A {event} begins at {_clock(start)} and ends at {_clock(start + length)}", length
    if level > 1:
        rest = draws.whole(5, 25)
        text, minutes = f"{text}, with a break of {rest} minutes in it", minutes - rest
    if level > 2:
        days = draws.whole(2, 9)
        text, minutes = f"{text}. It is held like that on {days} days", minutes * days
    unit, size = ("minutes", 1) if form == "integer" else ("hours", 60)
    without = ", breaks not counted" if level > 1 else ""
    return f"{text}. How many {unit} does it last{' in all' * (level > 2)}{without}?", Fraction(minutes, size)


def _conversion(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    big, small, size, thing, verb = draws.one(_UNITS)
    a, b = ((draws.whole(2, 15), draws.whole(2, size - 1)) for _ in range(2))
    first, second = (f"{x} {big} and {y} {small}" for x, y in (a, b))
    each, other = (x * size + y for x, y in (a, b))
    unit, scale = (small, 1) if form == "integer" else (big, size)
    text = f"A {thing} {verb.format(first)}."
    if level == 1:
        return f"{text} How much is that in {unit}?", Fraction(each, scale)
    number, more = draws.whole(2, 12), draws.whole(2, 12)
    if level == 2:
        text = f"{text} How much is that for {number} such {thing}s together, in {unit}?"
        return text, Fraction(each * number, scale)
    text = f"{text} Another {thing} {verb.format(second)}."
    question = f"How much is that for {number} like the first and {more} like the second together, in {unit}?"
    return f"{text} {question}", Fraction(each * number + other * more, scale)


def _geometry(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    place = draws.one(("garden", "field", "yard", "room", "terrace", "meadow"))
    if form == "fraction":
        width, area = draws.whole(3, 12 + 6 * level), draws.whole(10, 200 * level)
        if level > 2:
            depth = draws.whole(2, 9)
            text = f"A tank has a rectangular base of {width} m by {depth} m and holds {area} cubic metres."
            return f"{text} How many metres is it high?", Fraction(area, width * depth)
        text = f"A rectangular {place} has an area of {area} square metres, and one side is {width} m long."
        if level == 1:
            return f"{text} How many metres long is the other side?", Fraction(area, width)
        return f"{text} How many metres is its perimeter?", 2 * (Fraction(area, width) + width)
    step = 1 if form == "integer" else 10
    long, wide = sorted((draws.whole(3 * step + 1, 30 * step * level) for _ in range(2)), reverse=True)
    a, b = decimal(Fraction(long, step)), decimal(Fraction(wide, step))
    surface = Fraction(long * wide, step * step)
    text = f"A rectangular {place} is {a} m long and {b} m wide."
    if level == 1:
        if draws.below(2):
            return f"{text} How many square metres is its area?", surface
        return f"{text} How many metres is its perimeter?", Fraction(2 * (long + wide), step)
    if level == 2:
        deep = draws.whole(2, 20)
        text = f"A box is {a} cm long, {b} cm wide and {deep} cm high. How many cubic centimetres is its volume?"
        return text, surface * deep
    c, d = draws.whole(2, long // step), draws.whole(2, wide // step)
    text = f"{text} A rectangle of {c} m by {d} m in it is paved. How many square metres are not paved?"
    return text, surface - c * d


def _average(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    name, other = draws.two(_NAMES)
    what = draws.one(("points in {} games", "pages on {} days", "emails on {} days", "kilometres on {} walks"))
    if level < 3:
        numbers = [draws.whole(2, 40 * level) for _ in range(2 + level + draws.below(3))]
        listed = f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
        text = f"{name} counts {what.format(len(numbers))}: {listed}. What is the average?"
        return text, Fraction(sum(numbers), len(numbers))
    (m, n), (a, b) = ((draws.whole(2, 12), draws.whole(2, 12)), (draws.whole(5, 99), draws.whole(5, 99)))
    text = f"{name} counts {what.format(m)}, {a} on average. {other} counts {what.format(n)}, {b} on average."
    return f"{text} What is the average of all of them together?", Fraction(m * a + n * b, m + n)


def _work(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    name, other = draws.two(_NAMES)
    job = draws.one(("paints a fence", "cleans a hall", "mows a lawn", "weeds a garden", "loads a truck"))
    a, b, c = (draws.whole(2, 10 + 4 * level) for _ in range(3))
    text = f"{name} {job} in {a} hours, and {other} does the same in {b} hours."
    rate = Fraction(1, a) + Fraction(1, b)
    if level > 2:
        text, rate = f"{text} A helper takes {c} hours.", rate + Fraction(1, c)
    times = draws.whole(2, 7) if level == 2 else 1
    what = "do it" if times == 1 else f"do it {times} times"
    who = "all three" if level > 2 else "both"
    return f"{text} How many hours do {who} together need to {what}?", times / rate


def _sharing(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    name, children = draws.one(_NAMES), draws.whole(3, 10 + 2 * level)
    each = draws.whole(2, 10 * level)
    if form == "integer":
        thing, total = draws.one(_TOYS), children * each
    else:
        thing, total = draws.one(("pizzas", "cakes", "pies", "melons", "loaves")), draws.whole(2, 20 * level)
    given = draws.whole(2, 9)
    start = total if level == 1 else total + given
    text, boxes = f"{name} has {start} {thing}", draws.whole(2, 9)
    if level > 2:
        text, total = f"{name} has {boxes} boxes of {start} {thing} each", boxes * start - given
    if level > 1:
        text = f"{text}, gives {given} {thing} away"
    link = ", and shares the rest" if level > 1 else " and shares them"
    text = f"{text}{link} equally among {children} children. How many {thing} does each child get?"
    return text, Fraction(total, children)


def _discount(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    ware, price = draws.one(_WARES), draws.whole(3, 100) * 4 * (5 if form == "integer" else 1)
    off, tax, number = 5 * draws.whole(1, 16), 5 * draws.whole(1, 5), draws.whole(2, 9)
    text, cost = f"A {ware} costs ${price} and is sold at a discount of {off}%", Fraction(price * (100 - off), 100)
    if level == 1:
        return f"{text}. How many dollars does it cost now?", cost
    text, cost = f"{text}. A tax of {tax}% is added to the lower price", cost * (100 + tax) / 100
    if level == 2:
        return f"{text}. How many dollars does it cost with tax?", cost
    return f"{text}. How many dollars do {number} of them cost with tax?", cost * number


def _probability(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    first, second = draws.two(_COLOURS)
    toys = draws.one(("marbles", "balls", "beads", "counters", "buttons", "tokens"))
    a, b = draws.whole(2, 20), draws.whole(2, 20)
    text = f"A bag holds {a} {first} and {b} {second} {toys}."
    if level == 1:
        text = f"{text} One is drawn without looking. What is the probability that it is {first}?"
        return text, Fraction(a, a + b)
    if level == 2:
        text = f"{text} One is drawn without looking and put back, then one is drawn again."
        return f"{text} What is the probability that both are {first}?", Fraction(a * a, (a + b) ** 2)
    text = f"{text} Two are drawn without looking, and none is put back."
    chance = Fraction(2 * a * b, (a + b) * (a + b - 1))
    return f"{text} What is the probability that they are of different colours?", chance


def _saving(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    name, weeks = draws.one(_NAMES), draws.whole(2, 12 * level)
    start, weekly = _cents(draws, form, 40 * level), _cents(draws, form, 10 * level)
    text, total = f"{name} has {_money(start)} and saves {_money(weekly)} a week", start + weeks * weekly
    if level > 1:
        spent = _cents(draws, form, 30)
        text, total = f"{text}, but spends {_money(spent)} once", total - spent
    if level > 2:
        gift = _cents(draws, form, 30)
        text, total = f"{text}. Later {_money(gift)} come as a gift", total + gift
    return f"{text}. How many dollars does {name} have after {weeks} weeks?", Fraction(total, 100)


def _recipe(draws: Draws, level: int, form: str) -> tuple[str, Fraction]:
    (first, second), (people, guests) = draws.two(("milk", *_FOODS)), draws.two(range(2, 13))
    (a, b), (c, d), (e, f) = ((draws.whole(1, 9), draws.whole(2, 6)) for _ in range(3))
    cups, other, had = Fraction(a, b), Fraction(c, d), Fraction(e, f)
    text = f"A recipe for {people} people needs {_cups(cups)} of {first}"
    if level > 1:
        text, cups = f"{text} and {_cups(other)} of {second}", cups + other
    needed, what = cups * guests / people, first if level == 1 else "both together"
    if level < 3:
        return f"{text}. How many cups of {what} are needed for {guests} people?", needed
    text = f"{text}. There are {_cups(had)} of the two already. How many more cups are needed for {guests} people?"
    return text, needed - had


def _cups(number: Fraction) -> str:
    if number < 1:
        return f"{number} of a cup"
    return "1 cup" if number == 1 else f"{number} cups"


Story = Callable[[Draws, int, str], tuple[str, Fraction]]
_IN_EVERY_FORM = {
    "travel": _travel,
    "ratio": _ratio,
    "time": _time,
    "geometry": _geometry,
    "average": _average,
    "sharing": _sharing,
}
_IN_DECIMALS = {
    "shopping": _shopping,
    "percentage": _percentage,
    "conversion": _conversion,
    "discount": _discount,
    "saving": _saving,
}
_IN_FRACTIONS = {"mixture": _mixture, "work": _work, "probability": _probability, "recipe": _recipe}
STORIES: Mapping[str, Sequence[tuple[str, Story]]] = {
    "integer": tuple((_IN_EVERY_FORM | _IN_DECIMALS).items()),
    "decimal": tuple((_IN_EVERY_FORM | _IN_DECIMALS | {"mixture": _mixture}).items()),
    "fraction": tuple((_IN_EVERY_FORM | _IN_FRACTIONS).items()),
}
"""Form of the answer -> the topics that can give it, with their stories."""
