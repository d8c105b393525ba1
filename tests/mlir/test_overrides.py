"""The option `optimizer_overrides`: programs follow it and compute the same values, or they are refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from layered import Drawn, drawn, overridden
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, OverrideError
from tt_torch.mlir.ttnn.optimizer.overriding import OverrideWarning
from tt_torch.wire import facts
from tt_torch.wire.decode import decode


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(256, 512), nn.LayerNorm(512), nn.Linear(512, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.norm(torch.relu(self.up(x)))) + x


def placed(model: nn.Module, x: torch.Tensor, overrides: Any, **options: Any) -> list[tuple[str, str, str]]:
    """Op, memory layout and grid of the results in L1, after a comparison of values with level 0."""
    plain = tt_torch.compile_model(model, (x,), CompilerConfig(dtype="bf16"))
    options = {"optimization_level": 1, "fallback": "error", **options}
    config = CompilerConfig(dtype="bf16", optimizer_overrides=overrides, **options)
    made = tt_torch.compile_model(model, (x,), config)
    assert torch.equal(made(x), plain(x))
    tensors = [(op.name, t) for op in facts.ops(decode(made.binary)["programs"][0]) for t in op.results]
    return [(name, *lies(t)) for name, t in tensors if t.memory_config and t.memory_config["buffer_type"] == "L1"]


def lies(tensor: facts.Tensor) -> tuple[str, str]:
    """The memory layout of a tensor, and the rows and columns of a core's part."""
    config = tensor.memory_config
    return config["tensor_memory_layout"], "x".join(map(str, config.get("shard_spec", {}).get("shape", ())))


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"up": "4x4:l1:block_sharded"}, [("LinearOp", "BlockSharded", "128x128")]),
        ({"up": "16x1:height_sharded:tile:bf16"}, [("LinearOp", "HeightSharded", "32x512")]),
        ({"up": "1x16:width_sharded"}, [("LinearOp", "WidthSharded", "512x32")]),
        ({"u?": "l1"}, [("LinearOp", "Interleaved", "")]),
        ({"relu": "1x1:l1:interleaved"}, [("LinearOp", "Interleaved", "")]),
        ({"up.weight": "8x8:block_sharded", "up": "l1:interleaved"}, [("LinearOp", "Interleaved", "")]),
        (
            {"norm": "1x8:width_sharded"},
            [("ToMemoryConfigOp", "WidthSharded", "512x64")] + [("LayerNormOp", "WidthSharded", "512x64")],
        ),
        ({"add": "2x8:block_sharded"}, [("EltwiseBinaryOp", "BlockSharded", "256x32")]),
    ],
)
def test_a_result_lies_where_it_is_asked_to(overrides: dict[str, str], expected: list[Any]) -> None:
    given = {name: {"override_output_layout": text} for name, text in overrides.items()}
    assert placed(Model().eval(), torch.randn(512, 256), given) == expected


def test_what_is_asked_at_level_2_comes_before_what_is_fast() -> None:
    model, x = Model().eval(), torch.randn(512, 256)
    text = "override-output-layout=up=dram,norm=dram,down=2x2:block_sharded"
    free, asked = (placed(model, x, given, optimization_level=2) for given in ({}, text))
    assert ("LinearOp", "BlockSharded", "64x64") in free
    assert [place for place in asked if place[0] == "LinearOp"] == [("LinearOp", "BlockSharded", "256x128")]
    assert all(name != "LayerNormOp" for name, *_ in asked)


def test_an_operand_is_moved() -> None:
    model, x = Model().eval(), torch.randn(512, 256)
    layout = {"override_output_layout": "4x4:block_sharded"}
    alone = placed(model, x, {"add": layout})
    moved = placed(model, x, {"add": layout | {"insert_memreconfig": "1"}})
    both = placed(model, x, {"add": layout | {"insert_memreconfig": "0:1"}})
    place = ("BlockSharded", "128x64")
    assert [names.count(("ToMemoryConfigOp", *place)) for names in (alone, moved, both)] == [0, 1, 2]
    assert all(("EltwiseBinaryOp", *place) in names for names in (alone, moved, both))


@pytest.mark.parametrize("level", [1, 2])
def test_the_configuration_of_a_convolution(level: int) -> None:
    model, x = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).eval(), torch.randn(2, 64, 28, 28)
    fields = {"shard_layout": "height_sharded", "act_block_h_override": "32", "enable_act_double_buffer": "true"}
    fields |= {"reallocate_halo_output": "false", "config_tensors_in_dram": "true"}
    texts = {"override_conv2d_config": ":".join(f"{name}#{value}" for name, value in fields.items())}
    config = CompilerConfig(dtype="bf16", optimization_level=level, optimizer_overrides={"0": texts})
    made = tt_torch.compile_model(model, (x,), config)
    assert torch.equal(made(x), tt_torch.compile_model(model, (x,), CompilerConfig(dtype="bf16"))(x))
    programs = decode(made.binary)["programs"]
    ops = [op for program in programs for op in facts.ops(program) if "conv2d_config" in op.record]
    found = {op.name: op.record["conv2d_config"] for op in ops}
    assert set(found) == {"Conv2dOp", "PrepareConv2dWeightsOp", "PrepareConv2dBiasOp"}
    for config in found.values():
        assert (config["shard_layout"], config["act_block_h_override"]) == ("HeightSharded", 32)
        assert (config["reallocate_halo_output"], config["config_tensors_in_dram"]) == (False, True)
        assert config["enable_act_double_buffer"] and "enable_weights_double_buffer" not in config


def test_a_file_and_a_variable_have_the_same_form(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"up": {"override_output_layout": "l1", "insert_memreconfig": "0"}}
    (tmp_path / "overrides.json").write_text(json.dumps(value))
    made = CompilerConfig(optimizer_overrides=value).optimizer_overrides
    assert CompilerConfig(optimizer_overrides=tmp_path / "overrides.json").optimizer_overrides == made
    for text in (json.dumps(value), str(tmp_path / "overrides.json")):
        monkeypatch.setenv("TT_TORCH_OPTIMIZER_OVERRIDES", text)
        assert CompilerConfig.from_env().optimizer_overrides == made


def test_a_file_may_name_a_pattern_twice(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a list of pairs, no entry is lost."""
    entries = [("up", {"override_output_layout": "l1"}), ("up", {"insert_memreconfig": "0"})]
    text = "{" + ", ".join(f'"{name}": {json.dumps(texts)}' for name, texts in entries) + "}"
    (tmp_path / "overrides.json").write_text(text)
    monkeypatch.setenv("TT_TORCH_OPTIMIZER_OVERRIDES", text)
    configs = [CompilerConfig(optimizer_overrides=given) for given in (entries, tmp_path / "overrides.json")]
    made = [config.optimizer_overrides for config in (*configs, CompilerConfig.from_env())]
    assert made == [tuple((name, tuple(texts.items())) for name, texts in entries)] * 3


@pytest.mark.parametrize(
    "texts",
    [
        {"override_output_layout": text}
        for text in (
            "",
            "l3",
            "8x8",
            "l1:dram",
            "4x4:height_sharded",
            "8x8:l1:interleaved",
            "dram:block_sharded",
            "0x1:l1",
        )
    ]
    + [{"insert_memreconfig": text} for text in ("", "a", "-1", "٣", 0)]
    + [
        {"override_conv2d_config": text}
        for text in (
            "act_block_h_override#33",
            "act_block_h_override#3_2",
            "activation#relu",
            "shard_layout#interleaved",
            "shard_layout",
            "",
        )
    ]
    + [{"override_conv3d_config": "c_in_block#32"}],
)
def test_other_texts_are_refused(texts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"height_sharded, width_sharded, block_sharded, .*act_block_h_override"):
        CompilerConfig(optimizer_overrides={"a": texts})


@pytest.mark.parametrize(
    ("name", "texts", "reason"),
    [
        (
            "norm",
            {"override_output_layout": "16x1:height_sharded"},
            "it has no such form.*chooses from dram:interleaved",
        ),
        ("up", {"override_output_layout": "1x1:height_sharded"}, r"it needs 2,\d+,\d+ bytes of L1.*1,392,640"),
        ("up", {"override_output_layout": "9x8:block_sharded"}, "the chip has 8x8 cores"),
        ("up", {"override_output_layout": "7x8:block_sharded"}, "16x16 tiles do not give each core of 7x8 a part"),
        ("up", {"override_output_layout": "l1:f32"}, "its result is BFloat16 in Tile"),
        ("add", {"insert_memreconfig": "2"}, "it has 2 operands"),
        ("up", {"override_conv2d_config": "act_block_h_override#32"}, "only ttnn.conv2d has"),
    ],
)
@pytest.mark.parametrize("fallback", ["host", "error"])
def test_what_an_op_cannot_follow_is_an_error(name: str, texts: Any, reason: str, fallback: str) -> None:
    with pytest.raises(OverrideError, match=reason) as caught:
        placed(Model().eval(), torch.randn(512, 256), {name: texts}, fallback=fallback)
    assert "test_overrides.py:" in caught.value.location


def test_no_host_hides_what_an_op_cannot_follow(recwarn: pytest.WarningsRecorder) -> None:
    """The host can follow no override, so the op does not run there."""
    overrides = {"up": {"override_output_layout": "9x8:block_sharded"}}
    compiled = torch.compile(
        Model().eval(), backend="tt", options={"optimization_level": 2, "optimizer_overrides": overrides}
    )
    with pytest.raises(BackendCompilerFailed, match=r"OverrideError: .* the chip has 8x8 cores"), torch.no_grad():
        compiled(torch.randn(512, 256))
    assert not recwarn.list


def test_what_stays_on_the_device_follows_overrides(recwarn: pytest.WarningsRecorder) -> None:
    model, overrides = Model().eval(), {"up": {"override_output_layout": "16x1:height_sharded"}}
    options = {"dtype": "bf16", "optimization_level": 2, "optimizer_overrides": overrides}
    with torch.no_grad():
        function = torch.compile(lambda x: torch.linalg.det(model(x)[:256]), backend="tt", options=options)
        function(torch.randn(512, 256))
    (warning,) = recwarn.list
    assert [op.op for op in warning.message.ops] == ["aten._linalg_det.default"]  # type: ignore[union-attr]


def test_an_entry_without_an_op_is_told() -> None:
    compiled = torch.compile(
        Model().eval(),
        backend="tt",
        options={"optimization_level": 1, "optimizer_overrides": {"nrom": {"insert_memreconfig": "0"}}},
    )
    with pytest.warns(OverrideWarning, match="matches 'nrom'; did you mean 'norm'"), torch.no_grad():
        compiled(torch.randn(512, 256))


def test_results_on_the_host_are_not_meant() -> None:
    """The weights of this convolution are an input, so they come back to the host to be prepared there."""

    def function(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv2d(x, w).relu()

    config = CompilerConfig(optimization_level=2, optimizer_overrides={"*": {"override_output_layout": "dram"}})
    w, x = torch.randn(64, 32, 1, 1), torch.randn(1, 32, 8, 8)
    torch.testing.assert_close(tt_torch.compile_model(function, (w, x), config)(w, x), function(w, x))


def test_level_0_has_no_overrides() -> None:
    with pytest.warns(OverrideWarning, match="no effect at optimization_level 0"):
        found = placed(
            Model().eval(), torch.randn(64, 256), {"up": {"override_output_layout": "l1"}}, optimization_level=0
        )
    assert found == []


LAYERS = st.sampled_from(["linear", "linear", "norm", "relu", "softmax", "residual", "gate"])


@st.composite
def chains(draw: Any) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(draw(st.integers(0, 9)))
    width, steps = 64 * draw(st.integers(1, 4)), list[nn.Module | str]()
    x = torch.randn(32 * draw(st.integers(1, 8)), width)
    for kind in ["linear", *draw(st.lists(LAYERS, max_size=3))]:
        layer = {"linear": lambda: nn.Linear(width, width), "norm": lambda: nn.LayerNorm(width)}.get(kind)
        steps.append(layer() if layer else kind)
    return Drawn(steps).eval(), x


@settings(max_examples=25)
@given(chains(), st.integers(0, 1 << 20), st.sampled_from([1, 2]))
def test_random_overrides_of_chains(chain: tuple[nn.Module, torch.Tensor], seed: int, level: int) -> None:
    follows(*chain, overridden(chain[0], random.Random(seed)), level)


@pytest.mark.parametrize("seed", [1, 3, 4, 6, 16, 21])
def test_random_overrides_of_models(seed: int) -> None:
    model, x, rng = drawn(seed)
    assert follows(model, x, overridden(model, rng), 2)


def follows(model: nn.Module, x: torch.Tensor, overrides: dict[str, dict[str, str]], level: int) -> bool:
    """Whether the program has a result of the kind that is asked for; False if the op has no such form."""
    try:
        found = placed(model, x, overrides, optimization_level=level)
    except OverrideError:
        return False
    kinds = {layout for _, layout, _ in found}
    for word in [w for texts in overrides.values() for w in texts.get("override_output_layout", "").split(":")]:
        if word.endswith("_sharded"):
            assert word.replace("_s", " s").title().replace(" ", "") in kinds
        if word == "l1":
            assert kinds
    return True


@pytest.mark.parametrize("compiler", ["tt-torch", "tt-mlir"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_modules_have_names_where_they_are_read(compiler: str, level: int) -> None:
    """Without names, equal layers share a binary in the cache. tt-mlir does not know our attributes."""
    config = CompilerConfig(compiler=compiler, optimization_level=level)
    read = [
        config.frozen(optimizer_overrides={"0": {"override_output_layout": "l1"}}),
        config.frozen(save_mlir=["TTIR"]),
    ]
    assert not config.names_layers
    assert [each.names_layers for each in read] == [compiler == "tt-torch" and level > 0] * 2
