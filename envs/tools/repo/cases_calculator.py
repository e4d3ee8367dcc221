"""A calculator: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, of, whole

_N = {"V_a": whole(11, 99), "V_b": whole(2, 9), "V_c": whole(2, 9)}
_E = """
text = str(V_a) + ' - ' + str(V_b) + '*(' + str(V_c) + ' + 1)'
"""
CASES: tuple[Case, ...] = (
    case("tokens.tokenize", "", _E, """
        ? tokenize(text)
    """, **_N),
    case("tokens.tokenize", "with names", """
        ? tokenize('  ' + V_n + '%3/ ' + V_n + ' ')
        ? tokenize('')
    """, V_n=name()),
    case("tokens.tokenize", "that are none", """
        ! tokenize(str(V_a) + V_s + '1')
    """, V_a=whole(1, 99), V_s=of("$", "!", "#", "&", "^", "?", "A")),
    case("tokens.join_tokens", "", _E, """
        ? join_tokens(tokenize(text))
        ? join_tokens([])
    """, **_N),
    case("tokens.join_tokens", "in brackets", """
        ? join_tokens(tokenize('((' + V_n + '+2) %(3))'))
    """, V_n=name()),
    case("tokens.is_balanced", "", """
        ? is_balanced(tokenize(V_t))
        ? is_balanced(tokenize('(1)'))
        ? is_balanced([])
    """, V_t=of("(1))(", "(1", "1)", "((2)", ")(", "((3)+(4)", "(5)) + ((6)")),
    case("tokens.is_balanced", "of names", """
        ? is_balanced(tokenize('((' + V_n + ') * 2)'))
    """, V_n=name()),
    case("ordering.rank_of", "", """
        ? [rank_of(sign) for sign in V_s + '(']
    """, V_s=of("+-*/%", "*+/-%", "%-+*/")),
    case("ordering.to_postfix", "", _E, """
        ? to_postfix(tokenize(text))
    """, **_N),
    case("ordering.to_postfix", "from left to right", """
        ? to_postfix(tokenize(V_n + '-2+3-' + V_n))
        ? to_postfix(tokenize(V_n + '*2/3%4'))
    """, V_n=name()),
    case("ordering.to_postfix", "with ranks", """
        ? to_postfix(tokenize('1 + ' + V_n + ' * 2 - 3'))
        ? to_postfix(tokenize('(1 + 2) % (' + V_n + ' - 4)'))
    """, V_n=name()),
    case("ordering.to_postfix", "of bad brackets", """
        ! to_postfix(tokenize(V_n + ')'))
        ! to_postfix(tokenize('(' + V_n))
    """, V_n=name()),
    case("ordering.depth_of", "", """
        ? depth_of('(' + V_n + ')+((1))+(2)')
        ? depth_of(V_n)
        ? depth_of('(' + V_n + ')')
    """, V_n=name()),
    case("values.apply_sign", "", """
        ? [apply_sign(sign, V_a, V_b) for sign in '+-*/%']
    """, **_N),
    case("values.apply_sign", "below zero", """
        ? [apply_sign(sign, -V_a, V_b) for sign in '/%']
        ? [apply_sign(sign, V_a, -V_b) for sign in '/%']
        ? [apply_sign(sign, -V_a, -V_b) for sign in '/%']
    """, **_N),
    case("values.apply_sign", "with nothing", """
        ! apply_sign('/', V_a, 0)
        ! apply_sign('%', V_a, 0)
        ? apply_sign('/', 0, V_a)
        ? apply_sign('%', 0, -V_a)
    """, V_a=whole(1, 99)),
    case("values.evaluate", "", _E, """
        ? evaluate(text)
    """, **_N),
    case("values.evaluate", "from left to right", """
        ? evaluate(str(V_a) + '-' + str(V_b) + '-' + str(V_c))
        ? evaluate(str(V_a) + '/' + str(V_b) + '*' + str(V_c))
    """, **_N),
    case("values.evaluate", "with names", """
        ? evaluate(V_n + ' * 2 + z', {V_n: V_a, 'z': 1})
        ! evaluate(V_n + ' + y', {V_n: V_a})
        ! evaluate(V_n)
    """, V_n=name(), V_a=whole(2, 99)),
    case("values.evaluate", "what is not whole", """
        ! evaluate(str(V_a) + ' +')
        ! evaluate(str(V_a) + ' 2')
        ! evaluate('')
        ! evaluate('* ' + str(V_a))
    """, V_a=whole(2, 99)),
    case("values.evaluate", "what is long", """
        ? evaluate('+'.join(['1'] * (N_LONGEST // 2)))
        ? evaluate('+'.join([V_a] * ((N_LONGEST + 1) // 2)))
        ! evaluate('+'.join([V_a] * ((N_LONGEST + 3) // 2)))
    """, V_a=of("2", "3", "7")),
    case("sheet.Sheet", "", """
        values = {V_n: V_a}
        sheet = Sheet(values)
        ? sheet.assign('x = 2 * ' + V_n)
        ? values
        ? sheet.value_of('x')
    """, V_n=name(), V_a=whole(2, 99)),
    case("sheet.Sheet.assign", "", """
        sheet = Sheet()
        ? sheet.assign('x = ' + str(V_a))
        ? sheet.assign(V_n + '=x-' + str(V_b))
        ? sheet.assign('x = 1 + ' + V_n)
        ? sheet.lines()
    """, V_n=name(), **_N),
    case("sheet.Sheet.assign", "what is none", """
        sheet = Sheet()
        ! sheet.assign(V_n)
        ! sheet.assign(V_n + ' = 1 = 1')
        ? sheet.lines()
        ? sheet.value_of(V_n, None)
    """, V_n=name()),
    case("sheet.Sheet.value_of", "", """
        sheet = Sheet()
        ? sheet.value_of(V_n)
        ? sheet.value_of(V_n, V_a)
        ? sheet.assign(V_n + ' = 1')
        ? sheet.value_of(V_n, V_a)
    """, V_n=name(), V_a=whole(2, 99)),
    case("sheet.Sheet.uses", "", """
        sheet = Sheet({V_n: 1, 'b': 2, 'zz': 3})
        ? sheet.assign('x = zz * (' + V_n + ' + 2) - zz + b')
        ? sheet.uses('x')
        ! sheet.uses('b')
    """, V_n=name()),
    case("sheet.Sheet.lines", "", """
        sheet = Sheet({V_n: V_a})
        ? sheet.assign('y=(' + V_n + '+1)*2')
        ? sheet.assign('x = y')
        ? sheet.lines()
    """, V_n=name(), V_a=whole(2, 99)),
    case("sheet.run_lines", "", """
        ? run_lines(['x = ' + str(V_a), ' ', 'y = x * x - ' + str(V_b), '', 'x = y'])
        ? run_lines(['y = 2 % ' + V_n], {V_n: 5})
    """, V_n=name(), **_N),
)  # fmt: skip
"""Its cases."""
