"""Llama with split layers: its chips exchange values only as often as expected, and all would trace one program."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

import tt_torch
from tt_torch.errors import ArgumentError
from tt_torch.torch_private import one_process
from tt_torch.wire import facts
from tt_torch.wire.calls import op_histogram, public
from tt_torch.wire.decode import decode

COLUMNS = "self_attn.q_proj self_attn.k_proj self_attn.v_proj mlp.gate_proj mlp.up_proj".split()
ROWS = "self_attn.o_proj mlp.down_proj".split()
LAYERS = 2
IDS = torch.randint(256, (1, 32), generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def llama(layers=LAYERS):
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 8, "num_key_value_heads": 8}
    return LlamaForCausalLM(LlamaConfig(vocab_size=256, num_hidden_layers=layers, **sizes)).eval()


def tensor_parallel(layers=LAYERS):
    styles = dict.fromkeys(COLUMNS, ColwiseParallel()) | dict.fromkeys(ROWS, RowwiseParallel())
    return {f"model.layers.{i}.{name}": style for i in range(layers) for name, style in styles.items()}


def sequence_parallel(layers=LAYERS):
    """Between the split parts of a layer, each chip has a part of the words."""
    words = {"output_layouts": Shard(1), "use_local_output": False}
    of_layer = dict.fromkeys(COLUMNS, ColwiseParallel()) | dict.fromkeys(ROWS, RowwiseParallel(**words))
    of_layer |= dict.fromkeys(["input_layernorm", "post_attention_layernorm"], SequenceParallel())
    of_layer["self_attn"] = PrepareModuleInput(
        input_kwarg_layouts={"hidden_states": Shard(1)}, desired_input_kwarg_layouts={"hidden_states": Replicate()}
    )
    of_layer["mlp"] = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    return {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), **words),
        "model.norm": SequenceParallel(),
        "lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        **{f"model.layers.{i}.{name}": style for i in range(layers) for name, style in of_layer.items()},
    }


@torch.no_grad()
def compiled(shape, plan, layers=LAYERS):
    names = ("dp", "tp")[-len(shape) :]
    mesh = init_device_mesh("tt", shape, mesh_dim_names=names)["tp"]
    model = parallelize_module(llama(layers), mesh, plan(layers))
    return tt_torch.compile_model(model, (IDS,), kwargs={"use_cache": False})


@pytest.mark.parametrize("chips", [2, pytest.param(8, marks=pytest.mark.nightly)])
def test_tensor_parallel_layers_have_two_sums(chips):
    program = compiled((chips,), tensor_parallel)
    ops = op_histogram(decode(program.binary))
    exchanges = {name: n for name, n in ops.items() if name.startswith(("All", "Reduce", "Mesh"))}
    assert exchanges == {"AllReduceOp": 2 * LAYERS}
    torch.testing.assert_close(program(IDS, use_cache=False).logits.cpu(), llama()(IDS).logits, rtol=0, atol=1e-5)


def test_sequence_parallel_layers_have_two_gathers_and_two_scatters():
    """Outside of the layers, the words are scattered once and gathered once, and the logits are gathered once."""
    program = compiled((2,), sequence_parallel)
    ops = op_histogram(decode(program.binary))
    assert (ops["AllGatherOp"], ops["ReduceScatterOp"], ops["AllReduceOp"]) == (2 * LAYERS + 2, 2 * LAYERS + 1, 0)
    torch.testing.assert_close(program(IDS, use_cache=False).logits.cpu(), llama()(IDS).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "plan"),
    [
        pytest.param((4,), tensor_parallel, marks=pytest.mark.nightly),
        ((4,), sequence_parallel),
        pytest.param((2, 4), tensor_parallel, marks=pytest.mark.nightly),
        pytest.param((2, 4), sequence_parallel, marks=pytest.mark.nightly),
    ],
)
def test_each_chip_would_trace_the_same_program(monkeypatch, shape, plan):
    """The flag of PyTorch that makes a graph the same on all ranks is new in PyTorch."""
    first = compiled(shape, plan, layers=1)
    dist.destroy_process_group()
    begin = dist.init_process_group

    def as_last_rank(*args, rank, world_size, **named):
        assert rank == 0
        begin(*args, rank=world_size - 1, world_size=world_size, **named)

    monkeypatch.setattr(one_process.dist, "init_process_group", as_last_rank)
    last = compiled(shape, plan, layers=1)
    assert dist.get_rank() == dist.get_world_size() - 1
    assert last.binary == first.binary


@pytest.mark.slow
def test_generation_with_split_heads():
    """The cache is split by heads, like the columns of the layers. The test generates three tokens after a prompt."""
    heads = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
    plan = tensor_parallel() | {
        f"model.layers.{i}.{name}": ColwiseParallel(use_local_output=False) for i in range(LAYERS) for name in heads
    }
    mesh = init_device_mesh("tt", (4,))
    model, parallel = llama(), parallelize_module(llama().to("tt"), mesh, plan)
    caches = [StaticCache(config=model.config, max_cache_len=16) for _ in range(2)]
    for cache, device in zip(caches, ("cpu", "tt"), strict=True):
        cache.early_initialization(1, 8, 8, torch.float32, torch.device(device))
    for layer in caches[1].layers:
        layer.keys, layer.values = (distribute_tensor(x, mesh, [Shard(1)]) for x in (layer.keys, layer.values))
    run = torch.compile(parallel, backend="tt", dynamic=False, options={"fallback": "error"})
    ids, position = IDS[:, :8], torch.arange(8)[None]
    with torch.no_grad():
        for _ in range(4):
            expected = model(ids, position_ids=position, past_key_values=caches[0]).logits
            found = run(ids.tt(), position_ids=position.tt(), past_key_values=caches[1]).logits
            torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-5)
            ids, position = expected[:, -1:].argmax(-1), position[:, -1:] + 1


def test_a_model_on_meta_is_split():
    """Weights without values are split into parts, too."""
    mesh = init_device_mesh("tt", (4,))
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(32, 64, bias=False), torch.nn.Linear(64, 32, bias=False)).eval()
    parallelize_module(model.requires_grad_(False), mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    compiled = tt_torch.compile_model(model, (torch.randn(2, 32),))
    (program,) = public(decode(compiled.binary))
    assert [tensor.shape for tensor in facts.inputs(program)] == [(2, 32), (16, 32), (32, 16)]


def test_a_whole_tensor_inside_of_a_model():
    mesh = init_device_mesh("tt", (4,))
    x = torch.randn(8, 4)
    split = distribute_tensor(x, mesh, [Shard(0)])
    run = torch.compile(lambda x: (x * 2).full_tensor() + 1, backend="tt", fullgraph=True)
    assert type(run(split)) is torch.Tensor
    torch.testing.assert_close(run(split).cpu(), x * 2 + 1)


def test_a_written_argument_that_shares_memory_is_an_error():
    """AOTAutograd counts a DTensor twice, so that the positions of later inputs differ."""
    mesh = init_device_mesh("tt", (2,))

    def step(weight, state, x):
        state.add_(x)
        return (weight * 2).full_tensor()

    weight = distribute_tensor(torch.randn(4, 4), mesh, [Shard(0)])
    state, x = torch.zeros(4).tt(), torch.ones(4).tt()
    compiled = tt_torch.compile_model(step, (weight, state, x))
    compiled(weight, state, x)
    assert state.cpu().tolist() == [1] * 4
    with pytest.raises(ArgumentError, match="writes to state, which shares memory with x"):
        compiled(weight, state, state)
