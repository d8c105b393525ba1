"""Changes that break nothing: the program does the same, or the package does not promise what they change.

`python -m tests.mutation` does not draw them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutation.places import Place


@dataclass(frozen=True)
class Equivalent:
    """The change of `before` to `after` in one function of one file, and the reason why no test can notice it."""

    path: str
    scope: str
    before: str
    after: str
    why: str

    def fits(self, place: Place) -> bool:
        mine = (f"tt_torch/{self.path}", self.scope, self.before, self.after)
        return mine == (place.path, place.scope, place.before, place.after)


SYMMETRIC_PAIRS = "The order of two pairs has no effect here, and a number takes the dtype of the pair in any order."

EQUIVALENT = (
    Equivalent(
        "dynamo/buckets/rules.py",
        "view",
        "stride <= step < stride * result.shape[d]",
        "(stride <= step <= stride * result.shape[d])",
        "Such a step is the stride of the dimension before, which is asked first, or it is refused below.",
    ),
    Equivalent(
        "codegen/client.py",
        "Client.__init__",
        'tempfile.TemporaryDirectory(prefix="tt_torch_worker_")',
        "(tempfile.TemporaryDirectory())",
        "The prefix tells people whose folder it is.",
    ),
    Equivalent(
        "dynamo/complex_pairs/arithmetic.py",
        "eq",
        "_both(x, y, lambda x, y: (x.re == y.re) & (x.im == y.im))",
        "(_both(y, x, lambda x, y: (x.re == y.re) & (x.im == y.im)))",
        SYMMETRIC_PAIRS,
    ),
    Equivalent(
        "dynamo/complex_pairs/arithmetic.py",
        "ne",
        "_both(x, y, lambda x, y: (x.re != y.re) | (x.im != y.im))",
        "(_both(y, x, lambda x, y: (x.re != y.re) | (x.im != y.im)))",
        SYMMETRIC_PAIRS,
    ),
    Equivalent(
        "dynamo/complex_pairs/arithmetic.py",
        "mul",
        "_both(x, y, _product)",
        "(_both(y, x, _product))",
        SYMMETRIC_PAIRS,
    ),
    Equivalent(
        "dynamo/complex_pairs/functions.py",
        "sqrt",
        "a >= 0",
        "(a > 0)",
        "Without a real part, both parts of the root have the same size.",
    ),
    Equivalent(
        "dynamo/complex_pairs/arithmetic.py",
        "div",
        "y.im.abs() > y.re.abs()",
        "(y.im.abs() >= y.re.abs())",
        "For parts of one size, both formulas divide by the same number.",
    ),
    Equivalent(
        "dynamo/buckets/rules.py",
        "slice_",
        'a["end"] < a["self"].shape[dim]',
        "(a['end'] <= a['self'].shape[dim])",
        "In a graph, the end of a slice that reaches the end of its dimension is the largest integer.",
    ),
    Equivalent(
        "dynamo/decompositions/gamma.py",
        "zeta",
        "q < 0",
        "(q <= 0)",
        "Zero is a whole number, and the other half of the condition leaves these out.",
    ),
    Equivalent(
        "dynamo/decompositions/gamma.py",
        "_trigamma",
        "x < 0.5",
        "(x <= 0.5)",
        "At 0.5, the reflection gives the same number.",
    ),
    Equivalent(
        "dynamo/decompositions/elementwise.py",
        "trunc",
        "x < 0",
        "(x <= 0)",
        "`ceil` and `floor` of a zero are that zero, with its sign.",
    ),
    Equivalent(
        "driver/arguments.py",
        "TensorForm",
        "0",
        "(1)",
        "A form without strides, which is made with this default, says nothing about the offset: nobody reads it.",
    ),
    Equivalent(
        "runtime/src/builder.cpp",
        "Planner::tail",
        "1",
        "2",
        "The number is that of -1, which says that there is no other operand: all readers ask whether it is negative.",
    ),
    Equivalent(
        "runtime/src/fingerprint.cpp",
        "line_of",
        " + ",
        " - ",
        "Any number that depends on the group is as good: the phases still read one line of a group each.",
    ),
    Equivalent(
        "runtime/src/fingerprint.cpp",
        "span_of",
        " < ",
        " <= ",
        "One more line of memory is prefetched, which is only faster or slower.",
    ),
    Equivalent(
        "runtime/src/recording.cpp",
        "steps_of",
        "call[0], call[2]",
        "call[2], call[0]",
        "Two calls are the same in either order.",
    ),
    Equivalent(
        "runtime/src/values.cpp",
        "host_type",
        "at::kLong;\n    case DataType::UInt64:\n      return at::kUInt64",
        "at::kUInt64;\n    case DataType::UInt64:\n      return at::kLong",
        "Integers only become integers of the device, which have the lowest bits of both types.",
    ),
    Equivalent(
        "runtime/src/wire/verify.cpp",
        "Checker::vector",
        " + ",
        " - ",
        "The positions 4 bytes before and after the length differ by 8, which is a multiple of each alignment.",
    ),
    *(
        Equivalent(
            "wire/calls.py", "_Expansion.__init__", before, after, "Ids are only to be those of no other tensor."
        )
        for before, after in (("1", "(2)"), ("0", "(1)"))
    ),
    *(
        Equivalent("wire/calls.py", scope, before, after, "The limit is as good if it is another one of this size.")
        for scope, before, after in (("", "1", "(2)"), ("", "20", "(21)"), ("_Expansion._count", "1", "(2)"))
    ),
)


def equivalent(place: Place) -> bool:
    return any(known.fits(place) for known in EQUIVALENT)
