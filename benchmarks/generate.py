"""The time of one token of a language model against the length of its cache, and the bytes that cross per token.

The model has two layers of the size of Llama 3.2 1B, in bfloat16, and a static cache. Each side decodes one token at a
time. Attention reads the whole cache, so its share grows with the length. Nothing else may grow.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.common import interleaved, model, table
from tt_torch import runtime

LENGTHS = (128, 512, 2048, 8192)


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    rows = [_row(length) for length in LENGTHS]
    heads = ["cache length", "ms per token", "eager", "inductor", "of eager", "bytes to the device", "bytes back"]
    table("Decoding: 2 layers, 2048 wide, bfloat16, batch 1", heads, rows)


def _row(length: int) -> tuple[object, ...]:
    torch._dynamo.reset()
    network = model("llama", 1)[0].bfloat16()
    compilers: dict[str, Callable[[Any], Any]] = {
        "device": lambda net: torch.compile(net, backend="tt", dynamic=False),
        "eager": lambda net: net,
        "inductor": lambda net: torch.compile(net, dynamic=False),
    }
    sides = {name: _decoder(network, compiler, length) for name, compiler in compilers.items()}
    with _Crossing() as crossing:
        logits = {name: side() for name, side in sides.items()}
    for name, found in logits.items():
        torch.testing.assert_close(found, logits["eager"], rtol=0.1, atol=0.1, msg=f"{name} gives other logits")
    times = interleaved(sides, 10, min)
    shown = [f"{1e3 * times[name]:.1f}" for name in compilers]
    return length, *shown, f"{times['device'] / times['eager']:.2f}", f"{crossing.to:,}", f"{crossing.back:,}"


def _decoder(network: Any, compiler: Callable[[Any], Any], length: int) -> Callable[[], torch.Tensor]:
    """A function that decodes a token. Each side has a module of its own, which shares the weights."""
    import transformers

    own = copy.copy(network)
    cache = transformers.StaticCache(config=network.config, max_cache_len=length)
    run, token = compiler(own), torch.tensor([[5]])
    with torch.no_grad():
        network(input_ids=torch.arange(1, 17)[None], past_key_values=cache)

    def step() -> torch.Tensor:
        with torch.no_grad():
            return run(input_ids=token, past_key_values=cache).logits

    step()
    return step


class _Crossing:
    """A context in which calls of programs add up the bytes that they copy `to` the device and `back` to the host."""

    def __enter__(self) -> _Crossing:
        self.to = self.back = 0
        self._call = call = runtime.Executable.__call__

        def counted(executable: Any, inputs: Any, resident: Any = (), *forms: Any) -> Any:
            results = call(executable, inputs, resident, *forms)
            passed = [x for i, x in enumerate(inputs) if i not in resident and not any(x is r for r in results)]
            self.to += sum(x.nbytes for x in passed)
            self.back += sum(r.nbytes for r in results if not any(r is x for x in inputs))
            return results

        runtime.Executable.__call__ = counted  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        runtime.Executable.__call__ = self._call  # type: ignore[method-assign]
