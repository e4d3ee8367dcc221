"""gem's ``MathEnv`` on answers that are written in another way than the gold ones."""

from datasets import Dataset
from gem.envs.math_env import MathEnv
from rows import latex_answers

PACKAGES = ("gem-llm", "math-verify", "sympy", "datasets")


def start(kind, rows, use_mp):
    """Return ``episodes``."""
    asked = latex_answers(kind, rows)
    data = Dataset.from_list([{"problem": question, "answer": gold} for question, gold, _ in asked])
    completions = {question: completion for question, _, completion in asked}
    for _, gold, completion in asked[
        :40
    ]:  # sympy warms up here: within an episode it could outlast gem's time limit of 1 s
        MathEnv.check_correct(completion, gold)
    env = MathEnv(dataset=data, use_mp=use_mp)

    def episodes(n):
        return [env.step(completions[env.reset()[0]])[1] for _ in range(n)]

    return episodes
