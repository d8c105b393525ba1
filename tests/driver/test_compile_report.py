"""`tt_torch.compile_report()`, the line on the terminal, and the warning about sizes that only grow."""

from __future__ import annotations

import time
import warnings

import torch

import tt_torch
from tests.terminal import shown
from tt_torch import user_code
from tt_torch.driver import report
from tt_torch.driver.report import CACHED, COMPILED, ProgramReport, Running, compiling, time_left
from tt_torch.driver.sizes import GROWING_SHAPES


def new(action) -> list[ProgramReport]:
    """The programs that an action has compiled."""
    before = len(tt_torch.compile_report().programs)
    action()
    return tt_torch.compile_report().programs[before:]


def test_programs_with_their_steps_and_cache_hits(cache):
    config = tt_torch.CompilerConfig(model_name="net")
    compile_net = lambda: tt_torch.compile_model(lambda x: torch.relu(x) * 3.25, (torch.randn(3),), config)  # noqa: E731
    seconds = tt_torch.compile_report().seconds
    (first,), (second,) = new(compile_net), new(compile_net)
    assert (first.outcome, second.outcome) == (COMPILED, CACHED)
    assert first.ops == 2 and first.name.startswith("net_")
    assert {"import-fx", "canonicalize", "flatbuffer"} <= {*first.steps}
    assert "canonicalize" not in second.steps
    made = tt_torch.compile_report()
    assert made.seconds - seconds > first.seconds + second.seconds > 0
    assert f"{first.name}, compiled" in repr(report.CompileReport([first, second], 1.0))
    assert repr(report.CompileReport([first], 1.0)).startswith("1 program, 1.00 s")


@torch.compiler.assume_constant_result  # so Dynamo calls it while it traces
def traced_slowly() -> float:
    time.sleep(0.3)
    return 2.0


def test_the_trace_of_dynamo_is_counted():
    seconds = tt_torch.compile_report().seconds
    torch.compile(lambda x: x + traced_slowly(), backend="tt")(torch.randn(3))
    assert tt_torch.compile_report().seconds - seconds > 0.3


def test_a_refused_part_is_in_the_report():
    programs = new(lambda: torch.compile(lambda x: torch.linalg.eigh(x @ x.T)[0] + 1, backend="tt")(torch.randn(3, 3)))
    assert any(program.outcome == report.REFUSED for program in programs)


def test_time_left_is_known_after_a_program_only():
    earlier = ProgramReport("a", 10, {"fuse": 2.0, "layouts": 3.0}, COMPILED)
    assert time_left(Running(ops=20, steps={"fuse": 1.0}), earlier) == 6.0
    assert time_left(Running(ops=20), None) == 0
    assert time_left(Running(ops=0), earlier) == 0
    assert (
        Running("net", 20, "layouts", {"fuse": 1.0}).text(earlier) == "tt_torch compiles net, 20 ops: layouts, 6 s left"
    )
    assert Running("net", 20, "fuse").text(None) == "tt_torch compiles net, 20 ops: fuse"


def slow() -> None:
    with compiling():
        report.running().name = "net"
        time.sleep(0.5)


def test_the_terminal_shows_one_line_that_goes():
    text = shown(slow)
    assert "tt_torch compiles net: tracing" in text
    assert text.removesuffix("end").endswith("\x1b[1A\x1b[2K")  # one line up, and erase it


def test_progress_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("TT_TORCH_PROGRESS", "0")
    assert shown(slow) == "end"


def test_a_short_compilation_shows_nothing():
    assert shown(slow, patience=100) == "end"


def told(sizes, monkeypatch) -> list[str]:
    monkeypatch.setattr(user_code, "_once", set())
    torch._dynamo.reset()
    region = torch.compile(lambda x: x * 2 + 1, backend="tt", dynamic=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in sizes:
            region(torch.ones(size))
    return [str(w.message) for w in caught if str(w.message) == GROWING_SHAPES]


def test_sizes_that_only_grow_are_told_once(monkeypatch):
    assert told([5, 6, 7, 8, 9], monkeypatch) == [GROWING_SHAPES]
    assert told([9, 5, 7, 6], monkeypatch) == []
    assert told([5, 6, 5, 6], monkeypatch) == []
