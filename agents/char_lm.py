"""A language model of characters, from scratch, small enough to train in seconds on a CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.envs.arguments import whole

CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"
"""Printable ASCII and the line end."""
_EOS = "<eos>"
_UNKNOWN = "<unk>"


def char_lm(
    *,
    characters: str = CHARACTERS,
    words: Sequence[str] = (),
    size: int = 64,
    layers: int = 2,
    heads: int = 4,
    context: int = 256,
    seed: int = 0,
    **options: Any,
) -> LanguagePolicy:
    """Return a policy with a transformer of the Llama kind over characters, its weights drawn from ``seed``.

    It has no chat template: what it reads is the observation, and what it says ends with its end-of-text token.

    Args:
        characters: What it can read and say; others are read as one unknown character.
        words: Texts that are read and said as one token each, such as the fixed parts of a tool call: what always comes
            whole is nothing to learn. Where several fit, the first one counts.
        size: Width of the model.
        layers: Its depth.
        heads: Attention heads; they divide ``size``.
        context: Most characters it reads.
        seed: Seed of the weights, and of the samples.
        **options: Those of :class:`~tetrathlon.agents.language.LanguagePolicy`.

    Raises:
        ValueError: A character comes twice, or a word is empty, a number is out of its range, or ``heads`` does not
            divide ``size``.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    size, heads = whole("size", size, 1, 65_536), whole("heads", heads, 1, 65_536)
    layers, context = whole("layers", layers, 1, 1_000), whole("context", context, 1, 10_000_000)
    if size % heads:
        raise ValueError(f"heads must divide size {size}, got {heads}")
    tokenizer = character_tokenizer(characters, words)
    eos = tokenizer.eos_token_id
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size,
        intermediate_size=8 * size // 3,  # three matrices with as many weights as the usual two of 4 * size
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=eos,
        pad_token_id=eos,
        tie_word_embeddings=False,
        initializer_range=size**-0.5,  # the usual 0.02 is that of a width of 2500
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    policy = LanguagePolicy(model.eval(), tokenizer, seed=seed, **options)
    policy.default_lr, policy.default_rl_lr = 1e-3, 1e-4  # weights that know nothing yet have far to go
    return policy


def character_tokenizer(characters: str, words: Sequence[str] = (), special: Sequence[str] = ()) -> Any:
    """Return a tokenizer whose tokens are ``words``, ``characters``, an unknown one and an end of text.

    Args:
        characters: The characters.
        words: What is one token each.
        special: Tokens that no text is read as.

    Raises:
        ValueError: A character comes twice, or a word is empty.
    """
    from tokenizers import Regex, Tokenizer, decoders
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    if not isinstance(characters, str):
        raise ValueError(f"characters must be a text, got {characters!r}")
    if isinstance(words, str) or not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"words must be a list of texts, got {words!r}")
    if len(set(characters)) < len(characters):
        raise ValueError(f"characters must differ, got {characters!r}")
    if "" in words:
        raise ValueError(f"words must not be empty, got {list(words)!r}")
    known = dict.fromkeys([_EOS, _UNKNOWN, *special, *characters, *words])
    inner = Tokenizer(WordLevel({word: i for i, word in enumerate(known)}, unk_token=_UNKNOWN))
    pattern = "|".join([*map(re.escape, words), r"[\s\S]"])
    inner.pre_tokenizer = Split(Regex(pattern), "isolated")
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token=_EOS,
        unk_token=_UNKNOWN,
        clean_up_tokenization_spaces=False,
        **({"additional_special_tokens": list(special)} if special else {}),
    )
