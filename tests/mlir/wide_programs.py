"""Random StableHLO programs of 64-bit integers, with loops and branches. All their values are results."""

from __future__ import annotations

import random

SIZE = 4
UNARY = {"i64": ["negate", "abs", "not", "sign", "popcnt", "count_leading_zeros"], "ui64": ["not", "popcnt"]}
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide", "remainder"]
SHIFTS = ["shift_left", "shift_right_logical", "shift_right_arithmetic"]
OTHERS = ["sum", "running", "product", "convert", "count", "clamp", "select", "power", "if", "while", "pair", "reverse"]


class Writer:
    """Writes ops on vectors of one type."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng, self.kind, self.count = rng, kind, 0
        self.vector, self.scalar = f"tensor<{SIZE}x{kind}>", f"tensor<{kind}>"
        self.lines: list[str] = []

    def op(self, text: str, kinds: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = stablehlo.{text} : {kinds}")
        return f"%v{self.count}"

    def constant(self, *numbers: int, kind: str = "") -> str:
        return self.op(f"constant dense<{list(numbers) if len(numbers) > 1 else numbers[0]}>", kind or self.vector)

    def step(self, values: list[str], depth: int = 0) -> str:
        rng, v = self.rng, self.vector
        name = rng.choice([*UNARY[self.kind], *BINARY, *SHIFTS, *OTHERS])
        x, y = rng.choice(values), rng.choice(values)
        if name in UNARY[self.kind]:
            return self.op(f"{name} {x}", v)
        if name in ("divide", "remainder"):  # the interpreter ends the process at a division by 0
            y = self.op(f"or {y}, {self.constant(1)}", v)
        if name in BINARY:
            return self.op(f"{name} {x}, {y}", v)
        if name in SHIFTS:
            return self.op(f"{name} {x}, {self.constant(0, 1, rng.randrange(32), rng.randrange(64))}", v)
        if name in ("if", "while"):
            return getattr(self, f"_{name}")(values, depth) if depth < 2 else x
        return getattr(self, f"_{name}")(x, y)

    def _sum(self, x: str, y: str) -> str:
        body = self.rng.choice(["add", "multiply", "maximum"])
        zero = self.constant(1, kind=self.scalar)
        kinds = f"({self.vector}, {self.scalar}) -> {self.scalar}"
        return self._spread(
            self.op(f"reduce({x} init: {zero}) applies stablehlo.{body} across dimensions = [0]", kinds)
        )

    def _spread(self, x: str) -> str:
        return self.op(f"broadcast_in_dim {x}, dims = []", f"({self.scalar}) -> {self.vector}")

    def _running(self, x: str, y: str) -> str:
        body = f"^bb0(%p: {self.scalar}, %q: {self.scalar}):\n%s = stablehlo.add %p, %q : {self.scalar}\n"
        body += f'"stablehlo.return"(%s) : ({self.scalar}) -> ()'
        window = f"<{{window_dimensions = array<i64: {SIZE}>, padding = dense<[[{SIZE - 1}, 0]]> : tensor<1x2xi64>}}>"
        zero = self.constant(0, kind=self.scalar)
        self.count += 1
        kinds = f"({self.vector}, {self.scalar}) -> {self.vector}"
        self.lines.append(
            f'%v{self.count} = "stablehlo.reduce_window"({x}, {zero}) {window} ({{\n{body}\n}}) : {kinds}'
        )
        return f"%v{self.count}"

    def _product(self, x: str, y: str) -> str:
        dot = self.op(
            f"dot_general {x}, {y}, contracting_dims = [0] x [0]", f"({self.vector}, {self.vector}) -> {self.scalar}"
        )
        return self._spread(dot)

    def _convert(self, x: str, y: str) -> str:
        middle = f"tensor<{SIZE}x{self.rng.choice(['i32', 'ui32', 'i8', 'ui16'])}>"
        return self.op(
            f"convert {self.op(f'convert {x}', f'({self.vector}) -> {middle}')}", f"({middle}) -> {self.vector}"
        )

    def _count(self, x: str, y: str) -> str:
        flags = f"tensor<{SIZE}xi1>"
        less = self.op(f"compare LT, {x}, {y}", f"({self.vector}, {self.vector}) -> {flags}")
        return self.op(f"convert {less}", f"({flags}) -> {self.vector}")

    def _clamp(self, x: str, y: str) -> str:
        low, high = self.constant(2), self.constant(self.rng.choice([9, 2**31 - 1]))
        return self.op(f"clamp {low}, {x}, {high}", self.vector)

    def _select(self, x: str, y: str) -> str:
        flags = f"tensor<{SIZE}xi1>"
        less = self.op(f"compare GE, {x}, {y}", f"({self.vector}, {self.vector}) -> {flags}")
        return self.op(f"select {less}, {x}, {y}", f"{flags}, {self.vector}")

    def _power(self, x: str, y: str) -> str:
        return self.op(f"power {x}, {self.constant(self.rng.randrange(4))}", self.vector)

    def _reverse(self, x: str, y: str) -> str:
        return self.op(f"reverse {x}, dims = [0]", self.vector)

    def _pair(self, x: str, y: str) -> str:
        """A reduction of two operands."""
        self.count += 1
        s, n = self.scalar, self.count
        zero = self.constant(0, kind=self.scalar)
        body = (
            f"reducer(%a: {s}, %b: {s}) (%c: {s}, %d: {s}) {{\n%e = stablehlo.add %a, %b : {s}\n"
            f"%f = stablehlo.{self.rng.choice(['add', 'minimum'])} %c, %d : {s}\nstablehlo.return %e, %f : {s}, {s}\n}}"
        )
        kinds = f"({self.vector}, {self.vector}, {s}, {s}) -> ({s}, {s})"
        operands = f"({x} init: {zero}), ({y} init: {zero})"
        self.lines.append(f"%p{n}:2 = stablehlo.reduce{operands} across dimensions = [0] : {kinds}\n{body}")
        return self._spread(f"%p{n}#{self.rng.randrange(2)}")

    def _first(self, x: str) -> str:
        part = f"tensor<1x{self.kind}>"
        one = self.op(f"slice {x} [0:1]", f"({self.vector}) -> {part}")
        return self.op(f"reshape {one}", f"({part}) -> {self.scalar}")

    def _less(self, x: str, y: str) -> str:
        return self.op(f"compare LT, {x}, {y}", f"({self.scalar}, {self.scalar}) -> tensor<i1>")

    def _inside(self, values: list[str], depth: int, steps: int) -> str:
        for _ in range(steps):
            values = [*values, self.step(values, depth + 1)]
        return values[-1]

    def _if(self, values: list[str], depth: int) -> str:
        condition = self._less(self._first(values[0]), self._first(values[-1]))
        lines, parts = self.lines, []
        for _ in range(2):
            self.lines = []
            last = self._inside(values, depth, 2)
            parts.append("\n".join([*self.lines, f"stablehlo.return {last} : {self.vector}"]))
        self.lines = lines
        self.count += 1
        name, regions = f"%v{self.count}", f"({{\n{parts[0]}\n}}, {{\n{parts[1]}\n}})"
        lines.append(f'{name} = "stablehlo.if"({condition}) {regions} : (tensor<i1>) -> {self.vector}')
        return name

    def _while(self, values: list[str], depth: int) -> str:
        """The steps are three, or depend on values; there are at most five."""
        self.count += 1
        n, s, v, lines = self.count, self.scalar, self.vector, self.lines
        zero, end = self.constant(0, kind=s), self.constant(3 if self.rng.random() < 0.4 else 5, kind=s)
        self.lines = []
        decided = self._less(f"%i{n}", end)
        if self.rng.random() < 0.6:
            x = self._first(f"%x{n}")
            limit = self.constant(1000, kind=s)
            decided = self.op(f"and {decided}, {self._less(self.op(f'multiply {x}, {x}', s), limit)}", "tensor<i1>")
        condition = "\n".join([*self.lines, f"stablehlo.return {decided} : tensor<i1>"])
        self.lines = []
        last = self._inside([*values, f"%x{n}"], depth, 2)
        more = self.op(f"add %i{n}, {self.constant(1, kind=s)}", s)
        body = "\n".join([*self.lines, f"stablehlo.return {more}, {last} : {s}, {v}"])
        self.lines = lines
        operands = f"%i{n} = {zero}, %x{n} = {self.rng.choice(values)}"
        lines.append(f"%w{n}:2 = stablehlo.while({operands}) : {s}, {v} cond {{\n{condition}\n}} do {{\n{body}\n}}")
        return f"%w{n}#1"


def program(seed: int, steps: int = 6) -> tuple[str, str]:
    """The text and the type of a program of two inputs."""
    rng = random.Random(seed)
    kind = rng.choice(["i64", "ui64"])
    writer = Writer(rng, kind)
    values = ["%x", "%y"]
    for _ in range(steps):
        values.append(writer.step(values))
    results, kinds = ", ".join(values[2:]), ", ".join([writer.vector] * steps)
    inside = "\n".join([*writer.lines, f"return {results} : {kinds}"])
    return f"func.func @main(%x: {writer.vector}, %y: {writer.vector}) -> ({kinds}) {{\n{inside}\n}}", kind
