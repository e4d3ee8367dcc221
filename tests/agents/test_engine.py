"""The sampler: exact log-probabilities whatever the batch, and stops that lengths decide."""

import math

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from tetrathlon.agents.engine import TorchEngine, eos_ids
from tetrathlon.agents.sampling import Sampling, draw

VOCAB = 50
CONTEXT = 64
# Large enough that positions and padding matter, small enough that float32 itself is good to 3e-6: at 0.5 a plain
# forward pass is 4e-5 away from the same in float64.
SCALE = 0.2


def llama(**changes):
    torch.manual_seed(1)
    config = LlamaConfig(
        **{
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": CONTEXT,
            "initializer_range": SCALE,
            "pad_token_id": 2,
            "eos_token_id": 2,
            **changes,
        }
    )
    return LlamaForCausalLM(config)


def gpt2():
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=VOCAB,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=CONTEXT,
        initializer_range=SCALE,
        bos_token_id=2,
        eos_token_id=2,
    )
    return GPT2LMHeadModel(config)  # with its default dropout, which generation must switch off


def mistral():
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(1)
    config = MistralConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=SCALE,
        sliding_window=6,
    )
    return MistralForCausalLM(config)


MODELS = {"llama": llama, "gpt2": gpt2, "sliding": mistral}
PROMPTS = [[5], [7, 8, 9, 2, 2, 10], list(range(3, 33)), [2, 2, 2], [7, 8, 9, 2, 2, 10], [11, 12]]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def logps_by_hand(model, prompt, ids, temperature=1.0):
    model.eval()
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].float()
    return (logits / temperature).log_softmax(-1).gather(-1, torch.tensor(ids)[:, None])[:, 0].tolist()


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.5])
def test_logps_equal_a_full_forward_in_a_padded_batch(model, temperature):
    engine = TorchEngine(model, [2])
    out = engine.generate(PROMPTS, Sampling(max_tokens=12, temperature=temperature))
    for prompt, completion in zip(PROMPTS, out, strict=True):
        expected = logps_by_hand(model, prompt, completion.ids, temperature)
        assert completion.logps == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("shared", [7, 8, 9, 24])
def test_a_common_beginning_changes_nothing(model, shared):
    prefix = [(7 * i) % 43 + 3 for i in range(shared)]
    prompts = [prefix + rest for rest in ([5], [7, 8, 9, 2, 2, 10], [4] * 20, [5], [6, 5])]
    reads = []
    forward = model.forward

    def watched(*args, input_ids, **rest):
        reads.append(input_ids.shape)
        return forward(*args, input_ids=input_ids, **rest)

    engine = TorchEngine(model, [])
    model.forward = watched
    out = engine.generate(prompts, Sampling(max_tokens=10))
    model.forward = forward
    # One reading of the beginning, then only the rests; a short beginning is not worth it, and a sliding window
    # would count the padding in between.
    apart = shared >= 8 and model.config.model_type != "mistral"
    assert [tuple(shape) for shape in reads[:2]] == ([(1, shared), (4, 20)] if apart else [(4, shared + 20), (5, 1)])
    for prompt, completion in zip(prompts, out, strict=True):
        assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=1e-5)


def test_a_prompt_that_is_the_beginning_of_all_others(model):
    prompts = [[9] * 12, [9] * 12 + [4], [9] * 30]
    out = TorchEngine(model, [2]).generate(prompts, Sampling(max_tokens=6))
    for prompt, completion in zip(prompts, out, strict=True):
        assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=1e-5)


def test_float64_leaves_only_the_rounding_of_the_result(model):
    out = TorchEngine(model, [2], dtype=torch.float64).generate(PROMPTS, Sampling(max_tokens=20))
    for prompt, completion in zip(PROMPTS, out, strict=True):
        assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=2e-6)


def test_greedy_alone_equals_greedy_in_a_batch(model):
    engine = TorchEngine(model, [2])
    sampling = Sampling(max_tokens=20, greedy=True, temperature=0.3)
    together = engine.generate(PROMPTS, sampling)
    for prompt, completion in zip(PROMPTS, together, strict=True):
        (alone,) = engine.generate([prompt], sampling)
        assert alone.ids == completion.ids and alone.stop == completion.stop
        assert alone.logps == pytest.approx(completion.logps, abs=1e-5)
        # Greedy says what the model thinks, at temperature 1.
        assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=1e-5)


@pytest.mark.parametrize("limits", [{"batch_size": 1}, {"batch_size": 2}, {"batch_tokens": 90}])
def test_samples_do_not_depend_on_the_cut_of_the_batch(model, limits):
    sampling = Sampling(max_tokens=10, seed=3)
    whole = TorchEngine(model, [2]).generate(PROMPTS * 2, sampling)
    cut = TorchEngine(model, [2], **limits).generate(PROMPTS * 2, sampling)
    assert [c.ids for c in whole] == [c.ids for c in cut]
    assert [c.stop for c in whole] == [c.stop for c in cut]


def test_rows_that_leave_do_not_change_the_others(model):
    engine = TorchEngine(model, [])
    sampling = Sampling(max_tokens=15, greedy=True)
    all_stay = engine.generate(PROMPTS, sampling)
    limits = [1, 15, 3, 7, 15, 2]
    some_leave = engine.generate(PROMPTS, sampling, limits)
    for stayed, left, limit in zip(all_stay, some_leave, limits, strict=True):
        assert left.ids == stayed.ids[:limit] and left.stop == "length"


def test_samples_do_not_depend_on_other_rows():
    model = llama()
    sampling = Sampling(max_tokens=12, seed=1)
    free = TorchEngine(model, []).generate(PROMPTS, sampling)
    for other in (0, 4, 12):
        limits = [other, 4, other, 12, other, None]
        some = TorchEngine(model, []).generate(PROMPTS, sampling, limits)
        assert [c.ids for c in some[1::2]] == [free[1].ids[:4], free[3].ids, free[5].ids]
    (first,) = TorchEngine(model, []).generate(PROMPTS[:1], sampling)
    assert first.ids == free[0].ids
    assert free[1].ids != free[4].ids  # one prompt, two streams
    # Nor on the limits of earlier calls.
    short, long = TorchEngine(model, []), TorchEngine(model, [])
    short.generate(PROMPTS, Sampling(max_tokens=1))
    long.generate(PROMPTS, Sampling(max_tokens=9))
    assert short.generate(PROMPTS, Sampling(max_tokens=5)) == long.generate(PROMPTS, Sampling(max_tokens=5))


def test_a_huge_limit_takes_no_memory():
    model = llama()
    (free,) = TorchEngine(model, [], context=10**15).generate([[5]], Sampling(max_tokens=3, seed=0))
    huge = TorchEngine(model, free.ids[2:], context=10**15)
    (out,) = huge.generate([[5]], Sampling(max_tokens=10**12, seed=0))
    assert out.stop == "eos" and free.ids[: len(out.ids)] == out.ids


def recurrent(name):
    import transformers

    sizes = {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2}
    sizes |= {
        "Mamba2": {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1},
        "RecurrentGemma": {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
        | {"intermediate_size": 48, "lru_width": 32, "attention_window_size": 16},
        "Rwkv": {"attention_hidden_size": 32},
        "xLSTM": {"num_blocks": 2, "num_heads": 4, "chunk_size": 8},
    }.get(name, {"state_size": 8})
    torch.manual_seed(1)
    model = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, f"{name}Config")(**sizes)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight *= 3  # else the state hardly shows in what follows
    return model


@pytest.mark.parametrize("name", ["Mamba", "FalconMamba", "Mamba2"])
def test_recurrent_models(name):
    model = recurrent(name)
    for prompts in ([[5, 6, 7]], PROMPTS):
        out = TorchEngine(model, []).generate(prompts, Sampling(max_tokens=8), [8, 6, 4, 8, 2, 7][: len(prompts)])
        for prompt, completion in zip(prompts, out, strict=True):
            assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=1e-4)
    (greedy,) = TorchEngine(model, []).generate([[5, 6, 7]], Sampling(max_tokens=8, greedy=True))
    theirs = model.generate(
        torch.tensor([[5, 6, 7]]), max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    assert greedy.ids == theirs[0, 3:].tolist()


@pytest.mark.parametrize("name", ["Rwkv", "xLSTM"])
def test_a_model_with_a_cache_of_its_own_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}ForCausalLM keeps its past in a cache of its own"):
        TorchEngine(recurrent(name), [])


def test_a_model_with_its_state_in_itself_is_refused():
    with pytest.raises(ValueError, match="RecurrentGemmaForCausalLM keeps its past in a cache of its own"):
        TorchEngine(recurrent("RecurrentGemma"), []).generate(PROMPTS, Sampling(max_tokens=2))


class Counter:
    """Notes the shape of every forward pass."""

    def __init__(self, model):
        self.shapes = []
        self.hook = model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, kwargs):
        self.shapes.append(tuple(kwargs["input_ids"].shape))


def test_rows_that_have_said_the_same_are_read_once_and_finished_rows_leave():
    model = llama(initializer_range=0.35)  # so sure of itself that rows often say the same
    counter = Counter(model)
    prompts, limits = [[5, 6, 7]] * 40 + [[9, 9]], [1] * 10 + [None] * 31
    out = TorchEngine(model, []).generate(prompts, Sampling(max_tokens=4, seed=0), limits)
    counter.hook.remove()
    rows = [(prompt, c.ids) for prompt, c in zip(prompts, out, strict=True)]
    states = [len({(*prompt, *ids[:k]) for prompt, ids in rows if len(ids) > k}) for k in range(1, 4)]
    assert counter.shapes == [(2, 3), *((count, 1) for count in states)]
    assert 2 < states[0] < 31 and states[0] < states[1] < states[2]
    assert [len(c.ids) for c in out] == [1] * 10 + [4] * 31
    for prompt, completion in zip(prompts, out, strict=True):
        assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=1e-5)


def test_eos_is_sampled_never_added_and_pad_may_be_eos():
    model = llama()  # its pad token is its EOS
    (free,) = TorchEngine(model, []).generate([[7, 2, 2, 8]], Sampling(max_tokens=20, greedy=True))
    assert free.stop == "length"
    first, second = free.ids[4], free.ids[9]
    for eos in ([first], [first, second], [second]):
        end = min(free.ids.index(token) for token in eos) + 1
        # The prompts hold the EOS as well; only what is sampled counts.
        prompts = [[7, 2, 2, 8], [first, 2, second, 2, 2, 2]]
        out = TorchEngine(model, eos).generate(prompts, Sampling(max_tokens=20, greedy=True))
        assert (out[0].ids, out[0].stop) == (free.ids[:end], "eos")
        assert len(out[0].logps) == end and out[1].ids


def test_an_eos_at_the_limit_is_an_eos():
    model = llama()
    (free,) = TorchEngine(model, []).generate([[5]], Sampling(max_tokens=1, greedy=True))
    (out,) = TorchEngine(model, free.ids).generate([[5]], Sampling(max_tokens=1, greedy=True))
    assert out.stop == "eos" and out.ids == free.ids


def test_context(model):
    engine = TorchEngine(model, [])
    lengths = [CONTEXT + 5, CONTEXT, CONTEXT - 1, CONTEXT - 4, CONTEXT - 10, 3]
    out = engine.generate([[5] * n for n in lengths], Sampling(max_tokens=10))
    assert [len(c.ids) for c in out] == [0, 0, 1, 4, 10, 10]
    assert [c.stop for c in out] == ["context", "context", "context", "context", "length", "length"]


def test_nothing_to_do():
    engine = TorchEngine(llama(), [2])
    assert engine.generate([], Sampling()) == []
    (out,) = engine.generate([[5]], Sampling(), [0])
    assert (out.ids, out.logps, out.stop) == ([], [], "length")


def test_seeds_and_streams():
    model = llama()
    state = torch.get_rng_state()

    def sample(engine, **options):
        return [c.ids for c in engine.generate(PROMPTS, Sampling(max_tokens=8, **options))]

    one, two, other = (TorchEngine(model, [2], seed=seed) for seed in (0, 0, 1))
    first = sample(one)
    sample(other)
    torch.rand(5)
    torch.set_rng_state(state)
    assert first == sample(two)  # whatever went on in between
    assert sample(one) == sample(two) != first  # the stream goes on
    assert sample(one, seed=7) == sample(other, seed=7) != sample(one, seed=8)
    assert sample(one) == sample(two)  # a call's own seed takes nothing from the stream
    assert torch.equal(torch.get_rng_state(), state)


def test_draws_follow_the_distribution():
    logits = torch.tensor([[0.0, 1.0, -math.inf, 2.0, -math.inf]])
    n = 20_000
    uniform = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for temperature in (1.0, 0.5):
        expected = (logits[0] / temperature).softmax(-1)
        tokens, logps = draw(logits, torch.zeros(n, dtype=torch.long), Sampling(temperature=temperature), uniform)
        counts = torch.bincount(tokens, minlength=5) / n
        assert torch.allclose(counts, expected, atol=4 * 0.5 / math.sqrt(n))
        assert counts[2] == counts[4] == 0
        assert torch.allclose(logps, expected.log()[tokens])
    ends = torch.tensor([0.0, 1 - 2**-53, 1.0], dtype=torch.float64)
    tokens, _ = draw(logits, torch.zeros(3, dtype=torch.long), Sampling(), ends)
    assert tokens.tolist() == [0, 3, 3]


def test_draws_are_those_of_the_whole_distribution_function():
    """Blocks choose what one sum over all tokens would, where numbers are not within rounding of a border."""
    torch.manual_seed(0)
    logits = 4 * torch.randn(3, 1000)
    logits[1, 256:768] = -math.inf  # two whole blocks of nothing
    state = torch.arange(3).repeat(2000)
    uniform = torch.rand(len(state), dtype=torch.float64)
    tokens, logps = draw(logits, state, Sampling(), uniform)
    total = logits.double().softmax(-1).cumsum(-1)[state]
    expected = torch.searchsorted(total, uniform[:, None], right=True)[:, 0]
    apart = (total - uniform[:, None]).abs().amin(-1) > 1e-6
    assert apart.float().mean() > 0.95
    assert torch.equal(tokens[apart], expected[apart])
    assert torch.allclose(logps, logits.log_softmax(-1)[state, tokens])
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    first, last = draw(logits[1:2], torch.zeros(2, dtype=torch.long), Sampling(), ends)[0].tolist()
    assert (first, last) == (0, 999)


def test_training_mode_comes_back():
    model = gpt2().train()
    engine = TorchEngine(model, [2])
    engine.generate([[5]], Sampling(max_tokens=2))
    assert model.training
    assert not any(p.grad is not None for p in model.parameters())


def test_bfloat16_has_a_float32_head():
    model = llama().to(torch.bfloat16)
    engine = TorchEngine(model, [2])
    out = engine.generate(PROMPTS, Sampling(max_tokens=6))
    with torch.no_grad():
        for prompt, completion in zip(PROMPTS, out, strict=True):
            hidden = model.model(torch.tensor([[*prompt, *completion.ids]])).last_hidden_state[0]
            logits = hidden[len(prompt) - 1 : -1].float() @ model.lm_head.weight.float().T
            assert logits.dtype == torch.float32
            logp = logits.log_softmax(-1)[range(len(completion.ids)), completion.ids]
            assert completion.logps == pytest.approx(logp.tolist(), abs=0.3)  # the trunk's own rounding
    assert "forward" not in model.lm_head.__dict__
    assert model(torch.tensor([[5]])).logits.dtype == torch.bfloat16


def test_lora():
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(llama(), peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False))
    out = TorchEngine(model, [2]).generate(PROMPTS, Sampling(max_tokens=6))
    for prompt, completion in zip(PROMPTS, out, strict=True):
        assert completion.logps == pytest.approx(logps_by_hand(model, prompt, completion.ids), abs=1e-5)


def test_wrong_arguments():
    engine = TorchEngine(llama(), [2])
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        engine.generate([[5], []], Sampling())
    with pytest.raises(ValueError, match="zip"):
        engine.generate([[5], [6]], Sampling(), [1])
    with pytest.raises(TypeError, match="float"):
        engine.generate([[5]], Sampling(), [2.5])  # type: ignore[list-item]
    for wrong in ({"temperature": 0.0}, {"temperature": math.nan}, {"max_tokens": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Sampling(**wrong)
    with pytest.raises(ValueError, match="batch_size"):
        TorchEngine(llama(), [2], batch_size=0)


def test_nan_is_an_error():
    model = llama()
    torch.nn.init.constant_(model.model.norm.weight, math.nan)
    for greedy in (True, False):
        with pytest.raises(FloatingPointError, match="NaN after 2 tokens"):
            TorchEngine(model, [2]).generate([[5, 6]], Sampling(greedy=greedy))


def test_eos_ids():
    class Tokenizer:
        eos_token_id = 3

        def get_added_vocab(self):
            return {"<|im_end|>": 7}

    model = llama()
    model.generation_config.eos_token_id = [2, 3, 9]
    assert eos_ids(Tokenizer(), model) == {2, 3, 7, 9}
    assert eos_ids(Tokenizer()) == {3, 7}
