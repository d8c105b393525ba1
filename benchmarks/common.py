"""The models, the timing and the tables that the benchmarks share."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from tt_torch.waiting import waiting

CONSOLE = Console(width=int(os.environ.get("COLUMNS", "110")))


def model(name: str, batch: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model with its real configuration and seeded random weights, and inputs for it."""
    import transformers

    torch.manual_seed(0)
    if name == "resnet50":
        config = transformers.ResNetConfig(num_labels=1000)
        return transformers.ResNetForImageClassification(config).eval(), (torch.randn(batch, 3, 224, 224),)
    if name == "llama":  # two layers of the size of Llama 3.2 1B
        sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8}
        llama = transformers.LlamaConfig(vocab_size=32000, num_hidden_layers=2, **sizes)
        return transformers.LlamaForCausalLM(llama).eval(), (torch.randint(0, llama.vocab_size, (batch, 128)),)
    if name == "vit":
        vit = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))
        return vit.eval(), (torch.randn(batch, 3, 224, 224),)
    if name == "gpt2":
        gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
        return gpt2.eval(), (torch.randint(0, gpt2.config.vocab_size, (batch, 128)),)
    config = transformers.BertConfig()
    return transformers.BertModel(config).eval(), (torch.randint(0, config.vocab_size, (batch, 128)),)


def first(output: Any) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else output[0]


def interleaved(
    sides: Mapping[str, Callable[[], Any]],
    rounds: int,
    pick: Callable[[list[float]], float] = statistics.median,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median of each side's seconds, or another statistic, `pick`.

    The sides take turns, so that a change of the machine's speed affects all of them.
    """
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        call()
    for _ in range(rounds):
        for name, call in sides.items():
            start = clock()
            call()
            taken[name].append(clock() - start)
    return {name: pick(values) for name, values in taken.items()}


def in_process(module: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """Runs `python -m module arguments` in a new process, and returns the JSON object in its last line.

    A line on stderr says what has run, how long, and with how much time of the processors, which other work on the
    machine changes less.
    """
    command = [sys.executable, "-m", module, *arguments]
    name, before = " ".join(command[2:]), os.times()
    with waiting(lambda: name):
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    _, _, user, system, elapsed = (after - begin for after, begin in zip(os.times(), before, strict=True))
    print(f"{name}: {elapsed:.1f} s, {user + system:.1f} s of the processors", file=sys.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    shown = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        shown.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        shown.add_row(*map(str, row))
    CONSOLE.print(shown)
