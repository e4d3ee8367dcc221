"""Pictures on their way through a language policy: what is generated with them is what is learnt with them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.agents.seeing import CHATML, FAMILIES, PARTS, QWEN, pictures, played, saved, seer, vlm
from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.engine import Completion
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.picture import Pictures
from tetrathlon.agents.sampling import Sampling, draw
from tetrathlon.algos.batch import parts
from tetrathlon.envs.episode import Episode, Step, load_episodes, save_episodes

KINDS = pytest.mark.parametrize("kind", [*FAMILIES, "tiny"])
FEW = pytest.mark.parametrize("kind", ["qwen2_5_vl", "idefics3", "tiny"])
TEXTS = ["what?", "what?", "a longer cell", "what?"]


def turns(size: tuple[int, int] = (32, 48)) -> list[Any]:
    """Two turns of four episodes that show 2, 1, 1 and 0 pictures."""
    one, two = pictures(4, 0, size), pictures(4, 1, size[::-1])
    return [(one, TEXTS, [True, True, False, False]), (two, TEXTS[::-1], [True, False, True, False])]


def drift(made: LanguagePolicy, batch: Decisions) -> float:
    with torch.no_grad():
        logp = made.evaluate(batch).logp
    return float((logp - batch.logp)[batch.mask].abs().max())


def gone(made: LanguagePolicy, batch: Decisions, row: int, array: np.ndarray) -> Decisions:
    """Return the batch with another picture in place of the first one of a row."""
    shown: Pictures = batch.inputs["pictures"]
    codes = shown.codes.clone()
    at = (codes[row] < 0).nonzero()[0, 0]
    size = len(shown.distinct[0].ids)
    codes[row, at : at + size] = -1 - (len(shown.distinct) * 2**20 + torch.arange(size))
    changed = copy.copy(batch)
    changed.inputs = {**batch.inputs, "pictures": Pictures(codes, (*shown.distinct, made.sight.see(array)))}  # type: ignore[union-attr]
    return changed


@KINDS
def test_training_says_what_generation_said(kind: str) -> None:
    made = seer(kind)
    rows = played(made, turns())
    batch = made.collate([[episode] for episode in rows])
    assert drift(made, batch) < 1e-4
    counts = [len(episode.steps[0].record.get("pictures", ())) for episode in rows]  # type: ignore[union-attr]
    assert counts == [1, 1, 0, 0]
    assert [len(episode.steps[1].record.get("pictures", ())) for episode in rows] == [1, 0, 1, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", FAMILIES)
def test_it_is_what_the_model_says_through_its_own_processor(kind: str) -> None:
    made = seer(kind)
    images = pictures(2, size=(32, 48))
    acted = made.act({"image": images, "text": ("what is it?", "and it?")})
    model, processor = vlm(kind)
    for image, text, record in zip(images, ("what is it?", "and it?"), acted.records, strict=True):
        assert record is not None
        content = [{"type": "image"}, {"type": "text", "text": text}]
        told = [{"role": "user", "content": content}]
        prompt = processor.tokenizer.apply_chat_template(told, add_generation_prompt=True, tokenize=False)
        given = processor(text=[prompt], images=[Image.fromarray(image)], return_tensors="pt")
        assert record["prompt"].tolist() == given["input_ids"][0].tolist()
        said = torch.tensor(record["ids"], dtype=torch.long)[None]
        given["input_ids"] = torch.cat([given["input_ids"], said], dim=1)
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        if "mm_token_type_ids" in given:
            kinds = given["mm_token_type_ids"]
            given["mm_token_type_ids"] = torch.cat([kinds, kinds.new_zeros(said.shape)], dim=1)
        with torch.no_grad():
            logits = model(**given).logits[0, len(record["prompt"]) - 1 : -1]
        logp = logits.log_softmax(-1).gather(1, said[0][:, None])[:, 0]
        assert torch.allclose(logp, torch.tensor(record["logps"]), atol=1e-4)


@KINDS
def test_rows_keep_their_pictures(kind: str) -> None:
    made = seer(kind)
    batch = made.collate([[episode] for episode in played(made, turns())])
    whole = made.evaluate(batch).logp.detach()
    order = [2, 0, 3, 1]
    mixed = batch.select(order)
    assert torch.allclose(made.evaluate(mixed).logp[mixed.mask], whole[order][mixed.mask], atol=1e-5)
    for part, rows in zip(parts(batch, 1.0), range(4), strict=True):
        assert torch.allclose(made.evaluate(part).logp[part.mask], whole[[rows]][part.mask], atol=1e-5)
    moved = gone(made, batch.to("cpu"), 1, pictures(1, 9, (32, 48))[0])
    change = (made.evaluate(moved).logp - whole).abs().detach().masked_fill(~batch.mask, 0).amax(1)
    assert change[1] > 1e-4 and bool((change[[0, 2, 3]] < 1e-5).all())


@KINDS
def test_gradients_reach_what_sees(kind: str) -> None:
    made = seer(kind)
    batch = made.collate([[episode] for episode in played(made, turns())])
    assert set(batch.inputs) == {"ids", "pictures"} and len(batch.inputs["pictures"].distinct) == 4
    assert all(picture.array.dtype == np.uint8 for picture in batch.inputs["pictures"].distinct)
    made.evaluate(batch).logp[batch.mask].sum().backward()
    eyes = [weight for name, weight in made.model.named_parameters() if "vis" in name or "encoder" in name]
    assert eyes and sum(float(weight.grad.abs().sum()) for weight in eyes if weight.grad is not None) > 0


@FEW
def test_equal_texts_with_different_pictures_are_different_prompts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = seer(kind)
    assert made.sight is not None
    joined: list[int] = []
    join = made.sight.join

    def counted(shown: Any, device: Any) -> Any:
        joined.append(len(shown))
        return join(shown, device)

    monkeypatch.setattr(made.sight, "join", counted)
    one, two = pictures(2)
    images = np.stack([one, two, one, two, one, two])
    acted = made.act({"image": images, "text": ("what?",) * 6}, greedy=True)
    assert sum(joined) == 2  # read once for each prompt, not for each of its three samples
    monkeypatch.undo()
    alone = [made.act({"image": image[None], "text": ("what?",)}, greedy=True) for image in (one, two)]
    for i, record in enumerate(acted.records):
        expected = alone[i % 2].records[0]
        assert record is not None and expected is not None
        assert record["ids"].tolist() == expected["ids"].tolist()
        assert np.allclose(record["logps"], expected["logps"], atol=1e-5)
    assert not np.allclose(acted.records[0]["logps"][0], acted.records[1]["logps"][0], atol=1e-5)  # type: ignore[index]
    # All is one picture but for the text behind it: the common beginning is read with it, once.
    monkeypatch.setattr(made.sight, "join", counted)
    joined.clear()
    long = played(made, [(images[[0, 0]], ["what is it", "what is there"], [True, True])])
    assert sum(joined) == 1
    monkeypatch.undo()
    assert drift(made, made.collate([[episode] for episode in long])) < 1e-4


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "tiny"])
def test_a_common_beginning_never_cuts_a_picture(kind: str) -> None:
    """Prompts that end with a picture, where at least one token is to be left to each."""
    made = seer(kind)
    assert made.sight is not None
    shown = [made.sight.see(array) for array in pictures(2)]
    start = tuple(range(60, 72))
    one = (*start, *shown[0].codes)
    prompts = [one, (*one, 70, *shown[1].codes), one]
    greedy = Sampling(max_tokens=3, greedy=True)
    together = made.engine.generate(prompts, greedy, pictures=shown)
    for prompt, completion in zip(prompts, together, strict=True):
        (alone,) = made.engine.generate([prompt], greedy, pictures=shown)
        assert alone.ids == completion.ids and np.allclose(alone.logps, completion.logps, atol=1e-5)


@KINDS
def test_a_placeholder_that_is_spelled_out_is_no_picture(kind: str) -> None:
    made = seer(kind)
    assert made.sight is not None
    token = made.sight.token
    images = pictures(2)
    acted = made.act({"image": images, "text": (f"a {token} b", "c")}, infos=[{}, {"has_image": False}])
    later = made.act({"image": images, "text": (token, token)}, acted.memory, infos=[{"has_image": False}, {}])
    size = len(made.sight.see(images[0]).ids)
    holders = list(made.sight.see(images[0]).ids).count(made.sight.token_id)
    counts = [
        record["prompt"].tolist().count(made.sight.token_id)  # type: ignore[index]
        for record in (*acted.records, *later.records)
    ]
    assert counts == [holders, 0, 0, holders] and size >= holders > 0
    if kind != "tiny":
        assert token in made.tokenizer.decode(acted.records[0]["prompt"], skip_special_tokens=True)  # type: ignore[index]


@FEW
def test_a_placeholder_that_the_model_says_is_no_picture(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = seer(kind)
    assert made.sight is not None
    placeholder = made.sight.token_id

    def often(logits: Any, state: Any, sampling: Any, uniform: Any) -> Any:
        tokens = torch.where(uniform < 0.5, placeholder, draw(logits, state, sampling, uniform)[0])
        return tokens, logits.log_softmax(-1)[state, tokens]

    monkeypatch.setattr("tetrathlon.agents.engine.draw", often)
    rows = played(made, [(pictures(8), ["what?"] * 8, [True] * 8), (pictures(8, 1), ["what?"] * 8, [True] * 8)])
    said = [step.record["ids"].tolist() for episode in rows for step in episode.steps if step.record]
    assert sum(ids.count(placeholder) for ids in said) > 10
    assert drift(made, made.collate([[episode] for episode in rows])) < 1e-4


@FEW
def test_records_hold_no_pixels_and_files_give_the_same_batch(kind: str, tmp_path: Path) -> None:
    made = seer(kind)
    rows = played(made, turns())
    for episode in rows:
        for step in episode.steps:
            assert step.record is not None and sum(array.nbytes for array in step.record.values()) < 2000
    save_episodes(tmp_path, rows)
    one, other = (made.collate([[episode] for episode in these]) for these in (rows, load_episodes(tmp_path)))
    assert torch.equal(one.inputs["ids"], other.inputs["ids"])
    assert torch.equal(one.inputs["pictures"].codes, other.inputs["pictures"].codes)
    assert drift(made, other) < 1e-4


@FEW
def test_labels_are_learnt_behind_the_pictures_that_were_seen(kind: str) -> None:
    made = seer(kind)
    rows = played(made, turns())
    for episode in rows:
        for step in episode.steps:
            step.label = "ab"
    batch = made.collate([[episode] for episode in rows], learn="label")
    assert len(batch) == 8 and batch.source.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    starts = ((-1 - batch.inputs["pictures"].codes) % 2**20 == 0) & (batch.inputs["pictures"].codes < 0)
    assert starts.sum(1).tolist() == [1, 2, 1, 1, 0, 1, 0, 0]
    # A forced turn leads to the same state as a label in its place.
    one, two = turns()
    first = made.act({"image": one[0], "text": tuple(one[1])}, infos=[{"has_image": seen} for seen in one[2]])
    forced = made.act(
        {"image": two[0], "text": tuple(two[1])},
        first.memory,
        infos=[{"has_image": seen} for seen in two[2]],
        forced=["ab"] * 4,
    )
    ids, _ = batch.inputs["pictures"].within(batch.inputs["ids"])
    for i, memory in enumerate(forced.memory):
        spelled = [code if code >= 0 else -1 for code in memory.ids]
        row = ids[2 * i + 1][: len(spelled)].clamp(min=-1).tolist()
        # Turns that ended by a token of their own differ there; what was given does not.
        assert row == spelled or played(made, [one])[i].steps[0].action != rows[i].steps[0].action
    made.evaluate(batch).logp[batch.mask].sum().backward()


def test_what_others_did_is_encoded_with_its_pictures() -> None:
    made = seer("qwen2_5_vl")
    image = pictures(2)
    steps = [Step({"image": image[0], "text": "a"}, "x", 0.0), Step({"image": image[1], "text": "b"}, "y", 1.0, True)]
    batch = made.collate([[Episode(steps=steps)]], learn="action")
    text = made.tokenizer.decode(batch.inputs["ids"][0]).replace("<|image_pad|>", "*")
    shown = "<|vision_start|>" + "*" * len(made.sight.see(image[0]).ids) + "<|vision_end|>"  # type: ignore[union-attr]
    assert text == (
        f"<|im_start|>user\n{shown}a<|im_end|>\n<|im_start|>assistant\nx<|im_end|>\n"
        f"<|im_start|>user\n{shown}b<|im_end|>\n<|im_start|>assistant\ny<|im_end|>"
    )


REWRITES = (  # the newest message alone is shown with what was said to the system
    "{% for m in messages %}{% if m['role'] == 'user' and loop.last and messages[0]['role'] == 'system' %}"
    "{{ messages[0]['content'] }}{% endif %}{% if m['role'] != 'system' %}{% if m['content'] is string %}"
    "{{ m['content'] }}{% else %}{% for c in m['content'] %}{{ 'IMAGE' if c['type'] == 'image' else c['text'] }}"
    "{% endfor %}{% endif %}{{ '<|im_end|>' }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("template", [REWRITES, PARTS])
@pytest.mark.parametrize("kind", ["qwen2_5_vl", "idefics3"])
def test_templates_that_write_the_past_anew_or_take_parts_alone(kind: str, template: str) -> None:
    made = seer(kind, template)
    rows = played(made, turns(), info={"system": "s"})
    batch = made.collate([[episode] for episode in rows])
    assert ("fresh" in batch.inputs) == (template == REWRITES)
    assert drift(made, batch) < 1e-4
    record = rows[0].steps[1].record
    assert record is not None
    assert record["pictures"][:, 1].tolist() == ([0, 1] if template == REWRITES else [1])
    assert "what?" in made.tokenizer.decode(record["prompt"])


@FEW
@pytest.mark.parametrize("critic", ["head", "shared", "own"])
def test_critics_and_snapshots_see(kind: str, critic: Any) -> None:
    made = seer(kind, critic=critic)
    rows = played(made, turns())
    rows[0].steps[-1].terminated = False  # its last observation is asked, and shows a picture
    rows[0].final_observation = {"image": pictures(1, 5)[0], "text": "then"}
    batch = made.collate([[episode] for episode in rows])
    made.critic.eval()  # type: ignore[union-attr]
    head = made.critic.head if critic == "own" else made.critic  # type: ignore[union-attr]
    torch.nn.init.normal_(head.layers[-1].weight)  # type: ignore[index, union-attr]
    whole = made.evaluate(batch)
    value, where = whole.value.detach(), batch.mask | batch.final  # type: ignore[union-attr]
    for b in range(4):
        one = batch.select([b])
        assert torch.allclose(made.evaluate(one).value[where[[b]]], value[[b]][where[[b]]], atol=1e-4)  # type: ignore[index]
    moved = gone(made, batch, 1, pictures(1, 9, (32, 48))[0])
    change = (made.evaluate(moved).value - value).abs().detach().masked_fill(~where, 0).amax(1)  # type: ignore[operator]
    assert change[1] > 1e-5 and bool((change[[0, 2, 3]] < 1e-5).all())
    frozen = made.snapshot()
    with torch.no_grad():
        for weight in made.model.parameters():
            weight.mul_(1.1)
    kept = frozen.evaluate(batch).logp
    assert torch.allclose(kept[batch.mask], whole.logp.detach()[batch.mask], atol=1e-5)
    assert not torch.allclose(made.evaluate(batch).logp[batch.mask], kept[batch.mask], atol=1e-5)


@FEW
def test_a_model_that_ignores_pixels_is_found_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = seer(kind)
    batch = made.collate([[episode] for episode in played(made, turns())])
    assert made.sight is not None and made._blindness is not None
    join = made.sight.join

    def deaf(shown: Any, device: Any) -> dict[str, Any]:
        joined = join(shown, device)
        pixels = joined["pixel_values"]
        return {} if isinstance(pixels, list) else {**joined, "pixel_values": torch.full_like(pixels, 0.5)}

    monkeypatch.setattr(made.sight, "join", deaf)
    with torch.no_grad():
        made.evaluate(batch)  # nobody learns
    with pytest.raises(ValueError, match="the pictures do not reach the model: in 3 rows"):
        made.evaluate(batch)
    made.evaluate(batch.select([3]))  # shows none: nothing can be told
    assert not made._blindness.is_done
    monkeypatch.undo()
    made.evaluate(batch)
    assert made._blindness.is_done
    quiet = LanguagePolicy(made.model, made.tokenizer, sight=made.sight, check_sight=False)
    monkeypatch.setattr(made.sight, "join", deaf)
    quiet.evaluate(batch)
    made.evaluate(batch)  # once


def test_what_is_no_picture_is_refused() -> None:
    made = seer("tiny")
    image = pictures(1)
    for wrong, told in (
        ({"image": image.astype(np.float32), "text": ("a",)}, "float32"),
        ({"image": image[..., :1], "text": ("a",)}, r"uint8 \(32, 32, 1\)"),
        ({"image": image, "text": ("a",), "state": image}, "'state'"),
        ({"image": image, "instruction": ("a",)}, "'instruction'"),
    ):
        with pytest.raises(TypeError, match=told):
            made.act(wrong, infos=[{}])
    with pytest.raises(ValueError, match="has_image"):
        made.act({"image": image, "text": ("a",)}, infos=[{"has_image": "no"}])
    text = LanguagePolicy(made.model, made.tokenizer, max_tokens=2)
    assert text.act({"image": image, "text": ("a",)}, infos=[{"has_image": False}]).records[0] is not None
    with pytest.raises(TypeError, match="reads text alone, and the observation shows a picture"):
        text.act({"image": image, "text": ("a",)}, infos=[{}])


def test_a_record_of_another_sight_is_refused() -> None:
    made = seer("tiny")
    rows = played(made, turns((32, 32)))
    rows[0].steps[0].observation["image"] = pictures(1, size=(64, 64))[0]
    with pytest.raises(ValueError, match="record of step 0 has picture 0 at id 0"):
        made.collate([[rows[0]]])


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "idefics3", "smolvlm", "llava"])
@pytest.mark.parametrize("lora", [0, 2])
def test_checkpoints_are_loaded_with_their_processors(kind: str, lora: int, tmp_path: Path) -> None:
    made = LanguagePolicy.from_pretrained(saved(kind, tmp_path), max_tokens=4, lora=lora, device="cpu")
    batch = made.collate([[episode] for episode in played(made, turns())])
    assert drift(made, batch) < 1e-4
    made.evaluate(batch).logp[batch.mask].sum().backward()
    seen = [w for name, w in made.model.named_parameters() if "vis" in name and w.grad is not None]
    assert any(bool(weight.grad.any()) for weight in seen)
    reference = made.snapshot()
    before = reference.evaluate(batch).logp.detach().clone()
    with torch.no_grad():
        for weight in made.parameters():
            if weight.requires_grad:
                weight.add_(0.05)
    assert torch.allclose(reference.evaluate(batch).logp[batch.mask], before[batch.mask], atol=1e-5)
    assert drift(made, batch) > 1e-3
    again = LanguagePolicy.from_pretrained(tmp_path, max_tokens=4, lora=lora, device="cpu")
    again.load_state_dict(made.state_dict())
    assert torch.equal(again.evaluate(batch).logp[batch.mask], made.evaluate(batch).logp[batch.mask])


def test_families_that_are_not_known_are_named(tmp_path: Path) -> None:
    from transformers import BlipConfig, BlipForConditionalGeneration

    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = BlipConfig(
        text_config={**small, "vocab_size": 8}, vision_config={**small, "image_size": 8, "patch_size": 8}
    )
    BlipForConditionalGeneration(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"a model of type 'blip' takes pictures is not known here.*qwen2_5_vl"):
        LanguagePolicy.from_pretrained(tmp_path)


def test_text_alone_is_read_by_a_model_that_sees() -> None:
    for kind in (*QWEN[1:2], "idefics3", "tiny"):
        made = seer(kind)
        acted = made.act(("what?", "a cell"))
        rows = [
            Episode(steps=[Step(text, action, 1.0, True, record=record)])
            for text, action, record in zip(("what?", "a cell"), acted.actions, acted.records, strict=True)
        ]
        batch = made.collate([[episode] for episode in rows])
        assert set(batch.inputs) == {"ids"} and drift(made, batch) < 1e-4


def test_a_turn_that_shows_a_picture_and_leaves_no_room_has_the_stop_context() -> None:
    made = seer("tiny")
    made.engine.context = 20
    acted = made.act({"image": pictures(1), "text": ("what cell",)})
    assert acted.stops == ["context"] or len(acted.records[0]["ids"]) <= 20 - 16 - 3  # type: ignore[index]
    made.engine.context = 16
    assert made.act({"image": pictures(1), "text": ("what cell",)}).records == [None]


QWEN_OWN = (  # what Qwen2.5-VL's own template does
    "{% set count = namespace(value=0) %}{% for message in messages %}"
    "{% if loop.first and message['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "{% endif %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}"
    "<|im_end|>\n{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' %}"
    "{% set count.value = count.value + 1 %}{% if add_vision_id %}Picture {{ count.value }}: {% endif %}IMAGE"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize(
    ("kind", "template"), [("qwen2_5_vl", CHATML), ("qwen2_5_vl", QWEN_OWN), ("idefics3", PARTS), ("llava", CHATML)]
)
def test_turns_append_to_what_the_processor_gives_for_the_whole_dialogue(kind: str, template: str) -> None:
    made = seer(kind, template)
    end = made.tokenizer.eos_token_id
    said = ["one", "two", "three"]
    queue = [Completion([*made.tokenizer.encode(text), end], [-1.0] * (len(text) + 1), "eos") for text in said]
    made.engine.generate = lambda *_, **__: [queue.pop(0)]  # type: ignore[method-assign]
    images = pictures(3, size=(32, 48))
    memory, given, told, shown = None, [], [], []
    for image, text, seen in zip(images, ("\n\na", "b <image> <|image_pad|>", " c"), (True, False, True), strict=True):
        acted = made.act({"image": image[None], "text": (text,)}, memory, infos=[{"has_image": seen}])
        memory = acted.memory
        record = acted.records[0]
        assert record is not None
        given += [*record["prompt"].tolist(), *record["ids"].tolist()]
        text = text.replace("<image>", "IMG").replace("<|image_pad|>", "PAD")
        part = [{"type": "text", "text": text}]
        told += [{"role": "user", "content": [{"type": "image"}, *part] if seen else part}]
        told += [{"role": "assistant", "content": [{"type": "text", "text": acted.actions[0]}]}]
        shown += [Image.fromarray(image)] * seen
    assert memory is not None and len(memory[0].pictures) == 2
    whole = made.tokenizer.apply_chat_template(told, tokenize=False)
    expected = vlm(kind)[1](text=[whole], images=shown, return_tensors="pt")["input_ids"][0].tolist()
    # A placeholder that a text spells out would be a picture to the processor.
    marks = {"IMG": "<image>", "PAD": "<|image_pad|>"}
    for mark, token in ((made.tokenizer.encode(mark), made.chat.text(token)) for mark, token in marks.items()):
        at = next(i for i in range(len(expected)) if expected[i : i + len(mark)] == mark)
        expected[at : at + len(mark)] = token
    assert given == expected[: len(given)] and made.tokenizer.decode(expected[len(given) :]).strip() == ""
