"""Programs of one collective in StableHLO: the program of each chip of a mesh."""

from __future__ import annotations

from math import prod

LINES = ["rows", "columns", "all"]
OPS = ["all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_broadcast", "collective_permute"]
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
PARAMETER = '{ttcore.argument_type = "parameter"}'


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


def norms(mesh, line, sizes, element="f32", count=1, eps=1e-5):
    """RMS norms, one after the other, of a last dimension that the line's chips split, as DTensor writes `F.rms_norm`.
    The module has the part `%x` of a chip, and its part `%w` of the weight, which is a parameter."""
    table = groups(mesh, line)
    *outer, width = sizes
    dims, one, dim = [*range(len(sizes))], shaped([*outer, 1], "f32"), len(outer)
    whole, rows, vector = shaped(sizes, "f32"), shaped(outer, "f32"), shaped([width], "f32")
    given, weight = shaped(sizes, element), shaped([width], element)
    body = f"""
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %chips = stablehlo.constant dense<{len(table[0])}.0> : {one}
        %width = stablehlo.constant dense<{width}.0> : {one}
        %eps = stablehlo.constant dense<{eps:.8f}> : {one}
        %g = stablehlo.convert %w : ({weight}) -> {vector}
        %gs = stablehlo.broadcast_in_dim %g, dims = [{dim}] : ({vector}) -> {whole}"""
    for i, x in enumerate(["%x", *(f"%r{i}" for i in range(count - 1))]):
        body += f"""
        %f{i} = stablehlo.convert {x} : ({given}) -> {whole}
        %s{i} = stablehlo.multiply %f{i}, %f{i} : {whole}
        %t{i} = stablehlo.reduce(%s{i} init: %zero) applies stablehlo.add across dimensions = [{dim}]
            : ({whole}, tensor<f32>) -> {rows}
        %u{i} = stablehlo.reshape %t{i} : ({rows}) -> {one}
        %m{i} = stablehlo.divide %u{i}, %width : {one}
        %a{i} = "stablehlo.all_reduce"(%m{i}) ({{ ^bb0(%l: tensor<f32>, %o: tensor<f32>):
          %p = stablehlo.add %l, %o : tensor<f32>
          stablehlo.return %p : tensor<f32> }}) {{replica_groups = {listed(table)}}} : ({one}) -> {one}
        %d{i} = stablehlo.divide %a{i}, %chips : {one}
        %e{i} = stablehlo.add %d{i}, %eps : {one}
        %q{i} = stablehlo.rsqrt %e{i} : {one}
        %v{i} = stablehlo.broadcast_in_dim %q{i}, dims = {dims} : ({one}) -> {whole}
        %n{i} = stablehlo.multiply %f{i}, %v{i} : {whole}
        %z{i} = stablehlo.multiply %n{i}, %gs : {whole}
        %r{i} = stablehlo.convert %z{i} : ({whole}) -> {given}"""
    return (
        f"func.func @main(%x: {given}, %w: {weight} {PARAMETER}) -> {given} {{ {body} return %r{count - 1} : {given} }}"
    )
