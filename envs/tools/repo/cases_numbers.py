"""A helper for numbers: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, whole, wholes

_S = {"V_s": wholes(5, 8, 1, 20)}
_A = wholes(3, 3, -9, 9)
_M = {"V_p": _A, "V_q": _A, "V_r": _A, "V_s": _A}
CASES: tuple[Case, ...] = (
    case("summary.mean_of", "", """
        ? mean_of(V_s)
        ? mean_of(V_s[:1])
        ! mean_of([])
    """, **_S),
    case("summary.median_of", "", """
        values = V_s
        ? median_of(values)
        ? values
        ! median_of([])
    """, V_s=wholes(5, 5, 1, 20)),
    case("summary.median_of", "of two in the middle", """
        ? median_of(V_s)
    """, V_s=wholes(6, 6, 1, 30)),
    case("summary.mode_of", "", """
        ? mode_of(V_s)
        ! mode_of([])
    """, V_s=wholes(8, 9, 1, 5)),
    case("summary.mode_of", "of equals", """
        ? mode_of([V_a + 3, V_a, V_a + 3, V_a, V_a - 9])
    """, V_a=whole(1, 20)),
    case("summary.spread_of", "", """
        ? spread_of(V_s)
        ? spread_of(V_s[:1])
        ! spread_of([])
    """, **_S),
    case("summary.variance_of", "", """
        ? variance_of(V_s)
        ? variance_of(V_s[:1])
        ! variance_of([])
    """, **_S),
    case("summary.variance_of", "of a sample", """
        ? variance_of(V_s, sample=True)
        ? variance_of(V_s[:1], sample=True)
        ? variance_of(V_s[:2], True)
    """, **_S),
    case("ranks.ranks_of", "", """
        ? ranks_of(V_s)
        ? ranks_of([])
    """, V_s=wholes(5, 7, 1, 6)),
    case("ranks.top", "", """
        values = V_s
        ? top(values, 3)
        ? values
        ? top(values, 99)
    """, **_S),
    case("ranks.top", "by itself", """
        ? top(V_s)
    """, V_s=wholes(9, 9, 1, 50)),
    case("ranks.share_below", "", """
        ? share_below(V_s, V_a)
        ? share_below(V_s, min(V_s))
        ? share_below(V_s, 99)
        ? share_below([], V_a)
    """, V_a=whole(5, 15), **_S),
    case("ranks.halves", "", """
        ? halves(V_s)
        ! halves([])
    """, **_S),
    case("ranks.group_by", "", """
        ? group_by(V_s, V_a)
        ? group_by([], V_a)
    """, V_a=whole(3, 7), **_S),
    case("ranks.group_by", "at the edges", """
        ? group_by([V_a, 2 * V_a - 1, 2 * V_a, 0, -1], V_a)
    """, V_a=whole(3, 17)),
    case("series.running_total", "", """
        ? running_total(V_s)
        ? running_total(V_s, V_a)
        ? running_total([])
    """, V_a=whole(1, 20), **_S),
    case("series.moving_mean", "", """
        ? moving_mean(V_s, 2)
        ? moving_mean(V_s, 3)
        ? moving_mean(V_s, len(V_s))
        ? moving_mean(V_s, len(V_s) + 1)
    """, **_S),
    case("series.moving_mean", "of one", """
        ? moving_mean(V_s, 1)
        ! moving_mean(V_s, 0)
    """, **_S),
    case("series.changes", "", """
        ? changes(V_s)
        ? changes(V_s[:1])
    """, **_S),
    case("series.longest_rise", "", """
        ? longest_rise(V_s)
        ? longest_rise([])
    """, V_s=wholes(9, 12, 1, 9)),
    case("series.longest_rise", "of equals", """
        ? longest_rise([V_a, V_a, V_a + 1, V_a, V_a + 2])
    """, V_a=whole(1, 20)),
    case("series.peaks", "", """
        ? peaks(V_s)
        ? peaks(V_s[:2])
    """, V_s=wholes(10, 12, 1, 9)),
    case("series.peaks", "at the ends", """
        ? peaks([V_a, 0, V_a, 0, V_a])
        ? peaks([0, V_a, V_a, 0])
    """, V_a=whole(1, 20)),
    case("series.clamp", "", """
        ? clamp(V_s, 5, 9)
        ? clamp(V_s, V_a, V_a)
        ! clamp(V_s, V_a, V_a - 1)
    """, V_a=whole(1, 20), **_S),
    case("matrix.Matrix", "", """
        rows = [V_p, V_q]
        matrix = Matrix(rows)
        matrix.rows[0][0] = 99
        ? rows
        ? matrix.rows
        ! Matrix([V_p, V_q[:2]])
        ? Matrix([]).rows
    """, **_M),
    case("matrix.Matrix.shape", "", """
        ? Matrix([V_p, V_q]).shape()
        ? Matrix([V_p[:1], V_q[:1], V_r[:1]]).shape()
        ? Matrix([]).shape()
    """, **_M),
    case("matrix.Matrix.column", "", """
        matrix = Matrix([V_p, V_q])
        ? matrix.column(0)
        ? matrix.column(2)
        ! matrix.column(3)
    """, **_M),
    case("matrix.Matrix.turned", "", """
        matrix = Matrix([V_p, V_q])
        ? matrix.turned().rows
        ? matrix.turned().turned().rows
        ? matrix.rows
    """, **_M),
    case("matrix.Matrix.plus", "", """
        matrix = Matrix([V_p, V_q])
        ? matrix.plus(Matrix([V_r, V_s])).rows
        ? matrix.rows
        ! matrix.plus(Matrix([V_r]))
        ! matrix.plus(matrix.turned())
    """, **_M),
    case("matrix.Matrix.times", "", """
        matrix = Matrix([V_p, V_q])
        ? matrix.times(Matrix([V_r[:2], V_s[:2], V_p[1:]])).rows
        ! matrix.times(matrix)
        ? matrix.times(identity(3)).rows
    """, **_M),
    case("matrix.Matrix.trace", "", """
        ? Matrix([V_p, V_q, V_r]).trace()
        ! Matrix([V_p, V_q]).trace()
    """, **_M),
    case("matrix.identity", "", """
        ? identity(V_n).rows
        ? identity(1).rows
    """, V_n=whole(2, 4)),
    case("matrix.row_totals", "", """
        ? row_totals(Matrix([V_p, V_q]))
        ? row_totals(Matrix([]))
    """, **_M),
    case("matrix.cumulated", "", """
        matrix = Matrix([V_p, V_q])
        ? cumulated(matrix).rows
        ? matrix.rows
    """, **_M),
)  # fmt: skip
"""Its cases."""
