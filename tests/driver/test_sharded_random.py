"""Random numbers of DTensors equal the numbers that one chip draws for the whole tensor. The split does not matter."""

import copy
import math
import random

import pytest
import torch
import torch.distributed as dist
import torch.distributed.tensor as distributed
import torch.nn.functional as F
from nights import often_if
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import BertConfig, BertForSequenceClassification

from tt_torch.errors import CollectiveError, ShardingError
from tt_torch.torch_private.one_process import parts_of
from tt_torch.torch_private.ops import is_random
from tt_torch.torch_private.rank_states import TAGGED
from tt_torch.wire.calls import device_ops
from tt_torch.wire.decode import decode

DRAWN = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout of all": lambda x: F.dropout(x, 1.0),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.4),
    "channels": lambda x: F.dropout1d(x, 0.5),
    "rand_like": torch.rand_like,
    "randn_like": lambda x: torch.randn_like(x) * x,
    "randint_like": lambda x: torch.randint_like(x, 3, 90),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "bernoulli of a number": lambda x: torch.empty_like(x).bernoulli_(0.2),
    "uniform": lambda x: x.clone().uniform_(-2, 5),
    "normal": lambda x: x.clone().normal_(1, 2),
    "normal around": lambda x: torch.normal(x, 0.5),
    "exponential": lambda x: torch.empty_like(x).exponential_(2.0),
    "geometric": lambda x: torch.empty_like(x).geometric_(0.3),
    "cauchy": lambda x: torch.empty_like(x).cauchy_(),
    "log normal": lambda x: torch.empty_like(x).log_normal_(),
    "gumbel": lambda x: F.gumbel_softmax(x),
    "multinomial": lambda x: torch.multinomial(x[:, :, 0].exp(), 2),
    "twice": lambda x: F.dropout(F.dropout(x, 0.2) + torch.rand_like(x), 0.5),
}
EAGER_ONLY = {"random": lambda x: torch.empty_like(x).random_(9), "poisson": lambda x: torch.poisson(x.exp())}
SHAPE = (8, 16, 8)


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def drawn(functions, x):
    """Returns the whole tensors that the functions draw, on the CPU."""
    torch._dynamo.reset()
    torch.manual_seed(11)
    results = [(r.full_tensor() if isinstance(r, DTensor) else r).cpu() for r in functions(x)]
    assert results
    return results


def split(x, seed):
    """A DTensor on a mesh of 2 x 2 chips, split in a random way that `seed` chooses."""
    choose = random.Random(seed)
    placements = [choose.choice([Replicate(), Shard(0), Shard(1), Shard(2)]) for _ in range(2)]
    return distribute_tensor(x, init_device_mesh("tt", (2, 2)), placements)


# Each function runs with one split for each change, and with others at night.
OFTEN = [(0, [0]), (1, [1]), (2, [4])]


@pytest.mark.parametrize(
    ("first", "seeds"), often_if(lambda *pair: pair in OFTEN, [*OFTEN, *((first, [2, 3, 5]) for first in range(3))])
)
def test_a_program_draws_what_one_chip_draws(first, seeds):
    functions, x = list(DRAWN.values())[first::3], torch.randn(SHAPE)
    run = torch.compile(lambda x: [f(x) for f in functions], backend="tt", dynamic=False)
    expected = drawn(run, x.to("tt"))
    for seed in seeds:
        found = drawn(run, split(x, seed))
        for name, *pair in zip(list(DRAWN)[first::3], found, expected, strict=True):
            torch.testing.assert_close(*pair, msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("name", [*DRAWN, *EAGER_ONLY])
def test_eager_mode_draws_what_one_chip_draws(name):
    x, functions = torch.randn(SHAPE), lambda x: [{**DRAWN, **EAGER_ONLY}[name](x)]
    torch.testing.assert_close(drawn(functions, split(x, name)), drawn(functions, x.to("tt")))


def test_a_sum_over_the_chips_is_added_up_first():
    mesh = init_device_mesh("tt", (2,))
    x = DTensor.from_local(torch.ones(4, 4, device="tt"), mesh, [Partial()])
    for form in (F.dropout, torch.compile(F.dropout, backend="tt")):
        assert {0.0, 4.0} == set(form(x, 0.5).full_tensor().cpu().flatten().tolist())


def test_a_generator_draws():
    x = distribute_tensor(torch.zeros(8, 4), init_device_mesh("tt", (4,)), [Shard(0)])
    numbers = [x.clone().uniform_(generator=torch.Generator("tt").manual_seed(5)).full_tensor() for _ in range(2)]
    assert torch.equal(*numbers) and numbers[0].unique().numel() > 30


def test_new_random_tensors_are_those_of_one_chip():
    mesh = init_device_mesh("tt", (2, 2))
    for make, one in ((distributed.rand, torch.rand), (distributed.randn, torch.randn)):
        (found,) = drawn(lambda _, f=make: [f(8, 6, device_mesh=mesh, placements=[Shard(0), Shard(1)])], None)
        assert torch.equal(found, *drawn(lambda _, f=one: [f(8, 6, device="tt")], None))
    assert distributed.randn(4, device_mesh=mesh, requires_grad=True, dtype=torch.float64).requires_grad


@pytest.mark.parametrize("compiled", [False, True])
def test_new_tensors_of_a_mesh(compiled):
    mesh = init_device_mesh("tt", (2, 2))
    x = distribute_tensor(torch.randn(8, 6), mesh, [Shard(0), Shard(1)])
    of_mesh = {"device_mesh": mesh, "placements": x.placements}

    def new(x):
        drawn = distributed.rand(8, 6, **of_mesh)
        return [x + distributed.full((8, 6), 2.0, **of_mesh), distributed.zeros(8, 6, **of_mesh).add_(x), x * 0 + drawn]

    torch.manual_seed(4)
    plus, written, drawn = [r.full_tensor().cpu() for r in (torch.compile(new, backend="tt") if compiled else new)(x)]
    torch.testing.assert_close([plus - 2, written], [x.full_tensor().cpu()] * 2)
    assert drawn.min() >= 0 and drawn.max() < 1 and drawn.unique().numel() == 48


def test_parts_of_several_sizes_are_refused():
    mesh = init_device_mesh("tt", (2,))
    with pytest.raises(ShardingError, match="dimension 0 is split over 2 chips"):
        distributed.zeros(9, device_mesh=mesh, placements=[Shard(0)])


@pytest.mark.slow
def test_bert_trains_with_dropout_as_on_one_chip():
    config = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    model, words = BertForSequenceClassification(config), torch.randint(99, (8, 12))
    found = []
    for options in ({}, {"mesh_shape": (2, 2), "automatic_parallelization": True}):
        torch._dynamo.reset()
        torch.manual_seed(5)
        trained = copy.deepcopy(model).train()
        run = torch.compile(trained, backend="tt", dynamic=False, options=options)
        loss = run(input_ids=words, labels=torch.arange(8) % 2).loss
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in trained.parameters())])
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_an_op_without_a_way_to_draw_is_refused():
    x = distribute_tensor(torch.randn(8, 8), init_device_mesh("tt", (2,)), [Shard(0)])
    with pytest.raises(CollectiveError, match=r"rrelu_with_noise.* all chips would draw the same numbers"):
        F.rrelu(x, training=True)
    with pytest.raises(CollectiveError, match=r"rrelu_with_noise.* of a tensor with a value per chip"):
        F.rrelu(x.to_local(), training=True)


def test_an_op_that_draws_nothing_leaves_the_generators_alone(monkeypatch):
    x = distribute_tensor(torch.randn(8, 8), init_device_mesh("tt", (4,)), [Shard(0)])
    with monkeypatch.context() as patched:
        patched.setattr(torch, "get_rng_state", lambda: pytest.fail("the states are read"))
        twice = x * 2
    torch.testing.assert_close(twice.full_tensor(), x.full_tensor() * 2)


def test_random_ops_are_those_with_the_tag():
    """DTensors rely on the tag: an op without it leaves the generators alone."""
    found = {op for op in map(overload, torch._C._dispatch_get_all_op_names()) if op and "Generator" in str(op._schema)}
    assert torch.ops.aten.random_.default in found and len(found) > 80
    assert [op for op in found if not is_random(op)] == []


def overload(name):
    namespace, _, rest = name.partition("::")
    packet, _, variant = rest.partition(".")
    if namespace not in TAGGED:
        return None
    return getattr(getattr(getattr(torch.ops, namespace), packet), variant or "default")


def test_an_op_of_the_user_draws_the_same_on_each_chip():
    """The op has no tag, so PyTorch cannot tell that it draws."""
    with torch.library._scoped_library("sharded_random_test", "DEF") as library:
        library.define("noise(Tensor x) -> Tensor")
        library.impl("noise", lambda x: x + torch.rand(x.shape).to(x.device), "CompositeExplicitAutograd")
        x = distribute_tensor(torch.zeros(8, 2), init_device_mesh("tt", (4,)), [Shard(0)]).to_local()
        parts = torch.ops.sharded_random_test.noise(x)
        first, *others = parts_of(parts)
        assert len(others) == 3 and all(torch.equal(first, other) for other in others)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(16, 32), nn.Linear(32, 16), nn.Dropout(0.4)

    def forward(self, x):
        return x + self.dropout(self.down(self.dropout(torch.relu(self.up(x)))))


def trained(model, run, x):
    """Two steps with dropout: the results and the parameters."""
    torch._dynamo.reset()
    torch.manual_seed(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    results = []
    for _ in range(2):
        optimizer.zero_grad()
        result = run(x)
        result.square().mean().backward()
        optimizer.step()
        results.append(result.detach())
    return [(v.full_tensor() if isinstance(v, DTensor) else v).cpu() for v in (*results, *model.state_dict().values())]


def on_one_chip(model, x):
    model = copy.deepcopy(model)
    return trained(model, torch.compile(model, backend="tt", dynamic=False), x)


def test_a_split_batch_trains_with_dropout_as_one_chip():
    model, x = Layer(), torch.randn(8, 5, 16)
    parallel = copy.deepcopy(model)
    options = {"mesh_shape": (2, 4), "automatic_parallelization": True}
    found = trained(parallel, torch.compile(parallel, backend="tt", dynamic=False, options=options), x)
    torch.testing.assert_close(found, on_one_chip(model, x))


def split_layers(model, local):
    plan = {"up": ColwiseParallel(use_local_output=local), "down": RowwiseParallel(use_local_output=local)}
    return parallelize_module(copy.deepcopy(model), init_device_mesh("tt", (4,)), plan)


def test_split_layers_train_with_dropout_as_one_chip():
    model, x = Layer(), torch.randn(8, 5, 16)
    parallel = split_layers(model, local=False)
    whole = distribute_tensor(x, init_device_mesh("tt", (4,)), [Replicate()])
    found = trained(parallel, torch.compile(parallel, backend="tt", dynamic=False), whole)
    torch.testing.assert_close(found, on_one_chip(model, x))


def attention(x):
    """Attention with dropout, and its gradient."""
    torch._dynamo.reset()
    torch.manual_seed(3)
    x = x.detach().requires_grad_()
    run = torch.compile(lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, dropout_p=0.3), backend="tt")
    result = run(x)
    result.square().sum().backward()
    return [(v.full_tensor() if isinstance(v, DTensor) else v).detach().cpu() for v in (result, x.grad)]


@pytest.mark.parametrize(
    "placements", [(Shard(0), Shard(1)), (Shard(1), Replicate()), (Replicate(), Shard(0))], ids=str
)
def test_attention_with_dropout_is_that_of_one_chip(placements):
    x = torch.randn(4, 4, 8, 16)
    mesh = init_device_mesh("tt", (2, 2))
    torch.testing.assert_close(attention(distribute_tensor(x, mesh, placements)), attention(x.to("tt")))


@pytest.mark.parametrize("compiled", [False, True])
def test_dropout_of_plain_results_drops_other_elements_of_each_part(compiled):
    """By default, parallel layers give plain tensors of each chip: parts, and sums that all chips have."""
    layers = split_layers(Layer(), local=True)

    def both(x):
        part = layers.up(x)
        return F.dropout(part, 0.5), F.dropout(layers.down(part), 0.5)

    parts, sums = (torch.compile(both, backend="tt") if compiled else both)(torch.randn(32, 16, device="tt"))
    dropped = [part.cpu() == 0 for part in parts_of(parts)]
    assert all(0.3 < d.float().mean() < 0.7 for d in dropped)
    assert not any(torch.equal(a, b) for i, a in enumerate(dropped) for b in dropped[:i])
    first, *others = [x.cpu() for x in parts_of(sums) or [sums]]
    assert all(torch.equal(first, other) for other in others)
    assert 0.3 < (first == 0).float().mean() < 0.7


def test_chips_with_equal_values_draw_equal_numbers_also_beside_nan():
    mesh = init_device_mesh("tt", (4,))
    rows = distribute_tensor(torch.tensor([[1.0], [torch.nan], [torch.nan], [2.0]]), mesh, [Shard(0)]).to_local()
    one, two, three, four = (part.tolist() for part in parts_of(torch.rand_like(rows.expand(1, 16))))
    assert two == three and one != two and one != four
    written = rows.expand(1, 16).clone().uniform_()
    one, two, three, four = (part.tolist() for part in parts_of(written))
    assert two == three and one != two and one != four


def test_a_plain_random_tensor_of_a_program_is_the_same_on_all_chips():
    x = distribute_tensor(torch.zeros(8, 4), init_device_mesh("tt", (4,)), [Shard(0)])
    numbers, total = torch.compile(
        lambda x: (torch.rand(4, device="tt"), x + torch.rand(4, device="tt")), backend="tt"
    )(x)
    assert type(numbers) is torch.Tensor
    assert len({tuple(row) for row in total.full_tensor().tolist()}) == 1


def test_each_chip_draws_its_part_only(made):
    """The hash of a dropout has 8 x 16 x 32 numbers. Each of the four chips computes a quarter of them."""
    x = distribute_tensor(torch.ones(8, 16, 32), init_device_mesh("tt", (2, 2)), [Shard(0), Shard(1)])
    torch.compile(lambda x: F.dropout(x, 0.5), backend="tt")(x)
    ops = device_ops(decode(made[-1].compiled.binary))
    sizes = [math.prod(result.shape) for op in ops for result in op.results]
    assert max(sizes) == 8 * 16 * 32 / 4
