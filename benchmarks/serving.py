"""A load test of the serving engine, on the device and in eager PyTorch: requests of mixed lengths.

An open-loop generator sends each request at its time, whether or not earlier ones were answered, so that a server which
is too slow builds up a queue. Some clients cancel, and some are gone in the middle of an answer. No token may be wrong:
each request must get the tokens of its single run by eager `generate`. All pages must be free at the end.

`python -m benchmarks.serving --seconds 180` sends requests for this time.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import torch
import typer

from benchmarks.common import table

KINDS = 64  # different requests
MAX_LENGTH = 192
LEAVES = {"cancels": 7, "is gone": 12}  # one in this number of clients


@dataclass(frozen=True)
class Job:
    """A request, and the tokens that eager `generate` gives for it alone."""

    prompt: list[int]
    expected: list[int]


@dataclass(frozen=True)
class Answer:
    """The answer that one client got. Times are seconds after the request was due."""

    first: float
    last: float | None  # None for a client that left early
    tokens: int
    wrong: bool


@dataclass
class Outcome:
    """The results of a load test: all answers, the seconds it took, and the share of free pages at its end."""

    answers: list[Answer]
    seconds: float
    free: float

    @property
    def wrong(self) -> int:
        """The number of answers with wrong tokens."""
        return sum(answer.wrong for answer in self.answers)

    @property
    def first(self) -> list[float]:
        return [answer.first for answer in self.answers]

    @property
    def last(self) -> list[float]:
        """The times of the answers that were read to their ends."""
        return [answer.last for answer in self.answers if answer.last is not None]


def network(layers: int = 4, depth: int = 64) -> Any:
    """A small Llama with seeded random weights, large enough that greedy tokens vary."""
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=4 * depth, intermediate_size=8 * depth, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.1,
        pad_token_id=0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def jobs(
    model: Any, count: int = KINDS, prompts: tuple[int, int] = (4, 96), answers: tuple[int, int] = (8, 64)
) -> list[Job]:
    """Requests of mixed lengths. One in four begins as another one does, so that pages can be shared."""
    draw, made = random.Random(1), []
    common = [draw.randrange(1, 1000) for _ in range(64)]
    for i in range(count):
        prompt = [draw.randrange(1, 1000) for _ in range(draw.randint(*prompts))]
        prompt = common[: len(prompt)] + prompt[:8] if i % 4 == 0 else prompt
        new = draw.randint(*answers)
        tokens = model.generate(torch.tensor([prompt]), max_new_tokens=new, do_sample=False)
        made.append(Job(prompt, tokens[0, len(prompt) :].tolist()))
    return made


def load(engine: Any, work: list[Job], rate: float, requests: int) -> Outcome:
    """Sends `requests` requests, `rate` of them per second at random times, and waits for all answers."""
    start, sent = time.perf_counter(), []
    with concurrent.futures.ThreadPoolExecutor(max_workers=256) as clients:
        for i, (job, due) in enumerate(zip(itertools.cycle(work), itertools.islice(_times(rate), requests))):
            time.sleep(max(0.0, start + due - time.perf_counter()))
            sent.append(clients.submit(_client, engine, job, start + due, _leaves(i)))
        answers = [client.result() for client in sent]
    seconds = time.perf_counter() - start
    deadline = time.perf_counter() + 10  # the engine frees the pages of cancelled requests before its next batch
    while (free := engine.free_pages()) < 1 and time.perf_counter() < deadline:
        time.sleep(0.02)
    return Outcome(answers, seconds, free)


def _times(rate: float) -> Iterator[float]:
    """Seconds at which a Poisson process sends requests."""
    draw = random.Random(2)
    return itertools.accumulate(draw.expovariate(rate) for _ in itertools.count())


def _leaves(i: int) -> str | None:
    return next((how for how, each in LEAVES.items() if i % each == each - 1), None)


def _client(engine: Any, job: Job, due: float, leaves: str | None) -> Answer:
    """Reads an answer token by token, or only its first half if the client leaves."""
    request = engine.submit(job.prompt, max_new_tokens=len(job.expected), timeout=None)
    found: list[int] = []
    first = 0.0
    answer = iter(request)
    for token in answer:
        first = first or time.perf_counter() - due
        found.append(token)
        if leaves and 2 * len(found) >= len(job.expected):
            break
    if leaves == "cancels":
        request.cancel()
    del answer, request  # a client that is gone says nothing
    wanted = job.expected[: len(found)] if leaves else job.expected
    return Answer(first, None if leaves else time.perf_counter() - due, len(found), found != wanted)


def run(threads: int, seconds: float = 10, rate: float = 6.4) -> None:
    from tt_torch.serving import Engine

    torch.set_num_threads(threads)
    work = jobs(network())
    rows = []
    for name, backend in (("device", "tt"), ("eager", None)):
        with Engine(network(), max_length=MAX_LENGTH, backend=backend) as engine:
            engine.warm_up()
            outcome = load(engine, work, rate, int(rate * seconds))
        rows.append([name, *_row(outcome)])
    heads = ["side", "requests", "left early", "wrong", "free pages", "tokens/s"]
    heads += ["first token p50", "p99", "answer p50", "p99"]
    table(f"Serving: {rate:g} requests per second, 4 layers, 256 wide, float32 (times in ms)", heads, rows)


def _row(outcome: Outcome) -> list[str]:
    count, left = len(outcome.answers), len(outcome.answers) - len(outcome.last)
    times = [f"{1e3 * t:.0f}" for taken in (outcome.first, outcome.last) for t in _percentiles(taken)]
    rate = f"{sum(answer.tokens for answer in outcome.answers) / outcome.seconds:.0f}"
    return [str(count), str(left), str(outcome.wrong), f"{outcome.free:.0%}", rate, *times]


def _percentiles(taken: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return cuts[49], cuts[98]


def main(
    seconds: Annotated[float, typer.Option(help="How long requests are sent.")] = 10,
    rate: Annotated[float, typer.Option(help="Requests per second.")] = 6.4,
    threads: Annotated[int, typer.Option(help="Threads of PyTorch and of the emulated device.")] = 2,
) -> None:
    """The load test of the serving engine."""
    run(threads, seconds, rate)


if __name__ == "__main__":
    typer.run(main)
