"""Small random networks of each attention kind keep the promises, and what breaks is named."""

from __future__ import annotations

import numpy as np
import pytest

from crosstok.errors import BadInput, ModelError
from crosstok.models import Forest, conformance

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from crosstok.models.passes import Network, PackedTrees, SeparatePaths  # noqa: E402
from crosstok.models.transformers import TransformersModel  # noqa: E402

pytestmark = pytest.mark.extras

IDS, LOGITS, WINDOW = 300, 304, 64
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": LOGITS,
    "max_position_embeddings": WINDOW,
}
MIXED = {"head_dim": 8, "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]}
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SMALL),
    "qwen2": lambda: transformers.Qwen2Config(**SMALL),
    "qwen3": lambda: transformers.Qwen3Config(**SMALL, head_dim=8),
    "gpt2": lambda: transformers.GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=4,
        vocab_size=LOGITS,
        n_positions=WINDOW,
        bos_token_id=0,
        eos_token_id=0,
    ),
    "gemma2": lambda: transformers.Gemma2Config(**SMALL, **MIXED),
    "gemma3": lambda: transformers.Gemma3TextConfig(**SMALL, **MIXED),
    "mistral": lambda: transformers.MistralConfig(**SMALL, sliding_window=6),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Passes this small lose more to a second thread than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(name, dtype=torch.float32):
    """Random weights, scaled so that what a node sees changes its row."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name]())
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(6)
    return model.to(dtype)


@pytest.fixture(scope="module")
def llama():
    return TransformersModel(network("llama"), IDS)


def rows(model, forest, **options):
    return model.evaluate(forest, **options).rows.to_host()


TREE = Forest([5, 6, 7, 8, 9, 5, 6], [-1, 0, 1, 1, 0, 4, 5])


# -- promises --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_packed_trees_keep_the_promises(name):
    model = TransformersModel(network(name), IDS)
    assert model.description.endswith("packed trees")
    conformance.check(model)
    # Measured: 1.1e-7 to 2.2e-7, either way.
    assert 0 < model.noise.packed < 1e-5
    assert 0 < model.noise.batched < 1e-5


def test_coarser_types_keep_the_promises_within_their_own_noise():
    model = TransformersModel(network("llama", torch.bfloat16), IDS)
    conformance.check(model)
    assert model.noise.packed > 1e-5  # measured: 2e-3
    assert "bfloat16" in model.description


def test_rows_are_those_of_the_library(llama):
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    with torch.inference_mode():
        logits = network("llama")(torch.tensor([ids])).logits[0, :, :IDS].double()
    assert np.abs(rows(llama, Forest.path(ids)) - logits.softmax(1).numpy()).max() < 1e-6


def test_padding_gets_no_mass_and_is_no_token(llama):
    assert llama.vocabulary_size == IDS
    assert rows(llama, TREE).shape == (len(TREE), IDS)
    with pytest.raises(BadInput, match="token ids from 0 to 299"):
        llama.evaluate(Forest.path([IDS]))


def test_ids_without_logits_have_no_mass_and_are_refused():
    model = TransformersModel(network("llama"), LOGITS + 2)
    found = rows(model, TREE)
    assert (found[:, LOGITS:] == 0).all()
    assert np.abs(found.sum(1) - 1).max() < 1e-6
    with pytest.raises(BadInput, match="that the model embeds"):
        model.evaluate(Forest.path([LOGITS]))


# -- the choice of a pass --------------------------------------------------------------------------


def test_layers_without_a_mask_of_ours_take_separate_paths(monkeypatch, caplog):
    monkeypatch.setattr(Network, "kinds", None)
    with caplog.at_level("INFO"):
        model = TransformersModel(network("gemma3"), IDS)
    assert model.description.endswith("separate paths")
    assert "separate paths" in caplog.text
    conformance.check(model)


@pytest.mark.parametrize("fault", ["mask", "positions", "window", "error"])
def test_a_model_that_does_not_follow_takes_separate_paths(monkeypatch, fault, caplog):
    """The check at load sees a network that ignores what it is given."""
    model = network("gemma3" if fault == "window" else "llama")
    forward = model.forward

    def deaf(**inputs):
        mask = inputs["attention_mask"]
        if isinstance(mask, dict) and fault == "window":
            inputs["attention_mask"] = dict.fromkeys(mask, mask["full_attention"])
        if "position_ids" in inputs and fault == "mask":
            inputs["attention_mask"] = torch.zeros_like(mask).masked_fill_(
                torch.ones(mask.shape, dtype=bool).triu(mask.shape[3] - mask.shape[2] + 1),
                torch.finfo(mask.dtype).min,
            )
        if "position_ids" in inputs and fault == "positions":
            inputs["position_ids"] = torch.arange(mask.shape[2])[None] + (
                mask.shape[3] - mask.shape[2]
            )
        if "position_ids" in inputs and fault == "error":
            raise NotImplementedError("no masks here")
        return forward(**inputs)

    deaf.__signature__ = __import__("inspect").signature(forward)
    monkeypatch.setattr(model, "forward", deaf)
    with caplog.at_level("INFO"):
        loaded = TransformersModel(model, IDS)
    assert loaded.description.endswith("separate paths")
    assert "packed trees" in caplog.text


def test_a_check_that_cannot_fail_takes_separate_paths():
    """Where no row depends on what is seen, nothing shows that a mask is obeyed."""
    model = network("llama")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
    assert TransformersModel(model, IDS).description.endswith("separate paths")


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [PackedTrees, SeparatePaths])
def test_chunks_change_nothing(llama, way, monkeypatch):
    sizes = []
    whole = TransformersModel(network("llama"), IDS)
    monkeypatch.setattr(whole, "_way", way(whole._network))
    forest = Forest.join([TREE, Forest.path(range(40)), TREE])
    expected = rows(whole, forest)
    logits_at = Network.logits_at
    monkeypatch.setattr(
        Network,
        "logits_at",
        lambda self, at, **inputs: (
            sizes.append(inputs["input_ids"].numel()),
            logits_at(self, at, **inputs),
        )[1],
    )
    whole.memory = 40_000
    assert conformance.distance(rows(whole, forest), expected) < 1e-6
    assert len(sizes) > 3
    whole.memory = 1 << 30
    rows(whole, forest)
    assert sizes[-1] > max(sizes[:-1])


def test_a_pass_without_room_is_cut_up(llama, monkeypatch, caplog):
    expected = rows(llama, Forest.path(range(40)))
    model = TransformersModel(network("llama"), IDS, memory=1_000_000)
    run, sizes = PackedTrees.run, []

    def crowded(self, pieces, out_nv):
        sizes.append(sum(map(len, pieces)))
        if sizes[-1] > 10:
            raise torch.OutOfMemoryError("no room")
        run(self, pieces, out_nv)

    monkeypatch.setattr(PackedTrees, "run", crowded)
    assert conformance.distance(rows(model, Forest.path(range(40))), expected) < 1e-6
    assert sizes[0] == 40
    assert "out of memory" in caplog.text
    sizes.clear()
    monkeypatch.setattr(
        PackedTrees, "run", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("no room"))
    )
    with pytest.raises(ModelError, match="release handles"):
        model.evaluate(Forest.path(range(40)))
    assert model.cached == 0


def test_the_cache_holds_what_handles_need(llama):
    handles = llama.evaluate(TREE, keep=[2, 5]).handles
    assert llama.cached == 5  # 5 6 7 and 9 5; 8 and the last 6 are gone
    llama.release(handles[:1])
    assert llama.cached == 3
    llama.evaluate(Forest.join([Forest.path([1, 2], handles[1]), Forest.path([3])]))
    assert llama.cached == 3
    llama.release(handles[1:])
    assert llama.cached == 0
    with pytest.raises(BadInput, match="another model's"):
        llama.evaluate(Forest.path([1], handles[0]))


def test_a_forest_may_have_more_roots_than_nodes(llama):
    few = Forest([4, 5], [-3, 0], (None, None, None))
    assert conformance.distance(rows(llama, few), rows(llama, Forest.path([4, 5]))) < 1e-6


# -- what goes wrong -------------------------------------------------------------------------------


def test_logits_that_are_no_numbers_are_named(llama):
    model = network("llama")
    broken = TransformersModel(model, IDS)
    with torch.no_grad():
        model.lm_head.weight[7] = torch.nan
    with pytest.raises(ModelError, match="NaN"):
        broken.evaluate(TREE, keep=[0])
    assert broken.cached == 0
    with pytest.raises(ModelError, match="NaN"):
        TransformersModel(model, IDS)


def test_an_empty_context_has_no_row(llama):
    with pytest.raises(BadInput, match="name the ids that begin its texts"):
        llama.evaluate(TREE, rows=[-1])
    assert llama.cached == 0
    assert not llama.row_at_start


def test_what_is_no_causal_model_is_refused():
    with pytest.raises(BadInput, match="causal language model"):
        TransformersModel(transformers.LlamaModel(CONFIGS["llama"]()), IDS)


# -- loading ---------------------------------------------------------------------------------------


def test_a_folder_loads_with_and_without_an_adapter(llama, tmp_path):
    network("llama").save_pretrained(tmp_path / "model")
    loaded = TransformersModel.load(tmp_path / "model", vocabulary=IDS, device="cpu")
    assert (rows(loaded, TREE) == rows(llama, TREE)).all()
    half = TransformersModel.load(tmp_path / "model", vocabulary=IDS, dtype="bfloat16")
    assert "bfloat16" in half.description


# The two libraries' newest releases warn about each other.
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_is_put_on(llama, tmp_path):
    peft = pytest.importorskip("peft")
    network("llama").save_pretrained(tmp_path / "model")
    config = peft.LoraConfig(r=2, init_lora_weights=False, task_type="CAUSAL_LM")
    peft.get_peft_model(network("llama"), config).save_pretrained(tmp_path / "adapter")
    model = TransformersModel.load(tmp_path / "model", vocabulary=IDS, peft=tmp_path / "adapter")
    assert model.description.endswith("packed trees")
    assert conformance.distance(rows(model, TREE), rows(llama, TREE)) > 0.01
    conformance.check(model)
    with pytest.raises(BadInput, match="an adapter for this model"):
        TransformersModel.load(tmp_path / "model", vocabulary=IDS, peft=tmp_path / "nothing")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": IDS}, "something that AutoModelForCausalLM loads"),
        ({}, "something that AutoTokenizer loads"),
        ({"gguf_file": "x.gguf"}, "vocabulary=... beside gguf_file"),
        ({"device": "cpu", "device_map": "auto"}, "device or device_map"),
    ],
)
def test_what_does_not_load_is_named(tmp_path, options, message):
    with pytest.raises(BadInput, match=message):
        TransformersModel.load(tmp_path / "nowhere", **options)
