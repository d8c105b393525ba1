"""Compares our verifier with Tenstorrent's library: both judge random programs of one op.

    python -m benchmarks legality

2,000 programs are drawn. The programs on which the verdicts differ are counted and listed by kind.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from torch_mlir import ir
from torch_mlir.dialects import func

from benchmarks.common import table
from tt_torch.codegen.check import Checker, Verdict
from tt_torch.config import CompilerConfig
from tt_torch.mlir import ods
from tt_torch.mlir.context import make_context
from tt_torch.mlir.rules import infer, shape
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.to_binary import translate

DRAWS = 2000
DTYPES = ["Float32", "BFloat16", "BFP_BFloat8", "Int32", "UInt32", "UInt16", "UInt8"]
Value = tuple[list[int], Layout]  # a tensor: shape and layout


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Random layouts. Tiles are drawn twice as often as rows, and floats as often as integers."""
    dtype = draw(st.sampled_from(DTYPES[:2] * 2 + DTYPES[2:]))
    tiled = dtype.startswith("BFP") or draw(st.sampled_from([True, True, False]))
    return Layout(dtype, tiled, draw(st.sampled_from(["DRAM", "DRAM", "L1"])))


def shapes(low: int = 1, high: int = 4) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from([1, 2, 3, 5, 8, 31, 32, 33, 64]), min_size=low, max_size=high)


class Drawing:
    """Draws the operands, attributes and results of an op. Each family of ops has one method."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.layout = draw(layouts())

    def one_of(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def sizes(self, low: int = 1, high: int = 4) -> list[int]:
        return self.draw(shapes(low, high))

    def dim(self, sizes: list[int]) -> int:
        return self.draw(st.integers(0, len(sizes) - 1))

    def elementwise(self, operands: int) -> Case:
        return Case([(sizes, self.layout) for sizes in [self.sizes()] * operands])

    def unary(self) -> Case:
        return self.elementwise(1)

    def binary(self) -> Case:
        first = self.sizes()
        second = [self.one_of(size, 1) for size in first]
        return Case([(first, self.layout), (second, self.layout)])

    def scalar(self) -> Case:
        power = self.one_of({"I32": {"value": 2}}, {"FP": {"value": 0.5}})
        return Case([(self.sizes(), self.layout)], {"rhs": power})

    def clamp(self) -> Case:
        bounds = self.one_of({"I32": {"value": 0}}, {"FP": {"value": 0.0}})
        return Case([(self.sizes(), self.layout)], {"params": {"ClampScalarOpParams": {"min": bounds, "max": bounds}}})

    def slope(self) -> Case:
        params = {"EltwiseOpWithFloatParams": {"parameter": 0.1}}
        return Case([(self.sizes(), self.layout)], {"params": params})

    def where(self) -> Case:
        sizes = self.sizes()
        condition = self.layout.with_(dtype=self.one_of("BFloat16", self.layout.dtype))
        return Case([(sizes, condition), (sizes, self.layout), (sizes, self.layout)])

    def converted(self) -> Case:
        sizes = self.sizes()
        dtype = self.one_of(*DTYPES) if self.layout.tiled else self.one_of(*DTYPES[:2], *DTYPES[3:])
        return Case([(sizes, self.layout)], {}, [(sizes, self.layout.with_(dtype=dtype))])

    def laid_out(self) -> Case:
        case = self.converted()
        ((sizes, wanted),) = case.results
        tiled = wanted.dtype.startswith("BFP") or self.one_of(True, False)
        case.results = [(sizes, wanted.with_(tiled=tiled))]
        return case

    def reduced(self) -> Case:
        sizes = self.sizes()
        return Case([(sizes, self.layout)], {"dim_arg": [self.dim(sizes)], "keep_dim": self.one_of(True, False)})

    def searched(self) -> Case:
        sizes = self.sizes()
        dim, keep = self.dim(sizes), self.one_of(True, False)
        made = [*sizes[:dim], *([1] if keep else []), *sizes[dim + 1 :]]
        return Case([(sizes, self.layout)], {"dim": dim, "keep_dim": keep}, [(made, Layout("UInt32", False))])

    def product_along(self) -> Case:
        sizes = self.sizes()
        dim, keep = self.dim(sizes), self.one_of(True, False)
        made = [*sizes[:dim], *([1] if keep else []), *sizes[dim + 1 :]]
        return Case([(sizes, self.layout)], {"dim_arg": dim, "keep_dim": keep}, [(made, self.layout)])

    def along(self) -> Case:
        sizes = self.sizes()
        dim = self.dim(sizes)
        return Case([(sizes, self.layout)], {"dim": dim, "dimension": dim, "numeric_stable": True})

    def sorted(self) -> Case:
        sizes = self.sizes()
        attributes = {"dim": self.dim(sizes), "descending": self.one_of(True, False), "stable": False}
        return Case([(sizes, self.layout)], attributes, self._ordered(sizes))

    def top(self) -> Case:
        sizes = self.sizes()
        dim = self.dim(sizes)
        made = [1 if i == dim else size for i, size in enumerate(sizes)]
        attributes = {"k": 1, "dim": dim, "largest": True, "sorted": True}
        return Case([(sizes, self.layout)], attributes, self._ordered(made))

    def _ordered(self, sizes: list[int]) -> list[Value]:
        return [(sizes, self.layout), (sizes, self.layout.with_(dtype=self.one_of("UInt16", "UInt32"), buffer="DRAM"))]

    def product(self) -> Case:
        outer, (m, k, n) = self.sizes(0, 2), self.sizes(3, 3)
        operands = [([*outer, m, k], self.layout), ([*outer, k, n], self.layout)]
        return Case(operands, {"transpose_a": False, "transpose_b": False})

    def biased(self) -> Case:
        (m, k, n), transposed = self.sizes(3, 3), self.one_of(True, False)
        operands = [([m, k], self.layout), ([n, k] if transposed else [k, n], self.layout)]
        bias = self.one_of(None, ([n], self.layout))
        return Case([*operands, bias], {"transpose_a": False, "transpose_b": transposed})

    def permuted(self) -> Case:
        sizes = self.sizes()
        return Case([(sizes, self.layout)], {"permutation": self.draw(st.permutations(range(len(sizes))))})

    def reshaped(self) -> Case:
        sizes = self.sizes()
        return Case([(sizes, self.layout)], {"shape": self.one_of([math.prod(sizes)], sizes[::-1], [1, *sizes])})

    def joined(self) -> Case:
        sizes = self.sizes()
        return Case([[(sizes, self.layout)] * self.one_of(2, 3)], {"dim": self.dim(sizes)})

    def sliced(self) -> Case:
        sizes = self.sizes()
        dim = self.dim(sizes)
        step, end = self.one_of(1, 2), self.draw(st.integers(1, sizes[dim]))
        made = [-(-end // step) if i == dim else size for i, size in enumerate(sizes)]
        ends = [end if i == dim else size for i, size in enumerate(sizes)]
        steps = [step if i == dim else 1 for i in range(len(sizes))]
        params = {"SliceStaticOpParams": {"begins": [0] * len(sizes), "ends": ends}}
        return Case([(sizes, self.layout)], {"step": steps, "params": params}, [(made, self.layout)])

    def padded(self) -> Case:
        sizes = self.sizes(2)
        padding = [self.one_of(0, 0, 0, 1) if i % 2 == 0 else self.one_of(0, 1, 3) for i in range(2 * len(sizes))]
        return Case([(sizes, self.layout)], {"padding": padding, "value": 0.0})

    def repeated(self) -> Case:
        sizes = self.sizes()
        return Case([(sizes, self.layout)], {"repeat_dims": [self.one_of(1, 1, 2) for _ in sizes]})

    def gathered(self) -> Case:
        sizes = self.sizes()
        dim = self.dim(sizes)
        index = [self.one_of(1, size) if i == dim else size for i, size in enumerate(sizes)]
        kind = self.layout.with_(dtype=self.one_of("UInt32", "UInt32", "UInt16", "Int32"))
        return Case([(sizes, self.layout), (index, self.one_of(kind, kind, kind.with_(tiled=False)))], {"dim": dim})

    def scattered(self) -> Case:
        sizes = self.sizes(2)
        dim = self.dim(sizes)
        part = [self.one_of(1, size) if i == dim else size for i, size in enumerate(sizes)]
        how = self.one_of("Invalid", "Sum", "Prod", "Max")
        operands = [(sizes, self.layout), (part, self.layout.with_(dtype="UInt32")), (part, self.layout)]
        return Case(operands, {"dim": dim, "scatter_reduce_type": how})

    def looked_up(self) -> Case:
        rows = Layout(self.one_of("UInt32", "UInt32", "Int32", "BFloat16"), tiled=False)
        return Case([(self.sizes(2, 2), rows), (self.sizes(2, 2), self.layout)])

    def normalized(self) -> Case:
        return Case([(self.sizes(2), self.layout)], {"epsilon": 1e-5})

    def attended(self) -> Case:
        batch, heads, rows, columns = self.sizes(4, 4)
        size, own = self.one_of(32, 32, 64, 8), self.one_of(heads, heads, 1, 2)
        query, key = [batch, heads, rows, size], [batch, own, self.one_of(rows, columns), size]
        whole = [batch, heads, rows, key[2]]
        part = [self.one_of(whole[0], 1), self.one_of(whole[1], 1), *(self.one_of(n, n, n, 1) for n in whole[2:])]
        mask = self.one_of(None, (part, self.layout.with_(buffer="DRAM")), (part, self.layout))
        attributes = {"is_causal": mask is None and self.one_of(True, False), "scale": 0.5}
        return Case([(x, self.layout) for x in (query, key, key)] + [mask], attributes, [(query, self.layout)])

    def created(self) -> Case:
        sizes = self.sizes()
        attributes = {"fill_value": self.one_of({"FP": {"value": 1.5}}, {"I32": {"value": 3}}), "size": sizes}
        return Case([], attributes | {"low": 0.0, "high": 1.0, "seed": 1}, [(sizes, self.layout)])

    def counted(self) -> Case:
        return Case([], {"start": 0.0, "end": 7.0, "step": 1.0}, [([7], self.layout)])

    def heads(self) -> Case:
        return Case([(self.sizes(4, 4), self.layout)])

    def _window(self) -> dict[str, Any]:
        kernel = [self.one_of(1, 2, 3), self.one_of(1, 2, 3)]
        height, width = (self.draw(st.integers(k, 20)) for k in kernel)
        stride = [self.one_of(1, 2, 3), self.one_of(1, 2, 3)]
        sizes = {"batch_size": self.one_of(1, 3, 16), "input_height": height, "input_width": width}
        padding = [self.one_of(0, k // 2) for k in kernel for _ in range(2)]
        return sizes | {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": [1, 1]}

    def pooled(self) -> Case:
        a, channels = self._window(), self.one_of(3, 16, 32)
        a["padding"] = [p // 2 for p in a["kernel_size"]] * 2
        a |= {"channels": channels, "extra_params": {"MaxPool2dExtraParams": {}}}
        return Case([([1, 1, a["batch_size"] * a["input_height"] * a["input_width"], channels], self.layout)], a)

    def averaged(self) -> Case:
        case = self.pooled()
        case.attributes["extra_params"] = {"AvgPool2dExtraParams": {"count_include_pad": True}}
        return case

    def convolved(self) -> Case:
        a = self._window()
        return self._image(a, lambda channels, outputs: [outputs, channels // a["groups"]])

    def _image(self, a: dict[str, Any], filters: Callable[[int, int], list[int]]) -> Case:
        """A convolution of an image. `filters` maps the numbers of channels to the first two sizes of the weight."""
        channels, outputs = 4, self.one_of(4, 8)
        a |= {"in_channels": channels, "out_channels": outputs, "groups": self.one_of(1, 1, 4)}
        image = ([1, 1, a["batch_size"] * a["input_height"] * a["input_width"], channels], self.layout)
        host = Layout(self.layout.dtype.replace("BFP_BFloat8", "BFloat16"), tiled=False, buffer="SystemMemory")
        weight = ([*filters(channels, outputs), *a["kernel_size"]], host)
        return Case([image, weight, self.one_of(None, ([1, 1, 1, outputs], host))], a)

    def transposed(self) -> Case:
        a = self._window()
        a["padding"] = a["padding"][::2]
        a["output_padding"] = [self.one_of(0, s - 1) for s in a["stride"]]
        return self._image(a, lambda channels, outputs: [channels, outputs // a["groups"]])


class Case:
    """Operands (None for an absent one, a list for a variadic one), attributes, and results if no rule infers them."""

    def __init__(self, operands: list[Any], attributes: dict[str, Any] | None = None, results: Any = None) -> None:
        self.operands, self.attributes, self.results = operands, attributes or {}, results


# Ops of one operand along one dimension.
ALONG = [
    name.removeprefix("ttnn.")
    for name, op in ods.OPS.items()
    if name.startswith("ttnn.") and op.infer and len(op.operands) == 1 and not op.segmented
    if op.attrs and op.attrs.keys() <= {"dim", "dimension", "numeric_stable"}
]
FAMILIES: dict[str, list[str]] = {
    "unary": [*ttir.UNARY, *ttir.UNARY_PREDICATES],
    "binary": [*ttir.BINARY, *ttir.COMPARISONS, *ttir.LOGICAL],
    "scalar": ["pow_scalar"], "clamp": ["clamp_scalar"], "slope": ["leaky_relu"], "where": ["where"],
    "converted": ["typecast", "bitcast_convert"], "laid_out": ["to_layout"], "reduced": ["sum", "mean", "max", "min"],
    "searched": ["argmax"],
    "product_along": ["prod"], "along": ALONG, "sorted": ["sort"], "top": ["topk"],
    "product": ["matmul"], "biased": ["linear"], "permuted": ["permute"], "reshaped": ["reshape"], "joined": ["concat"],
    "sliced": ["slice_static"], "padded": ["pad"], "repeated": ["repeat"], "gathered": ["gather"],
    "scattered": ["scatter"], "looked_up": ["embedding"],
    "normalized": ["layer_norm", "rms_norm"], "heads": ["concatenate_heads"], "pooled": ["max_pool2d"],
    "averaged": ["avg_pool2d"], "convolved": ["conv2d"], "transposed": ["conv_transpose2d"],
    "attended": ["scaled_dot_product_attention"], "created": ["full", "rand"], "counted": ["arange"],
}  # fmt: skip


@st.composite
def programs(draw: st.DrawFn, context: ir.Context) -> ir.Module:
    """A module with one op. Families are equally frequent, and most results are laid out as the library makes them."""
    family = draw(st.sampled_from(sorted(FAMILIES)))
    name = draw(st.sampled_from(FAMILIES[family]))
    case = getattr(Drawing(draw), family)()
    flip = draw(st.integers(0, 9)) == 0
    buffer = draw(st.sampled_from(["DRAM", "L1"]))
    with context, ir.Location.unknown():
        return build(f"ttnn.{name}", case, buffer, flip)


def build(name: str, case: Case, buffer: str, flip: bool = False) -> ir.Module:
    """A function `main` with one op. `flip` exchanges tiles and row major in the layouts of its results."""
    module = ir.Module.create()
    given_values = [v for entry in case.operands for v in (entry if isinstance(entry, list) else [entry]) if v]
    with ir.InsertionPoint(module.body):
        main = func.FuncOp("main", ([with_layout(*v) for v in given_values], []))
    block = main.add_entry_block()
    arguments = iter(block.arguments)
    operands = [[next(arguments) for _ in e] if isinstance(e, list) else e and next(arguments) for e in case.operands]
    declared = ods.OPS[name]
    operands += [None] * (len(declared.operands) - len(operands))
    with ir.InsertionPoint(block):
        attributes = {k: v for k, v in case.attributes.items() if k in declared.attrs}
        guessed = _results(name, case, operands, attributes)
        op = ods.build(name, operands, attributes, [with_layout(*v) for v in guessed])
        for result, made in zip(op.results, legality.RULES[name].makes(op), strict=True):
            tiled = made.tiled != flip or made.dtype.startswith("BFP")
            result.set_type(with_layout(shape(result), made.with_(tiled=tiled, buffer=buffer)))
        func.ReturnOp(op.results)
    main.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in op.results])
    )
    return module


def _results(name: str, case: Case, operands: list[Any], attributes: dict[str, Any]) -> list[Value]:
    if case.results:
        return case.results
    kinds = infer(name, operands, attributes)
    first = operands[0][0] if isinstance(operands[0], list) else operands[-1] if "embedding" in name else operands[0]
    return [(list(kind.shape), layout_of(first)) for kind in kinds]


def verdicts(module: ir.Module, checker: Checker) -> tuple[ir.Operation, str, list[Verdict]]:
    """The op, the reason why our verifier refuses it (or ""), and the failures that the library reports."""
    with module.context, ir.Location.unknown():
        op = next(iter(module.body.operations[0].regions[0].blocks[0].operations)).operation
        ours = legality.refusal(op)
        binary = translate(module, CompilerConfig())
    return op, ours, checker.check(binary).failures


def drawn(count: int, checker: Checker, start: int = 0) -> Iterator[tuple[str, str, list[Verdict], str]]:
    """Draws `count` programs, and yields the op's name, our verdict, the library's verdict, and the op's text."""
    found: list[tuple[str, str, list[Verdict], str]] = []

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(make_context()))
    def judge(module: ir.Module) -> None:
        op, ours, theirs = verdicts(module, checker)
        found.append((op.name, ours, theirs, str(op)))

    judge()
    yield from found


def run(threads: int) -> None:
    begin = time.perf_counter()
    with Checker("n150") as checker:
        judged = list(drawn(DRAWS, checker))
    agreed = sum(bool(ours) == bool(theirs) for _, ours, theirs, _ in judged)
    legal = sum(not theirs for _, _, theirs, _ in judged)
    kinds = Counter(
        (name, ours or "legal", theirs[0].differences[0][:120] if theirs else "taken")
        for name, ours, theirs, _ in judged
        if bool(ours) != bool(theirs)
    )
    rows = [(*kind, n) for kind, n in sorted(kinds.items())]
    rate = f"{agreed} of {len(judged)} draws agree ({agreed / len(judged):.1%}), {legal} are legal"
    table(f"{rate}; {time.perf_counter() - begin:.0f} s", ["op", "our verdict", "the library's", "draws"], rows)
