"""Updates of d3rlpy: ``python update_d3rlpy.py OPTIONS``; prints a line of JSON. Drawing the batch is part of each."""

import json
import sys
import time
from importlib.metadata import version

import d3rlpy
import numpy as np
from log import arrays

options = json.loads(sys.argv[1])
observations, actions, rewards = arrays(options["seed"])
ends = np.zeros(rewards.shape, np.float32)
ends[:, -1] = 1
data = d3rlpy.dataset.MDPDataset(
    observations[:, :-1].reshape(-1, observations.shape[-1]),
    actions.reshape(-1, actions.shape[-1]),
    rewards.reshape(-1, 1),
    np.zeros(rewards.size, np.float32),
    timeouts=ends.reshape(-1),
)
config = {"iql": d3rlpy.algos.IQLConfig, "td3bc": d3rlpy.algos.TD3PlusBCConfig}[options["algorithm"]]
learner = config(batch_size=options["batch_size"]).create(device="cpu:0")
learner.build_with_dataset(data)


def update(steps):
    """Draw a batch and learn from it, again and again."""
    for _ in range(steps):
        learner.update(data.sample_transition_batch(options["batch_size"]))


update(20)
wall, cpu = time.perf_counter(), time.process_time()
update(options["steps"])
told = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
print(json.dumps({**told, "versions": {name: version(name) for name in ("d3rlpy", "torch", "numpy")}}))
