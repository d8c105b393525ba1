"""The library as op model: what is kept of its answers. The library itself is asked in test_conformance.py."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.codegen import environment, op_model
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, EnvironmentMissingError
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.encode import encode

OPTIONS = {"optimization_level": 2, "op_model": "ttnn"}


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The questions that reach mock devices, each in a pair with the device's card. The devices accept everything."""
    questions = []

    class Checker:
        def __init__(self, card):
            self.card = card

        def ask(self, command, question):
            questions.append((self.card, question))
            return [{"verdicts": [[] for _ in f["statements"]], "peak": {"core": 4096}} for f in question["functions"]]

        def close(self):
            pass

    monkeypatch.setattr(op_model, "Checker", Checker)
    monkeypatch.setattr(environment, "require", lambda: tmp_path)
    return questions


def compile(width=128, **options):
    model = nn.Sequential(nn.Linear(width, 128), nn.ReLU()).eval()
    tt_torch.compile_model(model, (torch.randn(64, width),), CompilerConfig(**OPTIONS | options))


def test_a_question_is_asked_once_for_each_card(asked):
    compile()
    first = len(asked)
    compile()  # other weights, and an op model of its own
    assert len(asked) == first > 0
    compile(arch="blackhole")
    assert {card for card, _ in asked} == {"n150", "p150"}
    before = len(asked)
    compile(width=256)
    assert len(asked) > before


def test_a_damaged_database_is_an_error_that_says_what_to_do(asked, tmp_path):
    (tmp_path / op_model.NAME).write_bytes(b"no database, but long enough to be taken for one" * 100)
    with pytest.raises(EnvironmentMissingError, match="delete it"):
        compile()


def test_chips_without_a_mock_are_refused(asked, tmp_path):
    system = system_desc("wormhole_b0")
    (chip,) = system["chip_descs"]
    smaller = system | {"chip_descs": [chip | {"grid_size": {"y": 7, "x": 8}}]}
    file = tmp_path / "small.ttsys"
    file.write_bytes(encode(header() | {"system_desc": smaller}))
    with pytest.raises(ConfigError, match="7 x 8 cores"):
        compile(system_desc=str(file))
