"""The engine: streams, cancelled and refused requests, its queue, sampling per request, and failures."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_serving_transformers import STRICT, network, until
from transformers import GenerationConfig, LlamaForCausalLM

from tt_torch.driver.executor import Executor
from tt_torch.errors import ConfigError, QueueFullError, RequestError
from tt_torch.serving import Engine
from tt_torch.serving.__main__ import main

PROMPT = [5, 1, 9]


def engine(model: LlamaForCausalLM, backend: str | None = None, **options: Any) -> Engine:
    """A small engine. Most of these tests are about its requests, so eager PyTorch runs the model by default."""
    own = {"max_length": 64, "max_batch_tokens": 8, "max_requests": 4, "backend": backend, **options}
    return Engine(model, **own, options=STRICT)


def greedy(model: LlamaForCausalLM, prompt: list[int], new: int) -> list[int]:
    return model.generate(torch.tensor([prompt]), max_new_tokens=new, do_sample=False)[0, len(prompt) :].tolist()


def test_requests_on_the_device(made: list[Executor]) -> None:
    model = network(num_hidden_layers=1)
    expected = greedy(model, PROMPT, 12)
    with engine(model, "tt") as served:
        served.warm_up()
        assert len(made) == 1
        first, second = served.submit(PROMPT, max_new_tokens=12), served.submit(PROMPT, max_new_tokens=5)
        assert list(first) == expected and second.result() == expected[:5]
        assert first.result() == []  # the tokens were read
        assert served.submit(PROMPT, max_new_tokens=12, eos_token_id=expected[3]).result() == expected[:4]
        assert served.free_pages() == 1
    with served:  # it starts again, with a new cache
        assert served.submit(PROMPT, max_new_tokens=12).result() == expected
    assert len(made) == 1


def test_cancelled_requests_free_their_pages() -> None:
    model = network(num_hidden_layers=1)
    expected = greedy(model, PROMPT, 60)
    with engine(model) as served:
        request = served.submit(PROMPT, max_new_tokens=60)
        stream = iter(request)
        assert next(stream) == expected[0]
        request.cancel()
        request.cancel()
        rest = list(stream)
        assert rest == expected[1 : 1 + len(rest)] and len(rest) < 59
        gone = iter(served.submit(PROMPT, max_new_tokens=60))
        next(gone)
        del gone  # a client that stops reading
        until(lambda: served.free_pages() == 1)
        assert served.submit(PROMPT, max_new_tokens=4).result() == expected[:4]


def test_a_full_queue() -> None:
    with engine(network(num_hidden_layers=1), max_queue=1) as served:
        first = served.submit(PROMPT, max_new_tokens=60)
        with pytest.raises(QueueFullError, match=r"the engine has 1 unfinished requests for 0\.01 s, its max_queue"):
            served.submit(PROMPT, max_new_tokens=2, timeout=0.01)
        assert len(served.submit(PROMPT, max_new_tokens=2, timeout=None).result()) == 2  # waited for the first one
        assert len(first.result()) == 60


def test_requests_that_are_refused() -> None:
    served = engine(network(num_hidden_layers=1))
    with pytest.raises(RequestError, match="request-0 failed: the engine is not running"):
        served.submit(PROMPT)
    with pytest.raises(ConfigError, match=r"max_new_tokens=62 is not accepted; it takes 1 to 61 for a prompt of 3"):
        served.submit(PROMPT, max_new_tokens=62)
    with pytest.raises(ConfigError, match="max_new_tokens=0 is not accepted"):
        served.submit(PROMPT, max_new_tokens=0)
    with pytest.raises(ConfigError, match=r"max_new_tokens=2\.5 is not accepted"):
        served.submit(PROMPT, max_new_tokens=2.5)
    for count in (64, 0):
        with pytest.raises(ConfigError, match=rf"len\(prompt\)={count} is not accepted; it takes 1 to 63: prompt and"):
            served.submit([1] * count)
    for text in ("five", torch.tensor([PROMPT])):
        with pytest.raises(ConfigError, match="it takes the token ids of one prompt, from 0 to 63"):
            served.submit(text)
    with pytest.raises(ConfigError, match="it takes 1 to 29"):
        engine(network(num_hidden_layers=1), pages=1).submit(PROMPT, max_new_tokens=30)


def test_a_token_without_an_embedding_ends_no_other_request() -> None:
    model = network(num_hidden_layers=1)
    with engine(model) as served:
        running = served.submit(torch.tensor(PROMPT), max_new_tokens=8)
        for token in (64, -1):
            with pytest.raises(ConfigError, match=f"token of the prompt={token} is not accepted; it takes ids from 0"):
                served.submit([*PROMPT, token])
        assert running.result() == greedy(model, PROMPT, 8)


def test_tokens_that_end_an_answer() -> None:
    """An error takes no place in the queue. A tensor of tokens counts like a list of them."""
    model = network(num_hidden_layers=1)
    expected = greedy(model, PROMPT, 12)
    with engine(model, max_queue=1) as served:
        for ends in ("a", 1.5, [2.0], torch.tensor([1.0, 2.0])):
            with pytest.raises(ConfigError, match=r"eos_token_id=.* is not accepted; it takes a token id, or a list"):
                served.submit(PROMPT, eos_token_id=ends)
        for ends in (torch.tensor([63, expected[3]]), torch.tensor(expected[3]), (expected[3],), {expected[3]}):
            assert served.submit(PROMPT, max_new_tokens=12, eos_token_id=ends).result() == expected[:4]
        assert served.submit(PROMPT, max_new_tokens=12, eos_token_id=-1).result() == expected


def test_sampling_per_request() -> None:
    model = network(num_hidden_layers=1)
    expected = greedy(model, PROMPT, 20)
    config = GenerationConfig(do_sample=True, temperature=5.0, top_k=40)
    with engine(model, generation_config=config) as served:
        free = served.submit(PROMPT, max_new_tokens=20)
        greedily = served.submit(PROMPT, max_new_tokens=20, top_k=1)
        assert greedily.result() == expected != free.result()
        with pytest.raises(ConfigError, match="'top_p' is not accepted; it takes temperature, top_k, which the"):
            served.submit(PROMPT, top_p=0.5)
        assert len(served.submit(PROMPT, max_new_tokens=2).result()) == 2  # the others go on


WRONG = [("temperature", 0), ("temperature", -1.0), ("temperature", float("nan")), ("top_k", -1), ("top_k", "1")]
WRONG += [("top_k", 1.5), ("top_p", 1.5), ("top_p", -0.1), ("top_p", None), ("stop_strings", "a")]


def test_sampling_parameters_that_are_refused() -> None:
    """Transformers' loop would end at some of them, and with it all other requests."""
    model = network(num_hidden_layers=1)
    config = GenerationConfig(do_sample=True, temperature=5.0, top_k=40, top_p=0.9)
    with engine(model, generation_config=config) as served:
        running = served.submit(PROMPT, max_new_tokens=12, temperature=1, top_k=1)
        for name, value in WRONG:
            with pytest.raises(ConfigError, match=name):
                served.submit(PROMPT, **{name: value})
        every = served.submit(PROMPT, max_new_tokens=20, top_k=0, top_p=1, temperature=100)  # nearly any token
        assert len({*every.result()}) > 10
        assert len(served.submit(PROMPT, max_new_tokens=3, top_k=1000).result()) == 3
        assert running.result() == greedy(model, PROMPT, 12)


def test_a_failure_reaches_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(num_hidden_layers=1)
    with engine(model) as served:
        running = served.submit(PROMPT, max_new_tokens=60)
        next(iter_running := iter(running))
        monkeypatch.setattr(model, "forward", lambda **batch: 1 / 0)
        with pytest.raises(RequestError, match=f"{running.name} failed: division by zero"):
            list(iter_running)
        with pytest.raises(RequestError, match="the engine is not running") as caught:
            until(lambda: served.submit(PROMPT) is None)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_leaving_by_an_error_stops_the_requests() -> None:
    """The error also stops a request that Transformers' loop has taken from its queue but has not begun."""
    requests = []
    with pytest.raises(KeyError), engine(network(num_hidden_layers=1), max_requests=1) as served:
        requests = [served.submit(PROMPT, max_new_tokens=60) for _ in range(3)]
        next(iter_first := iter(requests[0]))
        requests.append(served.submit(PROMPT))
        raise KeyError
    assert iter_first
    for request in requests:
        with pytest.raises(RequestError, match=r"the engine stopped|Generation loop finished before this request"):
            request.result(timeout=10)


def test_a_token_that_does_not_come_in_time() -> None:
    with engine(network(num_hidden_layers=1)) as served, served.manager.pause():
        request = served.submit(PROMPT, max_new_tokens=2)
        with pytest.raises(TimeoutError, match=r"request-0 got no token for 0\.01 s"):
            request.result(timeout=0.01)


def test_the_server_shows_its_help_without_other_arguments(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-h"])
    told = capsys.readouterr().out
    assert ended.value.code == 0 and "--max-length TOKENS" in told and "/v1/chat/completions" in told
