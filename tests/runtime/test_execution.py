"""Execution of programs: resident tensors, constants, memory, callbacks, threads, conversions."""

import gc
import threading
import time

import pytest
import torch
from programs import Maker, chain_of_adds

from tt_torch.errors import InputDtypeError, UnsupportedBinaryError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.wire import facts


def linear(dtype="Float32", weight_buffer="DRAM"):
    maker = Maker()
    x = maker.input((8, 64), dtype)
    w = maker.input((64, 32), dtype, weight_buffer)
    return maker.binary(maker.op("MatmulOp", a=x, b=w, out=maker.tensor((8, 32), dtype)))


def test_resident_weight_is_refreshed_when_it_changes():
    executable = Executable(Binary(linear()), device=Device())
    x, w = torch.rand(8, 64), torch.rand(64, 32)
    for _ in range(3):
        assert torch.allclose(executable([x, w], {1})[0], x @ w, atol=1e-5)
        w.mul_(2.0)
    assert torch.allclose(executable([x, w.clone()], {1})[0], x @ w, atol=1e-5)


def test_resident_memory_is_shared_and_released_with_the_tensor():
    device = Device()
    one, two = (Executable(Binary(linear()), device=device) for _ in range(2))
    x, w = torch.rand(8, 64), torch.rand(64, 32)
    one([x, w], {1}), two([x, w], {1})
    assert device.memory_stats()["dram"]["allocated"] == 12 * 4096  # two tiles: one page in each bank
    assert torch.allclose(one([x, w])[0], x @ w, atol=1e-5)  # a call with the same tensor, not resident
    del w
    gc.collect()
    assert device.memory_stats()["dram"]["allocated"] == 0


def constant_program():
    """main(x, w) is x @ const_eval(w), where const_eval(w) is 2 * w."""
    maker = Maker()
    x, w = maker.input((8, 64)), maker.input((64, 32), buffer="host", tile=False)
    prepared, out = maker.tensor((64, 32)), maker.tensor((8, 32))
    maker.op("LoadCachedOp", inputs=[w], callee_name="main_const_eval_0", program_idx=1, outputs=[prepared],
             program_hash="twice")  # fmt: skip
    maker.op("MatmulOp", a=x, b=prepared, out=out)
    maker.program["outputs"] = [out]
    maker.begin("main_const_eval_0", private=True)
    v = maker.input((64, 32), buffer="host", tile=False)
    on_device = maker.op("ToDeviceOp", **{"in": v}, out=maker.tensor((64, 32), tile=False))
    return maker.binary(maker.binary_op("Add", on_device, on_device, maker.tensor((64, 32))))


def test_constants_are_evaluated_once_per_version():
    device = Device()
    executable = Executable(Binary(constant_program()), device=device)
    x, w = torch.rand(8, 64), torch.rand(64, 32)
    assert torch.allclose(executable([x, w], {1})[0], x @ (2 * w), atol=1e-4)
    first = device.memory_stats()["dram"]["live"]
    assert [name.split(" 64x32")[0] for name, _ in first] == ["constant of main"]
    w.add_(1.0)
    assert torch.allclose(executable([x, w], {1})[0], x @ (2 * w), atol=1e-4)
    assert len(device.memory_stats()["dram"]["live"]) == 1  # the old constant is gone
    assert torch.allclose(executable([x, w])[0], x @ (2 * w), atol=1e-4)  # if w is not resident, nothing is cached


@pytest.mark.parametrize("space, other, banks", [("dram", "l1", 12), ("l1", "dram", 64)])
def test_memory_statistics(space, other, banks):
    device = Device()
    executable = Executable(Binary(chain_of_adds(5, (64, 64), buffer=space.upper())), device=device)
    x, y = torch.rand(64, 64), torch.rand(64, 64)
    # A run holds at most four tensors: two inputs, a value and its successor. Each has four tiles, in four banks.
    # At the last run, two tensors are still resident, but the run does not use them as inputs.
    for resident, held, most in ((), 0, 4), ((0, 1), 2, 4), ((), 2, 6):
        executable([x, y], resident)
        stats = device.memory_stats()
        assert stats[space]["allocated"] == held * banks * 4096
        assert executable.memory_stats()[f"{space}_peak"] == stats[space]["peak"] == most * banks * 4096
        assert executable.memory_stats()[f"{other}_peak"] == stats[other]["peak"] == 0


HELD = ["Float32", "BFloat16", "Int32", "UInt32", "UInt16", "UInt8", *facts.BLOCK_FLOATS.values()]


def resident(dtype, shape, tile):
    """Makes the input of a program resident.

    Returns the input's description in the binary, its buffer (label, bytes), and all bytes that are allocated.
    """
    maker, device = Maker(), Device()
    x = maker.input(shape, dtype, tile=tile)
    executable = Executable(Binary(maker.binary(x)), device=device)
    value = torch.ones(shape, dtype=torch.float32 if "Float" in dtype else torch.int32)
    assert torch.equal(executable([value], {0})[0], value.to(executable([value])[0].dtype))
    memory = device.memory_stats()["dram"]
    return facts.tensor(x), memory["live"][0], memory["allocated"]


@pytest.mark.parametrize("shape", [(64,), (33, 64), (2, 3, 33, 96)])
@pytest.mark.parametrize(
    ("dtype", "tile"), [*((d, True) for d in HELD), *((d, False) for d in HELD if d not in facts.BLOCK_BITS)]
)
def test_physical_size(dtype, tile, shape):
    """The compiler and the tools count as many bytes as the runtime allocates. Rows of these shapes are aligned."""
    tensor, (_, size), _ = resident(dtype, shape, tile)
    assert size == tensor.bytes


def test_pages_are_spread_over_banks_and_aligned():
    tensor, (_, size), allocated = resident("BFP_BFloat8", (1, 33), True)
    assert (tensor.bytes, size, allocated) == (2 * 1088, 2 * 1088, 12 * 1088)
    tensor, (_, size), allocated = resident("Float32", (1, 33), False)
    assert (tensor.bytes, size, allocated) == (132, 160, 12 * 160)


@pytest.mark.parametrize("dtype", sorted({*facts.ELEMENT_BYTES, *facts.BLOCK_BITS} - {*HELD}))
def test_data_types_that_a_device_cannot_hold(dtype):
    with pytest.raises(UnsupportedBinaryError, match=f"cannot hold values of type {dtype}"):
        resident(dtype, (32, 32), True)


def test_callback_sees_every_op():
    executable = Executable(Binary(chain_of_adds(3)))
    seen = []
    executable.set_callback(lambda *event: seen.append(event))
    x, y = torch.rand(32, 32), torch.rand(32, 32)
    executable([x, y])
    assert [(op, where) for op, where, *_ in seen] == [
        ("EltwiseBinaryOp", f'loc("model.py":{line}:0)') for line in (1, 2, 4)
    ]
    assert torch.allclose(seen[1][4][0], x + 2 * y)
    executable.set_callback(None)
    executable([x, y])
    assert len(seen) == 3


@pytest.mark.parametrize("dtype, shown", [("BFP_BFloat8", torch.bfloat16), ("UInt32", torch.uint32)])
def test_callback_sees_all_results_of_an_op_at_once(dtype, shown):
    maker = Maker()
    x = maker.input((4, 8), dtype)
    results = [maker.tensor((4, 8), dtype), maker.tensor((4, 8), "UInt16")]
    maker.op("SortOp", **{"in": x}, dim=1, outputs=results)
    executable = Executable(Binary(maker.binary(*results)))
    seen = []
    executable.set_callback(lambda *event: seen.append((event[0], *(t.clone() for t in event[4]))))
    values = torch.tensor([5, 3, 7, 1, 0, 2, 6, 4]).repeat(4, 1)
    executable([values.float() if "Float" in dtype else values])
    ((op, ordered, indices),) = seen
    assert (op, ordered.dtype, indices.dtype) == ("SortOp", shown, torch.uint16)
    assert torch.equal(ordered.long(), torch.arange(8).repeat(4, 1)) and torch.equal(indices.long(), values.argsort(1))


def test_callback_sees_a_program_without_inputs():
    maker = Maker()
    executable = Executable(Binary(maker.binary(maker.op("NamedFullOp", type="Ones", out=maker.tensor((2, 2))))))
    seen = []
    executable.set_callback(lambda op, *event: seen.append(op))
    executable([])
    assert seen == ["NamedFullOp"]


def test_a_view_sees_each_write_to_its_source():
    maker = Maker()
    x, first, second = (maker.input((4, 8)) for _ in range(3))
    summed = maker.op("CumSumOp", **{"in": x}, dim=0, out=maker.tensor((4, 8)))
    view = maker.op("ReshapeOp", **{"in": summed}, out=maker.tensor((32,)))
    for source in (first, second):
        maker.op("CopyOp", src=source, dst=summed)
    executable = Executable(Binary(maker.binary(view)))
    for _ in range(2):
        assert executable([torch.full((4, 8), float(i)) for i in range(3)])[0].tolist() == [2.0] * 32


def test_exception_in_callback_comes_out():
    executable = Executable(Binary(chain_of_adds(3)))

    def stop(*event):
        raise KeyboardInterrupt("stop here")

    executable.set_callback(stop)
    with pytest.raises(KeyboardInterrupt, match="stop here"):
        executable([torch.rand(32, 32)] * 2)


@pytest.mark.parametrize("given", [torch.float64, torch.bfloat16, torch.float16, torch.bool])
def test_inputs_and_outputs_convert(given):
    executable = Executable(Binary(chain_of_adds(1)))
    x = (torch.rand(32, 32) > 0.5).to(given)
    result = executable([x, x], output_dtypes=[torch.float64])[0]
    assert result.dtype == torch.float64 and torch.equal(result, 2 * x.double())


INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64]


@pytest.mark.parametrize("given", [*INTEGERS, torch.bool])
def test_integers_convert(given):
    executable = Executable(Binary(chain_of_adds(1, dtype="Int32")))
    x = (torch.arange(32 * 32).reshape(32, 32) % (2 if given == torch.bool else 60)).to(given)
    for wanted in INTEGERS:
        result = executable([x, x], output_dtypes=[wanted])[0]
        assert result.dtype == wanted and torch.equal(result.long(), 2 * x.long())


@pytest.mark.parametrize("given", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_floats_are_no_integers(given):
    executable = Executable(Binary(chain_of_adds(1, dtype="Int32")))
    with pytest.raises(InputDtypeError, match="expected any integer type or Bool"):
        executable([torch.zeros(32, 32, dtype=given)] * 2)


def test_unsigned_integers_are_exact_and_wrap():
    executable = Executable(Binary(chain_of_adds(1, dtype="UInt32")))
    x = torch.full((32, 32), 2**32 - 1)
    result = executable([x, torch.full((32, 32), 2)], output_dtypes=[torch.int64])[0]
    assert torch.equal(result, torch.ones(32, 32, dtype=torch.int64))


def test_strided_and_expanded_inputs():
    executable = Executable(Binary(chain_of_adds(1)))
    x, row = torch.rand(32, 64)[:, ::2].t(), torch.rand(32)
    assert torch.allclose(executable([x, row.expand(32, 32)])[0], x + row)


def test_gil_is_released_while_running():
    executable = Executable(Binary(chain_of_adds(300, (512, 512))))
    x = torch.rand(512, 512)
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    executable([x, x])
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < tick < end for tick in ticks) >= 3


def test_threads_take_turns():
    executable = Executable(Binary(chain_of_adds(50)))
    wrong = []

    def work(seed):
        x = torch.full((32, 32), float(seed))
        for _ in range(50):
            if not torch.equal(executable([x, x])[0], 51 * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_results_that_nobody_reads():
    maker = Maker()
    x, y = maker.input((32, 32)), maker.input((32, 32))
    for _ in range(3):
        maker.binary_op("Multiply", x, y, maker.tensor((32, 32)))
        x = maker.binary_op("Add", x, y, maker.tensor((32, 32)))
    executable = Executable(Binary(maker.binary(x)))
    a, b = torch.rand(32, 32), torch.rand(32, 32)
    assert torch.allclose(executable([a, b])[0], a + 3 * b)


def test_submesh():
    mesh = Device(arch="blackhole", mesh_shape=(2, 2))
    part = mesh.submesh((1, 1), (1, 1))
    assert part.device_ids == (3,) and part.arch == "blackhole"
    executable = Executable(Binary(chain_of_adds(1)), device=part)
    assert torch.equal(executable([torch.ones(32, 32)] * 2)[0], torch.full((32, 32), 2.0))


def convolution(batch):
    maker = Maker()
    x, w = maker.input((1, 1, batch * 36, 16)), maker.input((16, 16, 3, 3), buffer="host", tile=False)
    y = maker.op(
        "Conv2dOp", input=x, weight=w, out=maker.tensor((1, 1, batch * 36, 16)), in_channels=16, out_channels=16,
        batch_size=batch, input_height=6, input_width=6, kernel_size=[3, 3], stride=[1, 1],
        padding=[1, 1, 1, 1], dilation=[1, 1], groups=1,
    )  # fmt: skip
    return maker.binary(y)


def test_batch_sizes_share_a_weight():
    """Each program packs the weight in its own way. The programs are called in turn."""
    device, w = Device(), torch.randn(16, 16, 3, 3)
    programs = {batch: Executable(Binary(convolution(batch)), device=device) for batch in (1, 2, 3, 4, 5, 6)}
    for batch, executable in [*programs.items()] * 2:
        x = torch.randn(batch, 16, 6, 6)
        got = executable([x.permute(0, 2, 3, 1).reshape(1, 1, -1, 16), w], {1})[0]
        want = torch.nn.functional.conv2d(x, w, padding=1).permute(0, 2, 3, 1).reshape(1, 1, -1, 16)
        assert torch.allclose(got, want, atol=1e-4)
    w.mul_(2.0)
    assert torch.allclose(executable([x.permute(0, 2, 3, 1).reshape(1, 1, -1, 16), w], {1})[0], 2 * want, atol=1e-4)
