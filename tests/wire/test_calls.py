"""Programs in which each call is replaced by the program that it calls."""

from pathlib import Path

import pytest
from runtime.programs import Maker

from tt_torch.errors import BinaryFormatError
from tt_torch.explore.graphs import read_graphs
from tt_torch.profiling.cost_model import of_call
from tt_torch.wire import calls, facts
from tt_torch.wire.calls import cached, device_ops, expanded, public, recorded
from tt_torch.wire.decode import decode

TRACE = Path(__file__).parents[1] / "data" / "plugin" / "trace.ttnn"
MATRIX = ((2, 2), "Float32", "DRAM")


def test_a_recording_counts_as_in_later_calls():
    """A later call writes two inputs and runs seven recorded ops. It does not allocate, warm up or record anything."""
    message = decode(TRACE.read_bytes())
    found = list(device_ops(message))
    assert [op.name for op in found] == [
        "WriteTensorOp", "WriteTensorOp", "ToLayoutOp", "MatmulOp", "EltwiseUnaryOp", "ToLayoutOp", "EltwiseBinaryOp",
        "CopyOp", "CopyOp",
    ]  # fmt: skip
    (main,) = public(message)
    _, x, i = facts.inputs(main)
    assert found[0].operands == (x,) and found[1].operands == (i,)
    assert [op.location.split(":")[0] for op in found[2:5]] == ['loc("arg0_1', 'loc("mm', 'loc("relu']
    assert [op.results for op in found[-2:]] == [(result,) for result in facts.outputs(main)]
    written, matmul = found[0].results[0], found[3]
    assert found[2].operands == (written,) and matmul.operands[0] == found[2].results[0]
    assert recorded(message) and cached(message) == {"main_const_eval_0", "main_const_eval_1"}
    assert (of_call(message).device_ops, of_call(message).moves) == (9, 6)


def test_recordings_in_graphs():
    """The graph of each program has its own ops."""
    graphs = {graph.name: graph for graph in read_graphs(TRACE)}
    assert "CaptureOrExecuteTraceOp" in {node.label for node in graphs["main"].nodes}


def twice():
    """A program that calls y = -x twice, and the program that it calls."""
    maker = Maker()
    x, y, z = maker.input(*MATRIX), maker.tensor(*MATRIX), maker.tensor(*MATRIX)
    maker.op("FuncCallOp", program_id=1, inputs=[x], outputs=[y])
    maker.op("FuncCallOp", program_id=1, inputs=[y], outputs=[z])
    maker.program["outputs"] = [z]
    maker.begin("negated", private=True)
    maker.op("EltwiseUnaryOp", type="Neg", **{"in": maker.input(*MATRIX)}, out=maker.tensor(*MATRIX))
    maker.program["outputs"] = [maker.program["operations"][0]["type"]["EltwiseUnaryOp"]["out"]]
    return maker


def test_a_program_that_is_called_twice_has_its_own_tensors_each_time():
    message = decode(twice().binary(*twice().programs[1]["outputs"]))
    (main,) = public(message)
    first, second = facts.ops(main)
    (x,), (z,) = facts.inputs(main), facts.outputs(main)
    assert first.operands == (x,) and second.operands == first.results and second.results == (z,)
    assert len({x.id, z.id, first.results[0].id}) == 3
    assert first.results[0].id > max(ref.id for ref in facts.tensors(message["programs"]))
    assert first.record["type"] == second.record["type"] == "Neg" and not recorded(message)


def test_a_program_without_calls_stays_as_it_is():
    message = decode(twice().binary())
    assert expanded(message, message["programs"][1]) is message["programs"][1]


@pytest.mark.parametrize(
    "call",
    [
        {"FuncCallOp": {"program_id": 1}},
        {"CaptureOrExecuteTraceOp": {"allocate_slots_program_id": 1, "capture_program_id": 1}},
    ],
)
def test_lists_that_a_file_leaves_out_are_empty(call):
    main = {"name": "main", "operations": [{"type": call}]}
    message = {"programs": [main, {"name": "nothing", "private": True}]}
    assert public(message) == [{"name": "main", "operations": [], "outputs": []}]
    assert recorded(message) == ("FuncCallOp" not in call)
    assert list(device_ops({"programs": [{"name": "nothing"}]})) == []
    assert not recorded({"programs": [{"name": "nothing"}]})


def without_end(maker):
    maker.op("FuncCallOp", program_id=0, inputs=[maker.programs[1]["inputs"][0]], outputs=[])


def many(maker):
    """Each of seven programs calls the next one eight times."""
    for i in range(7):
        maker.begin(f"f{i}", private=True)
        for _ in range(8):
            maker.op("FuncCallOp", program_id=i + 3, inputs=[], outputs=[])
    maker.begin("last", private=True)
    maker.programs[1]["operations"] = maker.programs[2]["operations"]
    return maker


def long(maker):
    """An op of a program that is called twice has a list of 6,000 tensors."""
    x, y = maker.program["inputs"][0], maker.tensor(*MATRIX)
    maker.op("ConcatOp", inputs=[x] * 6000, out=y, dim=0)


def change(maker, **fields):
    maker.programs[0]["operations"][0]["type"]["FuncCallOp"].update(fields)


HOSTILE = {
    "itself": (without_end, "more than 8 deep"),
    "no program": (lambda maker: change(maker, program_id=2), "the binary has no program 2"),
    "too few inputs": (lambda maker: change(maker, inputs=[]), "takes 1 inputs, and a call has 0"),
    "too few results": (lambda maker: change(maker, outputs=[]), "a call has 0 results, and its program gives 1"),
    "too many ops": (many, "parts when its calls are expanded"),
    "too long lists": (long, "parts when its calls are expanded"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_calls_that_do_not_fit(name, monkeypatch):
    monkeypatch.setattr(calls, "_MOST_PARTS", 10_000)
    maker = twice()
    outputs = maker.program["outputs"]
    HOSTILE[name][0](maker)
    maker.program = maker.programs[-1]
    with pytest.raises(BinaryFormatError, match=HOSTILE[name][1]):
        public(decode(maker.binary(*(outputs if len(maker.programs) == 2 else ()))))
