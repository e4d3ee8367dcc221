"""A formatter of texts: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, names, sentence, whole

CASES: tuple[Case, ...] = (
    case("words.split_words", "", """
        ? split_words(V_a + ", " + V_b + "!")
    """, V_a=name(), V_b=name()),
    case("words.split_words", "with other marks", """
        ? split_words("(" + V_a + ") - " + V_b + ".", "()-")
    """, V_a=name(), V_b=name()),
    case("words.split_words", "of marks", """
        ? split_words(" ... " + V_a + " ?! ")
    """, V_a=name()),
    case("words.word_counts", "", """
        ? word_counts(V_a + " " + V_b + ". " + V_a.upper())
    """, V_a=name(), V_b=name()),
    case("words.word_counts", "that are frequent", """
        ? word_counts(" ".join([V_a] * 3 + [V_b] * 2 + [V_c]), 2)
    """, V_a=name(), V_b=name(), V_c=name()),
    case("words.longest_word", "", """
        ? longest_word(V_a)
    """, V_a=sentence(3, 7)),
    case("words.longest_word", "of equals", """
        ? longest_word(V_a + " " + V_b)
        ? longest_word("")
    """, V_a=name(4, 4), V_b=name(4, 4)),
    case("words.shorten", "", """
        ? shorten(V_a, V_n)
    """, V_a=name(12, 20), V_n=whole(5, 11)),
    case("words.shorten", "what fits", """
        ? shorten(V_a, len(V_a))
        ? shorten(V_a, len(V_a) + 1)
    """, V_a=name(5, 9)),
    case("words.shorten", "to very little", """
        ? shorten(V_a, len(K_DOTS))
        ! shorten(V_a, len(K_DOTS) - 1)
    """, V_a=name(7, 9)),
    case("naming.to_snake", "", """
        ? to_snake(V_a.upper() + " " + V_b + "-" + V_c + "!")
    """, V_a=name(), V_b=name(), V_c=name()),
    case("naming.to_camel", "", """
        ? to_camel(V_a + " " + V_b)
        ? to_camel("")
    """, V_a=name(), V_b=name()),
    case("naming.to_camel", "with a capital", """
        ? to_camel(V_a + "-" + V_b, upper=True)
    """, V_a=name(), V_b=name()),
    case("naming.initials", "", """
        ? initials(V_a)
    """, V_a=sentence(6, 9)),
    case("naming.initials", "of few", """
        ? initials(V_a, V_n)
    """, V_a=sentence(4, 6), V_n=whole(1, 3)),
    case("naming.title_of", "", """
        ? title_of("the " + V_a + " of the " + V_b.upper() + " and " + V_c)
    """, V_a=name(), V_b=name(), V_c=name()),
    case("naming.title_of", "with other small words", """
        ? title_of(V_a + " " + V_b + " the", [V_a, V_b])
    """, V_a=name(), V_b=name()),
    case("layout.wrap_text", "", """
        ? wrap_text(V_a)
    """, V_a=sentence(9, 14)),
    case("layout.wrap_text", "to a width", """
        ? wrap_text(V_a, V_n)
        ? wrap_text('')
    """, V_a=sentence(6, 9), V_n=whole(7, 12)),
    case("layout.wrap_text", "to the last sign", """
        ? wrap_text(V_a + " " + V_b, len(V_a) + len(V_b) + 1)
        ? wrap_text(V_a + " " + V_b, len(V_a) + len(V_b))
    """, V_a=name(), V_b=name()),
    case("layout.wrap_text", "with a long word", """
        ? wrap_text(V_a + " " + V_b, 6)
    """, V_a=name(9, 14), V_b=name(3, 4)),
    case("layout.align", "left", """
        ? align(V_a, V_n)
        ? align(V_a, 1)
    """, V_a=name(3, 5), V_n=whole(6, 11)),
    case("layout.align", "right", """
        ? align(V_a, V_n, "right")
    """, V_a=name(3, 5), V_n=whole(6, 11)),
    case("layout.align", "in the center", """
        ? align(V_a, len(V_a) + 3, "center")
        ? align(V_a, V_n, "center")
    """, V_a=name(3, 5), V_n=whole(6, 12)),
    case("layout.align", "nowhere", """
        ! align(V_a, 9, V_b)
    """, V_a=name(3, 5), V_b=name(7, 8)),
    case("layout.number_lines", "", """
        ? number_lines(V_a)
    """, V_a=names(3)),
    case("layout.number_lines", "from a number", """
        ? number_lines(V_a, V_n)
        ? number_lines(V_a, 98)
    """, V_a=names(3), V_n=whole(5, 9)),
    case("layout.boxed", "", """
        ? boxed(V_a)
        ? boxed([])
    """, V_a=names(3)),
    case("tables.column_widths", "", """
        ? column_widths([V_a, V_b])
    """, V_a=names(3), V_b=names(2)),
    case("tables.column_widths", "of ragged rows", """
        ? column_widths([V_a, V_b, V_a])
        ? column_widths([])
    """, V_a=names(1), V_b=names(3)),
    case("tables.draw_table", "", """
        ? draw_table(V_h, [V_a, V_b])
    """, V_h=names(3), V_a=names(3), V_b=names(3)),
    case("tables.draw_table", "with missing cells", """
        rows = [V_a, V_b]
        ? draw_table(V_h, rows, V_n)
        ? rows
    """, V_h=names(2), V_a=names(1), V_b=names(2), V_n=whole(1, 4)),
    case("tables.draw_table", "with a longer row", """
        ? draw_table(V_h, [V_a])
    """, V_h=names(1), V_a=names(3)),
    case("tables.sort_rows", "", """
        rows = [V_a, V_b, V_c]
        ? sort_rows(rows, 1)
        ? rows
    """, V_a=names(2), V_b=names(2), V_c=names(2)),
    case("tables.sort_rows", "backwards", """
        ? sort_rows([V_a, V_b, V_c, V_a], 0, reverse=True)
    """, V_a=names(2), V_b=names(1), V_c=names(2)),
    case("tables.sort_rows", "with short ones", """
        ? sort_rows([V_a, V_b, V_c], 1)
    """, V_a=names(1), V_b=names(2), V_c=names(2)),
)  # fmt: skip
"""Its cases."""
