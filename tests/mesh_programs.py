"""Programs of one collective in StableHLO: the program of each chip of a mesh."""

from __future__ import annotations

from math import prod

LINES = ["rows", "columns", "all"]
OPS = ["all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_broadcast", "collective_permute"]
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def groups(mesh, line):
    rows, columns = mesh
    if line == "rows":
        return [[r * columns + c for c in range(columns)] for r in range(rows)]
    if line == "columns":
        return [[r * columns + c for r in range(rows)] for c in range(columns)]
    return [list(range(rows * columns))]


def ring(mesh, line):
    """Pairs of a chip and the next one, which receives. Along rows, the first chip receives nothing."""
    pairs = [[chip, (chip + 1) % prod(mesh)] for chip in range(prod(mesh))]
    return pairs[:-1] if line == "rows" else pairs


def listed(table):
    return f"dense<{table}> : tensor<{len(table)}x{len(table[0])}xi64>"


def function(body, result, operand):
    return f"func.func @main(%x: {operand}) -> {result} {{ {body} return %r : {result} }}"


def shaped(sizes, element):
    return f"tensor<{'x'.join(map(str, [*sizes, element]))}>"


def program(op, mesh, line, element="f32", combining="add", sizes=(12, 12)):
    """The program of one chip. Tensors are split along the first dimension, and joined along the last one."""
    table, (first, *others) = groups(mesh, line), sizes
    n, where = len(table[0]), f"replica_groups = {listed(table)}, {CHANNEL}"
    everywhere, operand, last = f"{where}, use_global_device_ids", shaped(sizes, element), len(sizes) - 1
    body = f"""({{ ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
        %s = stablehlo.{combining} %a, %b : tensor<{element}>
        stablehlo.return %s : tensor<{element}> }})"""
    split = f"split_dimension = 0 : i64, concat_dimension = {last} : i64, split_count = {n} : i64"
    parts = [first // n, *others]
    joined = [[*some[:-1], some[-1] * n] for some in (sizes, parts)]
    attributes, region, result = {
        "all_gather": (f"all_gather_dim = {last} : i64, {everywhere}", "", shaped(joined[0], element)),
        "all_reduce": (everywhere, body, operand),
        "reduce_scatter": (f"scatter_dimension = 0 : i64, {everywhere}", body, shaped(parts, element)),
        "all_to_all": (f"{split}, {where}", "", shaped(joined[1], element)),
        "collective_broadcast": (where, "", operand),
        "collective_permute": (f"source_target_pairs = {listed(ring(mesh, line))}, {CHANNEL}", "", operand),
    }[op]
    return function(f'%r = "stablehlo.{op}"(%x) {region} {{ {attributes} }} : ({operand}) -> {result}', result, operand)
