"""The table of ATen facts: each fact holds for the results of eager PyTorch on OpInfo's samples of the op."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import VALUES, Fact
from tt_torch.torch_private.op_samples import outside_of_a_test_case

aten, prims = torch.ops.aten, torch.ops.prims
SAMPLES = 2
# PyTorch 2.13 tags these ops as pointwise. But the result of `equal` is one bool, and `rrelu` draws random numbers.
MISTAGGED = {aten.equal, aten.rrelu}


class Call:
    """One call of an op, which can be repeated on other values."""

    def __init__(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.op = op
        schema = op._schema.arguments
        self.given = {a.name: a.default_value for a in schema if a.has_default_value()}
        self.given |= {**dict(zip((a.name for a in schema), args, strict=False)), **kwargs}
        self.result = self.run(lambda x: x)

    def run(self, change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
        """The results when the tensors that carry values are changed."""
        of = lambda x: change(x) if isinstance(x, torch.Tensor) else x  # noqa: E731
        given = {k: tree_map(of, v) if k in VALUES else v for k, v in self.given.items()}
        schema = self.op._schema.arguments
        positional = [given[a.name] for a in schema if not a.kwarg_only]
        found = self.op(*positional, **{a.name: given[a.name] for a in schema if a.kwarg_only})
        return list(found) if isinstance(found, (list, tuple)) else [found]

    @property
    def values(self) -> list[torch.Tensor]:
        given = [v for k, v in self.given.items() if k in VALUES]
        return [v for v in tree_leaves(given) if isinstance(v, torch.Tensor)]

    @property
    def numbers(self) -> list[float]:
        given = [v for k, v in self.given.items() if k in VALUES]
        return [v for v in tree_leaves(given) if isinstance(v, (int, float))]


def keeps(call: Call) -> bool:
    known = facts.of(call.op)
    if call.given.get("accumulate") or call.given.get("reduce") or known & (Fact.CASTS | Fact.STRIDES):
        return True  # this call adds or multiplies, converts, or reads memory around the operand
    allowed = [*(v.reshape(-1).double() for v in call.values), torch.tensor(call.numbers, dtype=torch.float64)]
    if Fact.ZEROS in known:
        allowed.append(torch.zeros(1, dtype=torch.float64))
    results = call.result[:1] if Fact.AND_POSITIONS in known else call.result
    return all(torch.isin(_finite(r), _finite(torch.cat(allowed))).all() for r in results)


def where_values_come_from(call: Call) -> bool:
    """An op f moves any values to the same places: f(g(x)) is g(f(x)), except for numbers that f itself inserts."""
    if call.given.get("accumulate") or call.given.get("reduce"):
        return True
    shift = 1000
    changed = call.run(lambda x: x + shift if x.dtype != torch.bool else ~x)
    for before, after in zip(call.result, changed, strict=True):
        moved = ~before if before.dtype == torch.bool else before + shift
        put_in = torch.isin(_finite(before), torch.tensor([0.0, *call.numbers], dtype=torch.float64))
        if not (torch.isclose(_finite(after), _finite(moved)) | (put_in & (after == before))).all():
            return False
    return True


def elementwise(call: Call) -> bool:
    """Changing one element changes no other place of the result."""
    first = next((v for v in tree_leaves(call.given) if isinstance(v, torch.Tensor)), None)
    (before, *_) = call.result
    if (
        Fact.ALLOCATES in facts.of(call.op)
        or first is None
        or not isinstance(before, torch.Tensor)
        or before.shape != first.shape
        or not first.numel()
    ):
        return True
    at = (first.numel() - 1) // 2

    def change(x: torch.Tensor) -> torch.Tensor:
        if x is not first:
            return x
        x = x.clone(memory_format=torch.contiguous_format)
        x.view(-1)[at] = ~x.view(-1)[at] if x.dtype == torch.bool else x.view(-1)[at] + 1
        return x

    differs = call.run(change)[0].ne(before).reshape(-1)
    differs &= ~before.isnan().reshape(-1)
    differs[at] = False
    return not differs.any()


def linear(call: Call) -> bool:
    if not call.result[0].is_floating_point() or not call.result[0].numel():
        return True
    torch.manual_seed(0)
    other = {id(v): torch.randn(v.shape, dtype=torch.float64) for v in call.values}
    x, y = call.run(lambda v: v.double())[0], call.run(lambda v: other[id(v)])[0]
    both = call.run(lambda v: 2 * v.double() - 3 * other[id(v)])[0]
    return torch.allclose(both.double(), (2 * x - 3 * y).double(), rtol=1e-4, atol=1e-3, equal_nan=True)


def products(call: Call) -> bool:
    """f(x * y) is f(x) * f(y)."""
    if not call.result[0].is_floating_point():
        return True
    torch.manual_seed(0)
    other = {id(v): torch.rand(v.shape, dtype=torch.float64) + 0.5 for v in call.values}
    x, y = call.run(lambda v: v.double())[0], call.run(lambda v: other[id(v)])[0]
    both = call.run(lambda v: v.double() * other[id(v)])[0]
    return torch.allclose(both.double(), x.double() * y.double(), rtol=1e-4, atol=1e-3, equal_nan=True)


def positions(call: Call) -> bool:
    most = max(v.numel() for v in tree_leaves(call.given) if isinstance(v, torch.Tensor))
    results = call.result[1:] if Fact.AND_POSITIONS in facts.of(call.op) else call.result
    whole = [r for r in results if not r.is_floating_point()]  # with weights, `bincount` returns sums of floats
    return all(not r.numel() or (r.min() >= -1 and r.max() <= most) for r in whole)


def fills(call: Call) -> bool:
    return all(len(r.reshape(-1).unique()) <= 1 for r in call.result)


def reads_no_elements(call: Call) -> bool:
    return Fact.ALLOCATES in facts.of(call.op) or all(map(_same, call.run(lambda x: x + 1), call.result))


def copies(call: Call) -> bool:
    return _same(call.result[0], call.values[0])


def reshapes(call: Call) -> bool:
    return _same(call.result[0].reshape(-1), call.values[0].reshape(-1))


def extents(call: Call) -> bool:
    """A result of the operand's shape is the operand."""
    return call.result[0].shape != call.values[0].shape or copies(call)


def casts(call: Call) -> bool:
    return call.result[0].is_complex() or _same(call.result[0], call.values[0].to(call.result[0].dtype))


def scans(call: Call) -> bool:
    """The last element along the dimension has no influence on the other results."""
    (x,), dim = call.values, call.given["dim"]
    if not x.dim() or x.shape[dim] < 2:
        return True
    before = [r.narrow(dim, 0, r.shape[dim] - 1) for r in call.result]
    last = torch.zeros_like(x)
    last.select(dim, -1).fill_(7)
    after = [r.narrow(dim, 0, r.shape[dim] - 1) for r in call.run(lambda v: v + last.to(v.dtype))]
    return all(map(_same, before, after))


def sorts(call: Call) -> bool:
    """Each result along the dimension is one of the operand's elements along it."""
    dim = call.given["dim"]
    there, out = (v.movedim(dim, -1) if v.dim() else v.reshape(1) for v in (call.values[0], call.result[0]))
    return bool((_finite(out).unsqueeze(-1) == _finite(there).unsqueeze(-2)).any(-1).all())


def shares_memory(call: Call) -> bool:
    given = {x.untyped_storage()._cdata for x in tree_leaves(call.given) if isinstance(x, torch.Tensor)}
    return all(r.untyped_storage()._cdata in given for r in call.result)


def is_number(call: Call) -> bool:
    return all(isinstance(r, (bool, int, float, complex)) for r in call.result)


def reduces(call: Call) -> bool:
    return all(r.numel() <= max(1, call.values[0].numel()) for r in call.result)


def _finite(x: torch.Tensor) -> torch.Tensor:
    """Converts to float64, with finite numbers in place of infinities and NaN, so that they can be compared."""
    return x.double().nan_to_num(nan=-98765.0)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(_finite(a), _finite(b))


CHECKS: dict[Fact, Callable[[Call], bool]] = {
    Fact.KEEPS: keeps,
    Fact.LINEAR: linear,
    Fact.PRODUCTS: products,
    Fact.POSITIONS: positions,
    Fact.AND_POSITIONS: positions,
    Fact.FILLS: fills,
    Fact.ELEMENTWISE: elementwise,
    Fact.COPIES: copies,
    Fact.RESHAPES: reshapes,
    Fact.EXTENTS: extents,
    Fact.CASTS: casts,
    Fact.KEEPS | Fact.MOVES: where_values_come_from,
    Fact.KEEPS | Fact.PICKS: where_values_come_from,
    Fact.KEEPS | Fact.WRITES: where_values_come_from,
    Fact.CREATES: reads_no_elements,
    Fact.REDUCES: reduces,
    Fact.SCANS: scans,
    Fact.SORTS: sorts,
    Fact.VIEW: shares_memory,
    Fact.READS: is_number,
}


class Checked(TorchDispatchMode):
    """Checks the facts of every op that is called."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: set[tuple[str, str]] = set()
        self.seen: dict[Any, set[Fact]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        known = facts.of(func)
        if known and not func._schema.is_mutable and func.overloadpacket not in MISTAGGED:
            self.check(func, known, tree_map(_copied, args), tree_map(_copied, kwargs or {}))
        return func(*args, **(kwargs or {}))

    def check(self, func: Any, known: Fact, args: tuple, kwargs: dict[str, Any]) -> None:
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if Fact.DRAWS in known or any(x.is_complex() or x.layout != torch.strided for x in tensors):
            return
        call = Call(func, args, kwargs)
        for fact, holds in CHECKS.items():
            if fact in known:
                self.seen.setdefault(func.overloadpacket, set()).add(fact)
                if not holds(call):
                    self.wrong.add((str(func), str(fact)))


def _copied(x: Any) -> Any:
    return x.detach() if isinstance(x, torch.Tensor) else x


def samples() -> Iterator[Callable[[], Any]]:
    for info in (info for info in op_db if not info.name.startswith("jiterator")):  # jiterator is for CUDA only
        for dtype in (torch.float32, torch.int64):
            if info.supports_dtype(dtype, "cpu"):
                for sample in itertools.islice(info.sample_inputs("cpu", dtype), SAMPLES):
                    yield lambda op=info.op, s=sample: op(s.input, *s.args, **s.kwargs)


X, PLACES = torch.randn(3, 4), torch.tensor([2, 0, 0])
# Ops that OpInfo's samples do not call, or call only through other ops.
MORE: list[tuple[Any, tuple]] = [
    (aten._reshape_alias.default, (X, [4, 3], [3, 1])),
    (aten._unsafe_index.Tensor, (X, [PLACES, PLACES])),
    (aten._unsafe_index_put.default, (X, [PLACES, PLACES], X[0, :3])),
    (aten.copy.default, (X, X[0])),
    (aten.detach_copy.default, (X,)),
    (aten.is_nonzero.default, (X[0, 0],)),
    (aten.item.default, (X[0, 0],)),
    (aten.lift_fresh_copy.default, (X,)),
    (aten.repeat_interleave.Tensor, (torch.tensor([3, 0, 70]),)),
    (aten.reshape.default, (X, [2, 6])),
    (prims.convert_element_type.default, (X, torch.int32)),
    (prims.iota.default, (4,)),
]


@pytest.mark.slow
def test_facts_hold_in_eager_pytorch() -> None:
    torch.manual_seed(0)
    mode = Checked()
    with outside_of_a_test_case():
        for sample in samples():
            with torch.no_grad(), mode:
                sample()
    for op, args in MORE:
        kwargs = {"start": 1, "step": 2, "dtype": torch.int64, "device": "cpu", "requires_grad": False}
        mode.check(op, facts.of(op), args, kwargs if op is prims.iota.default else {})
    assert not mode.wrong
    says_nothing = Fact.REINTERPRETS | Fact.CONVOLVES | Fact.EXCHANGES
    unseen = {op for op in map(facts.packet, facts._TABLE) if op not in mode.seen and not facts.of(op) & says_nothing}
    assert unseen == {aten.multinomial, aten.as_strided_, aten.resize_, aten.resize_as_}  # random, or in place


def test_no_row_repeats_what_pytorch_says() -> None:
    """Each row adds something to the tags and the schema of at least one overload."""
    for op, listed in facts._TABLE.items():
        overloads = [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, name) for name in op.overloads()]
        told = []
        for overload in overloads:
            found = Fact(0)
            for tag, fact in facts._FROM_TAGS.items():
                found |= fact if tag in overload.tags else Fact(0)
            told.append(found | (Fact.VIEW | Fact.KEEPS | Fact.MOVES if overload.is_view else Fact(0)))
        assert any(listed & ~found for found in told), op
