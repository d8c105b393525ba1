"""The model of the chips (docs/profiling.md) beside the figures that Tenstorrent publishes, with the error of each.

We measured nothing here. Nobody publishes three of a chip's figures. They are found by least squares from the times of
matrix products, so the products show how well the form of the model fits. Whole models take no part in the fit, so they
show how well the model predicts.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator

import torch

import tt_torch
from benchmarks.common import CONSOLE, table
from benchmarks.published import ODD, RATES, SIZES, UTILIZATION, Rate
from tt_torch.config import CompilerConfig
from tt_torch.profiling.cost_model import cost_of, of_call
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import device_ops
from tt_torch.wire.chips import CHIPS, GAP, PASS_CYCLES, PASSES, Chip
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import TILE, Op

ARCHS = {"n150": ("wormhole_b0", "Wormhole_b0"), "p150": ("blackhole", "Blackhole")}
FITTED = ("unpack", "step", "first")
# tt-metal's ResNet-50, ViT and BERT use LoFi or HiFi2 products and weights in bfp8. Their activations are bfp8, too;
# ours are not.
CHEAP = {"math_fidelity": "lofi", "weight_dtype": "bfp8_b", "fp32_dest_acc_en": False}


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    for card, (_, name) in ARCHS.items():
        found = list(products(card))
        _table_of_products(card, found, CHIPS[name])
        CONSOLE.print(_fit(found, CHIPS[name]))
    rows = [_whole(rate) for rate in RATES]
    heads = ["model", "card", "batch", "published per s", "modelled, level 2", "error", "roofline", "unit", "source"]
    table("Whole models: bf16 activations, LoFi, bfp8 weights, replayed", heads, rows)


def products(card: str) -> Iterator[tuple[Op, float, bool]]:
    """The published products as ops, with their measured seconds, and whether they take part in the fit."""
    chip = CHIPS[ARCHS[card][1]]
    template = _template(card)
    for (on, dtype, fidelity), shares in UTILIZATION.items():
        for size, share in zip(SIZES[card] if on == card else [], shares, strict=on == card):
            tiles = math.prod(size) / TILE**3
            ideal = tiles * PASSES[fidelity] * PASS_CYCLES / (chip.cores * chip.clock)
            yield _resized(template, size, dtype, fidelity), 100 * ideal / share, (card, size) not in ODD


def _template(card: str) -> Op:
    """A matrix product as our compiler writes it."""
    inputs = (torch.zeros(TILE, TILE), torch.zeros(TILE, TILE))
    config = CompilerConfig(dtype="bf16", arch=ARCHS[card][0])
    ops = device_ops(decode(tt_torch.compile_model(torch.matmul, inputs, config).binary))
    return next(op for op in ops if op.name == "MatmulOp")


def _resized(op: Op, size: tuple[int, int, int], dtype: str, fidelity: str) -> Op:
    rows, inner, columns = size
    shapes = {
        op.tensor("a").id: (rows, inner),
        op.tensor("b").id: (inner, columns),
        op.tensor("out").id: (rows, columns),
    }

    def changed(ref: dict) -> dict:  # type: ignore[type-arg]
        layout = ref["desc"]["layout"]
        memory = layout["memory_desc"] | {"data_type": dtype}
        desc = {"shape": list(shapes[ref["global_id"]]), "layout": layout | {"memory_desc": memory}}
        return ref | {"desc": ref["desc"] | desc}

    record = op.record | {name: changed(op.record[name]) for name in ("a", "b", "out")}
    record["compute_config"] = (record.get("compute_config") or {}) | {"math_fidelity": fidelity}
    tensors = {
        t.id: dataclasses.replace(t, shape=shapes[t.id], memory=t.memory | {"data_type": dtype})
        for t in (*op.operands, *op.results)
    }
    return dataclasses.replace(
        op,
        record=record,
        operands=tuple(tensors[t.id] for t in op.operands),
        results=tuple(tensors[t.id] for t in op.results),
    )


def _seconds(op: Op, chip: Chip) -> float:
    """The time of the kernels alone, as in the published figures."""
    return cost_of(op, chip).full.total - GAP


def _table_of_products(card: str, found: list[tuple[Op, float, bool]], chip: Chip) -> None:
    rows = []
    for op, measured, fits in found:
        modelled, ideal = _seconds(op, chip), cost_of(op, chip).ideal.total
        (m, k), n = op.tensor("a").shape, op.tensor("b").shape[1]
        kind = f"{op.tensor('a').dtype} {op.record['compute_config']['math_fidelity']}"
        times = [f"{1e6 * time:.1f}" for time in (measured, modelled, ideal)]
        rows.append([f"{m} x {k} x {n}", kind, *times, f"{modelled / measured - 1:+.0%}", "yes" if fits else "no"])
    table(
        f"Matrix products on {card}, us",
        ["size", "numbers", "published", "modelled", "roofline", "error", "fitted"],
        rows,
    )
    errors = [abs(_seconds(op, chip) / measured - 1) for op, measured, _ in found]
    CONSOLE.print(f"median error {statistics.median(errors):.0%}, largest {max(errors):.0%}")


def _fit(found: list[tuple[Op, float, bool]], chip: Chip) -> str:
    """The least squares of the logarithms of the times, beside the figures in `wire/chips.py`."""
    from scipy.optimize import least_squares

    chosen = [(op, measured) for op, measured, fits in found if fits]
    now = [getattr(chip, name) for name in FITTED]

    def errors(factors: list[float]) -> list[float]:
        values = dict(zip(FITTED, (f * v for f, v in zip(factors, now, strict=True)), strict=True))
        other = dataclasses.replace(chip, **values)
        return [math.log(_seconds(op, other) / measured) for op, measured in chosen]

    best = least_squares(errors, [1.0] * len(FITTED), bounds=(0.01, 20)).x
    return "fitted: " + ", ".join(
        f"{name} {f * v:.3g} (here {v:.3g})" for name, f, v in zip(FITTED, best, now, strict=True)
    )


def _whole(published: Rate) -> list[str]:
    network, inputs = _network(published)
    config = CompilerConfig(dtype="bf16", arch=ARCHS[published.card][0], optimization_level=2, **CHEAP)
    message = decode(tt_torch.compile_model(network, inputs, config).binary)
    assert first_chip(message["system_desc"])["arch"] == ARCHS[published.card][1]
    cost = of_call(message)
    modelled, ideal = (published.batch / seconds for seconds in (cost.seconds, cost.ideal))
    error = f"{modelled / published.rate - 1:+.0%}"
    who = [published.model, published.card, str(published.batch), f"{published.rate:,.0f}"]
    return [*who, f"{modelled:,.0f}", error, f"{ideal:,.0f}", published.unit, published.source]


def _network(published: Rate) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model with its real configuration, on `meta`: only shapes count."""
    import transformers as tf

    images, ids = torch.zeros(published.batch, 3, 224, 224), torch.zeros(published.batch, 384, dtype=torch.int64)
    large = tf.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    makers = {
        "resnet50": lambda: (tf.ResNetForImageClassification(tf.ResNetConfig(num_labels=1000)), images),
        "vit-base": lambda: (tf.ViTForImageClassification(tf.ViTConfig(num_labels=1000)), images),
        "bert-base": lambda: (tf.BertModel(tf.BertConfig()), ids),
        "bert-large": lambda: (tf.BertModel(large), ids),
    }
    torch.manual_seed(0)
    network, inputs = makers[published.model]()
    return network.eval(), (inputs,)
