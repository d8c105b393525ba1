"""AOTAutograd makes no random states for our backend, because only one option of AOTAutograd uses them."""

from __future__ import annotations

import pytest
import torch
from torch._decomp import decompositions_for_rng
from torch._functorch import config

import tt_torch
from tt_torch.torch_private.aot import without_random_states

TRACKER = decompositions_for_rng.PhiloxStateTracker


@pytest.mark.parametrize(("backend", "states"), [(tt_torch.backend, 0), ("aot_eager", 6)])
def test_the_states_of_a_graph_with_dropout(backend: object, states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(decompositions_for_rng.PhiloxState, "reset", lambda state: made.append(state))
    x = torch.ones(2000, requires_grad=True)
    y = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.25) * 2, backend=backend)(x)
    y.sum().backward()
    assert len(made) == states
    assert x.grad is not None and x.grad.equal(y.detach()) and 1400 < y.count_nonzero() < 1600


def test_the_option_that_uses_them() -> None:
    reset = vars(TRACKER)["reset"]
    with without_random_states():
        assert vars(TRACKER)["reset"] is not reset
    with config.patch(functionalize_rng_ops=True), without_random_states():
        assert vars(TRACKER)["reset"] is reset
    with pytest.raises(ZeroDivisionError), without_random_states(), without_random_states():
        _ = 1 / 0
    assert vars(TRACKER)["reset"] is reset
