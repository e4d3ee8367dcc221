"""Small random vision-language models of several families, and environments that show pictures."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import transformers
from gymnasium import spaces
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.tiny_vlm import tiny_vlm
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.spaces import UnicodeText

# Large enough that pictures and positions matter, small enough that float32 itself is good to 1e-5.
SCALE = 0.15
QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
FAMILIES = (*QWEN, "idefics3", "smolvlm", "llava")
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}{% if m['content'] is string %}{{ m['content'] }}"
    "{% else %}{% for c in m['content'] %}{{ 'IMAGE' if c['type'] == 'image' else c['text'] }}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PARTS = (  # as in SmolVLM: contents are parts, and one that is a string is not shown
    "<|im_start|>{% for m in messages %}{{ m['role'] | capitalize + ': ' }}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}IMAGE{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}Assistant: {% endif %}"
)
PADS = {"qwen": "<|vision_start|><|image_pad|><|vision_end|>", "other": "<image>"}
SPECIAL = {
    "qwen": ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"],
    "other": ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
    + [f"<row_{i}_col_{j}>" for i in range(1, 4) for j in range(1, 4)],
}


def tokenizer(kind: str, template: str = CHATML) -> Any:
    """Return a tokenizer of bytes with the special tokens of a family."""
    group = "qwen" if kind in QWEN else "other"
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", *SPECIAL[group]]})
    made.chat_template = template.replace("IMAGE", PADS[group])
    return made


def vlm(kind: str, template: str = CHATML) -> tuple[Any, Any]:
    """Return a random model of a family, and its processor as it is made of config objects."""
    words = tokenizer(kind, template)
    text: dict[str, Any] = {
        "vocab_size": len(words),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": SCALE,
        "bos_token_id": None,
        "eos_token_id": words.eos_token_id,
        "pad_token_id": words.pad_token_id,
    }
    torch.manual_seed(0)
    config, name = _qwen(kind, text, words) if kind in QWEN else _other(kind, text, words)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config)
    return model.eval(), _processor(kind, name, words)


def saved(kind: str, folder: Path) -> Path:
    """Save what :func:`vlm` returns."""
    model, processor = vlm(kind)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    if kind == "smolvlm":  # as its checkpoints say
        config = folder / "processor_config.json"
        config.write_text(config.read_text().replace("Idefics3Processor", "SmolVLMProcessor"))
    return folder


def seer(kind: str, template: str = CHATML, **options: Any) -> LanguagePolicy:
    """Return a policy that sees, of a family or of our own, with so many ends of turn that turns differ in length."""
    options = {"max_tokens": 6, **options}
    if kind == "tiny":
        made = tiny_vlm(stride=8, channels=8, size=32, layers=2, words=("what", "cell"), **options)
        ends = range(10, 25)
    else:
        model, processor = vlm(kind, template)
        made = LanguagePolicy(model, processor.tokenizer, sight=processor, **options)
        ends = range(20, 60)
    made.engine.eos = made.chat.eos = made.engine.eos | frozenset(ends)
    return made


def pictures(count: int, seed: int = 0, size: tuple[int, int] = (32, 32)) -> np.ndarray:
    """Return random pictures, uint8 [count, H, W, 3]."""
    return np.random.default_rng(seed).integers(0, 256, (count, *size, 3), dtype=np.uint8)


def played(
    made: LanguagePolicy, turns: list[tuple[np.ndarray, list[str], list[bool]]], info: dict[str, Any] | None = None
) -> list[Episode]:
    """Return episodes in which the policy answers N observations a turn: pictures, texts, and whether it sees them."""
    memory: Any = None
    episodes: list[Episode] = []
    for number, (images, texts, seen) in enumerate(turns):
        infos = [{**(info or {}), "has_image": shown} for shown in seen]
        acted = made.act({"image": images, "text": tuple(texts)}, memory, infos=infos)
        memory = acted.memory
        for i, text in enumerate(texts):
            if number == 0:
                episodes.append(Episode(info=infos[i]))
            else:
                episodes[i].steps[-1].info = infos[i]
            observation = {"image": images[i], "text": text}
            episodes[i].steps.append(Step(observation, acted.actions[i], 1.0, record=acted.records[i]))
    for episode in episodes:
        episode.steps[-1].terminated = True
    return episodes


class Cells(gym.Env[Any, Any]):
    """Shows a disc in one of eight cells; the answer is the cell's letter. With more turns there is a disc a turn.

    ``paid`` is what each letter of an answer earns, so that an untrained policy learns something.
    """

    words = ("Which cell?",)

    def __init__(self, turns: int = 1, paid: float = 0.0, split: str = "train") -> None:
        self.observation_space = spaces.Dict(
            {"image": spaces.Box(0, 255, (32, 32, 3), np.uint8), "text": UnicodeText(20)}
        )
        self.action_space = UnicodeText(20)
        self.turns, self.paid, self.split = turns, paid, split

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self._show(), {"task_id": str(seed)}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        is_right = action == self.expert_action()
        self.turn += 1
        is_over = self.turn >= self.turns
        info = {"is_success": is_right, "stop_reason": "answered"} if is_over else {}
        return self._show(), is_right + self.paid * len(action), is_over, False, info

    def expert_action(self, k: int = 1) -> str:
        return "abcdefgh"[self.cell]

    def _show(self) -> dict[str, Any]:
        draw = self.np_random.integers
        self.cell = int(draw(8))
        picture = np.full((32, 32, 3), draw(60), np.uint8)
        across = self.cell % 4 * 8 + 4 + draw(-1, 2)
        down = self.cell // 4 * 16 + 8 + draw(-2, 3)
        y, x = np.mgrid[:32, :32]
        picture[(y - down) ** 2 + (x - across) ** 2 <= 9] = np.eye(3)[draw(3)] * 255
        return {"image": picture, "text": "Which cell?"}


def _qwen(kind: str, text: dict[str, Any], words: Any) -> tuple[Any, str]:
    ids = {
        f"{name}_token_id": words.convert_tokens_to_ids(token)
        for name, token in zip(("vision_start", "vision_end", "image", "video"), SPECIAL["qwen"], strict=True)
    }
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    seen: dict[str, Any] = {"depth": 2, "num_heads": 2, "patch_size": 8, "initializer_range": SCALE}
    name = {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL"}[kind]
    if kind == "qwen2_vl":
        seen |= {"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}
    else:
        seen |= {"hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32}
        more: dict[str, Any] = {"window_size": 32, "fullatt_block_indexes": [1]}
        if kind == "qwen3_vl":
            more = {"num_position_embeddings": 64, "deepstack_visual_indexes": [0]}
            rope |= {"mrope_interleaved": True}
            text = {**text, "head_dim": 8}
        seen |= more
    config = getattr(transformers, f"{name}Config")
    return config(text_config={**text, "rope_parameters": rope}, vision_config=seen, **ids), name


def _other(kind: str, text: dict[str, Any], words: Any) -> tuple[Any, str]:
    name = {"idefics3": "Idefics3", "smolvlm": "SmolVLM", "llava": "Llava"}[kind]
    seen: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
        "initializer_range": SCALE,
    }
    text = {"model_type": "llama", **text}
    image = words.convert_tokens_to_ids("<image>")
    config = getattr(transformers, f"{name}Config")
    if kind == "llava":
        seen |= {"model_type": "clip_vision_model", "projection_dim": 16}
        return config(text_config=text, vision_config=seen, image_token_index=image), name
    pad = words.pad_token_id
    return config(text_config=text, vision_config=seen, scale_factor=2, image_token_id=image, pad_token_id=pad), name


def _processor(kind: str, name: str, words: Any) -> Any:
    """Make a processor whose image processor is that of PIL, which needs no torchvision."""
    told = {"chat_template": words.chat_template}
    if kind in QWEN:
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

        images = Qwen2VLImageProcessorPil(size={"shortest_edge": 16 * 16, "longest_edge": 64 * 64}, patch_size=8)
        whole = getattr(transformers, f"{name}Processor")
        # Without the half for videos, which cannot be made without torchvision; saved under the name of the whole.
        halves = classmethod(lambda cls: ["image_processor", "tokenizer"])
        return type(whole.__name__, (whole,), {"get_attributes": halves})(images, words, None, **told)
    if kind == "llava":
        from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

        crop = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
        tokens: dict[str, Any] = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
        return transformers.LlavaProcessor(crop, words, patch_size=8, **tokens, **told)
    # SmolVLM's own processor needs num2words and torchvision, for videos; of pictures it makes the same.
    tiles = importlib.import_module(f"transformers.models.{kind}.image_processing_pil_{kind}")
    images = getattr(tiles, f"{name}ImageProcessorPil")(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    return transformers.Idefics3Processor(images, words, image_seq_len=4, **told)
