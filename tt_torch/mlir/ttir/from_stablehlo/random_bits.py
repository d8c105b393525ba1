"""Random bits from a state: Threefry-2x32 and Philox-4x32 (Salmon et al., "Parallel random numbers", SC 2011). The
numbers come in the order of XLA, so that a seed gives the same numbers as there.

The 64-bit integers of a state are pairs of 32-bit words, with the lower word first (see `stablehlo/flatten.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.stablehlo.random_state import IN_WORDS
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES, unsupported
from tt_torch.mlir.types import Op, Value

Drawn: TypeAlias = tuple[list[Value], list[Value]]  # numbers, and the next counter
Word: TypeAlias = Value  # int32 values of any shape, with wrap-around; keys and counters have two or more words
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ACCEPTED = "a state of ui64, two for THREE_FRY and DEFAULT, two or three for PHILOX, and integers as results"


@RULES.rewrites("stablehlo.rng_bit_generator")
def rng_bit_generator(op: Op, b: Builder) -> list[Value]:
    """Returns the next state and the bits. StableHLO does not say which algorithm DEFAULT is. Here it is Threefry,
    which needs no products."""
    algorithm = str(op.attributes["rng_algorithm"]).rstrip(">").split()[-1]
    (state,), (_, result) = op.operands, op.results
    accepted = (2, 3) if algorithm == "PHILOX" else (2,)
    if "tt.element_type" not in op.attributes or shape(state)[0] not in accepted:
        raise unsupported(op, accepted=ACCEPTED)
    element, bits = op.attributes["tt.element_type"].value, Bits(b)
    words = bits.words(state)
    generate = bits.philox if algorithm == "PHILOX" else bits.threefry
    if in_words := IN_WORDS in op.attributes:
        (*size, _), wide = shape(result), True
    else:
        size, wide = shape(result), element.width == 64
    (numbers, *high), counter = generate(words[:2], words[2:], size, wide)
    counter = counter[: len(words) - 2]
    if in_words:
        columns = [b("ttir.reshape", word, shape=[*size, 1]) for word in (numbers, *high)]
        numbers = b("ttir.concat", columns, dim=len(size))
    return [bits.state([*words[:2], *counter]), bits.narrowed(numbers, element, dtype(result))]


class Bits:
    """Arithmetic on 32-bit words, and the two generators in it."""

    def __init__(self, b: Builder) -> None:
        self.b, self.i32 = b, ir.IntegerType.get_signless(32)

    def constant(self, value: int) -> Word:
        return full(self.b, [1], self.i32, (value + 2**31) % 2**32 - 2**31)

    def add(self, x: Word, y: Word) -> Word:
        return self.b("ttir.add", x, y)

    def xor(self, *words: Word) -> Word:
        first, *others = words
        for word in others:
            first = self.b("ttir.bitwise_xor", first, word)
        return first

    def both(self, x: Word, y: Word) -> Word:
        return self.b("ttir.bitwise_and", x, y)

    def right(self, x: Word, count: int) -> Word:
        return self.b("ttir.logical_right_shift", x, self.constant(count))

    def rotated(self, x: Word, count: int) -> Word:
        left = self.b("ttir.logical_left_shift", x, self.constant(count))
        return self.b("ttir.bitwise_or", left, self.right(x, 32 - count))

    def product(self, x: Word, factor: int) -> tuple[Word, Word]:
        """The high and the low word of x * factor, computed from halves of words."""
        half = self.constant(0xFFFF)
        low, high = self.both(x, half), self.right(x, 16)
        f_low, f_high = self.constant(factor & 0xFFFF), self.constant(factor >> 16)
        times = "ttir.multiply"
        ll, lh, hl, hh = (self.b(times, p, f) for p in (low, high) for f in (f_low, f_high))
        middle = self.add(self.add(self.right(ll, 16), self.both(lh, half)), self.both(hl, half))
        carried = self.add(self.add(self.right(lh, 16), self.right(hl, 16)), self.right(middle, 16))
        return self.add(hh, carried), self.b(times, x, self.constant(factor))

    def advanced(self, counter: Sequence[Word], step: Word) -> list[Word]:
        """counter + step, with the lowest word first. Three numbers decide the carry of a word: the word, the step and
        the inverted sum. The carry is 1 if at least two of them have a top bit of 1."""
        words = []
        for word in counter:
            total = self.add(word, step)
            either = self.b("ttir.bitwise_or", word, step)
            kept = self.both(either, self.b("ttir.bitwise_not", total))
            step = self.right(self.b("ttir.bitwise_or", self.both(word, step), kept), 31)
            words.append(total)
        return words

    # --- states

    def words(self, state: Value) -> list[Word]:
        """The words of a state of shape (n, 2); each has the shape (1)."""
        flat = self.b(
            "ttir.reshape", self.b("ttir.bitcast_convert", state, dtype=self.i32), shape=[2 * shape(state)[0]]
        )
        spans = range(shape(flat)[0])
        return [self.b("ttir.slice_static", flat, begins=[i], ends=[i + 1], step=[1]) for i in spans]

    def state(self, words: Sequence[Word]) -> Value:
        joined = self.b("ttir.reshape", self.b("ttir.concat", list(words), dim=0), shape=[len(words) // 2, 2])
        return self.b("ttir.bitcast_convert", joined, dtype=ir.IntegerType.get_unsigned(32))

    def counted(self, counter: Sequence[Word], count: int) -> tuple[list[Word], list[Word]]:
        """The next `count` values of a counter, and its value after them."""
        kind = tensor([count], self.i32)
        steps = self.b("ttir.arange", type=kind, start=0, end=count, step=1, arange_dimension=0)
        return self.advanced(counter, steps), self.advanced(counter, self.constant(count))

    def narrowed(self, numbers: Word, element: ir.IntegerType, target: ir.Type) -> Value:
        """The low bits, in the device's type for `element`."""
        if element.width < 32:
            numbers = self.both(numbers, self.constant(2**element.width - 1))
            if not element.is_unsigned:
                sign = self.constant(2 ** (element.width - 1))
                numbers = self.b("ttir.subtract", self.xor(numbers, sign), sign)
        if target == self.i32:
            return numbers
        name = "ttir.bitcast_convert" if element.width >= 32 else "ttir.typecast"
        return self.b(name, numbers, dtype=target)

    # --- generators: they take a key, a counter and a shape. They return the numbers (the low and the high words of
    # 64-bit numbers) and the next counter.

    def threefry(self, key: list[Word], counter: list[Word], size: list[int], wide: bool) -> Drawn:
        if wide or not size:
            inputs, after = self.counted(counter, math.prod(size))
            return [self.b("ttir.reshape", word, shape=size) for word in self.threefry_rounds(key, inputs)], after
        even = [d for d, n in enumerate(size) if n % 2 == 0]
        split = even[0] if even else size.index(max(size))
        pairs = -(-size[split] // 2)
        inputs, after = self.counted(counter, math.prod(size) // size[split] * pairs)
        parts = [
            self.b("ttir.reshape", word, shape=[*size[:split], pairs, 1, *size[split + 1 :]])
            for word in self.threefry_rounds(key, inputs)
        ]
        joined = self.b("ttir.concat", parts, dim=split + 1)
        joined = self.b("ttir.reshape", joined, shape=[*size[:split], 2 * pairs, *size[split + 1 :]])
        cropped = self.b("ttir.slice_static", joined, begins=[0] * len(size), ends=size, step=[1] * len(size))
        return [cropped], after

    def threefry_rounds(self, key: list[Word], counter: list[Word]) -> list[Word]:
        keys = [*key, self.xor(*key, self.constant(PARITY))]
        x, y = (self.add(word, k) for word, k in zip(counter, keys, strict=False))
        for block in range(5):
            for count in ROTATIONS[block % 2]:
                x = self.add(x, y)
                y = self.xor(x, self.rotated(y, count))
            first, second = keys[(block + 1) % 3], keys[(block + 2) % 3]
            x, y = self.add(x, first), self.add(y, self.add(second, self.constant(block + 1)))
        return [x, y]

    def philox(self, key: list[Word], counter: list[Word], size: list[int], wide: bool) -> Drawn:
        """Philox. If the counter has 64 bits, the key is its upper half."""
        count = math.prod(size)
        inputs, after = self.counted((counter + key)[:4], -(-count * (2 if wide else 1) // 4))
        groups = shape(inputs[0])[0]
        words, numbers = self.philox_rounds(key, inputs), list[Word]()
        for part in (words[::2], words[1::2]) if wide else (words,):
            columns = [self.b("ttir.reshape", word, shape=[groups, 1]) for word in part]
            flat = self.b("ttir.reshape", self.b("ttir.concat", columns, dim=1), shape=[groups * len(part)])
            first = self.b("ttir.slice_static", flat, begins=[0], ends=[count], step=[1])
            numbers.append(self.b("ttir.reshape", first, shape=size))
        return numbers, after

    def philox_rounds(self, key: list[Word], x: list[Word]) -> list[Word]:
        for number in range(10):
            keys = [self.add(k, self.constant(number * w)) for k, w in zip(key, WEYL, strict=True)]
            (high0, low0), (high1, low1) = (self.product(word, m) for word, m in zip(x[::2], MULTIPLIERS, strict=True))
            x = [self.xor(high1, x[1], keys[0]), low1, self.xor(high0, x[3], keys[1]), low0]
        return x
