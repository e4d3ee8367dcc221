"""An inventory: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, names, whole, wholes

_STORE_OF = """
store = Store([Item('nut', V_a, ['m']), Item('bolt', V_b), Item('axle', 7, ['m', 'x'])])
store.put('nut', V_n)
store.put('bolt', 2)
"""
_V = {"V_a": whole(20, 900), "V_b": whole(20, 900), "V_n": whole(4, 9)}
CASES: tuple[Case, ...] = (
    case("item.Item", "", """
        item = Item(V_c, V_a, V_t)
        ? (item.code, item.price, item.tags)
        ? Item(V_c, 0).price
        ? Item(V_c, 1).tags
    """, V_c=name(), V_a=whole(1, 99), V_t=names(2)),
    case("item.Item", "that is none", """
        ! Item(V_c, -1)
        ! Item('', V_a)
    """, V_c=name(), V_a=whole(1, 99)),
    case("item.Item", "with tags of its own", """
        tags = V_t
        item = Item('x', V_a, tags)
        tags.append('late')
        ? item.has_tags(['late'])
    """, V_t=names(2), V_a=whole(1, 99)),
    case("item.Item.has_tags", "", """
        item = Item('x', V_a, V_t)
        ? item.has_tags(V_t[:1])
        ? item.has_tags(['late'] + V_t)
        ? item.has_tags(V_t + ['late'])
        ? item.has_tags([])
    """, V_t=names(2), V_a=whole(1, 99)),
    case("item.price_of", "of few", """
        ? price_of(Item('x', V_a), 1)
        ? price_of(Item('x', V_a), N_MANY - 1)
    """, V_a=whole(5, 999)),
    case("item.price_of", "of many", """
        ? price_of(Item('x', V_a), N_MANY)
        ? price_of(Item('x', V_a), N_MANY + V_b)
    """, V_a=whole(50, 999), V_b=whole(1, 20)),
    case("item.price_of", "of none", """
        ! price_of(Item('x', V_a), 0)
    """, V_a=whole(5, 999)),
    case("store.Store", "", _STORE_OF, """
        ? store.levels()
        ? Store().levels()
    """, **_V),
    case("store.Store.register", "", _STORE_OF, """
        ? store.register(Item('new', V_a, ['m']))
        ? store.register(Item('nut', V_b))
        ? store.item_of('nut').price
        ? store.level('nut')
        ? store.item_of('new').tags
        ? store.levels()
    """, **_V),
    case("store.Store.item_of", "", _STORE_OF, """
        ? store.item_of('bolt').price
        ! store.item_of('zzz')
    """, **_V),
    case("store.Store.codes", "", _STORE_OF, """
        ? store.codes()
        ? store.codes(['m'])
        ? store.codes(['m', 'x'])
    """, **_V),
    case("store.Store.level", "", _STORE_OF, """
        ? store.level('nut')
        ? store.level('axle')
        ? store.level('zzz')
    """, **_V),
    case("store.Store.put", "", _STORE_OF, """
        ? store.put('nut', V_b)
        ? store.put('nut', 1)
        ! store.put('nut', 0)
        ! store.put('zzz', 1)
        ? store.levels()
    """, **_V),
    case("store.Store.take", "", _STORE_OF, """
        ? store.take('nut', 2)
        ? store.level('nut')
        ? store.take('nut', V_n - 2)
        ! store.take('nut', 1)
    """, **_V),
    case("store.Store.take", "too many", _STORE_OF, """
        ! store.take('nut', V_n + 1)
        ? store.levels()
    """, **_V),
    case("store.Store.levels", "is a copy", _STORE_OF, """
        store.levels()['nut'] = 0
        ? store.level('nut')
    """, **_V),
    case("store.Store.worth", "", _STORE_OF, """
        ? store.worth()
        ? Store().worth()
    """, **_V),
    case("order.Order", "", """
        wanted = {V_c: V_n}
        order = Order(V_o, wanted)
        order.want(V_c)
        ? order.wanted
        ? wanted
        ? order.buyer
    """, V_c=name(), V_o=name(), V_n=whole(2, 9)),
    case("order.Order", "alone", """
        Order(V_o).want(V_c)
        ? Order(V_o).wanted
    """, V_c=name(), V_o=name()),
    case("order.Order.want", "", """
        order = Order(V_o)
        order.want(V_c, V_n)
        order.want(V_c)
        order.want('z')
        ? order.wanted
    """, V_c=name(), V_o=name(), V_n=whole(2, 9)),
    case("order.Order.drop", "", """
        order = Order(V_o, {V_c: V_n})
        ? order.drop(V_c)
        ? order.drop(V_c)
        ? order.wanted
    """, V_c=name(), V_o=name(), V_n=whole(2, 9)),
    case("order.Order.cost", "", _STORE_OF, """
        ? Order('x', {'nut': V_n, 'bolt': 1}).cost(store)
        ? Order('x').cost(store)
    """, **_V),
    case("order.Order.cost", "at the limit", """
        store = Store([Item('a', N_FREE), Item('b', N_FREE - 1)])
        ? Order(V_o, {'a': 1}).cost(store)
        ? Order(V_o, {'b': 1}).cost(store)
    """, V_o=name()),
    case("order.Order.cost", "of many", """
        store = Store([Item('a', V_a), Item('b', V_b)])
        ? Order('x', {'a': N_MANY, 'b': N_MANY + 1}).cost(store)
    """, V_a=whole(400, 999), V_b=whole(400, 999)),
    case("order.missing", "", _STORE_OF, """
        ? missing(Order('x', {'nut': V_n, 'bolt': V_b, 'zzz': 1}), store)
        ? store.levels()
    """, **_V),
    case("order.missing", "nothing", _STORE_OF, """
        ? missing(Order('x', {'nut': V_n}), store)
    """, **_V),
    case("order.fulfil", "", _STORE_OF, """
        order = Order('x', {'nut': V_n, 'bolt': 1})
        ? fulfil(order, store)
        ? store.levels()
        ? order.wanted
    """, **_V),
    case("order.fulfil", "what is missing", _STORE_OF, """
        ! fulfil(Order('x', {'nut': 1, 'bolt': 3}), store)
        ? store.levels()
    """, **_V),
    case("reports.scarce", "", """
        store = Store([Item(code, 1) for code in V_c])
        for code, count in zip(V_c, V_n): store.put(code, count)
        ? scarce(store, 4)
        ? scarce(store, 1)
    """, V_c=names(5), V_n=wholes(5, 5, 1, 6)),
    case("reports.scarce", "by itself", """
        store = Store([Item(code, V_n) for code in 'abc'])
        store.put('a', N_LOW)
        store.put('b', N_LOW - 1)
        ? scarce(store)
    """, V_n=whole(1, 9)),
    case("reports.refill", "", _STORE_OF, """
        ? refill(store, 4)
        ? store.levels()
        ? refill(store, 4)
    """, **_V),
    case("reports.refill", "by itself", """
        store = Store([Item('a', V_n)])
        ? refill(store)
    """, V_n=whole(1, 9)),
    case("reports.serve_all", "", _STORE_OF, """
        orders = [Order('p', {'nut': 9, 'bolt': 9}), Order('q', {'nut': 1})]
        orders += [Order('r', {'bolt': 3}), Order('s', {'bolt': 2})]
        ? serve_all(orders, store)
        ? store.levels()
    """, **_V),
    case("reports.list_levels", "", _STORE_OF, """
        ? list_levels(store)
        ? list_levels(store, ['x'])
    """, **_V),
)  # fmt: skip
"""Its cases."""
