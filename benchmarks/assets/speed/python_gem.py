"""gem's Python tool."""

from gem.tools.python_code_tool import PythonCodeTool
from python_call import episodes_of

PACKAGES = ("gem-llm",)


def start():
    """Return ``episodes``."""
    tool = PythonCodeTool(timeout=5)
    return episodes_of(lambda code: tool.execute_action(f"<python>{code}</python>")[2])
