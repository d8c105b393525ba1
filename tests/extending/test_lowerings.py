"""`tt_torch.register_lowering`: results against eager PyTorch, and the errors."""

from __future__ import annotations

import re
from math import inf

import pytest
import torch
from extended import new_op

import tt_torch
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import ExtensionError, LoweringError, UnsupportedOpError
from tt_torch.extending.arguments import encoded
from tt_torch.mlir.context import make_context, parse
from tt_torch.mlir.ttir import from_stablehlo
from tt_torch.wire import custom_ops
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import ops

f32 = torch.float32
ON_DEVICE = {"fallback": "error"}


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=tt_torch.backend, options=ON_DEVICE | options)


def agrees(function, *inputs, **tolerance):
    torch.testing.assert_close(compiled(function)(*inputs), function(*inputs), **tolerance)


def doubled(signature="(Tensor x) -> Tensor", function=lambda x: x * 2):
    return new_op(signature, function)


# --- arguments and results ----------------------------------------------------------------------


def test_every_kind_of_argument_arrives() -> None:
    seen = []
    op = new_op(
        "(Tensor x, Tensor? y, Tensor[] zs, int n, float k, bool flag, str mode, int[] sizes, Scalar s, *, "
        "ScalarType? dtype=None, Device? device=None, float last=1.0) -> Tensor",
        lambda x, y, zs, n, k, flag, mode, sizes, s, *, dtype=None, device=None, last=0.0: x + sum(zs) * n,
    )

    def lowering(b, x, y, zs, n, k, flag, mode, sizes, s, *, dtype, device, last):
        seen.append((y, len(zs), n, k, flag, mode, sizes, s, dtype, device, last))
        total = b("ttir.add", zs[0], zs[1])
        return b("ttir.add", x, b("ttir.multiply", total, b.full([1, 1], n, f32)))

    tt_torch.register_lowering(op, lowering)
    text = 'a "quoted" \n\u00e4 \\ name'
    agrees(
        lambda x, y: op(x, None, [y, x], -3, 1e-40, True, text, [2, 0], 2.5, dtype=torch.bfloat16, last=inf),
        torch.randn(3, 5),
        torch.randn(3, 5),
    )
    assert seen == [(None, 2, -3, 1e-40, True, text, [2, 0], 2.5, torch.bfloat16, None, inf)]


def test_optional_tensors_and_lists_keep_their_places() -> None:
    def function(x, y, zs, w):
        found = x if y is None else x - y
        return found + sum(z * (i + 2) for i, z in enumerate(zs)) - (0 if w is None else w)

    op = new_op("(Tensor x, Tensor? y, Tensor[] zs, Tensor? w) -> Tensor", function)

    def lowering(b, x, y, zs, w):
        found = x if y is None else b("ttir.subtract", x, y)
        for i, z in enumerate(zs):
            found = b("ttir.add", found, b("ttir.multiply", z, b.full([1], i + 2, f32)))
        return found if w is None else b("ttir.subtract", found, w)

    tt_torch.register_lowering(op, lowering)
    x, y, z, w = torch.randn(4, 7)
    agrees(lambda x, y, z, w: op(x, y, [z, x, z], w) * op(x, None, [], None) + op(w, None, [y], x), x, y, z, w)


def test_several_results_and_a_single_one_in_a_tuple() -> None:
    op = new_op("(Tensor x) -> (Tensor, Tensor)", lambda x: (x + 1, (x > 0)))
    tt_torch.register_lowering(
        op, lambda b, x: (b("ttir.add", x, b.full([1, 1], 1, f32)), b("ttir.gt", x, b.full([1, 1], 0, f32)))
    )
    agrees(lambda x: op(x), torch.randn(2, 3))
    agrees(lambda x: op(x)[1], torch.randn(2, 3))
    one = doubled()
    tt_torch.register_lowering(one, lambda b, x: [b("ttir.add", x, x)])
    agrees(lambda x: one(x), torch.randn(3))


@pytest.mark.parametrize(
    "dtype", [f32, torch.bfloat16, torch.float16, torch.int32, torch.int16, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (1,), (33, 2), (0, 4)])
def test_dtypes_and_shapes(dtype, shape) -> None:
    op = new_op("(Tensor x, Tensor y) -> Tensor", lambda x, y: torch.maximum(x, y))
    tt_torch.register_lowering(op, lambda b, x, y: b("ttir.maximum", x, y))
    x, y = (torch.randint(0, 100, shape).to(dtype) for _ in range(2))
    agrees(lambda x, y: op(x, y), x, y)


def test_small_integers_wrap_as_in_the_op() -> None:
    op = doubled()
    tt_torch.register_lowering(op, lambda b, x: b("ttir.add", x, x))
    agrees(lambda x: op(x), torch.tensor([100, -100, 3], dtype=torch.int8))


def test_long_integers_run_on_the_host() -> None:
    """The device's integers have 32 bits, and the compiler cannot know which integers the op makes."""
    op = doubled()
    tt_torch.register_lowering(op, lambda b, x: b("ttir.add", x, x))
    torch._dynamo.reset()
    run = torch.compile(lambda x: op(x) + 1, backend=tt_torch.backend)
    x = torch.tensor([2**40, -3])
    with pytest.warns(HostFallbackWarning, match="its integers may need more than 32 bits"):
        found = run(x)
    assert found.equal(x * 2 + 1)


def test_the_op_keeps_its_own_dtypes() -> None:
    """No promotion is added: the fake form says that the result is int32, although the factor is a float."""
    op = new_op("(Tensor x, float k) -> Tensor", lambda x, k: (x * k).to(torch.int32))
    tt_torch.register_lowering(
        op,
        lambda b, x, k: b(
            "ttir.typecast",
            b("ttir.multiply", b("ttir.typecast", x, dtype=b.element(f32)), b.full([1], k, f32)),
            dtype=b.element(torch.int32),
        ),
    )
    agrees(lambda x: op(x, 2.5), torch.tensor([1, 2, -3], dtype=torch.int32))


def test_gradients_are_those_that_the_user_registered() -> None:
    op = doubled()
    torch.library.register_autograd(str(op).replace(".", "::"), lambda ctx, g: g * 7)
    tt_torch.register_lowering(op, lambda b, x: b("ttir.add", x, x))
    x = torch.randn(3, requires_grad=True)
    compiled(lambda x: op(x).sum())(x).backward()
    assert x.grad.equal(torch.full((3,), 7.0))


def test_dtype_option_changes_the_arithmetic() -> None:
    op = doubled()
    tt_torch.register_lowering(op, lambda b, x: b("ttir.add", x, x))
    found = compiled(lambda x: op(x), dtype="bf16")(torch.tensor([1 + 2**-10]))
    assert found.equal(torch.tensor([2.0]))


def test_equal_calls_of_overloads_and_functions() -> None:
    @torch.library.custom_op("extended::by_function", mutates_args=())
    def by_function(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    by_function.register_fake(torch.empty_like)
    tt_torch.register_lowering(by_function, lambda b, x: b("ttir.add", b("ttir.add", x, x), x))
    agrees(lambda x: by_function(x) - by_function(x + 1), torch.randn(4))


# --- registrations ------------------------------------------------------------------------------


def test_a_later_registration_replaces_the_first() -> None:
    op = doubled()
    tt_torch.register_lowering(op, lambda b, x: b("ttir.subtract", x, x))
    assert compiled(lambda x: op(x))(torch.ones(2)).equal(torch.zeros(2))
    tt_torch.register_lowering(op, lambda b, x: b("ttir.add", x, x))
    assert compiled(lambda x: op(x))(torch.ones(2)).equal(torch.full((2,), 2.0))
    tt_torch.kernel(op)(lambda x: x * 5)
    assert compiled(lambda x: op(x))(torch.ones(2)).equal(torch.full((2,), 5.0))


def test_a_changed_lowering_never_gets_the_program_of_another(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TT_TORCH_CACHE_SIZE", str(1 << 30))
    monkeypatch.setenv("TT_TORCH_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TT_TORCH_VERIFY_IR", raising=False)  # it would turn the cache off
    op = doubled()
    for factor in (2.0, 3.0):
        tt_torch.register_lowering(op, lambda b, x, k=factor: b("ttir.multiply", x, b.full([1], k, f32)))
        assert compiled(lambda x: op(x))(torch.ones(2)).equal(torch.full((2,), factor))
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1000] == []
    tt_torch.kernel(op)(lambda x: x * 5)
    assert compiled(lambda x: op(x))(torch.ones(2)).equal(torch.full((2,), 5.0))
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1000]


def test_an_op_without_a_registration_runs_on_the_host() -> None:
    op = doubled()
    torch._dynamo.reset()
    with pytest.warns(HostFallbackWarning, match="torch-mlir does not know it"):
        found = torch.compile(lambda x: op(x) + 1, backend=tt_torch.backend)(torch.ones(2))
    assert found.equal(torch.full((2,), 3.0))


def test_not_implemented_runs_on_the_host() -> None:
    op = doubled("(Tensor x, int n) -> Tensor", lambda x, n: x * n)
    tt_torch.register_lowering(op, lambda b, x, n: b("ttir.add", x, x) if n == 2 else NotImplemented)
    agrees(lambda x: op(x, 2), torch.ones(2))
    with pytest.raises(UnsupportedOpError, match="its lowering returned NotImplemented for these arguments"):
        tt_torch.compile_model(lambda x: op(x, 3), (torch.ones(2),), options=ON_DEVICE)
    torch._dynamo.reset()
    with pytest.warns(HostFallbackWarning):
        found = torch.compile(lambda x: op(x, 3) + op(x, 2), backend=tt_torch.backend)(torch.ones(2))
    assert found.equal(torch.full((2,), 5.0))


REFUSED = {
    "(Tensor(a!) x) -> ()": "it writes to its arguments",
    "(Tensor(a) x) -> Tensor(a)": "its results share memory with its arguments",
    "(Tensor x) -> ()": "it returns nothing, expected only tensors",
    "(Tensor x) -> Tensor[]": r"it returns List\[Tensor\], expected only tensors",
    "(Tensor x) -> (Tensor, int)": "it returns Tensor, int, expected only tensors",
    f"(Tensor x) -> ({', '.join(['Tensor'] * 9)})": "it has 9 results, expected up to 8",
}


@pytest.mark.parametrize(("signature", "reason"), REFUSED.items())
@pytest.mark.parametrize("register", [lambda op: tt_torch.register_lowering(op, abs), lambda op: tt_torch.kernel(op)])
def test_ops_that_cannot_be_registered(signature, reason, register) -> None:
    op = new_op(signature, lambda x: None)
    name = f"{str(op).replace('.', '::')}.default cannot be registered: {reason}"
    with pytest.raises(ExtensionError, match=name):
        register(op)


def test_other_things_that_cannot_be_registered() -> None:
    torch.library.define("extended::taken_apart", "(Tensor x) -> Tensor")
    torch.library.impl("extended::taken_apart", "CompositeImplicitAutograd", lambda x: x * 2)
    torch.library.define("extended::noisy", "(Tensor x) -> Tensor", tags=torch.Tag.nondeterministic_seeded)
    torch.library.define("extended::many.one", "(Tensor x) -> Tensor")
    torch.library.define("extended::many.two", "(Tensor x, int n) -> Tensor")
    for op, reason in {
        torch.ops.aten.relu.default: "it is no op of your own",
        torch.ops.extended.taken_apart: "PyTorch replaces it by other ops",
        torch.ops.extended.noisy: "it draws random numbers",
        torch.ops.extended.many: "name the overload",
        torch.relu: "it is no op of torch.library",
        "extended::noisy": "it is no op of torch.library",
    }.items():
        with pytest.raises(ExtensionError, match=re.escape(reason)):
            tt_torch.register_lowering(op, lambda b, x: x)
    tt_torch.register_lowering(torch.ops.extended.many.two, lambda b, x, n: x)


# --- errors of lowerings ------------------------------------------------------------------------


def message(op, lowering):
    """The error of a program that calls the op with a float32 tensor of shape (2, 3)."""
    tt_torch.register_lowering(op, lowering)
    with pytest.raises(LoweringError) as error:  # with a fallback, too, so that the user sees the fault
        tt_torch.compile_model(lambda x: op(x), (torch.ones(2, 3),))
    return error.value


@pytest.mark.parametrize(
    ("lowering", "problem"),
    [
        (lambda b, x: b("ttir.sum", x, dim_arg=[0]), r"returned tensor<3xf32>, expected tensor<2x3xf32>"),
        (
            lambda b, x: b("ttir.typecast", x, dtype=b.element(torch.bfloat16)),
            r"returned tensor<2x3xbf16>, expected tensor<2x3xf32>",
        ),
        (lambda b, x: None, "returned NoneType, expected tensor<2x3xf32>"),
        (lambda b, x: [x, x], "returned tensor<2x3xf32>, tensor<2x3xf32>, expected tensor<2x3xf32>"),
        (lambda b, x: b("ttir.nothing", x), "failed: ValueError: TTIR has no op 'ttir.nothing'"),
        (lambda b, x: b("ttnn.relu", x), "failed: ValueError: TTIR has no op 'ttnn.relu'"),
        (lambda b, x: b("ttir.softmax", x), "failed: TypeError: "),
        (lambda b, x: b("ttir.matmul", x, x), "failed: ValueError: inner dimensions 3 and 2 differ"),
        (lambda b, x: b("ttir.add", x, x, x), "failed: TypeError: ttir.add takes 2 operands, got 3"),
        (lambda b, x: b("ttir.add", x, 3), "failed: TypeError: ttir.add takes values of the program, got 3; b.full"),
        (lambda b: None, "failed: TypeError: "),
        (lambda b, x: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_lowering_is_an_error_that_names_the_op_and_the_line(lowering, problem) -> None:
    op = doubled()
    error = message(op, lowering)
    name = str(op).replace(".", "::")
    assert str(error).startswith(f"the lowering of {name}.default {problem}"), error
    assert f"test_lowerings.py:{message.__code__.co_firstlineno + 4}" in error.location


def test_values_and_builders_of_an_earlier_call_are_refused() -> None:
    """MLIR has freed the values of earlier programs, and a use of one of them ended the process."""
    kept: list[tuple] = []

    def first(b, x):
        kept.append((b, x))
        return b("ttir.add", x, x)

    op = doubled()
    tt_torch.register_lowering(op, first)
    tt_torch.compile_model(lambda x: op(x + 1), (torch.ones(2, 3),))
    builder, value = kept[0]
    for lowering in (lambda b, x: b("ttir.add", x, value), lambda b, x: value):
        assert "a value that belongs to another call" in str(message(op, lowering))
    assert "its builder adds no more ops" in str(message(op, lambda b, x: builder("ttir.add", x, x)))
    with pytest.raises(ValueError, match="its builder adds no more ops"):
        builder("ttir.add", value, value)


def test_the_exception_of_a_lowering_is_the_cause() -> None:
    assert isinstance(message(doubled(), lambda b, x: {}["missing"]).__cause__, KeyError)


def test_a_module_that_another_process_wrote_names_the_op() -> None:
    """The op of a file is not registered in this process."""
    text = custom_ops.text_of("other::op.default", encoded([torch.ones(2)], {}, [f32])).replace('"', r"\"")
    source = f"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %y = stablehlo.custom_call @tt_torch.custom_op(%x) {{backend_config = "{text}"}}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }}"""
    with pytest.raises(UnsupportedOpError, match=r"other::op\.default is not supported(.|\n)* neither a lowering"):
        from_stablehlo.convert(parse(source, make_context()))


@pytest.mark.parametrize("text", ["", "tt_torch.kernel a::b {", "tt_torch.kernel a::b.default []", "other"])
def test_damaged_calls_of_a_module_are_refused(text) -> None:
    source = f"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %y = stablehlo.custom_call @tt_torch.custom_op(%x) {{backend_config = "{text}"}}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }}"""
    with pytest.raises(UnsupportedOpError, match="the arguments of a registered op are damaged"):
        from_stablehlo.convert(parse(source, make_context()))


def test_a_lowering_becomes_ordinary_ops() -> None:
    op = doubled()
    tt_torch.register_lowering(op, lambda b, x: b("ttir.add", x, x))
    model = tt_torch.compile_model(lambda x: op(x), (torch.ones(2, 3),), options=ON_DEVICE)
    (program,) = decode(model.executor.binary)["programs"]
    assert "EltwiseBinaryOp.Add" in {found.key for found in ops(program)}
    assert "CpuOp" not in {found.name for found in ops(program)}
