"""The sandbox of the tool environments, with its default limits."""

from python_call import episodes_of

from tetrathlon.envs.sandbox import shared

PACKAGES = ("tetrathlon",)


def start():
    """Return ``episodes``."""
    sandbox = shared()
    return episodes_of(lambda code: sandbox.run(code).stdout)
