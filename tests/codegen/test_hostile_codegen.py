"""Text from a file never becomes code. This matters since `check` and device="ttnn" execute generated programs."""

from __future__ import annotations

import ast
import random

import pytest
from runtime.programs import Maker as Programs
from wire.messages import Maker, op_members

from tt_torch.codegen import calls, quoting, to_python
from tt_torch.codegen.program import GLOBAL, from_message
from tt_torch.codegen.values import NAMES
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import load

BENIGN = "relu"
HOSTILE = (
    '"); import os; os.abort() #', "'); import os; os.abort() #", '"""\nimport os\n"""', "'''\nimport os\n'''", "a\nb",
    "\nimport os\n", "\r\nimport os\r\n", "\fimport os\n", "\0", "\\", "a\\", "\"\\'", "{0}", "{x!r}",
    "<WEIGHTS>", "# <FUNCTIONS>\n", "\u2028import os", "\x85import os", "²", "if", "None", "print", "ttnn", "forward",
    "cached", "_cache", "to_host_tensor", "weights", "DRAM", "Tile", "1", "", " ", "main_", "main_1", "x" * 5000,
    "é", "\N{MATHEMATICAL BOLD SMALL F}orward",
)  # fmt: skip
LOCATIONS = ('loc("{}": aten.relu)', 'loc("{}: aten.relu.default"("m.py":1:0))', 'loc("m"("{}.py":12:0))', "{}")


class Texts(Maker):
    """Makes whole messages in which every text is `text`. For one seed, they differ in nothing else."""

    def __init__(self, text, seed):
        super().__init__(load(), random.Random(seed), density=1.0)
        self.text, self.tensors = text, []

    def table(self, name, vector_limit=2):
        made = super().table(name, vector_limit)
        if name.endswith("TensorRef"):
            made["global_id"] = len(self.tensors)
            self.tensors.append(made)
        return made

    def number(self, field, kind):
        named = [name for name in self.schema.enum(field.ref).values if name in NAMES] if field.ref else []
        return self.rng.choice(named) if named else super().number(field, kind)

    def value(self, field, kind):
        return self.text if kind == "string" else super().value(field, kind)


def form(source):
    """The tree of a program without the values of string constants, comments, and the names that a file chooses.

    In functions that the template does not have, each identifier is replaced by its order of appearance.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name not in GLOBAL - {"forward"}:
            order = {"ttnn": "ttnn", "cached": "cached"}
            function.name = ""
            for node in (n for n in ast.walk(function) if isinstance(n, ast.Name)):
                node.id = order.setdefault(node.id, f"n{len(order)}")
    return ast.dump(tree)


def with_op(member, text, seed):
    """A file with one op with random fields. Its operands are the inputs of the program."""
    maker = Texts(text, seed)
    op = {"type": {member: maker.table(member)}, "loc_info": text, "debug_info": text}
    inputs = [ref for ref in maker.tensors if ref is not op["type"][member].get("out")]
    program = {"name": "main", "inputs": inputs, "operations": [op]}
    return encode({"schema_hash": load().hash, "programs": [program]})


def generated(member, text, seed):
    """The generated program of one random op, or the class of the error that refuses it."""
    try:
        return to_python(with_op(member, text, seed), text)
    except (BinaryFormatError, UnsupportedBinaryError) as error:
        return type(error)


def texts_of(table, seen=()):
    """Whether a table, or a table that it refers to, has a text."""
    schema = load()
    for field in schema.fields(table):
        if "string" in (field.type, field.element):
            return True
        below = schema.enum(field.ref).refs.values() if "union" in (field.type, field.element) else [field.ref]
        if field.type in ("obj", "vector", "union") and any(
            t in schema.tables and t not in seen and texts_of(t, (*seen, t)) for t in below
        ):
            return True
    return False


CALLED = sorted({key.partition(".")[0] for key in calls.rows()} & {m for m in op_members(load().hash) if texts_of(m)})


def test_the_ops_with_texts():
    """If this fails, check that the new op's row in calls.py has its text as `text(...)`."""
    assert CALLED == [
        "Conv3dOp", "LinearOp", "MatmulOp", "PrepareConv2dWeightsOp", "PrepareConvTranspose2dWeightsOp", "UpsampleOp",
    ]  # fmt: skip


def test_rows_name_every_text_as_a_text():
    """A row that takes a text of its table unquoted, or something else as a text, is a mistake."""
    schema = load()
    for key, row in calls.rows().items():
        fields = {f.name: f for f in schema.fields(key.partition(".")[0])}
        for argument in row.arguments:
            is_text = argument.path in fields and fields[argument.path].type == "string"
            assert is_text == (argument.convert == "text"), (key, argument)


@pytest.mark.parametrize("member", CALLED)
def test_every_text_of_every_op(member):
    seeds = [s for s in range(60) if isinstance(generated(member, BENIGN, s), str)][:2]
    assert seeds, f"no random {member} has a call in the package"
    for seed in seeds:
        benign = form(generated(member, BENIGN, seed))
        for text in HOSTILE:
            assert form(generated(member, text, seed)) == benign, (text, seed)


def small(name="const", callee=None, location="", title="x"):
    """A program that calls a private one, with a given name, location and file name."""
    maker = Programs()
    x, out = maker.input((32, 32)), maker.tensor((32, 32))
    y = maker.tensor((32, 32))
    maker.op("LoadCachedOp", callee_name=name if callee is None else callee, inputs=[x], outputs=[y], program_hash="h")
    maker.binary_op("Add", x, y, out)
    for op in maker.program["operations"]:
        op["loc_info"] = location
    maker.program["outputs"] = [out]
    maker.begin(name, private=True)
    a, b = maker.input((32, 32), buffer="host"), maker.tensor((32, 32))
    maker.op("EltwiseUnaryOp", type="Relu", **{"in": a}, out=b)
    return to_python(maker.binary(b), title)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_of_programs_files_and_places(text):
    assert form(small(name=text)) == form(small())
    assert form(small(title=text)) == form(small())
    for location in LOCATIONS:
        assert form(small(location=location.format(text))) == form(small(location=location.format("relu_1"))), location


@pytest.mark.parametrize("title", ["\udcff", "a\udcffb\n"])
def test_file_names_that_are_no_valid_text(title):
    """The path of a file may contain any bytes."""
    source = small(title=title)
    assert form(source) == form(small()) and source.encode()


@pytest.mark.parametrize("text", [*HOSTILE, "\udcff"])
def test_literals(text):
    for quoted in (quoting.literal(text), quoting.docstring(text)):
        assert ast.literal_eval(quoted) == text
        assert quoted.isascii() and quoted.isprintable()
    assert ast.parse(f"# {quoting.comment(text)}").body == []
    name = quoting.unique(quoting.identifier(text) or "value", {"main_", "x"})
    assert name.isidentifier() and name.isascii() and name not in ("if", "print", "main_")


def test_a_call_of_a_program_that_does_not_exist():
    with pytest.raises(BinaryFormatError, match="calls the program 'another', which the binary does not have"):
        small(callee="another")


def test_two_programs_with_one_name():
    program = {"name": "main", "operations": []}
    with pytest.raises(BinaryFormatError, match="two programs have the name 'main'"):
        from_message({"programs": [program, program]})
