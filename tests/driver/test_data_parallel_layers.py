"""Layers whose batch is split over chips give the results, gradients and statistics of the whole batch."""

import copy
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_module, distribute_tensor

BATCH = 8
IMAGES, WORDS, SIGNALS, ROWS = (BATCH, 4, 6, 6), (BATCH, 5, 16), (BATCH, 4, 10), (BATCH, 16)
LAYERS = {
    "linear": (lambda: nn.Linear(16, 4), ROWS),
    "bilinear": (lambda: Twice(nn.Bilinear(16, 16, 3)), ROWS),
    "embedding": (lambda: nn.Embedding(10, 4), (BATCH, 3)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1), SIGNALS),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2), IMAGES),
    "conv2d of groups": (lambda: nn.Conv2d(4, 8, 3, groups=4), IMAGES),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (BATCH, 2, 3, 4, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), IMAGES),
    "batch norm 1d": (lambda: nn.BatchNorm1d(16), ROWS),
    "batch norm 2d": (lambda: nn.BatchNorm2d(4), IMAGES),
    "batch norm of many channels": (lambda: nn.Sequential(nn.Conv2d(4, 32, 3), nn.BatchNorm2d(32), nn.ReLU()), IMAGES),
    "batch norm without weights": (lambda: nn.BatchNorm2d(4, affine=False), IMAGES),
    "batch norm without statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), IMAGES),
    "batch norm with the mean of all": (lambda: nn.BatchNorm2d(4, momentum=None), IMAGES),
    "batch norm in inference": (lambda: nn.Sequential(nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8)).eval(), IMAGES),
    "layer norm": (lambda: nn.LayerNorm(16), WORDS),
    "rms norm": (lambda: nn.RMSNorm(16), WORDS),
    "group norm": (lambda: nn.GroupNorm(2, 4), IMAGES),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), IMAGES),
    "local response": (lambda: nn.LocalResponseNorm(2), IMAGES),
    "max pool": (lambda: nn.MaxPool2d(2), IMAGES),
    "average pool": (lambda: nn.AvgPool2d(3, padding=1), IMAGES),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(2), IMAGES),
    "adaptive max pool": (lambda: nn.AdaptiveMaxPool2d(2), IMAGES),
    "attention": (lambda: Thrice(nn.MultiheadAttention(16, 4, batch_first=True)), WORDS),
    "transformer": (lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), WORDS),
    "softmax": (lambda: nn.Softmax(-1), WORDS),
    "log softmax of the batch": (lambda: nn.LogSoftmax(0), WORDS),
    "pixel shuffle": (lambda: nn.PixelShuffle(2), IMAGES),
    "nearest": (lambda: nn.Upsample(scale_factor=2), IMAGES),
    "bilinear upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGES),
    "reflection": (lambda: nn.ReflectionPad2d(1), IMAGES),
    "replication": (lambda: nn.ReplicationPad2d(1), IMAGES),
    "unfold": (lambda: nn.Unfold(2), IMAGES),
    "glu": (lambda: nn.GLU(-1), WORDS),
    "prelu": (lambda: nn.PReLU(4), IMAGES),
    "gelu": (lambda: nn.GELU(), WORDS),
}

# CI tests these layers and the batch norms with DTensors. They have rules of ours, or some of PyTorch's rules. The
# other layers have rules of PyTorch or no rules, and the nightly run tests them.
OFTEN = "linear, embedding, conv2d, transposed, group norm, adaptive max pool, bilinear upsampling, attention".split(
    ", "
)


class Twice(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x, x)


class Thrice(Twice):
    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def example(name, seed=0):
    torch.manual_seed(seed)
    make, shape = LAYERS[name]
    layer = make()
    x = torch.randint(10, shape) if name.startswith("embedding") else torch.randn(shape) + 1
    return layer, x


def plain(x):
    assert isinstance(x, DTensor) or type(x) in (torch.Tensor, nn.Parameter), type(x)
    return (x.full_tensor() if isinstance(x, DTensor) else x).cpu()


def steps(layer, run, x, weight):
    """Two training steps, so that the second one sees what the first one has written."""
    if not list(layer.parameters()):
        return [run(x)]
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.05, momentum=0.9)
    results = []
    for _ in range(2):
        optimizer.zero_grad()
        result = run(x)
        (plain(result) * weight).sum().backward()
        optimizer.step()
        results.append(result)
    return [*results, *layer.state_dict().values(), *(p.grad for p in layer.parameters())]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(plain(one), plain(other), rtol=1e-4, atol=1e-4)


def check_plain(name, mesh):
    layer, x = example(name)
    parallel, weight = copy.deepcopy(layer), torch.randn_like(copy.deepcopy(layer)(x))
    options = {"mesh_shape": mesh, "automatic_parallelization": True}
    run = torch.compile(parallel, backend="tt", dynamic=False, options=options)
    assert_same(steps(parallel, run, x, weight), steps(layer, layer, x, weight))


def check_distributed(name, compiled):
    layer, x = example(name)
    mesh = init_device_mesh("tt", (2, 2))
    parallel, weight = distribute_module(copy.deepcopy(layer), mesh), torch.randn_like(copy.deepcopy(layer)(x))
    split = distribute_tensor(x, mesh, [Shard(0)] * mesh.ndim)
    run = torch.compile(parallel, backend="tt") if compiled else parallel
    assert_same(steps(parallel, run, split, weight), steps(layer, layer, x, weight))


@pytest.mark.parametrize("name", LAYERS)
def test_a_plain_layer(name):
    check_plain(name, (1, 8))


@pytest.mark.parametrize("mesh", [(1, 4), (2, 2), (2, 4)], ids=str)
def test_a_batch_norm_on_other_meshes(mesh):
    check_plain("batch norm of many channels", mesh)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN or "batch norm" in n else pytest.mark.nightly) for n in LAYERS]
)
def test_a_distributed_layer(name, recwarn):
    check_distributed(name, compiled=True)
    assert [w for w in recwarn if "/tt_torch/" in w.filename] == []  # Dynamo compiles no function of ours


@pytest.mark.parametrize("name", [name for name in LAYERS if "norm" in name or name in ("attention", "transformer")])
def test_an_eager_distributed_layer(name):
    check_distributed(name, compiled=False)


@pytest.mark.parametrize("step", ["optimizer", "function"])
def test_compiled_steps_of_an_optimizer(step):
    """All chips have the parameters, and their gradients are sums over the chips."""
    layer, x = example("layer norm")
    parallel, mesh = copy.deepcopy(layer), init_device_mesh("tt", (4,))
    split = distribute_tensor(x, mesh, [Shard(0)])
    for trained, inputs in ((layer, x), (distribute_module(parallel, mesh), split)):
        parameters = list(trained.parameters())
        optimizer = torch.optim.Adam(parameters, lr=torch.tensor(0.01))

        def by_hand(values, gradients):
            for value, gradient in zip(values, gradients, strict=True):
                value.sub_(gradient, alpha=0.01)

        update = optimizer.step if step == "optimizer" else by_hand
        if trained is parallel:
            update = torch.compile(update, backend="tt")
        for _ in range(3):
            optimizer.zero_grad()
            trained(inputs).square().sum().backward()
            with torch.no_grad():
                update(*([parameters, [p.grad for p in parameters]] if step == "function" else []))
    assert all(p.grad.placements[0].is_partial() for p in parallel.parameters())
    assert_same(parallel.parameters(), layer.parameters())


@pytest.mark.slow
def test_training_of_digits_follows_that_of_one_chip(monkeypatch):
    """100 steps of the demo's model, with batch norm, momentum and a batch of 64."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "demos"))
    from digits import load_data, make_model

    torch.manual_seed(0)
    images, _, labels, _ = load_data()
    model, order = make_model(), [torch.randperm(len(images))[:64] for _ in range(100)]
    losses = []
    for options in ({}, {"mesh_shape": (1, 8), "automatic_parallelization": True}):
        trained = copy.deepcopy(model)
        run = torch.compile(trained, backend="tt", dynamic=False, options=options)
        optimizer, mine = torch.optim.SGD(trained.parameters(), lr=0.01), []
        for batch in order:
            optimizer.zero_grad()
            loss = F.cross_entropy(run(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            mine.append(loss.item())
        losses.append((mine, trained.state_dict()))
    (one, state), (eight, other) = losses
    assert one[-1] < one[0] / 2
    torch.testing.assert_close(torch.tensor(eight), torch.tensor(one), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(other, state, rtol=1e-5, atol=1e-5)
