"""A reader of settings: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, of, whole

_TEXT = """
text = 'Top = 1\\n[net]\\nhost = ' + V_h + '\\nport = ' + str(V_p) + ' ' + K_MARK + ' x\\n\\n'
text += '[log]\\non = Yes\\nname = \\'a ' + K_MARK + ' b\\'\\n'
"""
_V = {"V_h": name(), "V_p": whole(80, 9_999)}
CASES: tuple[Case, ...] = (
    case("lines.strip_comment", "", """
        ? strip_comment(' ' + V_h + ' = 1 ' + K_MARK + ' x ' + K_MARK + ' y')
        ? strip_comment(K_MARK + V_h)
        ? strip_comment(' ' + V_h + ' ')
    """, V_h=name()),
    case("lines.strip_comment", "in quotes", """
        ? strip_comment(V_h + " = 'a" + K_MARK + "b' " + K_MARK + ' x')
    """, V_h=name()),
    case("lines.join_lines", "", """
        ? join_lines([V_h + ' = a \\\\', '  b\\\\', 'c', V_h])
        ? join_lines([])
    """, V_h=name()),
    case("lines.join_lines", "at the end", """
        ? join_lines([V_h, 'x', 'a  \\\\'])
        ? join_lines([' ' + V_h + ' '])
    """, V_h=name()),
    case("lines.split_pair", "", """
        ? split_pair(' ' + V_h.upper() + ' =  A=b ')
        ? split_pair(V_h + '=')
    """, V_h=name()),
    case("lines.split_pair", "of no setting", """
        ! split_pair(V_h)
        ! split_pair(' = ' + V_h)
    """, V_h=name()),
    case("values.to_flag", "", """
        ? [to_flag(word) for word in V_w]
    """, V_w=of(["yes", "NO", "On"], ["TRUE", "off", "Yes"], ["on", "False", "true"])),
    case("values.to_flag", "of no flag", """
        ! to_flag(V_h)
        ! to_flag('')
    """, V_h=name(4, 6)),
    case("values.to_size", "", """
        ? to_size(str(V_p))
        ? to_size(str(V_p) + 'k')
        ? to_size(str(V_p) + 'M')
        ! to_size('')
    """, V_p=whole(2, 99)),
    case("values.to_size", "with a capital", """
        ? to_size(str(V_p) + 'K')
        ? to_size(str(V_p) + 'm')
        ! to_size(str(V_p) + 'x')
    """, V_p=whole(2, 99)),
    case("values.to_list", "", """
        ? to_list(' a, ' + V_h + ' ,, b ')
        ? to_list('')
        ? to_list('a:' + V_h + ',b', ':')
    """, V_h=name()),
    case("values.guess", "", """
        ? [guess(text) for text in (str(V_p), '-' + str(V_p), 'Yes', 'off', V_h + ' x', '', '-')]
    """, **_V),
    case("values.guess", "in quotes", """
        ? guess("'" + str(V_p) + "'")
        ? guess("''")
        ? guess("'")
        ? guess("'" + V_h)
        ? guess(V_h + "'")
    """, **_V),
    case("config.Config", "", """
        given = {V_h: {'a': V_p}}
        config = Config(given)
        config.put(V_h, 'a', 1)
        ? given
        ? Config().sections()
        ? config.pairs(V_h)
    """, **_V),
    case("config.Config", "alone", """
        Config().put(V_h, 'a', 1)
        ? Config().sections()
    """, **_V),
    case("config.Config.put", "", """
        config = Config()
        config.put(V_h, 'Aa', V_p)
        config.put(V_h, 'b', 2)
        config.put(V_h, 'B', 3)
        ? config.pairs(V_h)
    """, **_V),
    case("config.Config.lookup", "", """
        config = Config({V_h: {'a': V_p}, 'x.y': {'b': 0}, K_MAIN: {'c': V_h}})
        ? config.lookup(V_h + '.A')
        ? config.lookup('C')
        ? config.lookup('x.y.b', 7)
        ? config.lookup(V_h + '.z', V_p)
        ? config.lookup('zz.a')
    """, **_V),
    case("config.Config.sections", "", """
        ? Config({V_h: {}, 'b': {}, 'a': {'x': 1}}).sections()
    """, **_V),
    case("config.Config.pairs", "", """
        config = Config({V_h: {'a': V_p}})
        config.pairs(V_h)['a'] = 0
        ? config.pairs(V_h)
        ? config.pairs('zz')
        ? config.sections()
    """, **_V),
    case("config.Config.merged", "", """
        one, other = Config({V_h: {'a': V_p, 'b': 1}}), Config({V_h: {'b': 2}, 'x': {'c': 3}})
        both = one.merged(other)
        ? [both.pairs(section) for section in both.sections()]
        ? one.pairs(V_h)
        ? other.pairs(V_h)
    """, **_V),
    case("config.Config.count", "", """
        ? Config({V_h: {'a': V_p, 'b': 1}, 'x': {'c': 3}, 'y': {}}).count()
        ? Config().count()
    """, **_V),
    case("config.parse_config", "", _TEXT, """
        config = parse_config(text)
        ? config.sections()
        ? config.pairs('net')
        ? config.pairs('log')
        ? config.lookup('top')
    """, **_V),
    case("config.parse_config", "over lines", """
        ? parse_config('[ ' + V_h + ' ]\\na = x\\\\\\n y\\nb=' + str(V_p)).pairs(V_h)
    """, **_V),
    case("config.parse_config", "what is wrong", """
        ! parse_config(V_h + '=1\\n' + V_h.upper() + '=2')
        ! parse_config('[ ]\\n')
        ! parse_config(V_h)
        ? parse_config('').sections()
    """, **_V),
    case("config.parse_config", "the same elsewhere", """
        config = parse_config('a=1\\n[' + V_h + ']\\na=2')
        ? (config.lookup('a'), config.lookup(V_h + '.a'))
    """, **_V),
    case("checks.missing_keys", "", _TEXT, """
        ? missing_keys(parse_config(text), ['net.zz', 'net.host', V_h, 'top', 'log.on'])
    """, **_V),
    case("checks.missing_keys", "of little", """
        ? missing_keys(Config({V_h: {'a': 0, 'b': False}}), [V_h + '.a', V_h + '.b'])
        ? missing_keys(Config(), [])
    """, **_V),
    case("checks.out_of_range", "", """
        config = Config({V_h: {'a': V_p, 'b': V_p, 'c': V_p}})
        ? out_of_range(config, {V_h + '.b': (V_p + 1, V_p + 2), V_h + '.a': (1, V_p - 1), V_h + '.c': (1, 9999)})
    """, **_V),
    case("checks.out_of_range", "at the limits", """
        config = Config({V_h: {'a': V_p, 'b': 0}})
        ? out_of_range(config, {V_h + '.a': (V_p, V_p), V_h + '.b': (1, 2), V_h + '.z': (0, 1)})
    """, **_V),
    case("checks.write_value", "", """
        ? [write_value(value) for value in (True, False, V_p, -V_p, V_h)]
    """, **_V),
    case("checks.write_value", "in quotes", """
        ? [write_value(value) for value in ('Yes', 'off', str(V_p), V_h + ' x', '')]
    """, **_V),
    case("checks.write_config", "", _TEXT, """
        ? write_config(parse_config(text))
        ? write_config(Config({V_h: {}}))
    """, **_V),
    case("checks.write_config", "in order", """
        ? write_config(Config({V_h: {'b': 1, 'a': True}, 'aa': {'c': V_p}}))
    """, **_V),
    case("checks.changed_paths", "", """
        one, other = Config({V_h: {'a': V_p, 'b': 1}, 'x': {'c': 3}}), Config({V_h: {'a': 0, 'b': 1, 'd': 5}})
        ? changed_paths(one, other)
        ? changed_paths(other, one)
        ? changed_paths(one, one)
    """, **_V),
)  # fmt: skip
"""Its cases."""
