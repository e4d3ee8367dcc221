"""What every Python tool is asked: a short program whose output is known."""


def episodes_of(run):
    """Return ``episodes`` over ``run``, which takes a program and returns its output.

    The reward is 1.0 where the output ends in the right number, else 0.0.
    """
    played = 0

    def episodes(n):
        nonlocal played
        rewards = []
        for i in range(played, played + n):
            output = run(f"total = 0\nfor i in range({i % 97}):\n    total += i * {i}\nprint('total', total)")
            rewards.append(float(output.split()[-1:] == [str(i * sum(range(i % 97)))]))
        played += n
        return rewards

    return episodes
