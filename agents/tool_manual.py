"""What a model is told of its tools where its chat template has no place for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def with_manual(system: str, tools: Sequence[Any]) -> str:
    """Return a system message that describes the tools, and how they are called, behind what it says.

    Args:
        system: What it says; may be empty.
        tools: As ``info["tools"]`` holds them.
    """
    functions = [tool.get("function", tool) if isinstance(tool, dict) else tool for tool in tools]
    manual = "\n".join(
        [
            "You have these tools:",
            *(json.dumps(function, ensure_ascii=False) for function in functions),
            "To use one, write",
            '<tool_call>{"name": "its name", "arguments": {"an argument": "its value"}}</tool_call>',
            "and nothing behind it. The next message is what the tool says.",
        ]
    )
    return f"{system}\n\n{manual}" if system else manual
