"""Random StableHLO programs of 64-bit integers, with loops and branches. All their values are results."""

from __future__ import annotations

import random

SIZE = 4
UNARY = {"i64": ["negate", "abs", "not", "sign", "popcnt", "count_leading_zeros"], "ui64": ["not", "popcnt"]}
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide", "remainder"]
SHIFTS = ["shift_left", "shift_right_logical", "shift_right_arithmetic"]
OTHERS = ["sum", "running", "product", "convert", "count", "clamp", "select", "power", "if", "while", "pair", "reverse"]
# Ops of hashes, moves, and ops that pass between the host and the device, for programs that need 64 bits.
LARGE = ["large", "large", "large", "far", "far", "joined", "taken", "sorted", "added", "rotated", "padded", "updated"]
LARGE += ["floats", "part", "edge", "edge", "while", "while", "if"]


class Writer:
    """Writes ops on vectors of one type."""

    def __init__(self, rng: random.Random, kind: str, large: bool = False) -> None:
        self.rng, self.kind, self.count = rng, kind, 0
        self.names = [*UNARY[kind], *BINARY, *SHIFTS, *OTHERS, *(LARGE * 2 if large else [])]
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
        name = rng.choice(self.names)
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
        zero = self.constant(self.rng.choice([1, 1, 2**31 - 1]), kind=self.scalar)
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
        zero = self.constant(self.rng.choice([0, 0, 2**30]), kind=self.scalar)
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

    def _large(self, x: str, y: str) -> str:
        """An op with a constant of 64 bits."""
        low, high = (-(2**63), 2**63) if self.kind == "i64" else (0, 2**64)
        name = self.rng.choice([*BINARY, *BINARY, "compare", "select"])
        number = self.constant(self.rng.randrange(low, high) >> self.rng.choice([0, 0, 20, 31, 33]) | 1)
        if name == "compare":
            return self._count(x, number)
        if name == "select":
            return self._select(*self.rng.choice([(x, number), (number, y)]))
        if name not in ("divide", "remainder") and self.rng.random() < 0.3:
            x, number = number, x
        return self.op(f"{name} {x}, {number}", self.vector)

    def _far(self, x: str, y: str) -> str:
        return self.op(f"{self.rng.choice(SHIFTS)} {x}, {self.constant(self.rng.randrange(16, 64))}", self.vector)

    def _joined(self, x: str, y: str) -> str:
        """A 64-bit integer of the low words of two others."""
        words = f"tensor<{SIZE}xui32>"
        low, high = (self.op(f"convert {v}", f"({self.vector}) -> {words}") for v in (x, y))
        low, high = (self.op(f"convert {v}", f"({words}) -> {self.vector}") for v in (low, high))
        high = self.op(f"shift_left {high}, {self.constant(32)}", self.vector)
        return self.op(f"or {high}, {low}", self.vector)

    def _edge(self, x: str, y: str) -> str:
        """A number of 32 bits from the upper bits of another, and a number that may bring it just out of 32 bits."""
        upper = self.op(f"shift_right_logical {x}, {self.constant(self.rng.randrange(32, 36))}", self.vector)
        limit = 2**31 if self.kind == "i64" else 2**32
        return self.op(f"add {upper}, {self.constant(limit - self.rng.choice([1, 9, 2**28]))}", self.vector)

    def _place(self, x: str) -> str:
        """The interpreter reads a position of ui64 as a signed number, and XLA does not."""
        one = self.constant(1) if self.kind == "ui64" else ""
        return self.op(f"shift_right_logical {x}, {one}", self.vector) if one else x

    def _taken(self, x: str, y: str) -> str:
        y = self._place(y)
        numbers = "offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
        self.count += 1
        text = f'"stablehlo.gather"({x}, {y}) <{{dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = '
        kinds = f"({self.vector}, {self.vector}) -> {self.vector}"
        self.lines.append(f"%v{self.count} = {text}array<i64: 1>}}> : {kinds}")
        return f"%v{self.count}"

    def _sorted(self, x: str, y: str) -> str:
        self.count += 1
        n, s = self.count, self.scalar
        arguments = ", ".join(f"%{name}{n}: {s}" for name in "abcd")
        less = f"%l{n} = stablehlo.compare {self.rng.choice(['LT', 'GT'])}, %a{n}, %b{n} : ({s}, {s}) -> tensor<i1>"
        body = f"^bb0({arguments}):\n{less}\nstablehlo.return %l{n} : tensor<i1>"
        kinds = f"({self.vector}, {self.vector}) -> ({self.vector}, {self.vector})"
        options = "<{dimension = 0 : i64, is_stable = true}>"
        self.lines.append(f'%s{n}:2 = "stablehlo.sort"({x}, {y}) {options} ({{\n{body}\n}}) : {kinds}')
        return f"%s{n}#{self.rng.randrange(2)}"

    def _added(self, x: str, y: str) -> str:
        """A scatter to positions, of which some may be outside."""
        self.count += 1
        n, s, v = self.count, self.scalar, self.vector
        position = self.op(f"and {y}, {self.constant(5)}", v) if self.rng.random() < 0.5 else self._place(y)
        numbers = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
        name = self.rng.choice(["add", "maximum"])
        body = f"^bb0(%a{n}: {s}, %b{n}: {s}):\n%c{n} = stablehlo.{name} %a{n}, %b{n} : {s}\n"
        body += f"stablehlo.return %c{n} : {s}"
        options = f"<{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}>"
        kinds = f"({v}, {v}, {v}) -> {v}"
        self.lines.append(f'%t{n} = "stablehlo.scatter"({x}, {position}, {y}) {options} ({{\n{body}\n}}) : {kinds}')
        return f"%t{n}"

    def _rotated(self, x: str, y: str) -> str:
        cut, n = self.rng.randrange(1, SIZE), SIZE
        first, last = (f"tensor<{size}x{self.kind}>" for size in (n - cut, cut))
        a = self.op(f"slice {x} [{cut}:{n}]", f"({self.vector}) -> {first}")
        b = self.op(f"slice {y} [0:{cut}]", f"({self.vector}) -> {last}")
        return self.op(f"concatenate {a}, {b}, dim = 0", f"({first}, {last}) -> {self.vector}")

    def _padded(self, x: str, y: str) -> str:
        fill, low = self._first(y), self.rng.randrange(-SIZE, SIZE + 1)
        kinds = f"({self.vector}, {self.scalar}) -> {self.vector}"
        return self.op(f"pad {x}, {fill}, low = [{low}], high = [{-low}], interior = [0]", kinds)

    def _updated(self, x: str, y: str) -> str:
        part, place = f"tensor<2x{self.kind}>", self._first(self._place(y))
        new = self.op(f"dynamic_slice {y}, {place}, sizes = [2]", f"({self.vector}, {self.scalar}) -> {part}")
        kinds = f"({self.vector}, {part}, {self.scalar}) -> {self.vector}"
        return self.op(f"dynamic_update_slice {x}, {new}, {place}", kinds)

    def _floats(self, x: str, y: str) -> str:
        """The comparison of two floats, which are for the device."""
        floats, flags = f"tensor<{SIZE}xf32>", f"tensor<{SIZE}xi1>"
        a, b = (self.op(f"convert {v}", f"({self.vector}) -> {floats}") for v in (x, y))
        less = self.op(f"compare LE, {self.op(f'abs {a}', floats)}, {b}", f"({floats}, {floats}) -> {flags}")
        return self.op(f"select {less}, {x}, {y}", f"{flags}, {self.vector}")

    def _part(self, x: str, y: str) -> str:
        return self._spread(self._first(x))

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

    def _inside(self, values: list[str], depth: int, steps: int) -> list[str]:
        for _ in range(steps):
            values = [*values, self.step(values, depth + 1)]
        return values

    def _if(self, values: list[str], depth: int) -> str:
        """One or two results."""
        count = self.rng.randrange(1, 3)
        condition = self._less(self._first(values[0]), self._first(values[-1]))
        kinds, lines, parts = ", ".join([self.vector] * count), self.lines, []
        for _ in range(2):
            self.lines = []
            last = ", ".join(self._inside(values, depth, 2)[-count:])
            parts.append("\n".join([*self.lines, f"stablehlo.return {last} : {kinds}"]))
        self.lines = lines
        self.count += 1
        name, regions = f"%v{self.count}", f"({{\n{parts[0]}\n}}, {{\n{parts[1]}\n}})"
        lines.append(f'{name}:{count} = "stablehlo.if"({condition}) {regions} : (tensor<i1>) -> ({kinds})')
        return f"{name}#{self.rng.randrange(count)}"

    def _while(self, values: list[str], depth: int) -> str:
        """The steps are three, or depend on values; there are at most five. Besides the counter, a loop carries one to
        three vectors. A new one is a value of the body, or another carried one."""
        self.count += 1
        n, s, v, lines = self.count, self.scalar, self.vector, self.lines
        zero, end = self.constant(0, kind=s), self.constant(3 if self.rng.random() < 0.4 else 5, kind=s)
        carried = [f"%{name}{n}" for name in "xyz"[: self.rng.choice([1, 2, 2, 3])]]
        self.lines = []
        decided = self._less(f"%i{n}", end)
        if self.rng.random() < 0.6:
            x = self._first(self.rng.choice(carried))
            limit = self.constant(1000, kind=s)
            decided = self.op(f"and {decided}, {self._less(self.op(f'multiply {x}, {x}', s), limit)}", "tensor<i1>")
        condition = "\n".join([*self.lines, f"stablehlo.return {decided} : tensor<i1>"])
        self.lines = []
        made = self._inside([*values, *carried], depth, 1 + len(carried))
        new = [made[-1], *(self.rng.choice([*carried, *made[-3:]]) for _ in carried[1:])]
        self.rng.shuffle(new)
        more, kinds = self.op(f"add %i{n}, {self.constant(1, kind=s)}", s), ", ".join([s, *[v] * len(carried)])
        body = "\n".join([*self.lines, f"stablehlo.return {', '.join([more, *new])} : {kinds}"])
        self.lines = lines
        operands = ", ".join([f"%i{n} = {zero}", *(f"{x} = {self.rng.choice(values)}" for x in carried)])
        regions = f"cond {{\n{condition}\n}} do {{\n{body}\n}}"
        lines.append(f"%w{n}:{1 + len(carried)} = stablehlo.while({operands}) : {kinds} {regions}")
        return f"%w{n}#{self.rng.randrange(1, 1 + len(carried))}"


def program(seed: int, steps: int = 6, large: bool = False) -> tuple[str, str]:
    """The text and the type of a program of two inputs. If `large` is true, it is likely to need 64 bits."""
    rng = random.Random(seed)
    kind = rng.choice(["i64", "ui64"])
    writer = Writer(rng, kind, large)
    values = ["%x", "%y"]
    for _ in range(steps):
        values.append(writer.step(values))
    results, kinds = ", ".join(values[2:]), ", ".join([writer.vector] * steps)
    inside = "\n".join([*writer.lines, f"return {results} : {kinds}"])
    return f"func.func @main(%x: {writer.vector}, %y: {writer.vector}) -> ({kinds}) {{\n{inside}\n}}", kind
