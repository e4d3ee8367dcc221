"""Functions to be written on texts."""

from __future__ import annotations

from tetrathlon.envs.text.coding.draft import ORDERS, Draft, Draw

_LETTERS = "abcdefgh"
_SIGNS = ("-", "+", "/", "*", "_", ":", "~", "|")


def shift_letters(draw: Draw) -> Draft:
    """A cipher with its own shifts."""
    low, high, digit = draw.between(1, 25), draw.between(0, 25), draw.between(0, 9)
    return Draft(
        "shift_letters(text: str) -> str",
        f"Replace each letter a-z by the one {low} places later in the alphabet, each letter A-Z by the one {high} "
        f"places later, and each digit 0-9 by the one {digit} places later, each going around to its start after the "
        "end. Everything else stays.",
        f"""
        result = ""
        for sign in text:
            for alphabet, shift in (
                ("abcdefghijklmnopqrstuvwxyz", {low}),
                ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", {high}),
                ("0123456789", {digit}),
            ):
                if sign in alphabet:
                    sign = alphabet[(alphabet.index(sign) + shift) % len(alphabet)]
                    break
            result += sign
        return result
        """,
        lambda draw: (draw.word("abcxyzABCXYZ0189 -.", 4, 14),),
        (("",), ("az AZ 09",), ("The quick, brown fox: 2 of 7!",)),
    )


def squeeze_text(draw: Draw) -> Draft:
    """Run-length encoding of long runs only."""
    fewest, sign, first = draw.between(2, 4), draw.pick(_SIGNS), draw.pick((True, False))
    piece = "character + sign + str(length)" if first else "str(length) + sign + character"
    order = "the character, then" if first else "the length of the run, then"
    last = "the length of the run" if first else "the character"
    return Draft(
        "squeeze_text(text: str) -> str",
        f"Replace each longest run of at least {fewest} equal characters by {order} {sign!r}, then {last}. "
        "Shorter runs stay as they are.",
        f"""
        result, start, sign = "", 0, {sign!r}
        for end in range(1, len(text) + 1):
            if end == len(text) or text[end] != text[start]:
                character, length = text[start], end - start
                result += {piece} if length >= {fewest} else text[start:end]
                start = end
        return result
        """,
        lambda draw: ("".join(draw.pick(_LETTERS) * draw.between(1, 6) for _ in range(draw.between(2, 5))),),
        (("",), ("a" * fewest,), ("b" * (fewest - 1),), ("c" * 12 + "d",)),
    )


def join_words(draw: Draw) -> Draft:
    """Words that are long or short enough, joined."""
    (words, sign), length, joint = draw.pick(ORDERS), draw.between(2, 5), draw.pick(_SIGNS)
    how, code = draw.pick(
        (
            ("reversed letter by letter", "word[::-1]"),
            ("in capitals", "word.upper()"),
            ("with its first letter moved to its end", "word[1:] + word[0]"),
            ("written twice", "word * 2"),
        )
    )
    return Draft(
        "join_words(text: str) -> str",
        f"Words are set apart by one or more blanks. Take the words whose length is {words} {length}, in order, each "
        f"{how}, and return them joined by {joint!r}.",
        f"return {joint!r}.join({code} for word in text.split() if len(word) {sign} {length})",
        lambda draw: ("  ".join(" ".join(draw.words(1, 4, _LETTERS, 1, 7)) for _ in range(draw.between(1, 3))),),
        (("",), ("   ",), (" a bc  def ghij klmno pqrstu ",)),
    )


def mask_text(draw: Draw) -> Draft:
    """The middle of a text, masked."""
    left, right, sign = draw.between(0, 3), draw.between(1, 4), draw.pick("*#x_?")
    return Draft(
        "mask_text(text: str) -> str",
        f"Replace each character by {sign!r}, but keep the first {left} and the last {right} characters. A text of "
        f"at most {left + right} characters is replaced as a whole.",
        f"""
        if len(text) <= {left + right}:
            return {sign!r} * len(text)
        return text[:{left}] + {sign!r} * (len(text) - {left + right}) + text[-{right}:]
        """,
        lambda draw: (draw.word("abcdef0123 ", left + right - 1, left + right + 9),),
        (("",), ("a" * (left + right),), ("abcdefghijk"[: left + right + 1],)),
    )


def score_text(draw: Draw) -> Draft:
    """Points by kinds of characters."""
    vowel, consonant, digit, other = (draw.between(-3, 9) for _ in range(4))
    return Draft(
        "score_text(text: str) -> int",
        f"Add up points for the characters: {vowel} for each of the vowels a, e, i, o, u, {consonant} for each other "
        f"letter from a to z, {digit} for each digit, {other} for anything else. Capitals count like small letters.",
        f"""
        points = 0
        for sign in text.lower():
            if sign in "aeiou":
                points += {vowel}
            elif "a" <= sign <= "z":
                points += {consonant}
            elif "0" <= sign <= "9":
                points += {digit}
            else:
                points += {other}
        return points
        """,
        lambda draw: (draw.word("aeioubcdxyzAEKZ0123 .,!", 2, 14),),
        (("",), ("a",), ("Z",), ("7",), ("?",)),
    )


def read_settings(draw: Draw) -> Draft:
    """Pairs of names and numbers out of a text."""
    outer, inner = draw.some(_SIGNS, 2)
    rule, code = draw.pick(
        (
            ("the first number counts", "settings.setdefault(name, number)"),
            ("the last number counts", "settings[name] = number"),
            ("the numbers are added", "settings[name] = settings.get(name, 0) + number"),
            ("the largest number counts", "settings[name] = max(number, settings.get(name, 0))"),
        )
    )
    return Draft(
        "read_settings(text: str) -> dict[str, int]",
        f"The text holds entries set apart by {outer!r}. An entry is good if it is a name of one or more letters a-z, "
        f"then {inner!r}, then one or more digits 0-9, and nothing else. Leave out the other entries. Return a dict "
        f"from name to number; where a name comes more than once, {rule}.",
        f"""
        settings = {{}}
        for entry in text.split({outer!r}):
            name, sign, digits = entry.partition({inner!r})
            if not sign or not name or not digits:
                continue
            if set(name) <= set("abcdefghijklmnopqrstuvwxyz") and set(digits) <= set("0123456789"):
                number = int(digits)
                {code}
        return settings
        """,
        lambda draw: (outer.join(_entry(draw, inner) for _ in range(draw.between(2, 6))),),
        (("",), (outer,), (f"a{inner}1{outer}a{inner}22{outer}a{inner}3",), (f"b{inner}{inner}4{outer}c{inner}007",)),
    )


def _entry(draw: Draw, inner: str) -> str:
    good = draw.pick("abc") + inner + draw.word("0123456789", 1, 2)
    return draw.pick((good, good, good, draw.pick("abc") + inner, "7" + good, draw.word("abc", 1, 2)))


def wrap_words(draw: Draw) -> Draft:
    """Greedy line breaking."""
    width, joint = draw.between(6, 16), draw.pick(_SIGNS)
    return Draft(
        "wrap_words(words: list[str]) -> list[str]",
        f"Put the words into lines, in order. Words of one line are joined by {joint!r}. A word goes into the current "
        f"line if the line is then at most {width} characters long, else it starts a new line, even where it is "
        "longer than that by itself. Return the lines.",
        f"""
        lines = []
        for word in words:
            if lines and len(lines[-1]) + 1 + len(word) <= {width}:
                lines[-1] += {joint!r} + word
            else:
                lines.append(word)
        return lines
        """,
        lambda draw: (draw.words(2, 9, _LETTERS, 1, 7),),
        (([],), (["a" * (width + 3), "b", "c"],), (["a" * (width - 2), "b", "c"],), (["a" * (width - 1), "b"],)),
    )


def bracket_depth(draw: Draw) -> Draft:
    """Depth of nesting, or a code for what does not match."""
    pairs = draw.some(("()", "[]", "{}", "<>"), 2)
    bad = draw.pick((-1, -2, -10, 99))
    return Draft(
        "bracket_depth(text: str) -> int",
        f"The brackets are {pairs[0]} and {pairs[1]}; every other character is ignored. Return how deep the brackets "
        f"are nested at most (0 without brackets), or {bad} where they do not match: each closing bracket must close "
        "the last one still open, of its own kind, and none may stay open.",
        f"""
        pairs, stack, deepest = {{{pairs[0][1]!r}: {pairs[0][0]!r}, {pairs[1][1]!r}: {pairs[1][0]!r}}}, [], 0
        for sign in text:
            if sign in pairs.values():
                stack.append(sign)
                deepest = max(deepest, len(stack))
            elif sign in pairs:
                if not stack or stack.pop() != pairs[sign]:
                    return {bad}
        return {bad} if stack else deepest
        """,
        lambda draw: (_brackets(draw, pairs),),
        (("",), ("ab c",), (pairs[0][0],), (pairs[1][1],), (f"{pairs[0][0]}{pairs[1][0]}{pairs[0][1]}{pairs[1][1]}",)),
    )


def _brackets(draw: Draw, pairs: list[str]) -> str:
    text = ""
    for _ in range(draw.between(1, 5)):
        pair = draw.pick(pairs)
        text = draw.pick((f"{pair[0]}{text}{pair[1]}", f"{text}{pair}", f"{pair[0]}{text}{pair[1]}a"))
    if draw.between(0, 3):
        return text
    place = draw.between(0, len(text) - 1)
    return text[:place] + text[place + 1 :]


def group_words(draw: Draw) -> Draft:
    """Words grouped by a key."""
    fewest = draw.between(1, 3)
    what, code = draw.pick(
        (
            ("the same letters, each as often", '"".join(sorted(word))'),
            ("the same length", "len(word)"),
            ("the same first letter", "word[0]"),
            ("the same last letter", "word[-1]"),
            ("the same number of letters a", 'word.count("a")'),
        )
    )
    order, sort = draw.pick((("in the order of the list", "group"), ("sorted", "sorted(group)")))
    return Draft(
        "group_words(words: list[str]) -> list[list[str]]",
        f"Put words into one group if they have {what}. Return the groups of at least {fewest} words in the order in "
        f"which their first words come in the list, the words of each group {order}. Words that come twice count "
        "twice.",
        f"""
        groups = {{}}
        for word in words:
            groups.setdefault({code}, []).append(word)
        return [{sort} for group in groups.values() if len(group) >= {fewest}]
        """,
        lambda draw: (draw.words(3, 9, "abc", 1, 3),),
        (([],), (["b"] * fewest + ["acca"] * (fewest - 1),), (["ba", "ab", "b", "abc", "cab", "ab", "bca", "b", "b"],)),
    )


def spell_number(draw: Draw) -> Draft:
    """A number in a numeral system of its own."""
    signs = draw.some("ABCDEFGHKLMNPQRSTUVXYZ", 4)
    values = [1]
    for _ in range(3):
        values.append(values[-1] * draw.between(2, 6))
    listed = ", ".join(f"{sign} = {value}" for sign, value in zip(signs, values, strict=True))
    return Draft(
        "spell_number(number: int) -> str",
        f"Write a number of 0 or more with the signs {listed}: as few signs as possible, larger values first; the "
        "number is the sum of the values. Of 0 return an empty text.",
        f"""
        result = ""
        for sign, value in {list(zip(signs, values, strict=True))[::-1]!r}:
            result += sign * (number // value)
            number %= value
        return result
        """,
        lambda draw: (draw.between(1, 3 * values[-1]),),
        ((0,), (1,), (values[-1],), (values[-1] - 1,), (2 * values[-1] + values[1],)),
    )


def count_matches(draw: Draw) -> Draft:
    """How often a piece stands in a text."""
    overlap, case, wild = draw.pick((True, False)), draw.pick((True, False)), draw.pick("?*.#")
    how = "Places may overlap" if overlap else "Go from left to right; places must not overlap, the leftmost counts"
    letters = "Capitals and small letters are different" if case else "Capitals and small letters are the same"
    lower = "" if case else ".lower()"
    return Draft(
        "count_matches(text: str, piece: str) -> int",
        f"Return how often the piece, which is never empty, stands in the text. The sign {wild!r} in the piece stands "
        f"for any one character. {how}. {letters}.",
        f"""
        text, piece = text{lower}, piece{lower}
        count = place = 0
        while place + len(piece) <= len(text):
            window = text[place : place + len(piece)]
            if all(a in ({wild!r}, b) for a, b in zip(piece, window)):
                count += 1
                place += {"1" if overlap else "len(piece)"}
            else:
                place += 1
        return count
        """,
        lambda draw: (draw.word("aaAb", 6, 16), draw.word(f"aab{wild}A", 1, 3)),
        (("", "a"), ("aaaaa", "aa"), ("aAaAa", "aA"), ("abcab", f"a{wild}"), ("ab", "abc")),
    )


FAMILIES = (
    shift_letters,
    squeeze_text,
    join_words,
    mask_text,
    score_text,
    read_settings,
    wrap_words,
    bracket_depth,
    group_words,
    spell_number,
    count_matches,
)
