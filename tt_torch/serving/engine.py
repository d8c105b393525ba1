"""An engine: requests from any number of threads, answered by one model on the device."""

from __future__ import annotations

import operator
import queue
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from transformers import ContinuousBatchingConfig, GenerationConfig, PreTrainedModel
from transformers.generation.continuous_batching.continuous_api import OutputRouter
from transformers.generation.continuous_batching.requests import GenerationOutput, RequestStatus

from tt_torch import option_kinds as kinds
from tt_torch.errors import ConfigError, QueueFullError, RequestError
from tt_torch.serving.model import serve

# Transformers' loop only compares types. With a temperature of 0, the logits are not finite, and drawing a token would
# end the loop with all requests.
SAMPLING = {
    "temperature": kinds.number(float, 1e-6, "a number (top_k=1 makes a request greedy)"),
    "top_k": kinds.number(int, 0, "a number of tokens (0 is no limit)"),
    "top_p": kinds.number(float, 0, "a probability", 1),
}


def checked_sampling(given: Mapping[str, float], known: Collection[str], ids: int) -> dict[str, float]:
    """The sampling parameters of a request as Transformers' loop takes them. The model has `ids` tokens.

    Raises ConfigError for a value that is out of range, and for a name that the loop has no processor for.
    """
    values: dict[str, float] = {}
    for name, value in given.items():
        if name not in SAMPLING or name not in known:
            names = f"{', '.join(known)}, which the generation config sets"
            none = "none, because the generation config sets none"
            raise ConfigError("sampling parameter", name, names if known else none)
        values[name] = kinds.checked(name, SAMPLING[name], value)
    if "top_k" in values:
        values["top_k"] = min(values["top_k"] or ids, ids)
    return values


def checked(prompt: Sequence[int], new: int | None, limit: int, model: PreTrainedModel) -> tuple[list[int], int]:
    """The token ids of a prompt, and the number of new tokens: `new`, or as many as fit.

    Raises ConfigError if the request has more than `limit` tokens, or ids that the model has no embedding for: its
    batch would fail, and with it all other requests.
    """
    ids = model.get_input_embeddings().weight.shape[0]
    try:
        tokens = [operator.index(token) for token in prompt]
    except TypeError:  # text, or a tensor with a dimension for the batch
        raise ConfigError("prompt", prompt, f"the token ids of one prompt, from 0 to {ids - 1}") from None
    if bad := [token for token in tokens if not 0 <= token < ids]:
        raise ConfigError("token of the prompt", bad[0], f"ids from 0 to {ids - 1}, for which the model has embeddings")
    if not 1 <= len(tokens) < limit:
        raise ConfigError(
            "len(prompt)", len(tokens), f"1 to {limit - 1}: prompt and answer have at most {limit} tokens"
        )
    room = limit - len(tokens)
    if not isinstance(new := room if new is None else new, int) or not 1 <= new <= room:
        raise ConfigError("max_new_tokens", new, f"1 to {room} for a prompt of {len(tokens)} tokens")
    return tokens, new


def checked_ends(ends: int | Iterable[int]) -> list[int]:
    """The tokens that end an answer, as Transformers' loop compares them. Raises ConfigError for what is no token."""
    try:
        return [operator.index(ends)]  # type: ignore[arg-type]
    except TypeError:  # it is not one token
        pass
    try:
        return [operator.index(token) for token in ends]  # type: ignore[union-attr]
    except TypeError:
        raise ConfigError("eos_token_id", ends, "a token id, or a list of token ids") from None


class Request:
    """A request of an engine. Iterating gives its new tokens as they come; leaving the loop early cancels it."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self._engine = engine
        self._outputs: queue.SimpleQueue[GenerationOutput | None] = queue.SimpleQueue()
        self._ended = False

    def __iter__(self) -> Iterator[int]:
        """Gives each token once. Raises RequestError if the request fails; a cancelled request just ends."""
        given = 0
        try:
            while not self._ended:
                yield from (tokens := self._next(None))[given:]
                given = max(given, len(tokens))
        finally:
            self.cancel()

    def result(self, timeout: float | None = None) -> list[int]:
        """Waits for the end of the request, and returns all new tokens, or the tokens so far if it was cancelled.

        Raises TimeoutError if no token comes for `timeout` seconds, and RequestError if the request fails.
        """
        tokens: list[int] = []
        while not self._ended:
            tokens = self._next(timeout) or tokens
        return tokens

    def cancel(self) -> None:
        """Ends the request, and frees its pages. It has no effect on a request that has ended."""
        if self._engine._forget(self):
            self._engine.manager.cancel_request(self.name)
            self._outputs.put(None)

    def _next(self, timeout: float | None) -> list[int]:
        """Waits for more tokens, and returns all tokens so far, or none if the request was cancelled."""
        try:
            output = self._outputs.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"request {self.name} got no token for {timeout} s") from None
        self._ended = output is None or output.is_finished()
        if output is not None and output.error is not None:
            raise RequestError(self.name, output.error)
        return output.generated_tokens if output else []


class _Router(OutputRouter):
    """Gives each output of Transformers' loop to its request, instead of one queue for all."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def deliver(self, output: GenerationOutput) -> None:
        request = self._engine._requests.get(output.request_id)
        if request is None:
            return  # it was cancelled
        if output.is_finished():
            self._engine._forget(request)
        request._outputs.put(output)

    def deliver_batch(self, outputs: list[GenerationOutput]) -> None:
        for output in outputs:
            self.deliver(output)


class Engine:
    """Serves many requests with one model: Transformers' continuous batching, on the device.

    It is a context: entering it starts the loop, leaving it waits for all requests and frees the cache.

        with Engine(model, max_length=256) as engine:
            tokens = engine.submit([1, 5, 9], max_new_tokens=20).result()

    `manager` is Transformers' ContinuousBatchingManager.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        max_length: int,
        max_requests: int = 32,
        max_batch_tokens: int = 64,
        page_size: int = 32,
        pages: int | None = None,
        max_queue: int = 256,
        share_prefixes: bool = True,
        generation_config: GenerationConfig | None = None,
        backend: Any = "tt",
        options: Any = None,
    ) -> None:
        """Makes an engine that is not running yet.

        Args:
            model: as for `tt_torch.serving.prepare`.
            max_length: the tokens of the longest request, prompt and answer.
            max_requests: requests that one batch may have.
            max_batch_tokens: tokens that one batch may have. Longer prompts go in parts, between other tokens.
            page_size: tokens of a page. Multiples of 32 are updated in place.
            pages: pages of the cache, for all requests. The default is enough for `max_requests` of `max_length`.
                With fewer, requests wait, and the last ones give their pages back and are computed again.
            max_queue: unfinished requests that `submit` accepts before it waits or raises QueueFullError.
            share_prefixes: whether requests with equal first pages share them.
            generation_config: how tokens are chosen, for all requests. The default is the model's.
            backend: None leaves the model to eager PyTorch, to compare.
            options: options of `torch.compile` for our backend.
        """
        self._served = None if backend is None else serve(model, max_length, backend, options)
        config = generation_config or model.generation_config
        per_request = -(-max_length // page_size)
        settings = ContinuousBatchingConfig(
            page_size=page_size,
            num_blocks=pages or max_requests * per_request,
            max_batch_tokens=max_batch_tokens,
            max_requests_per_batch=max_requests,
            allow_block_sharing=share_prefixes,
            per_request_processors=True,
            auto_switch_to_flash=False,
        )
        self.max_length = min(max_length, page_size * (pages or per_request))
        self._model = model
        self.manager = model.init_continuous_batching(config, settings)
        self._default_new = config.max_new_tokens
        self._requests: dict[str, Request] = {}
        self._lock = threading.Lock()
        self._max_queue = max_queue
        self._places = threading.BoundedSemaphore(max_queue)
        self._count = 0
        self.manager.output_router = _Router(self)

    def __enter__(self) -> Engine:
        self.manager.start()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        """Waits for all requests, or stops them if the block raised."""
        self.manager.stop(hard_stop=kind is not None)
        for request in list(self._requests.values()):  # a stop can come before Transformers' loop has seen them
            stopped = GenerationOutput(request.name, status=RequestStatus.FAILED, error="the engine stopped")
            self.manager.output_router.deliver(stopped)

    def warm_up(self) -> None:
        """Compiles the programs of all sizes, so that no request waits for them. The engine must be running."""
        if self._served is not None:
            with self.manager.pause():
                self._served.warm_up(self.manager.batch_processor.cache)

    def submit(
        self,
        prompt: Sequence[int],
        *,
        max_new_tokens: int | None = None,
        eos_token_id: int | Iterable[int] | None = None,
        timeout: float | None = 0,
        **sampling: float,
    ) -> Request:
        """Sends a prompt of token ids.

        Args:
            prompt: the token ids of one prompt, as a list or as a tensor of one dimension.
            max_new_tokens: the tokens of the answer. The default comes from the generation config, or is `max_length`
                minus the length of the prompt.
            eos_token_id: tokens that end the answer. The default comes from the generation config.
            timeout: seconds to wait while the engine has `max_queue` unfinished requests; None waits without end.
            sampling: `temperature`, `top_k` and `top_p` of this request. The generation config must have
                `do_sample=True` and a value for each of them that requests may set.

        Raises:
            ConfigError: if the prompt is empty or has an id that the model does not know, if the request is longer
                than `max_length`, for `eos_token_id` that is no token, or for a sampling parameter that is out of range
                or that no request may set.
            QueueFullError: if there is no place in time.
            RequestError: if the engine is not running.
        """
        new = self._default_new if max_new_tokens is None else max_new_tokens
        tokens, new = checked(prompt, new, self.max_length, self._model)
        known = self.manager.logit_processor.supported_keys
        sampling = checked_sampling(sampling, known, self._model.config.get_text_config().vocab_size)
        ends = None if eos_token_id is None else checked_ends(eos_token_id)
        if not self._places.acquire(timeout=timeout):
            raise QueueFullError(self._max_queue, timeout)
        with self._lock:
            request = Request(self, f"request-{self._count}")
            self._count += 1
            self._requests[request.name] = request
        given = {"max_new_tokens": new, "eos_token_id": ends, "streaming": True, **sampling}
        if self.manager.is_running() and self.manager.add_request(tokens, request.name, **given):
            return request
        self._forget(request)
        raise RequestError(
            request.name, "the engine is not running"
        ) from self.manager.background_thread_status.fatal_error

    def free_pages(self) -> float:
        """The share of the pages, 0 to 1, that no request uses. Pages that are kept for equal prompts count as free."""
        cache = self.manager.batch_processor.cache
        kept = sum(len(allocator.ledger.cached_blocks) for allocator in cache.cache_allocators.values())
        return cache.compute_free_capacity() + kept / cache.num_blocks

    def _forget(self, request: Request) -> bool:
        """Gives the place of a request back. Returns False if it has ended already."""
        with self._lock:
            if self._requests.pop(request.name, None) is None:
                return False
        self._places.release()
        return True
