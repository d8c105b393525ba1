"""Random StableHLO programs with loops and branches that depend on values, inside each other."""

from __future__ import annotations

import random

FLOAT, INT, BOOL = "tensor<4xf32>", "tensor<i32>", "tensor<i1>"
FLOATS = ("add", "subtract", "maximum", "minimum")
INTEGERS = ("add", "subtract", "maximum", "xor")


class Writer:
    """Writes a program whose inputs are two values of type FLOAT and two of type INT."""

    def __init__(self, seed: int) -> None:
        self.random, self.lines, self.count = random.Random(seed), list[str](), 0

    def program(self) -> str:
        values = [("%a", FLOAT), ("%b", FLOAT), ("%m", INT), ("%n", INT)]
        values = self.block(values, 2)
        returned = self.random.sample(values, 3) + [("%a", FLOAT)]
        names, kinds = ", ".join(name for name, _ in returned), ", ".join(kind for _, kind in returned)
        arguments = f"%a: {FLOAT}, %b: {FLOAT}, %m: {INT}, %n: {INT}"
        body = "\n".join(self.lines)
        return f"func.func @main({arguments}) -> ({kinds}) {{\n{body}\nreturn {names} : {kinds}\n}}"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, kind: str, text: str) -> tuple[str, str]:
        made = self.name()
        self.lines.append(f"{made} = {text}")
        return made, kind

    def pick(self, values: list[tuple[str, str]], kind: str) -> str:
        return self.random.choice([name for name, each in values if each == kind])

    def block(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        values = list(values)
        for _ in range(self.random.randint(1, 4)):
            choices = [self.float_op, self.float_op, self.integer_op, self.sine, self.number, self.widened]
            choices += [self.loop, self.branch, self.loop] if depth else []
            values += self.random.choice(choices)(values, depth)
        return values

    def float_op(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        x, y = self.pick(values, FLOAT), self.pick(values, FLOAT)
        return [self.emit(FLOAT, f"stablehlo.{self.random.choice(FLOATS)} {x}, {y} : {FLOAT}")]

    def sine(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        return [self.emit(FLOAT, f"stablehlo.sine {self.pick(values, FLOAT)} : {FLOAT}")]

    def integer_op(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        x, y = self.pick(values, INT), self.pick(values, INT)
        return [self.emit(INT, f"stablehlo.{self.random.choice(INTEGERS)} {x}, {y} : {INT}")]

    def number(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        if self.random.random() < 0.5:
            return [self.emit(INT, f"stablehlo.constant dense<{self.random.randint(-3, 5)}> : {INT}")]
        return [self.emit(FLOAT, f"stablehlo.constant dense<{self.random.uniform(-2, 2):.3f}> : {FLOAT}")]

    def widened(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        scalar, _ = self.emit(INT, f"stablehlo.convert {self.pick(values, INT)} : ({INT}) -> tensor<f32>")
        return [self.emit(FLOAT, f"stablehlo.broadcast_in_dim {scalar}, dims = [] : (tensor<f32>) -> {FLOAT}")]

    def loop(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        """A loop with three carried values and a counter. The counter ends at 3, or at the two low bits of a value."""
        (zero, _), (three, _) = (self.emit(INT, f"stablehlo.constant dense<{i}> : {INT}") for i in (0, 3))
        limit = three
        if self.random.random() < 0.7:
            limit, _ = self.emit(INT, f"stablehlo.and {self.pick(values, INT)}, {three} : {INT}")
        kinds = [FLOAT, FLOAT, INT, INT]
        carried = [self.name() for _ in kinds]
        start = [self.pick(values, kind) for kind in kinds[:3]] + [zero]
        bound = ", ".join(f"{inner} = {outer}" for inner, outer in zip(carried, start, strict=True))
        made, types = self.name(), ", ".join(kinds)
        self.lines.append(f"{made}:4 = stablehlo.while({bound}) : {types}\ncond {{")
        going, _ = self.emit(BOOL, f"stablehlo.compare LT, {carried[3]}, {limit} : ({INT}, {INT}) -> {BOOL}")
        self.lines.append(f"stablehlo.return {going} : {BOOL}\n}} do {{")
        inside = self.block([*values, *zip(carried, kinds, strict=True)], depth - 1)
        one, _ = self.emit(INT, f"stablehlo.constant dense<1> : {INT}")
        step, _ = self.emit(INT, f"stablehlo.add {carried[3]}, {one} : {INT}")
        last = [self.random.choice((carried[i], self.pick(inside, kinds[i]))) for i in range(3)]
        self.lines.append(f"stablehlo.return {', '.join([*last, step])} : {types}\n}}")
        return [(f"{made}#{i}", kind) for i, kind in enumerate(kinds)]

    def branch(self, values: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
        """An `if`, or a `case` of three branches, whose index may be out of range."""
        x, y = self.pick(values, INT), self.pick(values, INT)
        made, is_case = self.name(), self.random.random() < 0.5
        if is_case:
            self.lines.append(f'{made}:2 = "stablehlo.case"({x}) ({{')
        else:
            chosen, _ = self.emit(BOOL, f"stablehlo.compare LT, {x}, {y} : ({INT}, {INT}) -> {BOOL}")
            self.lines.append(f'{made}:2 = "stablehlo.if"({chosen}) ({{')
        count = 3 if is_case else 2
        for number in range(count):
            inside = self.block(values, depth - 1)
            self.lines.append(f"stablehlo.return {self.pick(inside, FLOAT)}, {self.pick(inside, INT)} : {FLOAT}, {INT}")
            self.lines.append("}, {" if number < count - 1 else "})")
        self.lines.append(f": ({INT if is_case else BOOL}) -> ({FLOAT}, {INT})")
        return [(f"{made}#0", FLOAT), (f"{made}#1", INT)]
