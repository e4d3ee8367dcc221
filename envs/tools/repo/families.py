"""All families by their names."""

from __future__ import annotations

from collections.abc import Mapping

from tetrathlon.envs.tools.repo.family import Family
from tetrathlon.envs.tools.repo.family_cache import CACHE
from tetrathlon.envs.tools.repo.family_calculator import CALCULATOR
from tetrathlon.envs.tools.repo.family_config import CONFIG
from tetrathlon.envs.tools.repo.family_graph import GRAPH
from tetrathlon.envs.tools.repo.family_ledger import LEDGER
from tetrathlon.envs.tools.repo.family_numbers import NUMBERS
from tetrathlon.envs.tools.repo.family_schedule import SCHEDULE
from tetrathlon.envs.tools.repo.family_stock import STOCK
from tetrathlon.envs.tools.repo.family_texts import TEXTS
from tetrathlon.envs.tools.repo.family_units import UNITS

FAMILIES: Mapping[str, Family] = {
    family.name: family for family in (LEDGER, TEXTS, SCHEDULE, STOCK, CALCULATOR, GRAPH, UNITS, CACHE, NUMBERS, CONFIG)
}
"""Name -> family."""
