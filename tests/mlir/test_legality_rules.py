"""Rules of legality at their limits: data types of positions, heads of attention, layouts that ops make."""

from __future__ import annotations

import pytest
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.context import make_context
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttnn import caches, heads, legality
from tt_torch.mlir.ttnn.layout import Layout, with_layout


@pytest.fixture
def context():
    with make_context(), ir.Location.unknown():
        yield


def arguments(*kinds: ir.Type) -> tuple[ir.Module, list[ir.Value], Builder]:
    """A function with arguments of these types, and a builder of ops in it. The module must live as long as they do."""
    names = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(kinds))
    module = ir.Module.parse(f"func.func @main({names}) {{ return }}")
    block = module.body.operations[0].regions[0].blocks[0]
    return module, list(block.arguments), Builder(ir.InsertionPoint.at_block_begin(block), ir.Location.unknown())


@pytest.mark.parametrize(
    ("op", "dtype", "length", "expected"),
    [
        ("sort", "BFloat16", 32768, "UInt16"),  # sizes are rounded up to powers of two
        ("sort", "BFloat16", 32769, "UInt32"),
        ("sort", "BFloat16", 1, "UInt16"),
        ("sort", "Float32", 4, "UInt32"),
        ("sort", "UInt16", 4, "UInt32"),
        ("topk", "BFloat16", 65536, "UInt16"),  # up to whole tiles
        ("topk", "BFloat16", 65537, "UInt32"),
        ("topk", "BFP_BFloat8", 65536, "UInt16"),
        ("topk", "Float32", 4, "UInt32"),
        ("topk", "UInt16", 4, "UInt32"),
    ],
)
def test_types_of_positions(context, op, dtype, length, expected):
    _module, (x,), _ = arguments(with_layout([2, length], Layout(dtype)))
    assert legality.positions(f"ttnn.{op}", x, 1) == expected


def test_types_of_places_in_images():
    assert [legality.places(*size) for size in ((256, 256), (255, 257), (1, 1))] == ["UInt32", "UInt16", "UInt16"]


ROWS, BYTES = Layout("UInt8", tiled=False), "an operand of UInt8 in Tile"


@pytest.mark.parametrize(
    ("name", "layout", "reason"),
    [
        *((name, Layout("UInt8"), BYTES) for name in ("maximum", "minimum", "remainder", "bitwise_not")),
        *((name, Layout("Int32"), "") for name in ("maximum", "minimum", "remainder", "bitwise_not")),
        ("relu", Layout("UInt8"), ""),
        ("relu", ROWS, ""),
        ("prod", Layout("BFloat16", tiled=False), "an operand of BFloat16 in RowMajor"),
        ("deallocate", ROWS, ""),  # a pass after the verifier adds it, and a user can verify again what it has made
    ],
)
def test_data_types_and_pages_that_an_op_takes(context, name, layout, reason):
    _module, (x,), b = arguments(with_layout([2, 32], layout))
    more = {"prod": {"dim_arg": 1, "keep_dim": True}, "deallocate": {"type": [], "force": False}}.get(name, {})
    b(f"ttnn.{name}", *[x] * len(ods.OPS[f"ttnn.{name}"].operands), **{"type": x.type} | more)
    op, _ = x.owner.operations
    assert legality.refusal(op.operation) == reason


MASKED = "a causal mask of other sizes, or beside another one"
FITS = ((2, 4, 5, 32), (2, 4, 5, 32), (2, 4, 5, 32), None, False)


@pytest.mark.parametrize(
    ("query", "key", "value", "mask", "causal", "reason"),
    [
        (*FITS, ""),
        (*FITS[:4], True, ""),
        ((2, 4, 7, 64), (2, 2, 5, 64), (2, 2, 5, 64), None, False, ""),  # two queries share a key
        ((2, 4, 5, 48), (2, 4, 5, 48), (2, 4, 5, 48), None, False, "heads of 48 and 48"),
        ((2, 4, 5, 32), (2, 4, 5, 32), (2, 4, 5, 64), None, False, "heads of 32 and 64"),
        ((2, 4, 5, 32), (1, 4, 5, 32), (1, 4, 5, 32), None, False, "heads [2, 4] of [1, 4]"),
        ((2, 4, 5, 32), (2, 3, 5, 32), (2, 3, 5, 32), None, False, "heads [2, 4] of [2, 3]"),
        (
            (2, 4, 7, 32),
            (2, 4, 5, 32),
            (2, 4, 5, 32),
            None,
            True,
            "a causal mask of other sizes, or beside another one",
        ),
        (*FITS[:3], (1, 1, 5, 5), True, MASKED),
        (*FITS[:3], (1, 1, 5, 5), False, ""),
        (*FITS[:3], (2, 4, 5, 5), False, ""),
        (*FITS[:3], (2, 1, 5, 5), False, ""),
        (*FITS[:3], (1, 1, 1, 5), False, "a mask of [1, 1, 1, 5]"),
        (*FITS[:3], (1, 1, 5, 1), False, "a mask of [1, 1, 5, 1]"),
        (*FITS[:3], (1, 2, 5, 5), False, "a mask of [1, 2, 5, 5]"),
        (*FITS[:3], (5, 5), False, "a mask of [5, 5]"),
    ],
)
def test_attention_that_the_fused_op_takes(context, query, key, value, mask, causal, reason):
    layout = Layout("BFloat16")
    sizes = [query, key, value, *([mask] if mask else [])]
    _module, given, b = arguments(*(with_layout(list(size), layout) for size in sizes))
    operands = given if mask else [*given, None]
    op = b("ttnn.scaled_dot_product_attention", *operands, is_causal=causal, scale=1.0, type=given[0].type)
    assert heads.unfit_attention(op.owner) == reason


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("dtype", ["Float32", "BFloat16", "UInt8", "Int32", "BFP_BFloat8"])
def test_layouts_that_an_op_makes(context, dtype, tiled):
    tiled = tiled or dtype.startswith("BFP")
    given, wanted = Layout(dtype, tiled), Layout("UInt32", not tiled, "L1")
    _module, (x,), b = arguments(with_layout([4, 32], given))
    op = b("ttnn.exp", x, type=with_layout([4, 32], wanted)).owner
    assert legality.as_operand(op) == [given]
    assert legality.in_tiles(op) == [given.with_(tiled=True)]
    assert legality.as_called(op) == [wanted]
    assert legality.as_declared(op) == [wanted.with_(tiled=tiled)]
    assert legality.as_wanted(op) == [wanted.with_(dtype=dtype)]


@pytest.mark.parametrize(
    ("x", "tables", "reason"),
    [
        ((2, 4, 6, 64), (1, 1, 6, 64), ""),
        ((2, 4, 6, 128), (1, 1, 6, 128), ""),
        ((2, 4, 6, 32), (1, 1, 6, 32), "a rotary embedding of [2, 4, 6, 32]"),
        ((4, 6, 64), (1, 6, 64), "a rotary embedding of [4, 6, 64]"),
        ((2, 4, 6, 64), (1, 1, 5, 64), "tables of [1, 1, 5, 64] and [1, 1, 5, 64] for [2, 4, 6, 64]"),
        ((2, 4, 6, 64), (2, 1, 6, 64), "tables of [2, 1, 6, 64] and [2, 1, 6, 64] for [2, 4, 6, 64]"),
    ],
)
def test_rotary_embeddings_that_the_fused_op_takes(context, x, tables, reason):
    layout = Layout("BFloat16")
    _module, given, b = arguments(*(with_layout(list(size), layout) for size in (x, tables, tables)))
    op = b("ttnn.rotary_embedding", *given, type=given[0].type)
    assert heads.unfit_rotary(op.owner) == reason


@pytest.mark.parametrize(
    ("x", "tables", "matrix", "reason"),
    [
        ((2, 4, 6, 96), [(1, 1, 6, 96)] * 2, (1, 1, 32, 32), ""),
        ((2, 4, 6, 256), [(1, 4, 6, 256)] * 2, (1, 1, 32, 32), ""),
        ((2, 4, 6, 288), [(1, 1, 6, 288)] * 2, (1, 1, 32, 32), "a rotary embedding of [2, 4, 6, 288] with a matrix of "
         "[1, 1, 32, 32]"),
        ((2, 4, 6, 80), [(1, 1, 6, 80)] * 2, (1, 1, 32, 32), "a rotary embedding of [2, 4, 6, 80] with a matrix of "
         "[1, 1, 32, 32]"),
        ((2, 4, 6, 64), [(1, 1, 6, 64)] * 2, (1, 1, 64, 64), "a rotary embedding of [2, 4, 6, 64] with a matrix of "
         "[1, 1, 64, 64]"),
        ((2, 4, 6, 64), [(2, 1, 6, 64)] * 2, (1, 1, 32, 32), "tables of [2, 1, 6, 64] and [2, 1, 6, 64] for "
         "[2, 4, 6, 64]"),
        ((2, 4, 6, 64), [(1, 1, 6, 64), (1, 4, 6, 64)], (1, 1, 32, 32), "tables of [1, 1, 6, 64] and [1, 4, 6, 64] for "
         "[2, 4, 6, 64]"),
    ],
)  # fmt: skip
def test_rotary_embeddings_with_a_matrix_that_the_library_takes(context, x, tables, matrix, reason):
    layout = Layout("BFloat16")
    _module, given, b = arguments(*(with_layout(list(size), layout) for size in (x, *tables, matrix)))
    op = b("ttnn.rotary_embedding_llama", *given, type=given[0].type)
    assert heads.unfit_rotary_by_matrix(op.owner) == reason


BF16, NUMBERS = Layout("BFloat16"), Layout("Int32", False)
IN_PARTS = Layout("BFloat16", buffer="L1", memory_layout="HeightSharded", grid=(2, 1))
CACHE, PAGES = (2, 4, 96, 64), (9, 4, 32, 64)


@pytest.mark.parametrize(
    ("name", "operands", "reason"),
    [
        ("fill_cache", [(CACHE, BF16), ((1, 4, 32, 64), BF16)], ""),
        ("fill_cache", [(CACHE, BF16), ((1, 4, 96, 64), BF16)], ""),
        ("fill_cache", [((2, 4, 20, 64), BF16), ((1, 4, 20, 64), BF16)], ""),  # all of the cache
        ("fill_cache", [(CACHE, BF16), ((1, 4, 33, 64), BF16)], "entries of 33 positions"),
        ("fill_cache", [(CACHE, BF16), ((2, 4, 32, 64), BF16)], "entries of 2 users"),
        (
            "fill_cache",
            [(CACHE, BF16), ((1, 4, 32, 64), Layout("Float32"))],
            "entries of Float32 for a cache of BFloat16",
        ),
        ("paged_fill_cache", [(PAGES, BF16), ((1, 4, 64, 64), BF16), ((2, 3), NUMBERS)], ""),
        ("paged_fill_cache", [(PAGES, BF16), ((1, 4, 20, 64), BF16), ((2, 3), NUMBERS)], "entries of 20 positions"),
        (
            "paged_fill_cache",
            [((9, 4, 20, 64), BF16), ((1, 4, 20, 64), BF16), ((2, 3), NUMBERS)],
            "pages of 20 positions",
        ),
        (
            "paged_fill_cache",
            [(PAGES, BF16), ((1, 4, 64, 64), BF16), ((2, 3), Layout("Int32"))],
            "numbers of Int32 in Tile",
        ),
        ("paged_update_cache", [(PAGES, BF16), ((1, 2, 4, 64), IN_PARTS), ((2,), NUMBERS), ((2, 3), NUMBERS)], ""),
        (
            "paged_update_cache",
            [(PAGES, BF16), ((1, 2, 4, 64), BF16), ((2,), NUMBERS), ((2, 3), NUMBERS)],
            "entries that are not in parts",
        ),
        (
            "paged_update_cache",
            [(PAGES, BF16), ((1, 2, 4, 64), IN_PARTS), ((2,), Layout("UInt32", False)), ((2, 3), NUMBERS)],
            "numbers of UInt32 in RowMajor",
        ),
    ],
)
def test_writes_to_caches_that_the_library_takes(context, name, operands, reason):
    _module, given, b = arguments(*(with_layout(list(size), layout) for size, layout in operands))
    attributes = {"batch_offset": 0} if name == "fill_cache" else {}
    b(f"ttnn.{name}", *given, type=[], **attributes)
    op, _ = given[0].owner.operations
    assert caches.unfit_update(op.operation) == reason


@pytest.mark.parametrize(
    ("width", "page", "numbers", "masked", "reason"),
    [
        (64, 32, NUMBERS, False, ""),
        (40, 32, NUMBERS, False, "heads of 40 and pages of 32 positions"),
        (64, 20, NUMBERS, False, "heads of 64 and pages of 20 positions"),
        (64, 32, Layout("UInt32", False), False, "numbers of UInt32 in RowMajor"),
        (64, 32, NUMBERS, True, "a mask"),
    ],
)
def test_attention_to_pages_that_the_library_takes(context, width, page, numbers, masked, reason):
    pages, sizes = (9, 4, page, width), [((1, 2, 4, width), BF16)]
    sizes += [(pages, BF16), (pages, BF16), ((2, 3), numbers), *([((2, 1, 4, 96), BF16)] * masked)]
    _module, given, b = arguments(*(with_layout(list(size), layout) for size, layout in sizes))
    operands = given if masked else [*given, None]
    op = b(f"ttnn.{legality.PAGED.removeprefix('ttnn.')}", *operands, None, is_causal=False, scale=1.0)
    assert caches.unfit_attention(op.owner) == reason


def test_custom_ops_of_any_number_of_results_have_one_rule():
    names = [name for name in ods.OPS if name.startswith("ttnn.custom_")]
    assert len({id(legality.RULES[name].dtypes) for name in names}) == 1 and len(names) == 8
