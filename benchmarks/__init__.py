"""What is measured: suites of environments, the bench that runs them, and its report."""

from tetrathlon.benchmarks.suites import SUITES, Entry, Suite

__all__ = ["SUITES", "Entry", "Suite"]
