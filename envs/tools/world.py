"""What the tools of one episode work on."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar

from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.tool import Tool, is_tool


class World:
    """What the tools of one episode work on: its methods marked with :func:`~tetrathlon.envs.tools.tool.tool`.

    One is made for each episode. What it is given of a frozen task it must copy before it changes it. Its state is all
    of its attributes, unless a subclass says otherwise.
    """

    _described: ClassVar[tuple[tuple[str, Tool], ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        names = dict.fromkeys(name for base in reversed(cls.__mro__) for name, f in vars(base).items() if is_tool(f))
        cls._described = tuple((name, Tool.of(getattr(cls, name))) for name in names)

    def tools(self) -> dict[str, Tool]:
        """Return the tools by name, in the order in which they are described."""
        return {
            said.name: Tool(said.name, said.description, said.parameters, partial(said.function, self))
            for _, said in self._described
        }

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return the texts of which calls are made, around the values of their arguments."""
        return tuple(dict.fromkeys(piece for _, tool in cls._described for piece in _pieces(tool)))

    def get_state(self) -> Any:
        """Return a copy of the state, from which :meth:`set_state` restores it."""
        return copy.deepcopy(vars(self))

    def set_state(self, state: Any) -> None:
        """Restore what :meth:`get_state` returned, and leave that as it is."""
        vars(self).clear()
        vars(self).update(copy.deepcopy(state))

    def close(self) -> None:
        """Let go of what the world holds."""


def _pieces(tool: Tool) -> list[str]:
    """Return a call of ``tool`` with texts for arguments, without those."""
    return write_call(tool.name, dict.fromkeys(tool.parameters["properties"], "\0")).split("\\u0000")
