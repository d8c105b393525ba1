"""Tensors of the device, apart from arithmetic: copies, views, resizing, saving, random numbers."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch

DTYPES = [
    torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.float8_e4m3fn,
]  # fmt: skip


@pytest.mark.parametrize("to", DTYPES, ids=str)
def test_copies_convert(to):
    for source in (torch.arange(6.0).view(2, 3), torch.arange(6).view(2, 3).t(), torch.tensor([True, False])):
        expected = source.to(to)
        assert torch.equal(source.tt().to(to).cpu(), expected)
        assert torch.equal(source.to("tt", to).cpu(), expected)
        assert torch.equal(source.tt().to("cpu", to), expected)


def test_strides_survive_copies():
    source = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert source.tt().stride() == source.tt().cpu().stride() == source.stride()


def test_views_share_memory():
    base = torch.zeros(3, 4, device="tt")
    base.view(12)[5] = 1
    base[:, 0].fill_(2)
    base.t()[3].add_(3)
    assert base.cpu().tolist() == [[2, 0, 0, 3], [2, 1, 0, 3], [2, 0, 0, 3]]
    assert base.as_strided((2,), (5,)).untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    pairs = torch.view_as_real(torch.zeros(2, dtype=torch.complex64, device="tt"))
    assert pairs.shape == (2, 2) and pairs._is_view()


def test_lazy_conjugation():
    values = torch.tensor([1 + 2j, 3 - 4j])
    lazy = values.tt().conj()
    assert lazy.is_conj()
    assert torch.equal(lazy.cpu(), values.conj())
    assert torch.equal((lazy * 2).cpu(), values.conj() * 2)
    assert torch.equal(lazy.imag.cpu(), values.conj().imag)


def test_out_is_resized():
    out = torch.empty(0, device="tt")
    torch.add(torch.ones(3, device="tt"), 1, out=out)
    assert out.cpu().tolist() == [2, 2, 2]
    out.resize_(5)
    assert out.shape == (5,) and out[:3].cpu().tolist() == [2, 2, 2]
    out.untyped_storage().resize_(0)
    assert out.untyped_storage().nbytes() == 0


def test_set_():
    a, b = torch.ones(3, device="tt"), torch.zeros(2, 2, device="tt")
    a.set_(b)
    a.fill_(4)
    assert b.sum().item() == 16
    a.set_(b.untyped_storage(), 1, (2,), (2,))
    assert a.shape == (2,)


def test_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="same device, but one is on cpu and another on tt"):
        torch.ones(2, device="tt") + torch.ones(2)
    assert (torch.ones(2, device="tt") * torch.tensor(3.0)).cpu().tolist() == [3, 3]  # a scalar may be on the CPU
    assert torch.arange(4, device="tt")[torch.tensor([1, 3])].cpu().tolist() == [1, 3]  # indices may, too


def test_numpy_says_what_to_do():
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\)"):
        torch.ones(2, device="tt").numpy()


@pytest.mark.parametrize(("saved", "location", "loaded"), [
    ("tt", None, "tt"), ("tt", "cpu", "cpu"), ("cpu", "tt", "tt"), ("cpu", "tt:0", "tt"),
])  # fmt: skip
def test_save_and_load(saved, location, loaded):
    model, file = torch.nn.Linear(2, 2).to(saved), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    state = torch.load(file, map_location=location)
    assert {value.device.type for value in state.values()} == {loaded}
    assert torch.equal(state["weight"].cpu(), model.weight.cpu())


def test_copy_and_print():
    tensor = torch.ones(2, device="tt")
    assert copy.deepcopy(tensor).device == tensor.device
    assert repr(tensor) == "tensor([1., 1.], device='tt:0')"


def test_random_numbers_are_those_of_the_cpu():
    def draw(device: str) -> list[torch.Tensor]:
        torch.manual_seed(7)
        numbers = [torch.randn(5, device=device), torch.randperm(9, device=device), torch.rand(3, device=device)]
        return [value.cpu() for value in [*numbers, torch.empty(4, device=device).bernoulli_(0.5)]]

    for ours, theirs in zip(draw("tt"), draw("cpu"), strict=True):
        assert torch.equal(ours, theirs)


def test_generators():
    state = torch.tt.get_rng_state()
    first = torch.rand(3, device="tt")
    torch.rand(3)  # draws from the CPU's generator, which is another one
    torch.tt.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="tt"), first)
    own = torch.Generator("tt").manual_seed(5)
    drawn = torch.rand(3, device="tt", generator=own)
    assert torch.equal(drawn.cpu(), torch.rand(3, generator=torch.Generator().manual_seed(5)))
    torch.tt.manual_seed_all(11)
    assert torch.tt.initial_seed() == 11
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device="tt", generator=torch.Generator())


def test_fork_rng():
    state = torch.tt.get_rng_state()
    with torch.random.fork_rng(device_type="tt"):
        torch.rand(3, device="tt")
    assert torch.equal(torch.tt.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bfloat16], ids=str)
def test_dlpack_shares_memory(dtype):
    tensor = torch.arange(1, 13).reshape(4, 3).to("tt", dtype).t()[1:]
    other = torch.from_dlpack(tensor)
    other.zero_()
    assert (other.device, other.stride()) == (tensor.device, tensor.stride())
    assert not tensor.cpu().any()
    assert torch.from_dlpack(tensor, copy=True).data_ptr() != tensor.data_ptr()


def test_dlpack_between_cpu_and_device():
    array = np.arange(6.0).reshape(2, 3)
    tensor = torch.from_dlpack(array, device="tt")
    assert tensor.device.type == "tt"
    assert (np.from_dlpack(tensor, device="cpu") == array).all()
    assert torch.from_dlpack(tensor, device="cpu").device.type == "cpu"
    with pytest.raises(RuntimeError, match="Unsupported device"):  # NumPy has no tensors on a device
        np.from_dlpack(tensor)
    with pytest.raises(ValueError, match="Unknown device type meta"):
        torch.ones(1, device="meta").__dlpack_device__()


def test_quantized_tensors_are_refused_in_one_sentence():
    x = torch.randn(3).tt()
    quantized = torch.quantize_per_tensor(x.cpu(), 0.1, 0, torch.qint8)
    for use in (lambda: quantized.tt(), lambda: x.to(torch.qint8)):
        with pytest.raises(
            NotImplementedError, match=r"device tt has no tensors of PyTorch's quantized types.*dequant"
        ):
            use()
