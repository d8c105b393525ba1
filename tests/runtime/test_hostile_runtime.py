"""Hostile files: a kernel reads only the memory that the file describes, and a small file costs little."""

import ctypes
import mmap
import resource
import time

import pytest
import torch
from programs import Maker

from tt_torch.errors import BinaryFormatError, TTTorchError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.wire.decode import decode

MOST_SECONDS, MOST_BYTES = 5.0, 1 << 29  # limits for the refusal of any file

CONVOLUTION = {
    "batch_size": 1, "input_height": 4, "input_width": 4, "in_channels": 8, "out_channels": 8, "groups": 1,
    "kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "input_dtype": "Float32",
}  # fmt: skip


def refused(maker, *outputs, match, device=None):
    with pytest.raises(BinaryFormatError, match=match):
        Executable(Binary(maker.binary(*outputs)), device=device)


def read_only(*shape):
    """A tensor of ones in memory that kills the process if it is written to."""
    count = torch.Size(shape).numel()
    tensor = torch.frombuffer(mmap.mmap(-1, 4 * count), dtype=torch.float32).view(shape).fill_(1.0)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(tensor.data_ptr()), 4 * count, mmap.PROT_READ) == 0
    return tensor


def per_axis(rank):
    maker = Maker()
    x = maker.input((4,) * rank)
    scale, zero = maker.input((4,)), maker.input((4,), "Int32")
    params = {"scale": {"PerAxisScale": {"scale": scale}}, "zero_point": {"PerAxisZeroPoint": {"zero_point": zero}}}
    fields = {"type": "Quantize", "params": {"QuantizeDequantizeOpParams": params}, "axis": 0}
    return maker, maker.op("EltwiseQuantizationOp", **{"in": x}, **fields, out=maker.tensor((4,) * rank, "Int32"))


def test_a_scalar_has_no_axis():
    refused(*per_axis(0), match="does not have a value per element of the axis")
    maker, out = per_axis(1)
    x, scale, zero = torch.ones(4), torch.full((4,), 0.5), torch.zeros(4, dtype=torch.int32)
    assert Executable(Binary(maker.binary(out)))([x, scale, zero])[0].tolist() == [2] * 4


PREPARED = {
    "PrepareConv2dBiasOp": ("bias_tensor", (1, 1, 1, 8)),
    "PrepareConvTranspose2dBiasOp": ("bias_tensor", (1, 1, 1, 8)),
    "PrepareConv2dWeightsOp": ("weight_tensor", (8, 8, 3, 3)),
    "PrepareConvTranspose2dWeightsOp": ("weight_tensor", (8, 8, 3, 3)),
}


@pytest.mark.parametrize("op", PREPARED)
@pytest.mark.parametrize("between", [None, "ToLayoutOp", "TypecastOp", "LoadCachedOp"])
def test_prepared_values_are_for_convolutions_only(op, between):
    """A file describes prepared values with the library's shape, which is larger here than the values that we keep.
    Other ops would read beyond the values."""
    field, shape = PREPARED[op]
    maker = Maker()
    main = maker.program
    x, y = maker.input((64, 64)), maker.input(shape, buffer="host", tile=False)
    if between == "LoadCachedOp":
        maker.begin("const", private=True)
        inner = maker.input(shape, buffer="host", tile=False)
        prepared = maker.op(op, **{field: inner}, **CONVOLUTION, out=maker.tensor((64, 64)))
        maker.program["outputs"], maker.program = [prepared], main
        prepared = maker.tensor((64, 64))
        fields = {"callee_name": "const", "program_idx": 1, "program_hash": "a", "outputs": [prepared]}
        maker.op("LoadCachedOp", inputs=[y], **fields)
    else:
        prepared = maker.op(op, **{field: y}, **CONVOLUTION, out=maker.tensor((64, 64)))
        if between:
            prepared = maker.op(between, **{"in": prepared}, out=maker.tensor((64, 64)))
    refused(maker, maker.binary_op("Add", x, prepared, maker.tensor((64, 64))), match="prepared as the (weight|bias)")


def test_prepared_weights_fit_their_convolution():
    maker = Maker()
    x, w = maker.input((1, 1, 16, 8)), maker.input((8, 8, 3, 3), buffer="host", tile=False)
    prepared = maker.op("PrepareConv2dWeightsOp", weight_tensor=w, **CONVOLUTION, out=maker.tensor((1, 1, 72, 8)))
    other = CONVOLUTION | {"kernel_size": [1, 1], "padding": [0, 0, 0, 0]}
    other.pop("input_dtype")
    y = maker.op("Conv2dOp", input=x, weight=prepared, **other, out=maker.tensor((1, 1, 16, 8)))
    refused(maker, y, match="prepared as the weight 8x8x3x3")


def test_a_convolution_of_more_elements_than_can_be_counted():
    maker, size = Maker(), 1 << 19
    fields = dict.fromkeys(("batch_size", "input_height", "input_width", "out_channels"), size)
    fields = CONVOLUTION | fields | {"padding": [0, 1, 0, 0]}
    del fields["input_dtype"]
    x, w = maker.input((1, 1, 16, 8)), maker.input((8, 8, 3, 3))
    refused(
        maker, maker.op("Conv2dOp", input=x, weight=w, **fields, out=maker.tensor((1, 1, 16, 8))), match="larger than"
    )


WRITES = {
    "WriteTensorOp": ("host_tensor", "device_tensor", {}),
    "CopyOp": ("src", "dst", {}),
    "FillCacheOp": ("input", "cache", {}),
}


@pytest.mark.parametrize("op", WRITES)
@pytest.mark.parametrize("resident", [(), (0,), (0, 1)], ids=str)
@pytest.mark.parametrize("between", [None, "ReshapeOp", "ToLayoutOp", "NLPConcatHeadsDecodeOp"])
@pytest.mark.parametrize("buffer", ["DRAM", "host"])
def test_programs_write_to_copies(op, resident, between, buffer):
    """The target is an input that is resident, or a tensor that shares its memory."""
    source, target, attributes = WRITES[op]
    maker = Maker()
    x, y = maker.input((1, 2, 32, 32), buffer=buffer), maker.input((1, 2, 32, 32))
    written = x
    if between == "NLPConcatHeadsDecodeOp":
        written = maker.op(between, **{"in": x}, num_heads=32, out=maker.tensor((1, 1, 2, 1024)))
        written = maker.op("ReshapeOp", **{"in": written}, out=maker.tensor((1, 2, 32, 32)))
    elif between:
        written = maker.op(between, **{"in": x}, out=maker.tensor((1, 2, 32, 32)))
    maker.op(op, **{source: y, target: written}, **attributes)
    given, other = read_only(1, 2, 32, 32), torch.full((1, 2, 32, 32), 7.0)
    executable = Executable(Binary(maker.binary(written)))
    for _ in range(2):
        assert torch.equal(executable([given, other], resident)[0], other)
        assert bool((given == 1).all())


def test_constants_are_not_written_to():
    """The results of a const-eval program are shared by all that call it."""
    maker = Maker()
    main = maker.program
    x, y = maker.input((32, 32)), maker.input((32, 32))
    maker.begin("const", private=True)
    inner = maker.input((32, 32))
    result = maker.op("EltwiseUnaryOp", type="Neg", **{"in": inner}, out=maker.tensor((32, 32)))
    maker.program["outputs"], maker.program = [result], main
    constant, total = maker.tensor((32, 32)), maker.tensor((32, 32))
    fields = {"callee_name": "const", "program_idx": 1, "program_hash": "b", "outputs": [constant]}
    maker.op("LoadCachedOp", inputs=[x], **fields)
    maker.binary_op("Add", constant, y, total)
    maker.op("CopyOp", src=y, dst=constant)
    executable = Executable(Binary(maker.binary(total)))
    x, y = torch.full((32, 32), 2.0), torch.ones(32, 32)
    assert [executable([x, y], (0,))[0][0, 0].item() for _ in range(3)] == [-1.0] * 3


def test_const_eval_programs_do_not_write_to_their_inputs():
    maker = Maker()
    main = maker.program
    x = maker.input((32, 32))
    maker.begin("const", private=True)
    inner = maker.input((32, 32))
    maker.op("CopyOp", src=maker.op("NamedFullOp", type="Ones", out=maker.tensor((32, 32))), dst=inner)
    maker.program["outputs"], maker.program = [inner], main
    ones = maker.tensor((32, 32))
    fields = {"callee_name": "const", "program_idx": 1, "program_hash": "ones", "outputs": [ones]}
    maker.op("LoadCachedOp", inputs=[x], **fields)
    executable = Executable(Binary(maker.binary(maker.binary_op("Add", x, ones, maker.tensor((32, 32))))))
    given = torch.full((32, 32), 2.0)
    for resident in ((), (0,), (0,)):
        assert bool((executable([given], resident)[0] == 3).all()) and bool((given == 2).all())


@pytest.mark.parametrize("to", ["BFloat16", "Int32"])
def test_a_view_of_another_type_is_converted(to):
    maker = Maker()
    x, y = maker.input((32, 32), to), maker.input((32, 32))
    view = maker.op("ReshapeOp", **{"in": x}, out=maker.tensor((32, 32), "Float32"))
    out = maker.binary_op("Add", view, y, maker.tensor((32, 32)))
    values = torch.arange(32 * 32).reshape(32, 32) % 128
    got = Executable(Binary(maker.binary(out)))(
        [values.to(torch.bfloat16 if to == "BFloat16" else torch.int32), y_ones()]
    )
    assert torch.equal(got[0], values + 1.0)


def y_ones():
    return torch.ones(32, 32)


def test_a_constant_of_another_type_is_refused():
    maker = Maker()
    main = maker.program
    x, y = maker.input((32, 32), "BFloat16"), maker.input((32, 32))
    maker.begin("const", private=True)
    inner = maker.input((32, 32), "BFloat16")
    result = maker.op("EltwiseUnaryOp", type="Neg", **{"in": inner}, out=maker.tensor((32, 32), "BFloat16"))
    maker.program["outputs"], maker.program = [result], main
    constant = maker.tensor((32, 32))
    fields = {"callee_name": "const", "program_idx": 1, "program_hash": "c", "outputs": [constant]}
    maker.op("LoadCachedOp", inputs=[x], **fields)
    refused(maker, maker.binary_op("Add", constant, y, maker.tensor((32, 32))), match="another shape or data type")


@pytest.mark.parametrize("kind", ["MaxPool2d", "AvgPool2d"])
def test_pooling_with_absurd_padding(kind):
    maker = Maker()
    x = maker.input((1, 1, 16, 8))
    size = {"batch_size": 1, "input_height": 4, "input_width": 4, "channels": 8}
    window = {"kernel_size": [2, 2], "stride": [40_004, 40_004], "dilation": [1, 1]}
    padding = {"padding": [20_000, 20_000, 20_000, 20_000], "ceil_mode": False}
    y = maker.op("Pool2dOp", type=kind, **{"in": x}, **size, **window, **padding, out=maker.tensor((1, 1, 1, 8)))
    with little():
        refused(maker, y, match="much more memory")


class little:
    """Fails if the block takes too much time, or takes much more memory than the process has taken before."""

    def __enter__(self):
        self.start, self.peak = time.process_time(), self.most()

    def __exit__(self, *error):
        assert time.process_time() - self.start < MOST_SECONDS
        assert self.most() - self.peak < MOST_BYTES

    def most(self):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def shared_text():
    maker = Maker()
    value, y = maker.input((32, 32)), maker.input((32, 32))
    for _ in range(2000):
        value = maker.binary_op("Add", value, y, maker.tensor((32, 32)))
    for op in maker.program["operations"]:
        op["loc_info"] = "x" * (1 << 18)
    return maker.binary(value)


def shared_operands():
    maker = Maker()
    xs = [maker.input((1, 1)) for _ in range(3000)]
    for _ in range(3000):
        out = maker.op("ConcatOp", inputs=xs, dim=0, out=maker.tensor((3000, 1)))
    return maker.binary(out)


def shared_program():
    """Each of 200 programs has the same ops."""
    maker = Maker()
    ops = [{"type": {"GetDeviceOp": {"chip_ids": [i]}}, "loc_info": str(i)} for i in range(20_000)]
    for i in range(200):
        maker.begin(f"p{i}")
        maker.program["operations"] = ops
    return maker.binary()


@pytest.mark.parametrize("make", [shared_text, shared_operands, shared_program])
def test_parts_that_many_share(make):
    """A file of some hundred kilobytes describes half a gigabyte and more."""
    data = make()
    for read in (Binary, decode):
        with little(), pytest.raises(BinaryFormatError, match="64 times its size"):
            read(data)


def call(maker, program):
    maker.op("FuncCallOp", program_id=program, inputs=[], outputs=[])


def calls(deep):
    """Programs that each call the next one."""
    maker = Maker()
    for i in range(deep):
        call(maker, i + 1)
        maker.begin(f"f{i + 1}")
    return maker


TOO_DEEP = "calls between programs are more than 8 deep"


def test_calls_between_programs_are_at_most_eight_deep():
    Executable(Binary(calls(8).binary()))
    for deep in (9, 50_000):  # a recursion of 50,000 levels would overflow the stack
        refused(calls(deep), match=TOO_DEEP)


def test_the_depth_of_calls_counts_on_the_longest_way():
    """The first program calls the second program, and then the last one. The last program calls the second one, too."""
    for deep in (7, 8):
        maker = calls(deep)
        maker.begin("last")
        call(maker, 1)
        maker.program = maker.programs[0]
        call(maker, deep + 1)
        if deep == 7:
            Executable(Binary(maker.binary()))
        else:
            refused(maker, match=TOO_DEEP)


def test_programs_that_call_each_other_twice():
    maker = Maker()
    for i in range(7):
        maker.begin(f"f{i}")
        x = maker.input((1, 1))
        for _ in range(8):
            out = maker.tensor((1, 1))
            maker.op("FuncCallOp", program_id=i + 2, inputs=[x], outputs=[out])
            x = out
        maker.program["outputs"] = [x]
    maker.begin("last")
    data = maker.binary(maker.input((1, 1)))
    with little(), pytest.raises(TTTorchError, match="ops and tensors when its calls are expanded"):
        Executable(Binary(data), 1)


def test_long_programs_are_planned_in_time():
    """Each of the 20,000 products could be fused with the next op."""
    maker = Maker()
    x, w = maker.input((1, 1)), maker.input((1, 1))
    for _ in range(20_000):
        y = maker.op("MatmulOp", a=x, b=w, out=maker.tensor((1, 1)))
    data = maker.binary(y)
    device = Device()
    with little():
        Executable(Binary(data), device=device)
