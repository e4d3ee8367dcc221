"""A converter of units: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, of, whole

_UNITS = of("cm", "m", "km", "kg", "t", "min", "h", "d")
CASES: tuple[Case, ...] = (
    case("scales.kind_of", "", """
        ? kind_of(V_u)
        ! kind_of(V_n)
    """, V_u=_UNITS, V_n=name(4, 6)),
    case("scales.factor_of", "", """
        ? factor_of(V_u)
        ? factor_of('mm')
        ! factor_of(V_n)
    """, V_u=_UNITS, V_n=name(4, 6)),
    case("scales.units_of", "", """
        ? units_of(V_k)
        ? units_of(V_n)
    """, V_k=of("length", "weight", "time"), V_n=name(4, 5)),
    case("scales.best_unit", "", """
        ? best_unit(V_a, 'length')
        ? best_unit(V_a, 'weight')
        ? best_unit(V_a, 'time')
    """, V_a=whole(1, 90_000)),
    case("scales.best_unit", "at the edges", """
        amount = factor_of(V_u)
        ? best_unit(amount, kind_of(V_u))
        ? best_unit(amount - 1, kind_of(V_u))
        ? best_unit(-amount, kind_of(V_u))
        ? best_unit(0, kind_of(V_u))
    """, V_u=_UNITS),
    case("convert.convert", "", """
        ? convert(V_a, 'm', 'cm')
        ? convert(V_a, 'g', 'kg')
        ? convert(V_a, 'min', 'h')
    """, V_a=whole(10, 999)),
    case("convert.convert", "to places", """
        ? convert(V_a, 's', 'h', 3)
        ? convert(V_a, 'min', 'd', 0)
    """, V_a=whole(1_000, 99_999)),
    case("convert.convert", "of other kinds", """
        ! convert(V_a, 'm', 'kg')
        ! convert(V_a, V_n, 'm')
    """, V_a=whole(10, 999), V_n=name(4, 5)),
    case("convert.to_smallest", "", """
        ? to_smallest([(V_a, 'm'), (V_b, 'cm'), (1, 'km')])
        ? to_smallest([])
    """, V_a=whole(2, 99), V_b=whole(2, 99)),
    case("convert.to_smallest", "of other kinds", """
        ! to_smallest([(V_a, 'm'), (V_b, 'kg')])
        ! to_smallest([(V_a, 'h'), (1, 's'), (V_b, 'kg')])
    """, V_a=whole(2, 99), V_b=whole(2, 99)),
    case("convert.split_up", "", """
        ? split_up(V_a, 'time')
        ? split_up(V_a, 'length')
    """, V_a=whole(4_000, 99_999)),
    case("convert.split_up", "with gaps", """
        ? split_up(V_a * 1000, 'weight')
        ? split_up(3600 * V_a + 1, 'time')
        ? split_up(0, 'time')
        ! split_up(-V_a, 'time')
    """, V_a=whole(2, 22)),
    case("convert.to_fahrenheit", "", """
        ? to_fahrenheit(V_a)
        ? to_fahrenheit(-40)
    """, V_a=whole(-30, 99)),
    case("convert.to_celsius", "", """
        ? to_celsius(V_a)
        ? to_celsius(32)
    """, V_a=whole(-30, 199)),
    case("quantity.Quantity", "", """
        one = Quantity(V_a, V_u)
        ? (one.amount, one.unit, one.kind)
        ! Quantity(V_a, '')
    """, V_a=whole(2, 99), V_u=_UNITS),
    case("quantity.Quantity.size", "", """
        ? Quantity(V_a, V_u).size()
    """, V_a=whole(2, 99), V_u=_UNITS),
    case("quantity.Quantity.in_unit", "", """
        one = Quantity(V_a, 'm')
        ? one.in_unit('cm').text()
        ? one.in_unit('km').text()
        ? one.text()
        ! one.in_unit('s')
    """, V_a=whole(100, 9_900)),
    case("quantity.Quantity.plus", "", """
        one = Quantity(V_a, 'm')
        ? one.plus(Quantity(V_b, 'km')).text()
        ? one.plus(Quantity(V_b, 'cm')).text()
        ? one.text()
        ! one.plus(Quantity(V_b, 'g'))
    """, V_a=whole(2, 99), V_b=whole(2, 99)),
    case("quantity.Quantity.times", "", """
        one = Quantity(V_a, V_u)
        ? one.times(V_b).text()
        ? one.text()
    """, V_a=whole(2, 99), V_b=whole(3, 9), V_u=_UNITS),
    case("quantity.Quantity.is_more", "", """
        one, other = Quantity(V_a, 'm'), Quantity(100 * V_a, 'cm')
        ? one.is_more(other)
        ? one.is_more(Quantity(100 * V_a - 1, 'cm'))
        ? one.is_more(Quantity(100 * V_a - 1, 'cm'), 10)
        ? one.is_more(Quantity(100 * V_a - 2, 'cm'), 10)
    """, V_a=whole(2, 99)),
    case("quantity.Quantity.text", "", """
        ? Quantity(V_a, V_u).text()
    """, V_a=whole(2, 99), V_u=_UNITS),
    case("quantity.Quantity.long_text", "", """
        ? Quantity(V_a, 's').long_text()
        ? Quantity(V_a, 'cm').long_text()
        ? Quantity(0, V_u).long_text()
    """, V_a=whole(2_000, 9_999), V_u=_UNITS),
    case("quantity.parse_quantity", "", """
        one = parse_quantity(str(V_a) + ' ' + V_u)
        ? (one.amount, one.unit)
        other = parse_quantity(' -' + str(V_a) + V_u + ' ')
        ? (other.amount, other.unit)
        ! parse_quantity(V_u)
    """, V_a=whole(2, 99), V_u=_UNITS),
    case("quantity.in_best_unit", "", """
        ? in_best_unit(Quantity(V_a, 'cm')).text()
        ? in_best_unit(Quantity(V_a, 's')).text()
        ? in_best_unit(Quantity(1, 'g')).text()
    """, V_a=whole(2, 9_999)),
    case("lists.read_list", "", """
        found = read_list(['rope: ' + str(V_a) + ' m', '', V_n + ' :3kg', K_MARK + 'x: 1 m', 'rope:50 cm'])
        ? {key: one.text() for key, one in found.items()}
        ? read_list([])
    """, V_a=whole(2, 99), V_n=name()),
    case("lists.scale_list", "", """
        some = {V_n: Quantity(V_a, 'm'), 'z': Quantity(2, 'h')}
        ? [one.text() for one in scale_list(some, V_b).values()]
        ? [one.text() for one in some.values()]
    """, V_a=whole(2, 99), V_b=whole(3, 9), V_n=name()),
    case("lists.largest_of", "", """
        some = {V_n: Quantity(V_a, 'cm'), 'p': Quantity(V_b, 'm'), 'q': Quantity(100 * V_b, 'cm')}
        some.update({'r': Quantity(999, 'km'), 's': Quantity(1, 'g')})
        ? largest_of(some, 'length')
        ? largest_of(some, 'weight')
        ? largest_of(some, 'time')
        some.pop('r')
        ? largest_of(some, 'length')
    """, V_a=whole(2, 900), V_b=whole(3, 9), V_n=name()),
    case("lists.total_of", "", """
        some = {V_n: Quantity(V_a, 'm'), 'p': Quantity(V_b, 'km'), 'q': Quantity(5, 'kg')}
        ? total_of(some, 'm').text()
        ? total_of(some, 'g').text()
        ? total_of(some, 's').text()
    """, V_a=whole(2, 900), V_b=whole(3, 9), V_n=name()),
    case("lists.show_list", "", """
        ? show_list({'x' + V_n: Quantity(V_a, 'cm'), 'p': Quantity(V_b * 60, 's'), 'ab': Quantity(V_a, 'g')})
        ? show_list({})
    """, V_a=whole(2, 9_900), V_b=whole(3, 99), V_n=name()),
)  # fmt: skip
"""Its cases."""
