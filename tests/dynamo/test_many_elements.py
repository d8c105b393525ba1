"""Ops that compare all pairs of elements do so only for few elements. For many, no device has the memory."""

import pytest
import torch

import tt_torch
from tt_torch.driver.partition import HostFallbackWarning

COUNT = 20_000


def compared(function, *inputs, **equal):
    torch.testing.assert_close(torch.compile(function, backend=tt_torch.backend)(*inputs), function(*inputs), **equal)


@pytest.mark.parametrize("reduce", ["amin", "amax"])
def test_the_largest_of_many_scattered_elements_is_found_on_the_host(reduce):
    x, index = torch.randn(COUNT), torch.randint(0, COUNT, (COUNT,))
    with pytest.warns(HostFallbackWarning, match="each element of the result with each element that is scattered"):
        compared(lambda x, i: (x * 2).scatter_reduce(-1, i, x, reduce, include_self=False) + 1, x, index)


@pytest.mark.parametrize("mode", ["sum", "max"])
def test_many_bags_are_left_to_the_host(mode):
    weight, index, offsets = torch.randn(9, 3), torch.randint(0, 9, (COUNT,)), torch.arange(0, COUNT, 2)
    with pytest.warns(HostFallbackWarning, match="too many with each bag"):
        compared(lambda w, i, o: torch.nn.functional.embedding_bag(i, w * 2, o, mode=mode), weight, index, offsets)


@pytest.mark.parametrize("shape, axis", [((COUNT,), 0), ((2, COUNT // 2), 1)])
def test_the_segments_of_many_elements_are_searched(shape, axis):
    x, lengths = torch.randn(shape), torch.randint(0, 3, (*shape[:axis], shape[axis] // 2))
    lengths[..., -1] += shape[axis] - lengths.sum(-1)
    compared(lambda x, n: torch.segment_reduce(x, "sum", lengths=n, axis=axis, unsafe=True), x, lengths)


def test_a_histogram_of_many_elements_has_eagers_counts():
    """Each element goes to the bin that eager computes, also if it is nearly an edge."""
    x = torch.randn(200_000)
    compared(lambda x: (x.histc(2999), x.histc(7777, -1, 0.7)), x, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_histogram_of_narrow_floats_keeps_its_elements(dtype):
    """1000 bins are more than bfloat16 tells apart. Eager PyTorch writes behind the last bin then."""
    x = torch.linspace(0, 1, 257).to(dtype)
    for bins in (1000, 60_000):
        found = torch.compile(lambda x, bins=bins: x.histc(bins), backend=tt_torch.backend)(x)
        assert found.float().sum() == 257


@pytest.mark.parametrize("weight", [None, torch.tensor([0.5, 2.0, 1.0])])
def test_a_loss_of_many_rows_of_float16_is_no_zero(weight):
    """The number of rows is infinite in float16. Eager PyTorch's loss is NaN, so float64 says what is right."""
    x, classes = torch.randn(70_000, 3), torch.randint(0, 3, (70_000,))

    def loss(x):
        own = None if weight is None else weight.to(x.dtype)
        return torch.nn.functional.cross_entropy(x, classes, weight=own)

    found, expected = x.half().requires_grad_(), x.double().requires_grad_()
    got, want = torch.compile(loss, backend=tt_torch.backend)(found), loss(expected)
    torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=0)
    (got * 1000).backward()
    (want * 1000).backward()
    torch.testing.assert_close(found.grad.double(), expected.grad, rtol=1e-2, atol=1e-5)
