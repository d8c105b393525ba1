"""The functions of a module: finding the program, the roles of its arguments, replacing ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from torch_mlir import ir

from tt_torch.errors import ModuleFormatError
from tt_torch.mlir.types import Function, Op, Value

ALIASING = "tf.aliasing_output"
VARYING = ("input", "state")  # the roles of arguments that may have another value at each call


def is_main(function: Function) -> bool:
    return function.operation.name == "func.func" and function.name.value == "main"


def main(module: ir.Module) -> Function:
    """The program's entry function. Raises ModuleFormatError for a module without one."""
    found = next(filter(is_main, module.body.operations), None)
    if found is None:
        raise ModuleFormatError("it has no function @main")
    return found


def mark_arguments(function: Function, kinds: Sequence[str], updates: Mapping[int, int] = MappingProxyType({})) -> None:
    """Writes the role of each argument into the attribute that tt-mlir uses, `ttcore.argument_type`.

    `updates` maps the position of a result to the position of the state whose new value it is. This is written to the
    attribute in which JAX notes that a result may take the memory of an argument.
    """
    roles = [{"ttcore.argument_type": ir.StringAttr.get(kind)} for kind in kinds]
    for result, argument in updates.items():
        roles[argument][ALIASING] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), result)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(role) for role in roles])


def updated_by(function: Function, number: int) -> int | None:
    """The position of the result that is the new value of an argument; None for an argument that is no state."""
    if argument_kind(function, number) != "state":
        return None
    return ir.IntegerAttr(function.attributes["arg_attrs"][number][ALIASING]).value


def argument_kind(function: Function, number: int) -> str:
    """The role of one argument. In a module without roles, all arguments are inputs."""
    return argument_text(function, number, "ttcore.argument_type") or "input"


def argument_text(function: Function, number: int, name: str) -> str:
    """The text of an attribute of one argument; "" if it is absent. Functions of some modules have no attributes."""
    if "arg_attrs" not in function.attributes:
        return ""
    attributes = function.attributes["arg_attrs"][number]
    return str(attributes[name].value) if name in attributes else ""


def set_argument_texts(function: Function, name: str, texts: Mapping[int, str]) -> None:
    """Sets an attribute of some arguments. `texts` has its text by argument number. Other attributes stay."""
    attributes = [{a.name: a.attr for a in given} for given in function.attributes["arg_attrs"]]
    for number, text in texts.items():
        attributes[number][name] = ir.StringAttr.get(text)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in attributes])


def argument_kinds(function: Function) -> list[str]:
    return [argument_kind(function, i) for i in range(len(function.arguments))]


def private_function(
    module: ir.Module,
    name: str,
    arguments: Sequence[ir.Type],
    results: Sequence[ir.Type],
    attributes: Mapping[str, ir.Attribute] = MappingProxyType({}),
) -> ir.Operation:
    """A new private function of these types at the end of the module, at the current location, without a body."""
    given = dict(attributes)
    given["sym_name"] = ir.StringAttr.get(name)
    given["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(list(arguments), list(results)))
    given["sym_visibility"] = ir.StringAttr.get("private")
    with ir.InsertionPoint(module.body):
        return ir.Operation.create("func.func", [], [], given, regions=1)


def call(name: str, arguments: Sequence[Value], results: Sequence[ir.Type]) -> ir.Operation:
    """A call of a function, at the current insertion point and location."""
    return ir.Operation.create("func.call", list(results), list(arguments), {"callee": ir.FlatSymbolRefAttr.get(name)})


def defined(module: ir.Module) -> list[Function]:
    """The functions that have a body."""
    return [function for function in module.body.operations if len(function.regions[0].blocks)]


def block(function: Function) -> ir.Block:
    """The one block of a function."""
    return function.regions[0].blocks[0]


def returned(module: ir.Module) -> list[Value]:
    """The results of the program."""
    *_, last = block(main(module)).operations
    return list(last.operands)


def replace(op: ir.Operation, new: ir.Operation) -> None:
    """Replaces the results of `op` by those of `new`, and erases `op`."""
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()


def program_of(
    ops: Sequence[ir.Operation],
    arguments: Sequence[Value],
    results: Sequence[Value],
    extra: Sequence[Op] = (),
    location: ir.Location | None = None,
) -> ir.Module:
    """A new module whose `@main` has copies of `ops`. `arguments` become its arguments, and it returns `results`.

    The functions in `extra` are copied into the module, too. Without ops, the `location` must be given.
    """
    where = location or ops[-1].location
    with where.context, where:
        module = ir.Module.create()
        signature = ir.TypeAttr.get(ir.FunctionType.get([v.type for v in arguments], [v.type for v in results]))
        attributes = {"sym_name": ir.StringAttr.get("main"), "function_type": signature}
        with ir.InsertionPoint(module.body):
            function = ir.Operation.create("func.func", [], [], attributes, regions=1)
            for other in extra:
                other.operation.clone()
        body = function.regions[0].blocks.append(*[v.type for v in arguments])
        values = dict(zip(arguments, body.arguments, strict=True))
        with ir.InsertionPoint(body):
            for op in ops:
                clone = op.clone().operation
                for each in (clone, *nested(clone)):
                    for i, v in enumerate(each.operands):
                        each.operands[i] = values.get(v, v)
                values.update(zip(op.results, clone.results, strict=True))
            ir.Operation.create("func.return", [], [values[v] for v in results])
    return module


def nested(op: Op | ir.Module) -> Iterator[ir.Operation]:
    """All ops inside `op`, in regions of regions too."""
    rest = [op.operation]
    while rest:
        for region in rest.pop().regions:
            for body in region.blocks:
                inner = [one.operation for one in body.operations]
                yield from inner
                rest += inner


def captured_by(op: ir.Operation) -> list[Value]:
    """The values from outside that the regions of an op read."""
    inside = {x for each in nested(op) for x in each.operands}
    return [x for x in read_by(op) if x in inside]


def read_by(op: ir.Operation) -> list[Value]:
    """The values that an op reads from outside: its operands, then what its regions read."""
    ops = [op, *nested(op)]
    own = {result for each in ops for result in each.results}
    own |= {x for each in ops for region in each.regions for body in region.blocks for x in body.arguments}
    return list(dict.fromkeys(x for each in ops for x in each.operands if x not in own))
