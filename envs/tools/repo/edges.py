"""Values at and beyond the edges of what tests show, for functions whose docstrings say what is right there too.

A visible test calls a function with a few plain numbers, so that a wrong repair may be right for all of them. Hidden
ones of a function that was repaired draw from here as well: nothing, one, numbers below zero, equal ones, empty lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.repo.family import Chooser, whole, wholes

Edges = Mapping[str, Mapping[str, Chooser]]
"""``module.function``, or ``module.`` for all that are not named, -> word of a case -> what draws its value."""


def _around(most: int) -> Chooser:
    """Return what draws an integer of either sign, often a small one."""
    return lambda draw: draw.between(-1, 1) if draw.between(1, 3) == 1 else draw.between(-most, most)


def _large(draw: Draw) -> int:
    return draw.pick((-1, 1)) * draw.between(1_000, 5_000)


_ANY, _FEW, _SMALL = _around(99), whole(0, 3), whole(0, 9)
_LIST = wholes(0, 6, -20, 20)
_LONG = wholes(9, 12, -4, 4)
_EQUALS = wholes(8, 8, 1, 2)
_ONE_ANY = MappingProxyType({"V_a": _ANY})
_TWO_ANY = MappingProxyType({"V_a": _ANY, "V_b": _ANY})
_SETTING = MappingProxyType({"V_p": _around(9_999)})
_LISTS = MappingProxyType({"V_s": _LIST, "V_a": _ANY})
_TIMES = MappingProxyType({"V_t": _FEW, "V_k": _FEW})
EDGES: Mapping[str, Edges] = {
    "ledger": {
        "money.parse_amount": _ONE_ANY,
        "money.format_amount": {"V_a": _around(99_999), "V_b": _ANY},
        "money.split_evenly": {"V_a": _ANY, "V_n": whole(1, 9)},
        "money.fee_of": {"V_a": whole(0, 20)},
        "account.": {"V_l": _FEW},
        "ledger.Ledger.total": {"V_a": _SMALL, "V_b": whole(1, 99)},
        "ledger.Ledger.transfer": {"V_b": whole(1, 60)},
        "report.share_out": {"V_a": _SMALL},
    },
    "texts": {
        "naming.initials": {"V_n": _FEW},
        "layout.align": {"V_n": _FEW},
        "layout.number_lines": {"V_n": whole(0, 100)},
    },
    "schedule": {
        "clock.show_time": {"V_a": whole(0, 5_000), "V_b": whole(0, 1_500)},
        "clock.show_length": {"V_a": whole(0, 130), "V_b": whole(0, 59), "V_h": _FEW},
        "clock.round_up": {"V_a": _ANY, "V_b": whole(1, 20)},
        "span.Span.length": {"V_a": _ANY, "V_b": _FEW},
        "span.": {"V_a": _FEW},
        "plan.": {"V_a": _FEW},
    },
    "stock": {
        "item.": {"V_a": _SMALL, "V_b": _FEW},
        "store.Store.worth": {"V_a": _FEW, "V_b": _FEW, "V_n": whole(1, 9)},
        "order.Order.cost": {"V_a": _SMALL, "V_b": _SMALL, "V_n": whole(1, 9)},
        "order.missing": {"V_b": _FEW},
    },
    "calculator": {
        "values.apply_sign": _TWO_ANY,
        "values.evaluate": {"V_a": _ANY, "V_b": _SMALL, "V_c": _SMALL},
        "sheet.Sheet.assign": {"V_a": _SMALL, "V_b": _SMALL, "V_c": _SMALL},
        "sheet.run_lines": {"V_a": _FEW, "V_b": _SMALL, "V_c": _SMALL},
        "sheet.": _ONE_ANY,
    },
    "graph": {
        "graph.": {"V_l": _EQUALS},
        "routes.step_counts": {"V_l": _EQUALS},
        "routes.distances": {"V_l": _EQUALS, "V_a": _FEW},
        "routes.path_length": {"V_l": _EQUALS},
        "shape.degree_table": {"V_l": _EQUALS},
        "shape.subgraph": {"V_l": _EQUALS},
    },
    "units": {
        "scales.best_unit": {"V_a": _around(90_000)},
        "convert.convert": _ONE_ANY,
        "convert.to_smallest": {"V_a": _large, "V_b": _ANY},  # the case adds a whole km
        "convert.split_up": {"V_a": whole(0, 99)},
        "convert.to_fahrenheit": _ONE_ANY,
        "convert.to_celsius": _ONE_ANY,
        "quantity.Quantity.long_text": {"V_a": _SMALL},
        "quantity.parse_quantity": {"V_a": whole(0, 120)},
        "quantity.": _TWO_ANY,
        "lists.": _TWO_ANY,
    },
    "cache": {
        "entry.": _TIMES,
        "cache.Cache.has": _TIMES,
        "cache.Cache.time_left": _TIMES,
        "cache.Cache.rate": {"V_k": _SMALL},
        "using.replay": {"V_c": _around(4)},
    },
    "numbers": {
        "summary.": _LISTS,
        "ranks.group_by": {"V_s": _LIST},
        "ranks.": _LISTS,
        "series.longest_rise": {"V_s": _LONG, "V_a": _ANY},
        "series.peaks": {"V_s": _LONG, "V_a": _ANY},
        "series.": _LISTS,
    },
    "config": {
        "values.": {"V_p": _SMALL},
        "config.": _SETTING,
        "checks.out_of_range": _SETTING,
        "checks.write_value": _SETTING,
        "checks.write_config": _SETTING,
        "checks.changed_paths": _SETTING,
    },
}
"""Family -> its edges."""


def edges_of(family: str, module: str, function: str) -> Mapping[str, Chooser]:
    """Return what draws values at the edges for words of the cases about a function; empty where nobody says any."""
    edges = EDGES.get(family, {})
    return edges.get(f"{module}.{function}", edges.get(f"{module}.", {}))
