"""``tetrathlon train``: from the command line to a run on disk that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tetrathlon.algos import ALGORITHMS, on_policy, preference_learning
from tetrathlon.algos.offline import FromLog
from tetrathlon.cli import main
from tetrathlon.envs.episode import Episode, Step, load_episodes, save_episodes

TRAIN = ["train", "grpo", "tetrathlon/Arithmetic-v0", "--policy", "tetrathlon.agents.char_lm:char_lm"]
SMALL = ["--groups", "2", "--group-size", "2", "--test-episodes", "4", "--checkpoint-every", "2"]
ENV = ["--env", "digits=1", "answer_format=plain", "max_tokens=2"]


def test_a_run_shows_how_it_goes_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--out", str(tmp_path / "run"), "--entropy-coef", "0.1", *SMALL]
    assert main([*TRAIN, "--updates", "2", *run, *ENV]) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if "test success" in line] == ["0", "2"]
    assert "entropy" in said and f"saved in {tmp_path / 'run'}" in said.replace("\n", "")
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["algorithm"] == "GRPO" and config["options"]["group_size"] == 2
    assert config["policy"] == "tetrathlon.agents.char_lm:char_lm"
    assert config["kwargs"]["split"] == "train" and config["kwargs"]["digits"] == 1
    assert main([*TRAIN, "--updates", "3", *run, *ENV]) == 2
    assert "holds a run; go on with it" in capsys.readouterr().err
    assert main([*TRAIN, "--updates", "3", "--resume", *run, *ENV]) == 0
    capsys.readouterr()
    assert main([*TRAIN, "--updates", "3", "--resume", *run, *ENV]) == 0
    assert "all 3 updates are done; --updates says how many" in capsys.readouterr().out.replace("\n", " ")
    tokens = json.loads((tmp_path / "run/tokens.json").read_text())
    changes = [
        abs(now - before)
        for episode in tokens["episodes"]
        for part in episode["parts"]
        if "tokens" in part
        for now, before in zip(*(part["tokens"][name] for name in ("logp", "start_logp")), strict=True)
    ]
    assert len(tokens["episodes"]) == 2 and max(changes) > 0
    page = (tmp_path / "run/report.html").read_text()
    assert page.count("<figure") > 10 and "3 of 3" in page
    assert main(["eval", TRAIN[2], "--policy", f"run:{tmp_path / 'run'}", "--episodes", "2", *ENV]) == 0
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [-1, 0, 1, 2]
    assert json.loads(lines[-1])["lr"] == 1e-4  # fresh weights, not those of a pretrained model
    assert (tmp_path / "run/checkpoints/step-00000003").is_dir() and (tmp_path / "run/episodes.jsonl").is_file()


def test_a_trained_policy_meets_the_environment_it_was_trained_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["--policy", f"run:{tmp_path / 'run'}"]
    few = ["--groups", "2", "--group-size", "2", "--updates", "1", "--test-episodes", "0", "--track", "none"]
    assert main([*TRAIN, *few, "--out", str(tmp_path / "run"), *ENV]) == 0
    capsys.readouterr()

    def settings(*words: str, env_id: str = TRAIN[2]) -> tuple[dict[str, object], str]:
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        assert main(["eval", env_id, *run, "--episodes", "1", "--json", "--out", str(out), *words]) == 0
        said = capsys.readouterr()
        assert json.loads(said.out)["episodes"] == 1
        return load_episodes(out)[0].kwargs, said.err

    theirs = {"digits": 1, "answer_format": "plain", "max_tokens": 2}
    kwargs, said = settings()
    assert kwargs == {**theirs, "split": "test"}
    assert said == "as in the run: --env digits=1 answer_format=plain max_tokens=2\n"
    kwargs, said = settings("--split", "train", "--env", "digits=2", "terms=3")
    assert kwargs == {**theirs, "digits": 2, "terms": 3, "split": "train"}
    assert said == "as in the run: --env answer_format=plain max_tokens=2\n"
    assert settings(*ENV) == ({**theirs, "split": "test"}, "")
    assert settings("--env", "max_tokens=2", env_id="LetterCount") == ({"max_tokens": 2, "split": "test"}, "")
    for words in (["record", "--episodes", "1", "--out", str(tmp_path / "recorded")], ["play", "--seed", "0"]):
        assert main([words[0], TRAIN[2], *run, *words[1:]]) == 0
        assert capsys.readouterr().err == "as in the run: --env digits=1 answer_format=plain max_tokens=2\n"
    assert load_episodes(tmp_path / "recorded")[0].kwargs == {**theirs, "split": "train"}
    assert main(["eval", TRAIN[2], "--policy", f"run:{tmp_path / 'nowhere'}"]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_help_says_what_there_is_and_first_what_every_run_needs(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["train", "-h"], ["train", "--help"]):
        assert main(words) == 0
        said = capsys.readouterr().out
        assert all(f"\n  {name} " in said for name in ALGORITHMS) and "(Williams, 1992)" in said
        assert max(map(len, said.splitlines())) <= 80
    for name in ALGORITHMS:
        assert main(["train", name, "--help"]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"usage: tetrathlon train {name}") and ":data:" not in said and "`" not in said
        plays = "--groups" if hasattr(ALGORITHMS[name].Options, "groups") else "--episodes INT"
        assert 0 < said.index("--policy NAME") < said.index("--updates N") < said.index(plays) < said.index("--lr")
        inside = [line.strip("│| ") for line in said.splitlines()]
        assert "that ends the run when three updates in a row stay below it. (default: None)" in " ".join(inside)
        assert "three" not in inside  # a line of the source is no line of the page
        learns_from_pay = name in on_policy.ALGORITHMS
        assert ("--max-kl" in said) == ("--reward-model NAME" in said) == learns_from_pay
        assert ("--expert NAME" in said) == (name in ("bc", "dagger"))
        assert ("--pairs DIR" in said) == (name in preference_learning.ALGORITHMS or name == "bradleyterry")
        assert ("--log DIR" in said) == issubclass(ALGORITHMS[name], FromLog)
        assert ("--demonstrations DIR" in said) == (name in ("bc", "dagger")) and ("--proxy NAME" in said) == (
            name == "dagger"
        )
        assert "Args:" not in said and "Raises:" not in said


def test_the_bar_begins_when_the_run_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--patience", "2", "--out", str(tmp_path), *ENV]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1


def test_a_run_is_stopped_and_tracked_as_asked(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    asked = ["--min-entropy", "99", "--test-every", "1", "--patience", "9", "--track", "tensorboard"]
    assert main([*TRAIN, "--updates", "9", "--out", str(tmp_path), *SMALL, *asked, *ENV]) == 0
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines] == [-1, 0, 1, 2]
    assert all(0 <= line["test/low"] <= line["test/success"] <= line["test/high"] <= 1 for line in lines)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


IMITATE = ["tetrathlon/Arithmetic-v0", "--policy", "char", "--episodes", "4", "--steps", "2", "--track", "none"]


def test_imitators_run_and_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = [*IMITATE, "--test-episodes", "2", *ENV]
    record = ["record", IMITATE[0], "--policy", "expert", "--episodes", "3", "--split", "train"]
    assert main([*record, "--out", str(tmp_path / "demos"), *ENV]) == 0
    shown = {"dagger": [], "bc": ["--demonstrations", str(tmp_path / "demos")]}
    for name, more in shown.items():
        run = ["--out", str(tmp_path / name), *more]
        assert main(["train", name, *few, *run, "--updates", "1"]) == 0
        assert main(["train", name, *few, *run, "--updates", "2", "--resume"]) == 0
        said = capsys.readouterr().out
        assert [line.split()[0] for line in said.splitlines() if "test success" in line] == ["0", "1", "2"]
        assert said.count("bc_loss") == 2 and (tmp_path / name / "report.html").is_file()
        noted = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        assert [line["update"] for line in noted] == [-1, 0, 1]
        assert [line["dataset"] for line in noted[1:]] == ([3.0, 3.0] if name == "bc" else [4.0, 8.0])
        config = json.loads((tmp_path / name / "config.json").read_text())
        assert config["algorithm"].lower() == name and config["expert"] is None
        assert main(["eval", IMITATE[0], "--policy", f"run:{tmp_path / name}", "--episodes", "2", *ENV]) == 0
        capsys.readouterr()
    assert noted[-1]["dataset"] == 3.0 and "queries" not in noted[-1]  # nobody was asked


def test_an_expert_is_named_as_any_policy(tmp_path: Path) -> None:
    words = ["train", "dagger", "CartPole-v1", "--policy", "control", "--expert", "random", "--track", "none"]
    few = ["--episodes", "2", "--horizon", "5", "--steps", "1", "--updates", "2", "--test-episodes", "0"]
    asked = ["--query", "disagree", "--proxy", "random", "--queries", "12"]
    assert main([*words, *few, *asked, "--out", str(tmp_path)]) == 0
    noted = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert noted[0]["queries"] == noted[0]["interventions"] == 10.0 < noted[1]["queries"] <= 12.0
    assert json.loads((tmp_path / "config.json").read_text())["expert"] == "RandomPolicy"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "bc", "CartPole-v1", "--policy", "control"], "CartPole-v1 has no expert_action; give an expert"),
        (["train", "bc", *IMITATE, "--demonstrations", "no/where"], "no/where/episodes.jsonl"),
        (["train", "dagger", *IMITATE, "--horizon", "3"], "horizon=3 cuts episodes, and LanguagePolicy needs"),
        (["train", "dagger", *IMITATE, "--expert", "smolm2"], "did you mean smollm2"),
        (["train", "dagger", *IMITATE, "--max-kl", "1"], "there is no option '--max-kl'"),
        (["train"], "say which algorithm: tetrathlon train ALGO ID; there are grpo, "),
        (["train", "grop", "x"], "there is no algorithm 'grop'; did you mean grpo"),
        ([*TRAIN[:3], "--policy", "random"], "policy 'random' cannot be trained: it is no TrainablePolicy"),
        ([*TRAIN, "--updates", "0"], "--updates must be at least 1, got 0"),
        ([*TRAIN, "--group-sizes", "3"], "there is no option '--group-sizes'; did you mean --group-size"),
        ([*TRAIN, "--patience", "2"], "--target and --patience read the looks at the test split; give --test-every"),
        ([*TRAIN[:3], "--policy", "char", "--model", "size=5"], "policy 'char': heads must divide size 5, got 4"),
        ([*TRAIN[:3], "--policy", "char", "--model", "critic=foo"], "policy 'char': critic must be 'head', "),
        (
            ["train", "ppo", "CartPole-v1", "--policy", "control", "--model", "hidden=64"],
            "hidden must be a list of widths of at least 1, got 64",
        ),
        ([*TRAIN, "--out", f"{__file__}/x"], "--out must be a folder, "),
        ([*TRAIN, "--gamma", "2"], "tetrathlon train: gamma must be from 0 to 1, got 2.0"),
    ],
)
def test_wrong_commands(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_pairs_are_learnt_and_a_reward_model_pays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env_id = "tetrathlon/Arithmetic-v0"
    kwargs = {"digits": 1, "answer_format": "plain", "max_tokens": 2}
    episodes = [
        Episode(
            steps=[Step(f"{seed}+1=", said, reward, terminated=True)],
            final_observation="",
            env=env_id,
            kwargs=kwargs,
            seed=seed,
        )
        for seed in range(4)
        for said, reward in (("7", 0.0), (str(seed + 1), 1.0))
    ]
    save_episodes(tmp_path / "pairs", episodes)
    given = ["--pairs", str(tmp_path / "pairs"), "--steps", "2", "--track", "none"]
    start = [env_id, "--policy", "char", *ENV]
    for name in ("dpo", "bradleyterry"):
        run = ["--out", str(tmp_path / name), *given, *(["--test-episodes", "2"] if name == "dpo" else [])]
        assert main(["train", name, *start, *run, "--updates", "1"]) == 0
        assert main(["train", name, *start, *run, "--updates", "2", "--resume"]) == 0
        said = capsys.readouterr().out
        assert said.count("accuracy") == said.count("pairs 4") == 2 and ("test success" in said) == (name == "dpo")
        noted = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        assert [line["pairs"] for line in noted if line["update"] >= 0] == [4.0, 4.0]
        assert "Rewards of pairs" in (tmp_path / name / "report.html").read_text()
    few = ["--groups", "2", "--updates", "1", "--test-episodes", "0", "--track", "none", "--out", str(tmp_path / "ppo")]
    assert main(["train", "ppo", *start, *few, "--reward-model", f"run:{tmp_path / 'bradleyterry'}"]) == 0
    noted = [json.loads(line) for line in (tmp_path / "ppo/metrics.jsonl").read_text().splitlines()]
    assert noted[0]["reward_terms/reward_model"] != 0.0
    assert json.loads((tmp_path / "ppo/config.json").read_text())["scorers"] == ["reward_model"]
    capsys.readouterr()
    for words, told in (
        (
            ["ppo", *start, "--reward-model", f"run:{tmp_path / 'dpo'}"],
            "has no critic that could score",
        ),
        (["dpo", *start, "--pairs", "no/where"], "no/where/episodes.jsonl"),
        (["dpo", *start, "--loss", "ipo", "--label-smoothing", "0.1"], "label_smoothing=0.1 is of dpo and simpo"),
    ):
        assert main(["train", *words, "--out", str(tmp_path / "wrong")]) == 2
        assert told in capsys.readouterr().err.replace("\n", " ")
