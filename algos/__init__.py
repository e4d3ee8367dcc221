"""What learns: algorithms over decisions, blind to domains, tokenizers and simulators."""

from collections.abc import Mapping
from typing import Any

from tetrathlon.algos import on_policy
from tetrathlon.algos.callbacks import Callback, EarlyStop, Evaluate, Guard
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.imitation import BC, clone
from tetrathlon.algos.on_policy import DAPO, GRPO, GSPO, PPO, REINFORCE, RLOO, DrGRPO, OnPolicy
from tetrathlon.algos.run import RunError
from tetrathlon.algos.tracking import TensorBoard, Tracker, WandB
from tetrathlon.algos.trainer import Trainer

ALGORITHMS: Mapping[str, type[Trainer[Any]]] = {**on_policy.ALGORITHMS, "bc": BC, "dagger": DAgger}
"""All that learns in runs, by the names of the command line."""

__all__ = [
    "ALGORITHMS",
    "BC",
    "DAPO",
    "GRPO",
    "GSPO",
    "PPO",
    "REINFORCE",
    "RLOO",
    "Callback",
    "DAgger",
    "DrGRPO",
    "EarlyStop",
    "Evaluate",
    "Guard",
    "OnPolicy",
    "RunError",
    "TensorBoard",
    "Tracker",
    "Trainer",
    "WandB",
    "clone",
]
