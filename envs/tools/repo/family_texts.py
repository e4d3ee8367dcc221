"""A formatter of texts: words, cases of letters, lines, tables."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_texts import CASES
from tetrathlon.envs.tools.repo.family import Family, of, whole

_WORDS = '''"""Words of a text."""


def split_words(text, marks=".,;!?"):
    """Return the words of a text as a list, without the marks around them.

    What is nothing but marks is no word.
    """
    found = []
    for part in text.split():
        word = part.strip(marks)
        if word:
            found.append(word)
    return found


def word_counts(text, least=1):
    """Return word -> how often it is there, of words in small letters, in the order in which they come first.

    Words that are there less than least times are left out.
    """
    counts = {}
    for word in split_words(text.lower()):
        counts[word] = counts.get(word, 0) + 1
    return {word: count for word, count in counts.items() if count >= least}


def longest_word(text):
    """Return the longest word, the first of those of equal length; an empty text if there is none."""
    best = ""
    for word in split_words(text):
        if len(word) > len(best):
            best = word
    return best


def shorten(text, width):
    """Return a text of at most width characters.

    A longer one is cut and ends with K_DOTS, which counts too. A width smaller than that of K_DOTS raises ValueError.
    """
    if width < len(K_DOTS):
        raise ValueError("too narrow")
    if len(text) <= width:
        return text
    return text[: width - len(K_DOTS)] + K_DOTS
'''
_NAMING = '''"""Names in different cases of letters."""

from PKG.words import split_words


def to_snake(text):
    """Return the words in small letters with underscores between them; a dash counts as a blank."""
    return "_".join(split_words(text.replace("-", " ").lower()))


def to_camel(text, upper=False):
    """Return the words without blanks, each with a capital; the first begins small unless upper is true."""
    joined = "".join(word.capitalize() for word in to_snake(text).split("_"))
    if upper or not joined:
        return joined
    return joined[0].lower() + joined[1:]


def initials(text, most=N_MOST):
    """Return the first letters of the words as capitals, a dot behind each, of no more than the first most words."""
    result = ""
    for word in split_words(text)[:most]:
        result += word[0].upper() + "."
    return result


def title_of(text, small=("and", "of", "the")):
    """Return the words with capitals and a blank between two; small words stay small unless they come first."""
    parts = []
    for place, word in enumerate(split_words(text.lower())):
        parts.append(word if word in small and place > 0 else word.capitalize())
    return " ".join(parts)
'''
_LAYOUT = '''"""Lines of a given width."""

from PKG.words import shorten


def wrap_text(text, width=N_WIDTH):
    """Return the text as lines of at most width characters, broken at blanks.

    A word that is longer is shortened to the width.
    """
    lines, line = [], ""
    for word in text.split():
        word = shorten(word, width)
        if not line:
            line = word
        elif len(line) + 1 + len(word) <= width:
            line += " " + word
        else:
            lines.append(line)
            line = word
    if line:
        lines.append(line)
    return lines


def align(text, width, side="left"):
    """Return the text filled with blanks to the width; side tells where it stands: left, right or center.

    In the center, what cannot be divided by two goes to the right. Another side raises ValueError. What is wider stays
    as it is.
    """
    gap = max(width - len(text), 0)
    if side == "left":
        return text + " " * gap
    if side == "right":
        return " " * gap + text
    if side == "center":
        return " " * (gap // 2) + text + " " * (gap - gap // 2)
    raise ValueError("no such side: " + side)


def number_lines(lines, first=1):
    """Return the lines, each with its number, a colon and a blank before it; all numbers are as wide as the last."""
    width = len(str(first + len(lines) - 1))
    return [align(str(number), width, "right") + ": " + line for number, line in enumerate(lines, first)]


def boxed(lines):
    """Return the lines within a frame of K_FRAME signs, with one sign on each side, filled to the longest line.

    Nothing gives an empty list.
    """
    if not lines:
        return []
    width = max(len(line) for line in lines)
    edge = K_FRAME * (width + 2)
    return [edge] + [K_FRAME + align(line, width) + K_FRAME for line in lines] + [edge]
'''
_TABLES = '''"""Tables of texts."""

from PKG.layout import align
from PKG.naming import title_of


def column_widths(rows):
    """Return the width of the widest cell of each column; rows may have different lengths."""
    widths = []
    for row in rows:
        for place, cell in enumerate(row):
            if place == len(widths):
                widths.append(0)
            widths[place] = max(widths[place], len(cell))
    return widths


def draw_table(head, rows, gap=N_GAP):
    """Return the lines of a table: the head as a title in each cell, a line of dashes as wide as the table, the rows.

    Between two columns there are gap blanks. Cells stand left, those of the last column right. Missing cells at the
    end of a row are empty.
    """
    titles = [title_of(cell) for cell in head]
    widths = column_widths([titles] + rows)
    lines = []
    for row in [titles] + rows:
        cells = list(row) + [""] * (len(widths) - len(row))
        sides = ["left"] * (len(cells) - 1) + ["right"]
        lines.append((" " * gap).join(align(cell, width, side) for cell, width, side in zip(cells, widths, sides)))
    return [lines[0], "-" * (sum(widths) + gap * (len(widths) - 1))] + lines[1:]


def sort_rows(rows, column, reverse=False):
    """Return a new list of the rows sorted by a column; equal rows keep their order; rows without it come last."""
    whole = [row for row in rows if len(row) > column]
    rest = [row for row in rows if len(row) <= column]
    return sorted(whole, key=lambda row: row[column], reverse=reverse) + rest
'''
TEXTS = Family(
    "texts",
    ("inkwell", "typesetter", "quillkit", "linework", "scribble", "letterpress"),
    """Formats plain text.

Lines have N_WIDTH characters if nothing else is said, and what is cut ends with K_DOTS.""",
    {"words": _WORDS, "naming": _NAMING, "layout": _LAYOUT, "tables": _TABLES},
    CASES,
    {
        "split_words": ("split_words", "words_of", "into_words"),
        "word_counts": ("word_counts", "frequencies", "tally"),
        "longest_word": ("longest_word", "longest_of"),
        "shorten": ("shorten", "cut_off", "clip_text"),
        "to_snake": ("to_snake", "snake_name", "as_snake"),
        "to_camel": ("to_camel", "camel_name", "as_camel"),
        "initials": ("initials", "monogram", "first_letters"),
        "title_of": ("title_of", "headline", "as_title"),
        "wrap_text": ("wrap_text", "fold", "break_lines"),
        "align": ("align", "pad_text", "place_text"),
        "number_lines": ("number_lines", "with_numbers"),
        "boxed": ("boxed", "framed", "in_a_box"),
        "column_widths": ("column_widths", "widths_of"),
        "draw_table": ("draw_table", "table_lines", "tabulate"),
        "sort_rows": ("sort_rows", "rows_by", "ordered_rows"),
    },
    {
        "N_WIDTH": whole(14, 40),
        "N_MOST": whole(2, 5),
        "N_GAP": whole(1, 4),
        "K_DOTS": of("...", "..", "~", "--", "[..]"),
        "K_FRAME": of("#", "*", "+", "|", "="),
    },
    (
        (
            "layout",
            "    if line:\n        lines.append(line)\n    return lines",
            "    return lines",
        ),
        (
            "tables",
            '        cells = list(row) + [""] * (len(widths) - len(row))\n',
            '        cells = row\n        cells += [""] * (len(widths) - len(row))\n',
        ),
        (
            "tables",
            "reverse=reverse) + rest",
            "reverse=reverse)",
        ),
        (
            "words",
            "split_words(text.lower())",
            "split_words(text)",
        ),
        (
            "naming",
            'text.replace("-", " ").lower()',
            "text.lower()",
        ),
    ),
)
