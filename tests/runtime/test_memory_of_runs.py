"""The memory of a program: what its tensors take on the device, what it reuses on the host, and when it is free."""

import ctypes
import gc
from pathlib import Path

import pytest
import torch
from programs import Maker, chain_of_adds
from test_execution import convolution
from torch.profiler import ProfilerActivity, profile

from tt_torch.errors import BinaryFormatError
from tt_torch.runtime import Binary, Device, Executable, _runtime

TILE_BYTES = 4096  # of float32


def sharded(shape, layout, shard, cores, tile=True, dtype="Float32", buffer="L1"):
    """The bytes that an input takes on the device, in a program that only has this input."""
    maker = Maker()
    x = maker.input(shape, dtype, buffer, tile)
    (first, last) = cores
    ranges = [{"start_coord": dict(zip("xy", first, strict=True)), "end_coord": dict(zip("xy", last, strict=True))}]
    spec = {"core_range_set": {"core_ranges": ranges}, "shape": list(shard), "orientation": "RowMajor"}
    config = x["desc"]["layout"]["memory_desc"]["memory_config"]
    config |= {"tensor_memory_layout": layout, "nd_shard_spec" if layout == "NDSharded" else "shard_spec": spec}
    device = Device()
    executable = Executable(Binary(maker.binary(x)), device=device)
    value = torch.rand(shape)
    executable([value], {0})
    ((_, size),) = device.memory_stats()[buffer.lower()]["live"]
    return size


@pytest.mark.parametrize(
    "layout, shard, cores, tiles",
    [
        ("HeightSharded", (64, 96), ((0, 0), (1, 2)), 2 * 3 * 6),
        ("WidthSharded", (33, 31), ((2, 3), (4, 3)), 2 * 1 * 3),
        ("BlockSharded", (32, 32), ((0, 0), (0, 0)), 1),
        ("NDSharded", (2, 3, 11, 40), ((0, 0), (3, 0)), 3 * 2 * 4),  # 66 rows
        ("Interleaved", (64, 96), ((0, 0), (1, 2)), 2 * 3),  # the shard means nothing
    ],
)
def test_each_core_has_a_shard_of_whole_tiles(layout, shard, cores, tiles):
    assert sharded((64, 96), layout, shard, cores) == tiles * TILE_BYTES


def test_a_shard_has_no_negative_extents():
    with pytest.raises(BinaryFormatError, match="the size of a shard is invalid"):
        sharded((64, 96), "NDSharded", (-4, -8, 96), ((0, 0), (1, 0)))


def test_rows_of_a_shard_are_aligned():
    assert sharded((64, 9), "HeightSharded", (5, 9), ((0, 0), (0, 3)), tile=False) == 5 * 48 * 4
    assert sharded((64, 8), "HeightSharded", (5, 8), ((0, 0), (0, 3)), tile=False) == 5 * 32 * 4


def test_intermediates_share_host_memory():
    """A chain has only two values in memory at a time: one value and its successor."""
    for count in (4, 5, 40):
        executable = Executable(Binary(chain_of_adds(count, (64, 64))))
        x, y = torch.rand(64, 64), torch.rand(64, 64)
        torch.testing.assert_close(executable([x, y])[0], x + count * y)
        assert executable.memory_stats()["host_arena"] == 2 * 4 * 64 * 64


@pytest.fixture(autouse=True, scope="module")
def _all_memory_is_known():
    """From here on, PyTorch records the size of all memory that is taken, and not only while a profiler runs.

    Otherwise, PyTorch does not know the size of memory that was taken before the profiler began. When this memory is
    freed, it has no size, or the size of other memory that was at its address. The flag belongs to c10: see
    CPUAllocator.cpp of PyTorch 2.13.
    """
    c10 = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    flag = ctypes.c_bool.in_dll(c10, "FLAGS_caffe2_report_cpu_memory_usage")
    flag.value = True
    yield
    flag.value = False


def events_of(call):
    gc.collect()  # Otherwise, the collector may free tensors of earlier tests during the call.
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        call()
    return profiled.profiler.kineto_results.events()


def memory_of(call):
    """The most bytes that PyTorch's allocator held during a call, and the bytes that it holds after the call.

    Both numbers are relative to the bytes that it held before the call.
    """
    held = highest = 0
    for event in events_of(call):
        if event.name() == "[memory]":
            held += event.nbytes()
            highest = max(highest, held)
    return highest, held


def test_values_outside_the_shared_memory_are_freed_after_their_last_reader():
    maker = Maker()
    x = first = maker.input((256, 256))
    for _ in range(12):
        x = maker.op("CumSumOp", **{"in": x}, dim=0, out=maker.tensor((256, 256)))
    kept = maker.binary_op("Add", x, first, maker.tensor((256, 256)))
    executable = Executable(Binary(maker.binary(kept)))
    value = torch.zeros(256, 256)
    executable([value])
    assert 2 * 4 * 256**2 <= memory_of(lambda: executable([value]))[0] <= 4 * 4 * 256**2


def constant_of(count, shape=(8, 8), result=(8, 8), name="added"):
    """main(x, w, ...) = x + const_eval(w, ...). const_eval adds the weights, and repeats the sum to fill `result`."""
    maker = Maker()
    x, *weights = maker.input(result), *(maker.input(shape) for _ in range(count))
    total, out = maker.tensor(result), maker.tensor(result)
    maker.op("LoadCachedOp", inputs=weights, callee_name="constant", program_idx=1, outputs=[total], program_hash=name)
    maker.binary_op("Add", x, total, out)
    maker.program["outputs"] = [out]
    maker.begin("constant", private=True)
    value, *others = (maker.input(shape) for _ in range(count))
    for other in others:
        value = maker.binary_op("Add", value, other, maker.tensor(shape))
    times = [n // m for n, m in zip(result, shape, strict=True)]
    return maker.binary(maker.op("RepeatOp", **{"in": value}, repeat_dims=times, out=maker.tensor(result)))


def test_each_constant_goes_with_the_last_tensor_that_it_was_made_of():
    device = Device()
    both, one = (Executable(Binary(constant_of(count, name=f"{count}")), device=device) for count in (2, 1))
    x, v, w = (torch.rand(8, 8) for _ in range(3))
    torch.testing.assert_close(both([x, v, w], {1, 2})[0], x + v + w)
    torch.testing.assert_close(one([x, w], {1})[0], x + w)
    tensors = [len(device.memory_stats()["dram"]["live"])]
    del v
    gc.collect()
    tensors.append(len(device.memory_stats()["dram"]["live"]))
    del w
    gc.collect()
    tensors.append(len(device.memory_stats()["dram"]["live"]))
    assert tensors == [4, 2, 0]  # two weights and two constants; w and its own constant; nothing


def test_programs_share_a_constant_until_their_device_is_closed():
    device, other, w = Device(), Device(), torch.rand(128, 128)
    size, x = 4 * w.numel(), torch.rand(128, 128)
    programs = [Executable(Binary(constant_of(1, w.shape, w.shape)), device=d) for d in (device, device, other)]
    first, again, elsewhere = (memory_of(lambda one=one: one([x, w], {1}))[1] for one in programs)
    # Each program keeps the memory of its sum. Each device holds one copy of the weight and one constant.
    assert first - again == elsewhere - again == 2 * size
    assert memory_of(device.close)[1] == -2 * size
    assert [name.split()[0] for name, _ in other.memory_stats()["dram"]["live"]] == ["resident", "constant"]


def test_a_constant_is_computed_once_per_device():
    result, w = (256, 128), torch.rand(128, 128)
    device, x = Device(), torch.rand(result)
    programs = [Executable(Binary(constant_of(1, w.shape, result)), device=d) for d in (device, device, Device())]
    calls = [programs[i] for i in (0, 0, 1, 0, 2)]
    names = [{event.name() for event in events_of(lambda one=one: one([x, w], {1}))} for one in calls]
    assert ["aten::repeat" in ops for ops in names] == [True, False, False, False, True]


@pytest.mark.parametrize("buffer", ["DRAM", "host"])
def test_a_resident_tensor_holds_its_values_once(buffer):
    """The values are in a copy on the device, or in the memory of the source, which the resident tensor keeps."""
    maker, kept = Maker(), []
    maker.input((128, 128), buffer=buffer)
    spec, device = Executable(Binary(maker.binary())).inputs[0], Device()

    def make():
        source = torch.rand(128, 128)
        kept.append(_runtime.Tensor(device._impl, spec, source, source.untyped_storage(), "x"))

    assert memory_of(make)[1] == 4 * 128**2


def test_inputs_are_read_without_a_copy():
    executable, x = Executable(Binary(chain_of_adds(1, (128, 128)))), torch.rand(128, 128)
    executable([x, x])
    assert memory_of(lambda: executable([x, x])) == (4 * 128**2, 0)  # the result


def test_a_program_keeps_nothing_of_its_inputs():
    executable, x = Executable(Binary(chain_of_adds(1, (128, 128)))), torch.rand(128, 128)
    executable([x, x])
    for resident in ((), (1,)):
        assert memory_of(lambda kept=resident: executable([x, torch.rand(128, 128)], kept))[1] == 0


def test_packed_weights_replace_the_plain_one_and_each_other():
    """A program with another batch size packs the weight in another way. Four packed weights are kept."""
    device, w, kept = Device(), torch.rand(16, 16, 3, 3), []
    for batch in (1, 2, 3, 4, 5, 6):
        executable, x = Executable(Binary(convolution(batch)), device=device), torch.rand(1, 1, batch * 36, 16)
        executable([x, w.clone()])
        kept.append(memory_of(lambda run=executable, x=x: run([x, w], {1}))[1])
    assert kept == [4 * w.numel()] * 4 + [0] * 2


def test_equal_names_of_unlike_constants():
    """Two programs may have the same hash, although their constants have other shapes."""
    device, w = Device(), torch.rand(8, 8)
    for result in ((8, 8), (16, 8), (8, 24), (8, 8)):
        x = torch.rand(result)
        executable = Executable(Binary(constant_of(1, result=result)), device=device)
        torch.testing.assert_close(executable([x, w], {1})[0], x + w.repeat(result[0] // 8, result[1] // 8))


def test_the_peak_of_a_run_no_longer_counts_memory_that_was_freed():
    device, inputs = Device(), [torch.ones(32, 32), torch.ones(32, 32)]
    other, executable = (Executable(Binary(chain_of_adds(3)), device=device) for _ in range(2))
    executable(inputs)
    alone = executable.memory_stats()["dram_peak"]
    other(inputs, resident=[0, 1])
    executable(inputs)
    assert executable.memory_stats()["dram_peak"] > alone
    device.unbind()
    device.residents.clear()
    executable(inputs)
    assert executable.memory_stats()["dram_peak"] == alone
