"""Tetrathlon: language, tool, vision and robot tasks as Gymnasium environments, and one algorithm layer over them.

Importing it registers every environment with Gymnasium.
"""

from tetrathlon.agents.naming import SCHEMES
from tetrathlon.envs.registry import listings, load_plugins, make, register

__version__ = "0.1.0"
__all__ = ["__version__", "listings", "load_plugins", "make"]

register()
# Agents may not know of algos; the front door knows both.
SCHEMES["run"] = "tetrathlon.algos.trained:trained_policy"
SCHEMES["bc"] = "tetrathlon.algos.cloned:cloned_policy"
