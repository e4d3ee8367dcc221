"""Our updates: ``python update_tetrathlon.py OPTIONS``; prints a line of JSON. Drawing the batch is part of each."""

import json
import sys
import time
from dataclasses import replace
from importlib.metadata import version

import numpy as np
from gymnasium import spaces
from log import ACTION, OBSERVATION, arrays

from tetrathlon.agents import ControlPolicy
from tetrathlon.algos import IQL, TD3BC
from tetrathlon.algos.replay import Replay
from tetrathlon.envs.episode import Episode, Step

options = json.loads(sys.argv[1])
log = [
    Episode(
        [Step(seen[t], done[t], float(reward), truncated=t == len(paid) - 1) for t, reward in enumerate(paid)],
        final_observation=seen[-1],
    )
    for seen, done, paid in zip(*arrays(options["seed"]), strict=True)
]
policy = ControlPolicy(
    spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float32),
    spaces.Box(-1.0, 1.0, (ACTION,), np.float32),
    hidden=(256, 256),
    activation="relu",
    squash=options["algorithm"] == "td3bc",
    normalize_observations=options["algorithm"] == "td3bc",
    seed=options["seed"],
)
algorithm = {"iql": IQL, "td3bc": TD3BC}[options["algorithm"]]
learner = algorithm.Learner(policy, algorithm.Options(steps=20, batch_size=options["batch_size"]))
replay = Replay(policy, log)
learner.update(replay)
learner.options = replace(learner.options, steps=options["steps"])
wall, cpu = time.perf_counter(), time.process_time()
learner.update(replay)
told = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
print(json.dumps({**told, "versions": {name: version(name) for name in ("tetrathlon", "torch", "numpy")}}))
