"""Silero VAD with its pretrained weights says when somebody speaks in a sound file, on the device and on the CPU.

python demos/voice_activity.py [--sound FILE.wav] [--dtype bf16] [--save FILE] [-o speech.png]
"""

from __future__ import annotations

import wave
from collections.abc import Callable
from functools import partial
from math import gcd
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from common import (
    DtypeOption,
    OutOption,
    SaveOption,
    compile_for_device,
    conclude,
    console,
    installed,
    print_facts,
    run,
    save_figure,
    short_time,
    step,
    time_per_call,
)
from matplotlib.figure import Figure
from safetensors.torch import load_file
from scipy.signal import resample_poly
from torch import nn

RATE = 16000  # samples per second that the model takes
CHUNK, CONTEXT = 512, 64  # samples per call, and samples before them, which the model sees, too
BEGIN, END = 0.5, 0.35  # speech begins at the first probability, and ends below the second one
PAUSE, SHORTEST = 4, 8  # chunks (of 32 ms) of silence that end speech; shorter speech does not count
SAME = {"f32": 1e-3, "bf16": 0.1}  # the largest accepted difference of a probability from the CPU's

Network = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


class Silero(nn.Module):
    """The network for 16 kHz: a spectrum by a convolution, four more convolutions, and an LSTM from chunk to chunk.

    Maps a chunk with its context (1 x 576) and the LSTM's state (two tensors 1 x 128) to the probability of speech
    (shape 1) and the next state. https://github.com/snakers4/silero-vad
    """

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(
        self, samples: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        real, imaginary = self.stft_conv(nn.functional.pad(samples, (0, CONTEXT), "reflect")[:, None]).chunk(2, dim=1)
        features = (real.square() + imaginary.square()).sqrt()
        for convolution in (self.conv1, self.conv2, self.conv3, self.conv4):
            features = convolution(features).relu()
        hidden, cell = self.lstm_cell(features.squeeze(-1), (hidden, cell))
        return self.final_conv(hidden[..., None].relu()).sigmoid().flatten(), hidden, cell


def load_model() -> Silero:
    """The model with the weights of the package silero-vad. An import of the package would set torch's threads."""
    model = Silero().eval()
    model.load_state_dict(load_file(installed("silero_vad") / "data" / "silero_vad_16k.safetensors"))
    return model


def read_sound(path: Path) -> torch.Tensor:
    """The samples of a .wav file, from -1 to 1, with all channels mixed, at 16 kHz, as a float32 tensor.

    Raises BadParameter if the file cannot be read or has no samples.
    """
    try:
        with wave.open(str(path)) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise typer.BadParameter(f"{path}: {str(error) or 'the file is not complete'}", param_hint="--sound") from None
    bytes_ = np.frombuffer(data[: len(data) // (width * channels) * width * channels], np.uint8).reshape(-1, width)
    if not len(bytes_):
        raise typer.BadParameter(f"{path} has no samples", param_hint="--sound")
    filled = np.zeros((len(bytes_), 4), np.uint8)
    filled[:, 4 - width :] = bytes_ ^ 0x80 if width == 1 else bytes_  # a sample of 8 bits has no sign, others have
    samples = (filled.view("<i4") / 2**31).reshape(-1, channels).mean(1)
    shared = gcd(rate, RATE)
    return torch.tensor(resample_poly(samples, RATE // shared, rate // shared), dtype=torch.float32)


def sample_sound() -> torch.Tensor:
    """Quiet noise, a recorded sentence, a tone, the sentence at a fifth of the volume, and noise: one second of each.

    The sentence comes with the package AMFM_decompy. The model must find it twice, and not the tone.
    """
    sentence = read_sound(installed("amfm_decompy") / "sample.wav")
    silence, tone = torch.zeros(RATE), 0.05 * torch.sin(2 * torch.pi * 440 * torch.arange(RATE) / RATE)
    sound = torch.cat([silence, sentence, silence, tone, silence, sentence / 5, silence])
    return sound + 0.0005 * torch.randn(len(sound), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def probabilities(network: Network, sound: torch.Tensor) -> torch.Tensor:
    """The probability of speech in each chunk. Chunks follow each other as in a live sound; the last is filled up."""
    padded = nn.functional.pad(sound, (CONTEXT, -len(sound) % CHUNK))
    hidden = cell = torch.zeros(1, 128)
    found = []
    for samples in padded.unfold(0, CONTEXT + CHUNK, CHUNK):
        probability, hidden, cell = network(samples[None], hidden, cell)
        found.append(probability)
    return torch.cat(found)


def speech(found: torch.Tensor) -> list[tuple[float, float]]:
    """Where speech begins and ends, in seconds."""
    spans: list[tuple[int, int]] = []
    begin, quiet = None, 0
    for i, p in enumerate([*found.tolist(), *[0.0] * PAUSE]):
        quiet = quiet + 1 if p < END else 0
        if begin is None and p >= BEGIN:
            begin = i
        elif begin is not None and quiet == PAUSE:
            spans.append((begin, i + 1 - PAUSE))
            begin = None
    return [(a * CHUNK / RATE, b * CHUNK / RATE) for a, b in spans if b - a >= SHORTEST]


def draw(sound: torch.Tensor, cpu: torch.Tensor, device: torch.Tensor, path: Path) -> None:
    """Plots the sound and the probability of speech on CPU and device over time. Speech has a coloured background."""
    figure = Figure(figsize=(8, 4), dpi=100, layout="constrained")
    wave_axes, axes = figure.subplots(2, 1, sharex=True)
    wave_axes.plot(torch.arange(len(sound)) / RATE, sound, color="0.35", linewidth=0.5)
    wave_axes.set(ylabel="sound", title="Speech, found on the device")
    times = torch.arange(len(device)) * CHUNK / RATE
    axes.plot(times, device, color="tab:blue", label="device")
    axes.plot(times, cpu, color="tab:orange", linestyle="--", label="CPU")
    axes.axhline(BEGIN, color="0.7", linewidth=0.8)
    axes.set(ylabel="probability of speech", xlabel="seconds", ylim=(-0.05, 1.05))
    axes.legend(loc="upper right")
    for begin, end in speech(device):
        for each in (wave_axes, axes):
            each.axvspan(begin, end, color="tab:green", alpha=0.15)
    save_figure(figure, path)


def main(
    sound: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE.wav", help="a sound of any rate, width and channels"),
    ] = None,
    dtype: DtypeOption = None,
    save: SaveOption = None,
    out: OutOption = Path("speech.png"),
) -> None:
    """Finds speech in a sound file with a pretrained Silero VAD on the device, and compares with the CPU."""
    samples = read_sound(sound) if sound else sample_sound()
    with step("Loading the model"):
        model = load_model()
        console.print("Silero VAD with pretrained weights")
    inputs = (torch.zeros(1, CONTEXT + CHUNK), torch.zeros(1, 128), torch.zeros(1, 128))
    compiled, facts = compile_for_device(model, inputs, dtype, save)
    with step("Listening"):
        cpu, device = (probabilities(network, samples) for network in (model, compiled))
        seconds = time_per_call([partial(probabilities, model), partial(probabilities, compiled)], samples, repeats=1)
    for begin, end in speech(device):
        console.print(f"speech from {begin:.2f} s to {end:.2f} s")
    draw(samples, cpu, device, out)
    facts["sound"] = f"{len(samples) / RATE:.2f} s in {len(device)} chunks"
    for where, total in zip(("CPU", "device"), seconds, strict=True):
        facts[f"time, {where}"] = f"{short_time(total)}, {len(samples) / RATE / total:.0f} times as fast as the sound"
    difference = (device - cpu).abs().max().item()
    print_facts(facts | {"difference": f"{difference:.2g} (largest of a probability)", "picture": str(out)})
    most = SAME["bf16" if "bf16" in facts["compute type"] else "f32"]
    conclude(
        {
            f"every probability within {most:g} of the CPU's": difference <= most,
            "speech begins and ends where it does on the CPU": speech(device) == speech(cpu),
        }
    )


if __name__ == "__main__":
    run(main)
