"""Makes the program of one chip from a module whose annotations split values over a mesh, by Shardy's passes.

The passes are in the wheel of jaxlib. They may end the process, so `work` is the program of a process of its own: it
reads a module as text from standard input, and writes the new one in MLIR's generic form. If it cannot, it writes the
reason to standard error, and ends with status 1. It can also write a module as it is, in the generic form. Then it also
reads bytecode and portable artifacts.

Shardy decides how values are split that have no annotation. Ops whose split values it would get wrong have whole
values: see shardy_rules.py.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from typing import Any

from jax.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

from tt_torch.files import is_artifact
from tt_torch.mlir.child import die_with
from tt_torch.mlir.stablehlo import gspmd
from tt_torch.mlir.stablehlo.gspmd_worker import use_shardy
from tt_torch.mlir.stablehlo.shardy_rules import RULES, Dims, everything, rank, shape

DECIDE = (
    "sdy-lift-inlined-meshes,sdy-remove-size-one-axes,sdy-propagation-pipeline,"
    "sdy-remove-sub-axes-in-input-output-shardings,func.func(sdy-insert-explicit-reshards{enable-full-version=true})"
)
COLLECTIVES, SPLIT = "func.func(sdy-reshard-to-collectives)", "sdy-convert-global-to-local"
SHARDING = "sdy.sharding"
HIDDEN = "tt.attributes"  # the attributes of an op of CHLO
MOST_OPS = 100_000  # as in flatten.py, which needs torch-mlir
SUMS = ("stablehlo.dot_general", "stablehlo.reduce")  # they may have whole results of split values
AXES = re.compile(r'"([^"]+)"')
PART_OF_AXIS = re.compile(r'"[^"]+":\(\d+\)\d+')


def constrain(block: Any, mesh: str, axis: int) -> None:
    """Asks Shardy to leave whole what RULES want whole."""
    for op in [each.operation for each in block.operations]:
        if op.name.startswith(("func.", "sdy.")):
            continue
        for region in op.regions if op.name not in RULES else ():
            remove_constraints(region)
        operands, results = RULES.get(op.name, everything)(op, axis)
        for i, dims in enumerate(operands):
            if dims:
                op.operands[i] = constraint(op.operands[i], dims, mesh, ir.InsertionPoint(op))
        for result, dims in zip(op.results, results, strict=True):
            if dims:
                new = constraint(result, dims, mesh, ir.InsertionPoint.after(op))
                result.replace_all_uses_except(new, new.owner.operation)


def constraint(value: Any, dims: Dims, mesh: str, place: Any) -> Any:
    text = ", ".join("{}" if i in dims else "{?}" for i in range(rank(value)))
    sharding = ir.Attribute.parse(f"#sdy.sharding<@{mesh}, [{text}]>")
    attributes = {"sharding": sharding}
    made = ir.Operation.create("sdy.sharding_constraint", [value.type], [value], attributes, ip=place)
    return made.results[0]


def remove_constraints(region: Any) -> None:
    for block in region.blocks:
        for op in [each.operation for each in block.operations]:
            for inner in op.regions:
                remove_constraints(inner)
            if op.name == "sdy.sharding_constraint":
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()


def simplify_reshards(function: Any, mesh: str) -> None:
    """Writes each change of a sharding as steps that gather or split along one axis, because other collectives of
    Shardy exchange values among parts of an axis."""
    for op in [each for each in nested(function) if each.name == "sdy.reshard"]:
        now, wanted = split_by(op.operands[0], function), split_by(op.results[0], function)
        value = op.operands[0]
        for dims in steps(now, wanted):
            text = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in dims)
            sharding = ir.Attribute.parse(f"#sdy.sharding<@{mesh}, [{text}]>")
            with op.location:
                step = ir.Operation.create(
                    "sdy.reshard", [value.type], [value], {"sharding": sharding}, ip=ir.InsertionPoint(op)
                )
            value = step.results[0]
        op.results[0].replace_all_uses_with(value)
        op.erase()


def steps(now: list[list[str]], wanted: list[list[str]]) -> Iterator[list[list[str]]]:
    """The shardings on the way: first, axes are taken away from the end of each dimension, and then they are added."""
    dims = [list(axes) for axes in now]
    for axes, end in zip(dims, wanted, strict=True):
        while axes != end[: len(axes)]:
            axes.pop()
            yield dims
    for axes, end in zip(dims, wanted, strict=True):
        while len(axes) < len(end):
            axes.append(end[len(axes)])
            yield dims


def keep_slices(function: Any) -> None:
    """Keeps each op that takes a chip's own part as one op, because Shardy would compute the place of the part. It
    becomes a custom call, which shardy_passes.py reads."""
    for op in [each for each in nested(function) if each.name == "sdy.all_slice"]:
        dims = re.findall(r"\{([^{}]*)\}", str(op.attributes["slicing_axes"]))
        ((dim, axis),) = [(dim, axis) for dim, axes in enumerate(dims) for axis in AXES.findall(axes)]
        named = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim), "axis": ir.StringAttr.get(axis)}
        sharding = ir.Attribute.parse(f"#sdy.sharding_per_value<[{sharding_text(op).removeprefix('#sdy.sharding')}]>")
        named |= {"call_target_name": ir.StringAttr.get(gspmd.SLICE), SHARDING: sharding}
        put(op, "stablehlo.custom_call", named)


class Refused(Exception):
    """An op cannot be split as the annotations ask."""

    def __init__(self, op: Any, reason: str) -> None:
        super().__init__(f"{op.name}\n{op.location}\n{reason}")


def check(function: Any, sizes: dict[str, int]) -> None:
    """Raises Refused if a value has no equal parts, or if a dimension is split that has to be whole."""
    (block,) = function.regions[0].blocks
    axis = max(sizes.values())
    for op in [each.operation for each in block.operations]:
        if PART_OF_AXIS.search(sharding_text(op)):
            raise Refused(op, "Shardy splits a value along a part of an axis")
        for result in op.results:
            for dim, axes in enumerate(split_by(result, function)):
                if shape(result)[dim] % math.prod(sizes[name] for name in axes):
                    raise Refused(op, f"a dimension of size {shape(result)[dim]} has no equal parts along {axes}")
        if op.name.startswith(("func.", "sdy.")):
            continue
        splits = any(any(split_by(value, function)) for value in op.operands)
        if splits and SHARDING not in op.attributes and op.name not in SUMS and any(map(rank, op.results)):
            raise Refused(op, "Shardy does not say how its result is split")
        for values, whole in zip((op.operands, op.results), RULES.get(op.name, everything)(op, axis), strict=True):
            for value, dims in zip(values, whole, strict=True):
                if any(split_by(value, function)[dim] for dim in dims):
                    raise Refused(op, "Shardy splits a dimension that this op needs whole")


def split_by(value: Any, function: Any) -> list[list[str]]:
    """For each dimension of a value, the axes of the mesh that split it."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        given = function.attributes["arg_attrs"][value.arg_number] if "arg_attrs" in function.attributes else {}
        found = [str(given[SHARDING])] if SHARDING in given else []
    else:
        found = re.findall(r"<@\w+, \[[^\[\]]*\]", sharding_text(owner))[value.result_number :]
    dims = re.findall(r"\{([^{}]*)\}", found[0]) if found else []
    return [AXES.findall(dim) for dim in dims] or [[] for _ in range(rank(value))]


def sharding_text(op: Any) -> str:
    names = [name for name in (SHARDING, "sharding", "out_sharding") if name in op.attributes]
    return str(op.attributes[names[0]]) if names else ""


def inlined(module: Any) -> Any:
    """The entry function, called `main`, with the functions that it calls in place of its calls."""
    functions = {each.attributes["sym_name"].value: each for each in module.body.operations if is_function(each)}
    public = [name for name, each in functions.items() if "sym_visibility" not in each.attributes]
    public += [n for n, each in functions.items() if str(each.attributes.get("sym_visibility", "")) == '"public"']
    name = "main" if "main" in functions or len(public) != 1 else public[0]
    if name not in functions:
        raise ValueError("it has no function main, and not one public function")
    entry, copied = functions.pop(name), 0
    while found := [op for op in nested(entry.operation) if op.name == "func.call"]:
        for call in found:
            called = functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
            copied += sum(1 for _ in nested(called.operation))
            if copied > MOST_OPS:  # functions may call each other, also without an end
                raise ValueError(f"its functions have more than {MOST_OPS} ops, if each call has its own")
            put_in_place(call, called)
    for each in functions.values():
        each.operation.erase()
    entry.attributes["sym_name"] = ir.StringAttr.get("main")
    return entry.operation


def is_function(op: Any) -> bool:
    return bool(op.operation.name == "func.func")


def is_sharding(op: Any) -> bool:
    """Whether this is a custom call of GSPMD that says how a value is split."""
    target = op.attributes["call_target_name"].value if op.name == "stablehlo.custom_call" else ""
    return target == "Sharding" and gspmd.ATTRIBUTE in op.attributes


def nested(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for each in block.operations:
                yield each.operation
                yield from nested(each.operation)


def put_in_place(call: Any, function: Any) -> None:
    copy = function.operation.clone()
    (body,) = copy.regions[0].blocks
    for argument, value in zip(body.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(value)
    *ops, end = list(body.operations)
    for op in ops:
        op.operation.move_before(call)
    for result, value in zip(call.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    copy.erase()


def hide(op: Any) -> None:
    """Writes ops of CHLO, which the passes refuse, as custom calls."""
    for each in list(nested(op)):
        if each.name.startswith("chlo."):
            own = ir.DictAttr.get({name: each.attributes[name] for name in each.attributes})
            named = {"call_target_name": ir.StringAttr.get(each.name), HIDDEN: own}
            put(each, "stablehlo.custom_call", named)


def show(op: Any) -> None:
    for each in list(nested(op)):
        if HIDDEN in each.attributes:
            put(each, each.attributes["call_target_name"].value, {a.name: a.attr for a in each.attributes[HIDDEN]})


def put(old: Any, name: str, attributes: dict[str, Any]) -> None:
    """Puts an op of this name in the place of another one."""
    kinds = [result.type for result in old.results]
    with old.location:
        new = ir.Operation.create(name, kinds, list(old.operands), attributes, ip=ir.InsertionPoint(old))
    for result, value in zip(old.results, new.results, strict=True):
        result.replace_all_uses_with(value)
    old.erase()


def run(module: Any, passes: str) -> None:
    passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)


def program_of_one_chip(source: bytes) -> str:
    text = source.decode()
    with jax_mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        entry = inlined(module)
        if gspmd.splits_values(text):
            use_shardy(module, entry, [op for op in nested(entry) if is_sharding(op)])
        name, sizes = only_mesh(module)
        hide(entry)
        constrain(entry.regions[0].blocks[0], name, max(sizes.values()))
        run(module, DECIDE)
        (entry,) = [each.operation for each in module.body.operations if is_function(each)]
        check(entry, sizes)
        simplify_reshards(entry, name)
        run(module, COLLECTIVES)
        keep_slices(entry)
        run(module, SPLIT)
        show(module.operation)
        return generic(module)


def in_generic_form(source: bytes) -> str:
    with jax_mlir.make_ir_context() as context, ir.Location.unknown():
        if is_artifact(source):
            return generic(stablehlo.deserialize_portable_artifact(context, source))
        return generic(ir.Module.parse(source))


def generic(module: Any) -> str:
    return str(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True))


def only_mesh(module: Any) -> tuple[str, dict[str, int]]:
    """The name of the mesh, and the sizes of its axes."""
    meshes = [each for each in module.body.operations if each.operation.name == "sdy.mesh"]
    if len(meshes) != 1:
        raise ValueError(f"the module has {len(meshes)} meshes, and a program runs on one")
    text = str(meshes[0].attributes["mesh"])
    name, sizes = meshes[0].attributes["sym_name"].value, re.findall(r'"([\w.-]+)"=(\d+)', text)
    if "device_ids" in text:
        raise ValueError("the mesh has its chips in an order of its own")
    # Shardings are read as text, so names must not contain the signs that separate them.
    if not re.fullmatch(r"\w+", name) or text.count("=") != len(sizes) or text.count('"') != 2 * len(sizes):
        raise ValueError("names of a mesh and of its axes must consist of letters, digits and _; axes may have . and -")
    return name, {axis: int(size) for axis, size in sizes}


def work(function: str, parent: str, refused: str) -> None:
    """Runs one of the two functions above. The process ends with its `parent`."""
    die_with(int(parent))
    functions = {each.__name__: each for each in (program_of_one_chip, in_generic_form)}
    try:
        sys.stdout.write(functions[function](sys.stdin.buffer.read()))
    except Refused as error:
        sys.exit(f"{refused}{error}")
    except (ir.MLIRError, ValueError) as error:
        sys.exit(str(error))
