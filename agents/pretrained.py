"""Models of transformers as they are loaded: their weights, what they compute in, what learns, and how they see."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tetrathlon.agents.lora import adapted
from tetrathlon.agents.sight import FAMILIES, unknown_family


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was loaded."""

    model: Any
    """The model, with its adapters where it has any."""
    tokenizer: Any
    """Its tokenizer."""
    processor: Any
    """What turns pictures into its inputs; None of a model that takes none."""
    autocast: torch.dtype | None
    """What it computes in while its weights stay as they are; None: in their own type."""


def loaded(source: Any, *, device: str, dtype: str, lora: int, seed: int, checkpointing: bool) -> Loaded:
    """Load a model; see :meth:`tetrathlon.agents.language.LanguagePolicy.from_pretrained` for the arguments."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "mixed" if torch.device(device).type == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    if dtype not in ("float32", "bfloat16", "mixed"):
        raise ValueError(f"dtype must be 'auto', 'float32', 'bfloat16' or 'mixed', got {dtype!r}")
    if not isinstance(lora, int) or lora < 0:
        raise ValueError(f"lora must be a rank of at least 1, or 0 for none, got {lora!r}")
    config = AutoConfig.from_pretrained(source)
    kind: Any = AutoModelForCausalLM
    processor = None
    if _sees(config):
        from transformers import AutoModelForImageTextToText

        kind, processor = AutoModelForImageTextToText, _processor(source, config)
    with _no_progress_bar():
        model: Any = kind.from_pretrained(source, dtype=torch.bfloat16 if dtype == "bfloat16" else torch.float32)
    model = model.to(device).eval()
    if lora:
        model = adapted(model, lora, seed)
    if checkpointing:
        _checkpointed(model)
    tokenizer = AutoTokenizer.from_pretrained(source) if processor is None else processor.tokenizer
    if processor is not None and getattr(processor, "chat_template", None) is not None:
        tokenizer.chat_template = processor.chat_template  # some models keep it there alone
    return Loaded(model, tokenizer, processor, torch.bfloat16 if dtype == "mixed" else None)


def _sees(config: Any) -> bool:
    """Whether a config is that of a model of pictures and text; one that can do without pictures may be another's.

    Raises:
        ValueError: It cannot, and how it takes them is not known here.
    """
    from transformers.models.auto import modeling_auto as auto

    kind = config.model_type
    others = auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.keys() - auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys()
    if kind not in FAMILIES and kind in others:
        raise ValueError(unknown_family(kind))
    return kind in FAMILIES


def _processor(source: Any, config: Any) -> Any:
    """Load the processor of a vision-language model, which works for pictures without torchvision too.

    Processors that know videos as well cannot be made without it, for their videos' sake alone: they lose that half.
    """
    from transformers import AutoProcessor, Idefics3Processor
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    kind: Any = PROCESSOR_MAPPING.get(type(config), None)
    if kind is None or importlib.util.find_spec("torchvision") or "video_processor" not in kind.get_attributes():
        return AutoProcessor.from_pretrained(source)
    if config.model_type == "smolvlm":  # insists on its videos; that of Idefics3 makes the same of pictures
        return Idefics3Processor.from_pretrained(source)
    halves = classmethod(lambda cls: ["image_processor", "tokenizer"])
    half: Any = type(kind.__name__, (kind,), {"get_attributes": halves})
    return half.from_pretrained(source)


def without_dropout(model: nn.Module) -> None:
    """Switch dropout off for good: log-probabilities must not depend on whether the model is in training mode."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0  # type: ignore[assignment]


def _checkpointed(model: Any) -> None:
    """Switch activation checkpointing on. Models heed it in training mode alone, which differs in nothing else here."""
    switch = getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)
    switch({"use_reentrant": False})
    model.train()


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing a bar for the second that loading takes; ours would stand beside it."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
