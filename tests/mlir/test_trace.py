"""With enable_trace, the binary has the recording that tt-mlir writes. It gives the same values as without it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_mlir import ir
from transformers import CompileConfig, LlamaConfig, LlamaForCausalLM

import tt_torch
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.mesh import set_mesh
from tt_torch.wire import facts
from tt_torch.wire.calls import device_ops
from tt_torch.wire.decode import decode

THEIRS = Path(__file__).parents[1] / "data" / "plugin" / "trace.ttnn"
TRACE = "CaptureOrExecuteTraceOp"
WITH, WITHOUT = CompilerConfig(enable_trace=True), CompilerConfig()


class OfTheFile(nn.Module):
    """The program of tt-mlir's file."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 4))

    def forward(self, x, i):
        return torch.relu(x @ self.weight), i + 1


def inputs():
    return torch.randn(2, 8), torch.randint(-9, 9, (3,), dtype=torch.int32)


def records(binary):
    return any(op.name == TRACE for program in decode(binary)["programs"] for op in facts.ops(program))


def numbered(part, known):
    """A part of a message with its tensors numbered as they occur, and their form. A scalar counts as one of size 1,
    because compilers choose either for a constant."""
    if facts.is_tensor(part):
        tensor = facts.tensor(part)
        number = known.setdefault(tensor.id, len(known))
        return number, tensor.shape or (1,), tensor.dtype, tensor.place, tensor.page_layout
    if isinstance(part, dict):
        return {name: numbered(value, known) for name, value in part.items() if value}
    return [numbered(each, known) for each in part] if isinstance(part, list) else part


def form(message):
    """Inputs, ops and outputs of each program of a recording, by name.

    The result has no ops that free memory, because tt-mlir also frees what the host has. It has no loads of cached
    values, because their order differs. Its recorded ops are only the copies, because compilers choose other ops.
    """
    programs, found = message["programs"], {}
    for program in programs:
        known = {}
        start = [numbered(ref, known) for ref in program["inputs"]]
        ops = []
        for op in facts.ops(program):
            record = {k: programs[v]["name"] if k.endswith("program_id") else v for k, v in op.record.items()}
            record.pop("device_resident_input_count", None)  # the schema that we write does not have it
            if program["name"] == "trace_0_main" and op.name != "CopyOp":
                continue
            if op.name not in ("LoadCachedOp", "DeallocateOp"):
                record.pop("src", None)  # the recorded ops before it
                ops.append((op.name, numbered(record, known)))
        if "const_eval" not in program["name"]:
            found[program["name"]] = start, ops, [numbered(ref, known) for ref in program["outputs"]]
    return found


def test_the_programs_are_those_of_tt_mlir():
    theirs = form(decode(THEIRS.read_bytes()))
    assert form(decode(tt_torch.compile_model(OfTheFile().eval(), inputs(), WITH).binary)) == theirs
    assert {*theirs} >= {"main", "trace_0_main", "run_and_capture_trace_0_main", "execute_trace_0_main"}


@pytest.mark.parametrize(
    "function",
    [
        nn.Sequential(nn.Linear(8, 5), nn.GELU(), nn.Linear(5, 5)).eval(),
        lambda x: torch.fft.fft(x, 5).real,  # matrix products with constants, whose form the emulated device chooses
        lambda x: (x.sort(1), x.softmax(1), x),
    ],
    ids=["weights", "constants", "several results"],
)
def test_values_are_exactly_those_without_a_recording(function):
    x = torch.randn(2, 8)
    plain, recorded = (tt_torch.compile_model(function, (x,), config) for config in (WITHOUT, WITH))
    assert records(recorded.binary) and not records(plain.binary)
    for _ in range(2):
        x = torch.randn(2, 8)
        torch.testing.assert_close(recorded(x), plain(x), rtol=0, atol=0)


def test_each_call_has_its_own_inputs_and_weights():
    model = OfTheFile().eval()
    compiled, results = tt_torch.compile_model(model, inputs(), WITH), []
    assert records(compiled.binary)
    for _ in range(3):
        x, i = inputs()
        got = compiled(x, i)
        torch.testing.assert_close(got, (torch.relu(x @ model.weight), i + 1))
        results.append((got, [tensor.clone() for tensor in got]))
        with torch.no_grad():
            model.weight.mul_(-1.5)
    for got, kept in results:
        torch.testing.assert_close(list(got), kept, rtol=0, atol=0)  # later calls write to other memory


def test_packages_have_the_recording(tmp_path):
    model = OfTheFile().eval()
    tt_torch.compile_model(model, inputs(), WITH).save(tmp_path / "model.ttpkg")
    loaded = tt_torch.load(tmp_path / "model.ttpkg")
    for _ in range(2):
        x, i = inputs()
        torch.testing.assert_close(loaded(x, i), (torch.relu(x @ model.weight), i + 1))


def test_one_copy_per_input_and_result_is_added():
    """The cost of a call counts these copies, and it counts the recorded ops once."""
    model, x = nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)).eval(), torch.randn(2, 8)
    plain, recorded = (tt_torch.compile_model(model, (x,), config).binary for config in (WITHOUT, WITH))
    ops = [op.name for op in device_ops(decode(plain))]
    assert [op.name for op in device_ops(decode(recorded))] == ["WriteTensorOp", *ops, "CopyOp"]


EXP = '%0 = "stablehlo.exponential"(%x) : (tensor<4xf32>) -> tensor<4xf32>'
RANDOM = """
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<4> : tensor<1xi64>
  %1 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %0 = stablehlo.add %x, %1 : tensor<4xf32>"""  # noqa: E501


def compiled_text(config, mesh=(1, 1), body=EXP):
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n  return %0 : tensor<4xf32>\n}}"
    with context_to_compile():
        module = ir.Module.parse(text)
        if mesh != (1, 1):
            set_mesh(module, mesh)
        return compile_module(module, config)


def test_other_devices_make_recordings_of_their_own():
    binary = compiled_text(CompilerConfig(enable_trace=True, device="ttnn"))
    assert binary == compiled_text(WITHOUT) != compiled_text(WITH)


@pytest.mark.parametrize(
    ("body", "mesh", "reason"),
    [
        (RANDOM, (1, 1), "it needs the host in each call: ttnn.rand at "),
        (EXP, (1, 2), "it is for several chips"),
    ],
)
@pytest.mark.parametrize("time", ["first", "second"])
def test_programs_that_cannot_be_recorded_stay_as_they_are(body, mesh, reason, time):
    with pytest.warns(UserWarning, match=f"enable_trace has no effect on this program, because {reason}"):
        binary = compiled_text(WITH, mesh, body)
    assert binary == compiled_text(WITHOUT, mesh, body)
    assert compiled_text(WITH) != compiled_text(WITHOUT)


def test_weights_that_are_sent_in_each_call_are_not_recorded():
    model, x = nn.Linear(4, 4).eval(), torch.ones(4)
    with pytest.warns(UserWarning, match=r"in each call: ttnn\.to_device at "):
        run = tt_torch.compile_model(model, (x,), CompilerConfig(enable_trace=True, enable_consteval=False))
    for _ in range(2):
        torch.testing.assert_close(run(x), model(x).detach())


@pytest.mark.parametrize(
    ("function", "weight"),
    [(F.conv2d, (4, 3, 3, 3)), (F.conv_transpose2d, (3, 4, 3, 3))],
    ids=["convolution", "transposed convolution"],
)
def test_convolutions_whose_weights_come_with_the_call_are_not_recorded(function, weight):
    given = torch.randn(1, 3, 8, 8), torch.randn(weight)
    with pytest.warns(UserWarning, match=r"in each call: ttnn\.from_device at "):
        run = tt_torch.compile_model(function, given, WITH)
    torch.testing.assert_close(run(*given), function(*given), rtol=1e-4, atol=1e-4)


class Cache(nn.Module):
    """The rows of `keys` are written in place; `mean` gets a new value in each call, which depends on the old one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 8, 4))
        self.register_buffer("mean", torch.zeros(4, 40))

    def forward(self, rows, position, x):
        self.keys.index_copy_(2, position, rows)
        self.mean.mul_(0.5).add_(x)
        return (self.keys + self.mean[:, :4].sum()).sum(2)


def of_a_cache(position):
    return torch.randn(1, 2, 1, 4), torch.tensor([position]), torch.randn(4, 40)


def test_states_are_recorded(made):
    model, reference = Cache(), Cache()
    run = torch.compile(model, backend=tt_torch.backend, options=BackendOptions(compiler_config=WITH))
    for position in (1, 3, 3, 0):
        given = of_a_cache(position)
        torch.testing.assert_close(run(*given), reference(*given))
        assert torch.equal(model.keys, reference.keys)
        torch.testing.assert_close(model.mean, reference.mean)
        for each in (model, reference):  # the host changes the states, too
            each.keys.mul_(3)
            each.mean.add_(1)
    assert len(made[0].compiled.updates) == 2 and records(made[0].binary)


def test_a_second_run_of_the_recorded_ops_changes_nothing(made):
    """A device runs the recorded ops twice in the first call. Here, the host puts back only results of the program."""
    model = Cache()
    run = torch.compile(model, backend=tt_torch.backend, options=BackendOptions(compiler_config=WITH))
    for position in range(3):
        given, before = of_a_cache(position), model.mean.clone()
        first, kept = run(*given), model.keys.clone()
        model.mean.copy_(before)
        assert torch.equal(run(*given), first) and torch.equal(model.keys, kept)
    (program,) = (p for p in decode(made[0].binary)["programs"] if p["name"] == "trace_0_main")
    written = {op.tensor("cache").id for op in facts.ops(program) if op.updates}
    copied = {op.tensor("dst").id for op in facts.ops(program) if op.name == "CopyOp"}
    resident = {ref["global_id"] for ref in program["inputs"]} - copied
    assert len(written) == 1 and written < resident


def test_the_steps_of_a_decoder_are_recorded(made):
    sizes = {"hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=1, **sizes)).eval()
    config = CompileConfig(backend="tt", mode=None, dynamic=False, fullgraph=True, options={"enable_trace": True})
    config._compile_all_devices = True  # otherwise Transformers compiles for a GPU only
    given = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "cache_implementation": "static"}
    ids = torch.tensor([[1, 4, 2]])
    expected = model.generate(ids, **given, disable_compile=True)
    assert torch.equal(model.generate(ids, **given, compile_config=config), expected)
    assert all(each.compiled.updates and records(each.binary) for each in made) and made


def test_seeds_are_inputs_of_a_recording(made):
    run = torch.compile(
        lambda x: x + torch.rand(4), backend=tt_torch.backend, options=BackendOptions(compiler_config=WITH)
    )
    first, second = run(torch.ones(4)), run(torch.ones(4))
    assert records(made[0].binary)
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(run(torch.ones(4)), first)


@pytest.mark.parametrize(("device", "recorded"), [("emulated", False), ("ttnn", True)])
def test_a_mode_of_torch_compile_is_for_the_library(device, recorded):
    given = {"compiler_config": CompilerConfig(device=device)}
    assert BackendOptions.of(given, "reduce-overhead").compiler_config.enable_trace == recorded
