"""GRPO updates of TRL, one a line of standard input: ``python update_trl.py OPTIONS``.

As in its manual, with transformers generating. What its defaults would make slower here is switched off: gradient
checkpointing, and autocast where the model itself has 16 bits. Rows are evaluated 8 at once, its default.
"""

import json
import sys
import tempfile

import torch
from clock import Clock, ready
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

options = json.loads(sys.argv[1])
torch.set_num_threads(options["threads"])
torch.set_num_interop_threads(1)
clock = Clock()


def reward(completions, sum, **_):
    """Pay an answer that has the sum in it, and a little for each character, so that no group is without a signal."""
    texts = [completion[0]["content"] for completion in completions]
    return [float(str(right) in text) + len(text) / 1000 for right, text in zip(sum, texts, strict=True)]


class Orders(TrainerCallback):
    """Takes one optimizer step a line."""

    def on_step_begin(self, *args, **kwargs):
        """Wait for the next line."""
        clock.wait()

    def on_step_end(self, *args, **kwargs):
        """Answer it."""
        clock.answer(**seen)


seen = {}


class Timed(GRPOTrainer):
    """Notes the phases of an update."""

    def _generate(self, prompts):
        made = clock.timed("generate", super()._generate)(prompts)
        seen["prompt_tokens"], seen["tokens"] = sum(map(len, made[0])), sum(map(len, made[1]))
        return made

    def compute_loss(self, *args, **kwargs):
        """Note the forward pass."""
        return clock.timed("forward", super().compute_loss)(*args, **kwargs)

    def create_optimizer(self, *args, **kwargs):
        """Note its steps."""
        made = super().create_optimizer(*args, **kwargs)
        made.step = clock.timed("optimizer", made.step)
        return made


with tempfile.TemporaryDirectory() as folder:
    questions = options["questions"]
    rows = [{"prompt": [{"role": "user", "content": text}], "sum": right} for text, right in questions]
    trainer = Timed(
        AutoModelForCausalLM.from_pretrained(options["model"], dtype=getattr(torch, options["dtype"])),
        reward,
        args=GRPOConfig(
            folder,
            max_steps=1_000,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=len(rows) * options["group_size"] // 8,
            num_generations=options["group_size"],
            max_completion_length=options["max_tokens"],
            temperature=1.0,
            learning_rate=options["lr"],
            lr_scheduler_type="constant",
            beta=0.0,
            bf16=False,
            gradient_checkpointing=False,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            shuffle_dataset=False,
            seed=options["seed"],
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(options["model"]),
        callbacks=[Orders()],
    )
    trainer.accelerator.backward = clock.timed("backward", trainer.accelerator.backward)
    ready(("trl", "torch", "transformers"))
    trainer.train()
