"""Models that write text with Transformers' `generate`: tokens beside eager PyTorch's, and how often they are compiled.

The cache has one size, so a program for the prompt and one for each further token are enough. A model with an encoder
has a third program, which reads its input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import torch
from torch import nn

from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.tracing import traced_for_device
from tt_torch.dynamo.types import Function
from tt_torch.records.lines import Record
from tt_torch.sweep.catalogue import load
from tt_torch.sweep.compiled import Compiled
from tt_torch.sweep.models import made
from tt_torch.sweep.registry import Inputs, randomize
from tt_torch.torch_private.dynamo import counters
from tt_torch.workers.engine import Item

TOKENS = 40  # more than the small sliding windows
_PROMPT = 5  # tokens: fewer than the windows
_SETTLED = 2  # tokens: the first comes from the prompt's program, and the second from that of further tokens

Generator: TypeAlias = Any  # a model with `generate`; transformers may be absent, so the class has no name here


def items(source: str = "") -> Iterator[Item]:
    """One item per model of the catalogue, or of the Python file `source`. A model that cannot generate has no
    record."""
    for model in load(source):
        yield Item(f"{model.name} generates", f"{__name__}:run", {"model": model.name, "source": source})


def run(model: str, source: str) -> Record:
    """The record of one model: whether its tokens are eager's, its programs, and those that come as the text grows."""
    module, inputs, labels = made(model, source)
    generator = _generator(module, with_head=not source)
    if generator is None:
        return {"verdict": "absent"}
    given = _inputs(generator, inputs)
    expected = _tokens(generator, given, lambda: None)
    programs, counts = Compiled(), list[int]()  # the number of programs after each token
    torch.compiler.reset()
    counters.clear()
    _compile(generator, programs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [_tokens(generator, given, lambda: counts.append(len(programs.executors))) for _ in range(2)]
    host = [asdict(op) for w in caught if isinstance(w.message, HostFallbackWarning) for op in w.message.ops]
    return {
        **labels,
        **_verdict(expected, found),
        "tokens": TOKENS,
        "programs": counts[-1],
        "recompilations": counts[-1] - counts[_SETTLED - 1],
        "host_ops": host,
        "graph_breaks": list(counters["graph_break"]),
    }


def _generator(module: nn.Module, with_head: bool) -> Generator | None:
    """The module, if it can generate. With `with_head` also a new model of its family that writes text."""
    import transformers

    config = getattr(module, "config", None)
    if not isinstance(config, transformers.PreTrainedConfig):
        return None
    generator: Generator = module
    if not (isinstance(module, transformers.GenerationMixin) and module.can_generate()):
        heads = (transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, transformers.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING)
        head = next((mapping[type(config)] for mapping in heads if type(config) in mapping), None)
        if head is None or not with_head:
            return None
        generator = head(config).eval()
        randomize(generator)
    generator.config.use_cache = generator.generation_config.use_cache = True
    return generator


def _inputs(generator: Generator, inputs: Inputs) -> Inputs:
    """The arguments of `generate`. They are the first tokens of the row's text, or its sound or picture."""
    name = generator.main_input_name
    if name != "input_ids":
        return {name: inputs[name]}
    prompt = inputs[name][:, :_PROMPT]
    return {name: prompt, "attention_mask": torch.ones_like(prompt)}


def _tokens(generator: Generator, given: Inputs, at_each_token: Callable[[], None]) -> torch.Tensor:
    """The tokens that a model generates with a static cache."""

    def processor(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        at_each_token()
        return scores

    length = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS}
    options = {"do_sample": False, "cache_implementation": "static", "logits_processor": [processor]}
    result: torch.Tensor = generator.generate(**given, **length, **options)
    return result


def _compile(generator: Generator, programs: Compiled) -> None:
    """Compiles the functions that `generate` calls. They are those of the model and of its encoder, if any."""
    options = BackendOptions(compiler_config=CompilerConfig().with_env().frozen(cache_size=0))

    @traced_for_device
    def backend(gm: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Function:
        return compile_captured(gm, inputs, options, programs.observer())

    parts = [generator]
    if generator.config.is_encoder_decoder:
        parts.append(generator.get_encoder())
    for part in parts:
        part.forward = torch.compile(part.forward, backend=backend)


def _verdict(expected: torch.Tensor, found: Sequence[torch.Tensor]) -> Record:
    """Whether both calls of the compiled model gave the expected tokens."""
    for call, got in enumerate(found, 1):
        if not torch.equal(got, expected):
            same = (got == expected).float().mean().item() if got.shape == expected.shape else 0.0
            message = f"call {call}: {same:.0%} of the tokens are eager's"
            return {"verdict": "wrong", "error": "Mismatch", "message": message}
    return {"verdict": "match"}
