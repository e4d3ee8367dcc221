"""A cache: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, names, whole, wholes

_FILL = """
cache = Cache(3, keep=V_k)
warm_up(cache, [('a', 1), ('b', 2), ('c', 3)], V_t)
"""
_T = {"V_t": whole(1, 99)}
_TK = {"V_t": whole(1, 99), "V_k": whole(5, 40)}
_MANY = """
entries = {}
for place, key in enumerate(V_n): entries[key] = Entry(place, V_m[place])
"""
_VM = {"V_n": names(5), "V_m": wholes(5, 5, 10, 30)}
CASES: tuple[Case, ...] = (
    case("entry.Entry", "", """
        entry = Entry(V_v, V_t, V_k)
        ? (entry.value, entry.made, entry.used, entry.keep, entry.hits)
        ? Entry(V_v, V_t).keep
    """, V_v=name(), **_TK),
    case("entry.Entry.is_old", "", """
        entry = Entry(1, V_t, V_k)
        ? [entry.is_old(V_t + V_k + more) for more in (-1, 0, 1)]
        ? Entry(1, V_t).is_old(V_t + 9999)
    """, **_TK),
    case("entry.Entry.touch", "", """
        entry = Entry(V_v, V_t)
        ? entry.touch(V_t + 5)
        ? entry.touch(V_t + 7)
        ? (entry.made, entry.used, entry.hits)
    """, V_v=name(), **_T),
    case("entry.Entry.renew", "", """
        entry = Entry(V_v, V_t)
        entry.touch(V_t + 5)
        entry.renew('w', V_t + 9)
        ? (entry.value, entry.made, entry.used, entry.hits)
    """, V_v=name(), **_T),
    case("entry.rest_of", "", """
        entry = Entry(1, V_t, V_k)
        ? [rest_of(entry, V_t + more) for more in (0, 3, V_k, V_k + 1, V_k + 9)]
        ? rest_of(Entry(1, V_t), 0)
    """, **_TK),
    case("choice.pick_oldest", "", _MANY, """
        ? pick_oldest(entries)
        ? pick_oldest({})
    """, **_VM),
    case("choice.pick_oldest", "of equals", """
        entries = {key: Entry(0, V_t) for key in V_n}
        ? pick_oldest(entries)
        entries[V_n[1]].touch(0)
        ? pick_oldest(entries)
    """, V_n=names(3), **_T),
    case("choice.pick_unused", "", _MANY, """
        entries[V_n[0]].touch(V_m[1] + 5)
        ? pick_unused(entries)
        ? pick_unused({})
    """, **_VM),
    case("choice.pick_unused", "of equals", """
        entries = {key: Entry(0, V_t) for key in V_n}
        entries[V_n[1]].touch(0)
        ? pick_unused(entries)
        ? pick_unused({key: Entry(0, V_t) for key in V_n})
    """, V_n=names(3), **_T),
    case("choice.pick_rare", "", _MANY, """
        for key in V_n[:3]: entries[key].touch(40)
        ? pick_rare(entries)
        ? pick_rare({})
    """, **_VM),
    case("choice.pick_rare", "of equals", """
        entries = {key: Entry(0, V_t) for key in V_n}
        for place, key in enumerate(V_n): entries[key].touch(V_t + 3 - place)
        ? pick_rare(entries)
        ? pick_rare({key: Entry(0, V_t) for key in V_n})
    """, V_n=names(3), **_T),
    case("choice.pick_by", "", _MANY, """
        for key in V_n[1:]: entries[key].touch(V_m[0] + 1)
        ? [pick_by(rule, entries) for rule in ('oldest', 'unused', 'rare')]
        ! pick_by('other', entries)
    """, **_VM),
    case("cache.Cache", "", """
        cache = Cache()
        ? (cache.room, cache.rule, cache.keep, cache.found, cache.missed, cache.stored())
        ? Cache(V_t, 'rare', 3).room
        ? Cache(1).room
        ! Cache(0)
    """, **_T),
    case("cache.Cache", "alone", """
        one, other = Cache(), Cache()
        one.store(V_k, 1, 0)
        ? other.stored()
    """, V_k=name()),
    case("cache.Cache.has", "", _FILL, """
        ? cache.has('a', V_t + V_k)
        ? cache.has('a', V_t + V_k + 1)
        ? cache.has('z', V_t)
        ? (cache.found, cache.missed)
    """, **_TK),
    case("cache.Cache.read", "", _FILL, """
        ? cache.read('b', V_t + 4)
        ? cache.read('z', V_t + 4)
        ? cache.read('a', V_t + 99, V_k)
        ? (cache.found, cache.missed)
    """, **_TK),
    case("cache.Cache.read", "is a use", """
        cache = Cache(2)
        cache.store('a', 1, V_t)
        cache.store('b', 2, V_t + 1)
        ? cache.read('a', V_t + 2)
        ? cache.store('c', 3, V_t + 3)
    """, **_T),
    case("cache.Cache.store", "", """
        cache = Cache(3)
        warm_up(cache, [('a', 1), ('b', 2), ('c', 3)], V_t)
        ? cache.store('b', 9, V_t + 5)
        ? cache.stored()
        ? cache.store('d', 4, V_t + 6)
        ? cache.read('b', V_t + 7)
        ? cache.stored()
    """, **_T),
    case("cache.Cache.store", "into little room", """
        cache = Cache(1)
        ? cache.store(V_k, 1, V_t)
        ? cache.store('zz', 1, V_t)
        ? cache.stored()
    """, V_k=name(), **_T),
    case("cache.Cache.store", "by age", """
        cache = Cache(3, 'oldest')
        warm_up(cache, [('c', 1), ('b', 2), ('a', 3)], V_t)
        ? cache.read('c', V_t + 5)
        ? cache.store('d', 4, V_t + 6)
    """, **_T),
    case("cache.Cache.store", "after the old", _FILL, """
        ? cache.store('d', 4, V_t + V_k + 1)
        ? cache.stored()
        ? cache.read('d', V_t + V_k + V_k + 1)
    """, **_TK),
    case("cache.Cache.clean", "", _FILL, """
        ? cache.clean(V_t + V_k)
        ? cache.clean(V_t + V_k + 2)
        ? cache.stored()
        ? cache.clean(V_t + V_k + 2)
    """, **_TK),
    case("cache.Cache.stored", "", """
        cache = Cache(9)
        for key in V_n: cache.store(key, 0, V_t)
        ? cache.stored()
    """, V_n=names(4), **_T),
    case("cache.Cache.time_left", "", _FILL, """
        ? cache.time_left('b', V_t + 3)
        ? cache.time_left('b', V_t + 99)
        ? cache.time_left('z', V_t)
        other = Cache()
        other.store('a', 1, 0)
        ? other.time_left('a', V_t)
    """, **_TK),
    case("cache.Cache.rate", "", """
        cache = Cache()
        ? cache.rate()
        cache.store('a', 1, 0)
        for key in 'a' * V_k + 'zz': cache.read(key, 1)
        ? cache.rate()
    """, V_k=whole(1, 20)),
    case("using.Remembered", "", """
        one = Remembered(len)
        ? (one.calls, one.cache.room, one.cache.stored())
        ? Remembered(len, Cache(V_t)).cache.room
    """, **_T),
    case("using.Remembered.ask", "", """
        one = Remembered(len, Cache(2, keep=V_k))
        ? [one.ask(V_n), one.ask(V_n), one.ask('z'), one.ask(V_n, V_k)]
        ? one.calls
        ? one.ask(V_n, V_k + 1)
        ? (one.calls, one.cache.found, one.cache.missed)
    """, V_n=name(), V_k=whole(2, 20)),
    case("using.Remembered.ask", "for nothing", """
        one = Remembered({'a': V_n}.get)
        ? [one.ask('a'), one.ask('z'), one.ask('z')]
        ? one.calls
    """, V_n=name()),
    case("using.warm_up", "", """
        cache = Cache(2)
        ? warm_up(cache, [('a', 1), ('b', 2), ('c', 3), ('b', 4), ('d', 5)], V_t)
        ? cache.stored()
        ? cache.read('b', V_t)
        ? warm_up(cache, [], V_t)
    """, **_T),
    case("using.warm_up", "with old ones", """
        cache = Cache(9, keep=1)
        warm_up(cache, [('a', 1), ('b', 2), ('c', 3)], V_t)
        ? [cache.has(key, V_t + 2) for key in 'abc']
    """, **_T),
    case("using.replay", "", """
        cache = Cache(3)
        ? replay(cache, V_s)
        ? (cache.found, cache.missed)
        ? replay(cache, V_s, 2)
        ? cache.stored()
    """, V_s=wholes(9, 12, 1, 6)),
    case("using.replay", "with a cost", """
        cache = Cache(9)
        ? replay(cache, V_s, V_c)
        ? [cache.read(key, 99) for key in V_s]
    """, V_s=wholes(3, 5, 1, 6), V_c=whole(2, 9)),
    case("using.compare_rules", "", """
        ? compare_rules(V_s, 3)
    """, V_s=wholes(12, 16, 1, 6)),
    case("using.compare_rules", "that are few", """
        ? compare_rules(V_s, 2, ['rare'])
    """, V_s=wholes(9, 12, 1, 4)),
)  # fmt: skip
"""Its cases."""
