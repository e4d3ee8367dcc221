"""SkyRL-Gym's Python tool."""

from python_call import episodes_of
from skyrl_gym.tools import PythonCodeExecutorToolGroup

PACKAGES = ("skyrl-gym",)


def start():
    """Return ``episodes``."""
    return episodes_of(PythonCodeExecutorToolGroup().python)
