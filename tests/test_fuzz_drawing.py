"""The fuzzer draws programs of all kinds, and each of its ways runs them."""

from __future__ import annotations

import pytest
import torch

from tt_torch.fuzz import check, programs
from tt_torch.fuzz.check import run_seed
from tt_torch.fuzz.programs import generate
from tt_torch.fuzz.quirks import WRITES, undefined
from tt_torch.fuzz.statements import DTYPES, FAMILIES
from tt_torch.fuzz.views import VIEW_FAMILIES
from tt_torch.torch_private.tensors import storage_of


@pytest.mark.filterwarnings("ignore")
def test_a_seed_gives_the_same_program_each_time() -> None:
    for seed in range(20):
        first, second = generate(seed, 6), generate(seed, 6)
        assert first.source() == second.source()
        assert all(map(torch.equal, map(_bits, first.inputs.values()), map(_bits, second.inputs.values())))


def _bits(x: torch.Tensor) -> torch.Tensor:
    return x.nan_to_num(7) if x.dtype.is_floating_point else x


@pytest.mark.filterwarnings("ignore")
def test_programs_are_of_all_kinds() -> None:
    programs = [generate(seed, 6) for seed in range(150)]
    assert {x.dtype for p in programs for x in p.inputs.values()} == set(DTYPES)
    assert any(p.trains for p in programs)
    assert any(not x.is_contiguous() for p in programs for x in p.inputs.values())
    assert any(x.numel() > 1024 for p in programs for x in p.inputs.values())
    assert {x.dim() for p in programs for x in p.inputs.values()} >= {0, 1, 2, 3, 4}
    assert any(x.numel() == 0 for p in programs for x in p.inputs.values())
    assert sum(len(p.statements) >= 4 for p in programs) > 75
    texts = "\n".join(s.text for p in programs for s in p.statements)
    for name, words in {"writes": "_(", "indexing": "scatter", "reductions": "sum(", "shapes": "transpose"}.items():
        assert name in FAMILIES
        assert words in texts


@pytest.mark.parametrize("way", ["compile", "aot", "tt", "again", "sizes", "trace", "optimizer", "mesh", "mesh-eager"])
def test_programs_agree_with_eager(way: str) -> None:
    """`tt-torch fuzz` runs more programs, also in CI. These programs show that each way works."""
    records = [run_seed(seed, way, 6) for seed in range({"tt": 20, "mesh-eager": 8}.get(way, 4))]
    assert {record["verdict"] for record in records} <= set(check.NO_FINDING), records
    assert "match" in {record["verdict"] for record in records}


@pytest.mark.filterwarnings("ignore")
def test_each_statement_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that eager PyTorch always refuses would test nothing."""
    for views, families in ((False, FAMILIES), (True, VIEW_FAMILIES)):
        for text in {text for _, texts in families.values() for text in texts}:
            monkeypatch.setattr(programs, "_text", lambda draw, families, text=text: text)
            assert any(generate(seed, 1, views=views).statements for seed in range(150)), text


@pytest.mark.filterwarnings("ignore")
def test_programs_may_begin_with_samples_of_ops() -> None:
    made = [generate(seed, 3, samples=True) for seed in range(60)]
    assert made[7].source() == generate(7, 3, samples=True).source()
    calls = {s.text.partition("(")[0] for p in made for s in p.statements if s.text.startswith("torch.")}
    assert len(calls) > 40
    values = torch.cat([x.flatten() for p in made for x in p.inputs.values() if x.dtype is torch.float32])
    assert values.isnan().any() and values.isinf().any() and (values.isfinite() & (values.abs() > 1e9)).any()
    records = [run_seed(seed, "tt", 3, samples=True) for seed in range(10)]
    assert {record["verdict"] for record in records} <= set(check.NO_FINDING), records


@pytest.mark.filterwarnings("ignore")
def test_programs_may_write_to_views_of_views() -> None:
    made = [generate(seed, 10, views=True) for seed in range(60)]
    texts = [s.text for p in made for s in p.statements]
    assert sum(bool(WRITES.search(text)) for text in texts) > len(texts) / 5
    shared = [len(p.inputs) > len({storage_of(x) for x in p.inputs.values()}) for p in made]
    assert 2 < sum(shared) < 30
    records = [run_seed(seed, "tt", 10, views=True) for seed in range(10)]
    assert {record["verdict"] for record in records} <= set(check.NO_FINDING), records


def test_writes_whose_operands_share_memory_are_left_open() -> None:
    x = torch.arange(6.0)
    assert undefined("x.add_(y)", [x[1:], x[:-1]]) and undefined("x.copy_(x.mT)", [x])
    assert not undefined("x.add_(y)", [x[1:], x[1:]]) and not undefined("x.add(y)", [x[1:], x[:-1]])


def test_programs_for_chips_split_their_inputs() -> None:
    made = [generate(seed, 3, on_chips=True) for seed in range(80)]
    splits = [p.split for p in made if p.split]
    assert len(splits) == len(made) and all(
        s.inputs.keys() == p.inputs.keys() for s, p in zip(splits, made, strict=True)
    )
    assert {split.mesh for split in splits} == {(1, 2), (2, 2), (2, 4)}
    dims = [dims for split in splits for dims in split.inputs.values()]
    assert (None, None) in dims and any(a == b is not None for a, b in dims) and {2, 1, 0} <= {a for a, _ in dims}


def test_some_programs_have_inputs_that_overlap() -> None:
    programs = [generate(seed, 3) for seed in range(120)]
    memory = [[x.untyped_storage().data_ptr() for x in p.inputs.values() if x.numel()] for p in programs]
    shared = [p for p, addresses in zip(programs, memory, strict=True) if len(set(addresses)) < len(addresses)]
    assert shared
    assert not any(p.trains for p in shared)
