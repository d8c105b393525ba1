"""Files with ops of the user: whatever a file says, only registered kernels run, and only with readable arguments."""

from __future__ import annotations

import json

import pytest
import torch
from programs import Maker

import tt_torch
from tt_torch.errors import BinaryFormatError, KernelError, KernelMissingError, UnsupportedBinaryError
from tt_torch.runtime import Binary, _runtime, default_device
from tt_torch.wire import custom_ops

OP = "in_files::op.default"
torch.library.define("in_files::op", "(Tensor x) -> Tensor")


def program(text, inputs=1, results=1):
    """A program with one CpuOp of this `func_name`, and tensors of shape (2, 3)."""
    maker = Maker()
    ins = [maker.input((2, 3)) for _ in range(inputs)]
    outs = [maker.tensor((2, 3)) for _ in range(results)]
    maker.op("CpuOp", ins=ins, outs=outs, func_name=text, dylib_id=0)
    return maker.binary(*outs)


def arguments(**changes):
    plain = {"arguments": [{"tensor": "float32"}], "keywords": {}, "results": ["float32"]}
    return json.dumps(plain | changes)


NO_ARGUMENTS = [
    "", "{", "[]", "null", "[" * 100_000, "1" * 5000, "{}", arguments(results=["float99"]), arguments(results="ab"),
    arguments(results=[{}]), arguments(arguments=[{}]), arguments(arguments=[{"tensor": "load"}]),
    arguments(arguments=[{"tensor": "float32", "device": "cpu"}]), arguments(arguments=[{"torch": "load"}]),
    arguments(arguments=[{"torch": "os"}]), arguments(arguments=[{"device": "rm -rf"}]), arguments(keywords=[1]),
    arguments(arguments=[{"import": "os"}]), arguments(arguments=[]), arguments(arguments=[{"tensor": "float32"}] * 2),
    arguments(results=["float32"] * 2), arguments(results=[]), arguments(results=["int32"]),
    arguments(arguments=[{"tensor": "int64"}]),
]  # fmt: skip


@pytest.mark.parametrize("text", NO_ARGUMENTS, ids=range(len(NO_ARGUMENTS)))
def test_damaged_arguments_of_a_file(text) -> None:
    @tt_torch.kernel(torch.ops.in_files.op)
    def never(*given, **named):
        pytest.fail("the kernel was called")

    run = default_device().load(program(custom_ops.text_of(OP, text)))
    with pytest.raises(BinaryFormatError, match="argument"):
        run([torch.ones(2, 3)])


@pytest.mark.parametrize("name", ["", "a b", "os.system('x')", "a\nb", "a\0b", "\u00e4::b", "../x", "a::b " * 1000])
def test_names_of_a_file_that_are_no_ops(name) -> None:
    with pytest.raises((BinaryFormatError, KernelMissingError)) as error:
        default_device().load(program(custom_ops.text_of(name, arguments())))
    assert len(str(error.value)) < 500


def test_an_op_without_results() -> None:
    tt_torch.kernel(torch.ops.in_files.op)(lambda x: x * 2)
    with pytest.raises(BinaryFormatError, match="a registered op has no results"):
        default_device().load(program(custom_ops.text_of(OP, arguments()), results=0))


def test_an_unregistered_op_of_a_file_is_named() -> None:
    binary = program(custom_ops.text_of("os::system.default", arguments()))
    with pytest.raises(KernelMissingError, match=r"the op os::system\.default.*import the package that registers it"):
        default_device().load(binary)
    assert Binary(binary).programs[0].name == "main"  # the file itself is readable


def test_other_arguments_of_a_file_are_errors_of_the_kernel() -> None:
    tt_torch.kernel(torch.ops.in_files.op)(lambda x: x * 2)
    text = custom_ops.text_of(OP, arguments(keywords={"self": 1, "\u00e4 b": [None]}))
    with pytest.raises(KernelError, match="TypeError"):
        default_device().load(program(text))([torch.ones(2, 3)])


def test_machine_code_still_needs_permission() -> None:
    with pytest.raises(UnsupportedBinaryError, match="allow_host_code"):
        default_device().load(program("tt_torch.kernelx a::b {}"))


def test_the_native_registry_refuses_names() -> None:
    for name in ("", "a b", "a\n"):
        with pytest.raises(tt_torch.errors.ArgumentError, match=r"mylib::op\.default"):
            _runtime.register_kernel(name, abs)
