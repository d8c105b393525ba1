"""Llama with split layers: how often its chips exchange values, and that every chip would trace the same program."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from transformers import LlamaConfig, LlamaForCausalLM

import tt_torch
from tt_torch.torch_private import one_process
from tt_torch.wire.calls import op_histogram
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


def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 8, "num_key_value_heads": 8}
    return LlamaForCausalLM(LlamaConfig(vocab_size=256, num_hidden_layers=LAYERS, **sizes)).eval()


def tensor_parallel():
    styles = dict.fromkeys(COLUMNS, ColwiseParallel()) | dict.fromkeys(ROWS, RowwiseParallel())
    return {f"model.layers.{i}.{name}": style for i in range(LAYERS) for name, style in styles.items()}


def sequence_parallel():
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
        **{f"model.layers.{i}.{name}": style for i in range(LAYERS) for name, style in of_layer.items()},
    }


@torch.no_grad()
def compiled(shape, plan):
    names = ("dp", "tp")[-len(shape) :]
    mesh = init_device_mesh("tt", shape, mesh_dim_names=names)["tp"]
    return tt_torch.compile_model(parallelize_module(llama(), mesh, plan), (IDS,), kwargs={"use_cache": False})


@pytest.mark.parametrize("chips", [2, 8])
def test_tensor_parallel_layers_have_two_sums(chips):
    program = compiled((chips,), tensor_parallel())
    ops = op_histogram(decode(program.binary))
    exchanges = {name: n for name, n in ops.items() if name.startswith(("All", "Reduce", "Mesh"))}
    assert exchanges == {"AllReduceOp": 2 * LAYERS}
    torch.testing.assert_close(program(IDS, use_cache=False).logits.cpu(), llama()(IDS).logits, rtol=0, atol=1e-5)


def test_sequence_parallel_layers_have_two_gathers_and_two_scatters():
    """Beyond the layers, the words are scattered once and gathered once, and the logits are gathered once."""
    program = compiled((2,), sequence_parallel())
    ops = op_histogram(decode(program.binary))
    assert (ops["AllGatherOp"], ops["ReduceScatterOp"], ops["AllReduceOp"]) == (2 * LAYERS + 2, 2 * LAYERS + 1, 0)
    torch.testing.assert_close(program(IDS, use_cache=False).logits.cpu(), llama()(IDS).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("plan", [tensor_parallel, sequence_parallel])
@pytest.mark.parametrize("shape", [(4,), (2, 4)])
def test_each_chip_would_trace_the_same_program(monkeypatch, shape, plan):
    """The flag of PyTorch that makes a graph the same on all ranks is young."""
    first = compiled(shape, plan())
    dist.destroy_process_group()
    begin = dist.init_process_group

    def as_last_rank(*args, rank, world_size, **named):
        assert rank == 0
        begin(*args, rank=world_size - 1, world_size=world_size, **named)

    monkeypatch.setattr(one_process.dist, "init_process_group", as_last_rank)
    last = compiled(shape, plan())
    assert dist.get_rank() == dist.get_world_size() - 1
    assert last.binary == first.binary
