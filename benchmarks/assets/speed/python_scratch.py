"""A new interpreter for every program, as bare as there is one: no site packages, no limits."""

import subprocess
import sys

from python_call import episodes_of

PACKAGES = ()


def start():
    """Return ``episodes``."""

    def run(code):
        return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True).stdout

    return episodes_of(run)
