"""What learns: algorithms over decisions, blind to domains, tokenizers and simulators."""

from collections.abc import Mapping
from typing import Any

from tetrathlon.algos import on_policy, preference_learning
from tetrathlon.algos.callbacks import Callback, EarlyStop, Evaluate, Guard
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.imitation import BC, clone
from tetrathlon.algos.offline import AWAC, AWR, CQL, IQL, TD3BC, Offline, ReBRAC
from tetrathlon.algos.on_policy import DAPO, GRPO, GSPO, PPO, REINFORCE, RLOO, DrGRPO, OnPolicy
from tetrathlon.algos.pairs import Pair, agreement, paired
from tetrathlon.algos.preference_learning import DPO, IPO, KTO, ORPO, PreferenceLearning, SimPO
from tetrathlon.algos.rejection import RAFT, FilteredBC
from tetrathlon.algos.reward_learning import BradleyTerry
from tetrathlon.algos.run import RunError
from tetrathlon.algos.tracking import TensorBoard, Tracker, WandB
from tetrathlon.algos.trainer import Trainer

ALGORITHMS: Mapping[str, type[Trainer[Any]]] = {
    **on_policy.ALGORITHMS,
    **{algorithm.__name__.lower(): algorithm for algorithm in (BC, DAgger, FilteredBC, RAFT)},
    **{algorithm.__name__.lower(): algorithm for algorithm in (AWR, AWAC, IQL, TD3BC, ReBRAC, CQL)},
    **preference_learning.ALGORITHMS,
    "bradleyterry": BradleyTerry,
}
"""All that learns in runs, by the names of the command line."""

__all__ = [
    "ALGORITHMS",
    "AWAC",
    "AWR",
    "BC",
    "CQL",
    "DAPO",
    "DPO",
    "GRPO",
    "GSPO",
    "IPO",
    "IQL",
    "KTO",
    "ORPO",
    "PPO",
    "RAFT",
    "REINFORCE",
    "RLOO",
    "TD3BC",
    "BradleyTerry",
    "Callback",
    "DAgger",
    "DrGRPO",
    "EarlyStop",
    "Evaluate",
    "FilteredBC",
    "Guard",
    "Offline",
    "OnPolicy",
    "Pair",
    "PreferenceLearning",
    "ReBRAC",
    "RunError",
    "SimPO",
    "TensorBoard",
    "Tracker",
    "Trainer",
    "WandB",
    "agreement",
    "clone",
    "paired",
]
