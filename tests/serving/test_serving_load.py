"""A quick form of the load test of benchmarks/serving.py."""

from __future__ import annotations

import pytest

from benchmarks.serving import jobs, load, network
from tt_torch.driver.executor import Executor
from tt_torch.serving import Engine


@pytest.mark.sample
def test_no_wrong_token_and_no_page_leaked(made: list[Executor]) -> None:
    """Requests come faster than the engine answers them, and it has too few pages for all requests of one batch."""
    model = network(layers=2, depth=32)
    work = jobs(model, 24, prompts=(1, 60), answers=(2, 30))
    own = {"max_length": 96, "max_batch_tokens": 16, "max_requests": 8, "pages": 10}
    with Engine(model, **own, options={"fallback": "error"}) as engine:
        engine.warm_up()
        outcome = load(engine, work, rate=100, requests=64)
    assert outcome.wrong == 0 and outcome.free == 1
    assert len(outcome.answers) == 64 and len(outcome.last) == 50
    assert len(made) == 2  # for 8 and for 16 tokens
