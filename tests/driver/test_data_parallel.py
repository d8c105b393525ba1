"""`automatic_parallelization`, `mesh=` of compile_model, and tt-xla's names for shardings."""

import copy

import pytest
import torch
import torch.distributed as dist
import transformers
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from transformers.distributed import DistributedConfig
from transformers.distributed.tensor_parallel import apply_tensor_parallelism

import tt_torch
from tt_torch.config import CompileDepth
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import ConfigError, MeshError, ShardingError, UnsupportedOpError

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "hidden_size": 64}


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def split(mesh=(2, 4)):
    return {"mesh_shape": mesh, "automatic_parallelization": True}


def llama():
    config = transformers.LlamaConfig(vocab_size=128, num_key_value_heads=2, **SMALL)
    return transformers.LlamaForCausalLM(config), torch.randint(0, 128, (8, 16))


def gpt2():
    config = transformers.GPT2Config(vocab_size=128, n_embd=64, n_layer=2, n_head=4, n_positions=64)
    return transformers.GPT2LMHeadModel(config), torch.randint(0, 128, (8, 16))


def bert():
    return transformers.BertModel(transformers.BertConfig(vocab_size=128, **SMALL)), torch.randint(0, 128, (8, 16))


def vit():
    return transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **SMALL)), torch.randn(
        8, 3, 32, 32
    )


def resnet():
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic")
    return transformers.ResNetModel(config), torch.randn(8, 3, 32, 32)


QUICK = [(bert, (1, 2)), (vit, (2, 2)), (resnet, (2, 4))]  # each mesh, and each model that takes a few seconds


@pytest.mark.parametrize(
    ("make", "mesh"),
    [
        pytest.param(make, mesh, id=f"{make.__name__}-{mesh}", marks=[pytest.mark.slow] * ((make, mesh) not in QUICK))
        for make in (llama, gpt2, bert, vit, resnet)
        for mesh in ((1, 2), (2, 2), (2, 4))
    ],
)
def test_models_with_a_split_batch(make, mesh):
    model, x = make()
    with torch.no_grad():
        expected = model.eval()(x)[0]
        result = torch.compile(model, backend="tt", options=split(mesh))(x)[0]
    assert result.device == x.device
    assert (result - expected).abs().max() < 1e-5


def test_gradients_are_those_of_the_whole_batch():
    model, x = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)), torch.randn(16, 32)
    parallel = copy.deepcopy(model)
    for result in (model(x), torch.compile(parallel, backend="tt", options=split())(x)):
        result.square().mean().backward()
    for p, q in zip(parallel.parameters(), model.parameters(), strict=True):
        assert type(p.grad) is torch.Tensor
        assert (p.grad - q.grad).abs().max() < 1e-6


def test_other_sizes_of_the_batch():
    model = nn.Linear(4, 4)
    compiled = torch.compile(model, backend="tt", options=split((1, 4)))
    for size in (4, 8, 16, 4):
        x = torch.randn(size, 4)
        assert (compiled(x) - model(x)).abs().max() < 1e-6
    with pytest.raises(ShardingError, match=r"the batch, dimension 0 of args\[0\], is not a multiple of 4 chips"):
        compiled(torch.randn(6, 4))
    assert not dist.is_initialized()


def test_writes_reach_the_whole_tensor():
    def write(x, y):
        x[0:3].mul_(0)
        x[:, 1].add_(1)
        return y + 1

    x = torch.arange(32.0).reshape(8, 4)
    given, run = x.clone(), torch.compile(write, backend="tt", options=split((1, 2)))
    torch.testing.assert_close([run(given, given[4:].clone()), given], [write(x, x[4:].clone()), x])
    strict = torch.compile(write, backend="tt", options=split((1, 2)) | {"fallback": "error"})
    overlap = r"writes to its inputs, of which these overlap in memory: .*x.*, .*y.*"
    for view in (lambda x: x[0], lambda x: x[::2]):
        with pytest.raises(MeshError, match=overlap):
            strict(given, view(given))
        torch.testing.assert_close(given, x)
        with pytest.warns(HostFallbackWarning, match=overlap):
            found = torch.compile(write, backend="tt", options=split((1, 2)))(given, view(given))
        torch.testing.assert_close([found, given], [write(x, view(x)), x])


def test_compile_model_for_a_mesh():
    model, x = nn.Linear(8, 8).eval(), torch.randn(8, 8)
    for mesh in ((2, 4), (8,), init_device_mesh("tt", (8,))):
        assert (tt_torch.compile_model(model, (x,), mesh=mesh)(x) - model(x)).abs().max() < 1e-6


def test_meshes_that_do_not_fit_are_errors():
    model, x = nn.Linear(8, 8).eval(), torch.randn(8, 8)
    with pytest.raises(ConfigError, match="a mesh of several chips with automatic_parallelization"):
        tt_torch.compile_model(model, (x,), options={"automatic_parallelization": True})
    with pytest.raises(ConfigError, match="mesh_shape"):
        tt_torch.compile_model(model, (x,), mesh=(2, 2, 2))
    for mesh in (8, "tt"):
        with pytest.raises(ConfigError, match="it takes two positive integers"):
            tt_torch.compile_model(model, (x,), mesh=mesh)
    with pytest.raises(ShardingError, match="no input of the graph has one"):
        tt_torch.compile_model(lambda x: x + 1, (torch.tensor(1.0),), mesh=(2,))
    init_device_mesh("tt", (2,))
    with pytest.raises(MeshError, match="a program for 4 chips cannot be compiled, because this process has 2 chips"):
        tt_torch.compile_model(model, (x,), mesh=(4,))


def broken(x, y, i):
    z = torch.tanh(x @ y)
    torch._dynamo.graph_break()
    return z.sin() + z.shape[0], z.cos()  # of a split batch that has gradients


def counted(x, y, i):
    return x[i] + x.reshape(x.shape[0], 2, -1).sum(1).mean() * (x * y[i]).mean()  # reads the value of `i`


def written(x, y, i):
    z = x * y[0]
    torch._dynamo.graph_break()
    z[1:].mul_(x[0])  # an input of this graph gets gradients
    return z


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [broken, counted, written])
def test_gradients_in_graphs_of_several_sizes(function, dynamic):
    run = torch.compile(function, backend="tt", options=split((1, 2)), dynamic=dynamic)
    for size, i in ((4, 1), (8, 3)):
        values, place = [torch.randn(size, 16), torch.randn(16, 16)], torch.tensor(i)
        found, expected = ([x.clone().requires_grad_() for x in values] for _ in range(2))
        for f, given in ((run, found), (function, expected)):
            results = f(*given, place)
            results = results if isinstance(results, tuple) else (results,)
            sum((x * torch.linspace(1, 2, x.numel()).view(x.shape)).sum() for x in results).backward()
        assert all(torch.allclose(a.grad, b.grad, atol=1e-4, rtol=1e-5) for a, b in zip(found, expected, strict=True))


def test_marked_tensors():
    mesh = init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))
    model, x = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)), torch.randn(8, 16)
    marked = copy.deepcopy(model)
    marked[0].weight = tt_torch.mark_sharding(marked[0].weight, mesh, ("tp", None))
    marked[2].weight = tt_torch.mark_sharding(marked[2].weight, mesh, (None, "tp"))
    assert isinstance(marked[0].weight, nn.Parameter)
    assert marked[0].weight.placements == (Replicate(), Shard(0))
    given = tt_torch.mark_sharding(x, mesh, (0, None))
    result = torch.compile(marked, backend="tt")(given)
    assert (result.full_tensor().cpu() - model(x)).abs().max() < 1e-6


def test_a_constraint_inside_of_a_model():
    mesh, x = init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp")), torch.randn(16, 8)

    def model(x):
        return tt_torch.sharding_constraint(x * 2, mesh, (("dp", "tp"), None)).sin()

    result = torch.compile(model, backend="tt", fullgraph=True)(x.to("tt"))
    assert isinstance(result, DTensor)
    assert result.placements == (Shard(0), Shard(0))
    assert (result.full_tensor().cpu() - (x * 2).sin()).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (("tp",), "has 1 entries, and the tensor 2 dimensions"),
        (("pp", None), "'pp' is no axis of the mesh"),
        ((2, None), "2 is no axis of the mesh"),
        (("tp", "tp"), "each axis of the mesh stands once"),
        ((("tp", "dp"), None), "they are in order"),
    ],
)
def test_specs_that_do_not_fit(spec, words):
    mesh = init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))
    with pytest.raises(ShardingError, match=words):
        tt_torch.mark_sharding(torch.ones(8, 8), mesh, spec)


def test_the_plan_of_transformers():
    model, ids = llama()
    parallel, mesh = copy.deepcopy(model.eval()), init_device_mesh("tt", (2,))
    plan, *_ = parallel._resolve_parallel_plans(DistributedConfig(tp_plan="auto", tp_size=2))
    apply_tensor_parallelism(parallel, mesh, plan)
    assert isinstance(parallel.model.layers[0].mlp.up_proj.weight, DTensor)
    with torch.no_grad():
        result = torch.compile(parallel, backend="tt")(ids).logits
        assert (result.cpu() - model(ids).logits).abs().max() < 1e-5


@pytest.mark.parametrize(
    "name, value",
    [
        ("enable_intermediate_verification", True),
        ("compile_depth", CompileDepth.EXECUTE_OP_BY_OP),
        ("fallback", "strict-dtype"),
    ],
)
def test_what_needs_the_host_is_refused(name, value):
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(nn.Linear(4, 4), backend="tt", options=split((1, 2)) | {name: value})(torch.randn(2, 4))
    assert isinstance(caught.value.inner_exception, ConfigError) and name in str(caught.value)


def test_ops_that_call_graphs_are_refused_by_name():
    model = lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))  # noqa: E731
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(model, backend="tt", options=split((1, 4)), fullgraph=True)(torch.randn(8, 4))
    assert isinstance(caught.value.inner_exception, UnsupportedOpError) and "cond is not" in str(caught.value)
