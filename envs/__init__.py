"""What the agent meets: Gymnasium environments of every domain, and the record of what happened.

Nothing here imports torch.
"""

from typing import TYPE_CHECKING, Any

from tetrathlon.envs.action_chunk import ActionChunk
from tetrathlon.envs.episode import Episode, Step, load_episodes, save_episodes
from tetrathlon.envs.registry import listings, load_plugins, make, register
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText
from tetrathlon.envs.vector_slots import VectorSlots

if TYPE_CHECKING:
    from tetrathlon.envs.contract import ContractError, check, replay

__all__ = [
    "ActionChunk",
    "ContractError",
    "Episode",
    "Slots",
    "Step",
    "UnicodeText",
    "VectorSlots",
    "check",
    "listings",
    "load_episodes",
    "load_plugins",
    "make",
    "register",
    "replay",
    "save_episodes",
]


def __getattr__(name: str) -> Any:
    # The contract's checks are for whoever writes or tests an environment: imported when they are asked for.
    if name in ("ContractError", "check", "replay"):
        from tetrathlon.envs import contract

        return getattr(contract, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
