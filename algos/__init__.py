"""What learns: algorithms over decisions, blind to domains, tokenizers and simulators."""

from tetrathlon.algos.callbacks import Callback, EarlyStop, Evaluate, Guard
from tetrathlon.algos.imitation import clone
from tetrathlon.algos.on_policy import DAPO, GRPO, GSPO, PPO, REINFORCE, RLOO, DrGRPO, OnPolicy
from tetrathlon.algos.run import RunError
from tetrathlon.algos.tracking import TensorBoard, Tracker, WandB

__all__ = [
    "DAPO",
    "GRPO",
    "GSPO",
    "PPO",
    "REINFORCE",
    "RLOO",
    "Callback",
    "DrGRPO",
    "EarlyStop",
    "Evaluate",
    "Guard",
    "OnPolicy",
    "RunError",
    "TensorBoard",
    "Tracker",
    "WandB",
    "clone",
]
