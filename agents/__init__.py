"""What acts: policies, the one loop that plays them, and how well they do.

Nothing here imports torch until a name that needs it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tetrathlon.agents.chat_policy import ChatPolicy
    from tetrathlon.agents.control import ControlPolicy
    from tetrathlon.agents.decisions import Decisions, Evaluation
    from tetrathlon.agents.evaluation import evaluate
    from tetrathlon.agents.language import LanguagePolicy
    from tetrathlon.agents.mpc import MPC
    from tetrathlon.agents.naming import make_policy
    from tetrathlon.agents.policy import Acted, ExpertPolicy, FunctionPolicy, Policy, RandomPolicy
    from tetrathlon.agents.result import Result
    from tetrathlon.agents.reward_model import RewardModel
    from tetrathlon.agents.rollout import Rollout, Start
    from tetrathlon.agents.sb3_policy import SB3Policy
    from tetrathlon.agents.smollm import smollm2
    from tetrathlon.agents.trainable import TrainablePolicy
    from tetrathlon.agents.vla import VLAPolicy

__all__ = [
    "MPC",
    "Acted",
    "ChatPolicy",
    "ControlPolicy",
    "Decisions",
    "Evaluation",
    "ExpertPolicy",
    "FunctionPolicy",
    "LanguagePolicy",
    "Policy",
    "RandomPolicy",
    "Result",
    "RewardModel",
    "Rollout",
    "SB3Policy",
    "Start",
    "TrainablePolicy",
    "VLAPolicy",
    "evaluate",
    "make_policy",
    "smollm2",
]

_HOMES = {
    "Acted": "policy",
    "ChatPolicy": "chat_policy",
    "ControlPolicy": "control",
    "Decisions": "decisions",
    "Evaluation": "decisions",
    "ExpertPolicy": "policy",
    "FunctionPolicy": "policy",
    "LanguagePolicy": "language",
    "MPC": "mpc",
    "Policy": "policy",
    "RandomPolicy": "policy",
    "Result": "result",
    "RewardModel": "reward_model",
    "Rollout": "rollout",
    "SB3Policy": "sb3_policy",
    "Start": "rollout",
    "TrainablePolicy": "trainable",
    "VLAPolicy": "vla",
    "evaluate": "evaluation",
    "make_policy": "naming",
    # Its module is not called smollm2: importing that would put the module where the function is to be.
    "smollm2": "smollm",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
