"""A log of the size of HalfCheetah's, of noise: what is measured is how fast it is learnt from. NumPy alone."""

import numpy as np

OBSERVATION, ACTION = 17, 6
EPISODES, LENGTH = 20, 1000


def arrays(seed):
    """Return observations [E, T + 1, 17], actions [E, T, 6] and rewards [E, T]."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(EPISODES, LENGTH + 1, OBSERVATION)).astype(np.float32)
    actions = rng.uniform(-1, 1, (EPISODES, LENGTH, ACTION)).astype(np.float32)
    return observations, actions, rng.normal(size=(EPISODES, LENGTH)).astype(np.float32)
