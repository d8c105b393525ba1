"""Rewrite rules: small functions from an op to the values that replace it, registered where they are written.

    rules = RuleSet("stablehlo-to-ttir")

    @rules.rewrites("stablehlo.add")
    def add(op, b):
        return b("ttir.add", *op.operands)

A rule gets the op and a `Builder`. The builder inserts ops before it, at its location, so that no rule can lose the
user's source line. The rule returns the replacing value or values, or None if it does not match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from torch_mlir import ir, rewrite

from tt_torch.mlir import ods
from tt_torch.mlir.types import Attr, Attrs, Built, Op, Operand, Results, TensorType, Value

Rule: TypeAlias = Callable[[Op, "Builder"], Results]  # a rewrite rule


T = TypeVar("T")


class Builder:
    """Creates declared ops at one place and location. Result types are inferred from the declaration if not given.

    Without a place, it uses the current insertion point and location.
    """

    def __init__(self, ip: ir.InsertionPoint | None = None, location: ir.Location | None = None) -> None:
        self.ip, self.location = ip, location

    def also_from(self, op: Op) -> Builder:
        """A builder at the same place, for an op that also does the work of `op`. Its location names the nodes of both
        ops. The nodes of `op` come first, because `op` computes an operand."""
        return Builder(self.ip, ir.Location.fused([op.operation.location, self.location]))

    def __call__(
        self, name: str, *operands: Operand, type: ir.Type | Sequence[ir.Type] | None = None, **attrs: Attr
    ) -> Built:
        types = infer(name, operands, attrs) if type is None else [type] if isinstance(type, ir.Type) else type
        op = ods.build(name, operands, attrs, types, self.ip, self.location)
        results = list(op.results)
        return results[0] if len(results) == 1 else results


def infer(name: str, operands: Sequence[Operand], attrs: Attrs) -> list[ir.Type]:
    """Result types by the declaration's rule: a function of operand values and attributes."""
    rule = ods.OPS[name].infer
    if rule is None:
        raise TypeError(f"{name} has no inference rule: give the result type")
    defaults = {k: d for k, (_, d) in ods.OPS[name].attrs.items() if d is not ods.REQUIRED}
    types = rule(*operands, **(defaults | attrs))
    return list(types) if isinstance(types, (list, tuple)) else [types]


class RuleSet:
    """The rules of one conversion or pass, by the name of the op at which they start."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: list[tuple[str, Rule]] = []

    def rewrites(self, *names: str) -> Callable[[Rule], Rule]:
        def register(rule: Rule) -> Rule:
            self.rules += [(name, rule) for name in names]
            return rule

        return register

    @property
    def names(self) -> set[str]:
        """The names of the ops at which rules start."""
        return {name for name, _ in self.rules}

    def rows(self, family: Callable[[T], Rule], table: Mapping[str, T]) -> None:
        """Adds one family of rules for many ops: `family(argument)` makes the rule of each row."""
        self.rules += [(name, family(argument)) for name, argument in table.items()]

    def __add__(self, other: RuleSet) -> RuleSet:
        both = RuleSet(self.name)
        both.rules = self.rules + other.rules
        return both

    def _patterns(self) -> rewrite.FrozenRewritePatternSet:
        by_name: dict[str, list[Rule]] = {}
        for name, rule in self.rules:
            by_name.setdefault(name, []).append(rule)
        patterns = rewrite.RewritePatternSet()
        for name, rules in by_name.items():
            patterns.add(name, _callback(rules))
        return patterns.freeze()

    def convert(self, module: ir.Module) -> None:
        """Applies the rules once to each op, in order."""
        with module.context, ir.Location.unknown():
            rewrite.walk_and_apply_patterns(module.operation, self._patterns())

    def simplify(self, module: ir.Module) -> None:
        """Applies the rules until none matches. Unused pure ops are erased on the way."""
        with module.context, ir.Location.unknown():
            config = rewrite.GreedyRewriteConfig()
            config.max_iterations = 50
            rewrite.apply_patterns_and_fold_greedily(module.operation, self._patterns(), config)


def _callback(rules: Sequence[Rule]) -> Callable[[Op, rewrite.PatternRewriter], bool | None]:
    """One pattern that tries all rules of an op in order: calls from C++ cost more than rules that do not match."""

    def apply(op: Op, rewriter: rewrite.PatternRewriter) -> bool | None:
        if op.operation.parent.name != "func.func":
            return True  # an op in the body of another op, such as a reduce, belongs to that op's rule
        builder = Builder(rewriter.ip, op.location)
        values = next((v for rule in rules if (v := rule(op, builder)) is not None), None)
        if values is None:
            return True
        rewriter.replace_op(op, list(values) if isinstance(values, (list, tuple)) else [values])
        return None

    return apply


# --- reading the IR -----------------------------------------------------------------------------


def producer(value: Value, *names: str) -> Op | None:
    """The op that makes `value`, if it has one of `names` (without names: any op); otherwise None."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    return op if not names or op.name in names else None


def users(value: Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def single_use(value: Value) -> bool:
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def shape(value: Value) -> list[int]:
    return list(value.type.shape)


def dtype(value: Value) -> ir.Type:
    return value.type.element_type


def tensor(dims: Sequence[int], element: ir.Type, encoding: ir.Attribute | None = None) -> TensorType:
    return ir.RankedTensorType.get(list(dims), element, encoding)
