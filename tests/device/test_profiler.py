"""torch.profiler records the device: each op and each copy has an event, under the PyTorch op that it belongs to."""

from __future__ import annotations

import json

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

BOTH = (ProfilerActivity.CPU, ProfilerActivity.PrivateUse1)


def on_device(profiler: profile) -> list[str]:
    return [event.name for event in profiler.events() if event.device_type == DeviceType.PrivateUse1]


def test_ops_and_copies(tmp_path):
    w = torch.randn(8, 8, device="tt")
    with profile(activities=BOTH) as profiler:
        (torch.randn(8, 8).tt() @ w).relu().cpu()
    assert on_device(profiler) == ["aten::copy_", "aten::mm", "aten::relu", "aten::copy_"]
    host = {e.name: e for e in profiler.events() if e.device_type == DeviceType.CPU}
    assert [kernel.name for kernel in host["aten::mm"].kernels] == ["aten::mm"]
    assert host["aten::mm"].self_device_time_total > 0
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["cat"] for e in events if e.get("cat") in ("kernel", "gpu_memcpy")].count("kernel") == 2
    assert any(e["name"] == "process_name" and e["args"]["name"] == "tt" for e in events)


def test_memory():
    with profile(activities=BOTH, profile_memory=True) as profiler:
        kept = torch.empty(1024, device="tt")
        torch.empty(2048, device="tt")
    memory = {row.key: row.self_device_memory_usage for row in profiler.key_averages()}
    assert (memory["aten::empty"], memory["[memory]"]) == (3 * kept.nbytes, -2 * kept.nbytes)


def test_only_the_chosen_activities_are_recorded():
    x = torch.ones(3, device="tt")
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        x + x
    assert on_device(profiler) == []
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        (x + x).cpu()
    assert on_device(profiler) == ["op", "copy"]  # the names of PyTorch's ops are recorded only with the CPU


def test_a_compiled_region_shows_its_program_and_ops(tmp_path):
    region = torch.compile(lambda x, w: torch.relu(x @ w), backend="tt")
    x, w = torch.randn(4, 8), torch.randn(8, 2)
    region(x, w)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        region(x, w)
    program = next(event for event in profiler.events() if event.name == "tt::main")
    ops = [event.name for event in program.cpu_children if event.name.startswith("tt::")]
    assert ops and all(name.endswith("Op") for name in ops)
    assert any("Matmul" in name or "Linear" in name for name in ops)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e.get("cat") == "cpu_op" and e["name"] in ops] == ops


def test_an_op_of_several_steps_is_one_event():
    layer = torch.nn.Linear(8, 4).eval()
    region = torch.compile(layer, backend="tt")
    with torch.no_grad():
        region(torch.ones(2, 8))
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            region(torch.ones(2, 8))
    assert [event.name for event in profiler.events() if event.name.endswith("LinearOp")] == ["tt::LinearOp"]


def test_constants_show_where_they_are_computed():
    weight = torch.nn.Parameter(torch.randn(8, 8))
    region = torch.compile(lambda x: x @ (weight * 2), backend="tt")
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU]) as profiler:
        region(torch.randn(4, 8))
    (constant,) = (event for event in profiler.events() if event.name.startswith("tt::main_const_eval"))
    assert constant.cpu_parent.name == "tt::main"
