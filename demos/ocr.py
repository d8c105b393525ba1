"""PaddleOCR's networks, which rapidocr-onnxruntime ships as ONNX files, read a picture on the device and on the CPU.

python demos/ocr.py [--image FILE|URL] [-o text.png]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from common import (
    OutOption,
    conclude,
    console,
    installed,
    needs,
    print_facts,
    run,
    short_time,
    step,
    time_per_call,
)
from photographs import read_images
from PIL import Image, ImageDraw, ImageFont
from rich.table import Table
from skimage.measure import label, regionprops
from skimage.morphology import dilation, footprint_rectangle

import tt_torch
from tt_torch.files import write_by

needs("onnx")
needs("onnx-models")

MODELS = {name: f"ch_{file}_infer.onnx" for name, file in (
    ("detector", "PP-OCRv4_det"), ("direction", "ppocr_mobile_v2.0_cls"), ("recogniser", "PP-OCRv4_rec"),
)}  # fmt: skip
LONGEST, MULTIPLE = 960, 32  # sizes of the detector's input, in pixels
TEXT, SURE = 0.3, 0.5  # the least probability of text at a pixel, and its least mean in a box
GROWN = 1.6  # the network finds the middle of a line; its box grows by this share of area / perimeter
SMALLEST = 3  # pixels of a box's edge
HEIGHT, DIRECTION_WIDTH = 48, 192  # of the pictures of lines, for both other networks
TURNED = 0.9  # the least probability of a line that is upside down
SAME = 1e-3  # the largest accepted difference of a confidence from the CPU's
LIGHT = (90, 255, 90)
WORDS = ("tt-torch reads ONNX models", "Hello, world! 2026", "upside down", "PaddleOCR 4.0 (a + b = 7)")
UPSIDE_DOWN = 2  # the number of the line

Network = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Line:
    """A line: its box (left, top, right, bottom) in pixels, its text, and the mean probability of its characters."""

    box: tuple[int, int, int, int]
    text: str
    confidence: float


class OnDevice:
    """A network on the device, with a program for each shape of its input, which is compiled at the first call."""

    def __init__(self, file: Path) -> None:
        self.file, self.seconds = file, 0.0
        self.programs: dict[torch.Size, Network] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape not in self.programs:
            start = time.perf_counter()
            self.programs[x.shape] = tt_torch.compile_onnx(self.file, shapes={"x": x.shape})
            self.seconds += time.perf_counter() - start
        return self.programs[x.shape](x)


class OnCPU:
    """A network in ONNX Runtime."""

    def __init__(self, file: Path) -> None:
        import onnxruntime

        self.session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.session.run(None, {"x": x.numpy()})[0])

    def characters(self) -> list[str]:
        """The classes of the recogniser: nothing, the characters in the file of the network, and a space."""
        return ["", *self.session.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]


@dataclass
class Reader:
    """The three networks."""

    detector: Network
    direction: Network
    recogniser: Network
    characters: list[str]

    def read(self, image: Image.Image) -> list[Line]:
        """All lines of a picture, from top to bottom."""
        boxes = find(self.detector, image)
        if not boxes:
            return []
        crops = [image.crop(box) for box in boxes]
        turned = self.direction(torch.stack([on_a_strip(crop, DIRECTION_WIDTH) for crop in crops]))[:, 1] > TURNED
        crops = [crop.rotate(180) if turn else crop for crop, turn in zip(crops, turned.tolist(), strict=True)]
        widest = max(HEIGHT * crop.width / crop.height for crop in crops)
        strips = torch.stack([on_a_strip(crop, round_up(widest)) for crop in crops])
        found = [decode(probabilities, self.characters) for probabilities in self.recogniser(strips)]
        return [Line(box, text, sure) for box, (text, sure) in zip(boxes, found, strict=True)]


def round_up(size: float) -> int:
    return max(1, -int(-size // MULTIPLE)) * MULTIPLE


def pixels_of(image: Image.Image) -> torch.Tensor:
    """Values from -1 to 1, of shape 3 x H x W: blue, green, red."""
    values = np.asarray(image, np.float32)[..., ::-1] / 127.5 - 1
    return torch.tensor(values.transpose(2, 0, 1).copy())


def on_a_strip(line: Image.Image, width: int) -> torch.Tensor:
    """A line of text in a height of 48 pixels, at the left of a strip that is grey at the right."""
    strip = torch.zeros(3, HEIGHT, width)
    resized = line.resize((max(1, min(width, round(HEIGHT * line.width / line.height))), HEIGHT))
    strip[:, :, : resized.width] = pixels_of(resized)
    return strip


def find(detector: Network, image: Image.Image) -> list[tuple[int, int, int, int]]:
    """The boxes of lines, from top to bottom. The detector gives the probability of text at each pixel."""
    scale = min(1.0, LONGEST / max(image.size))
    width, height = (round_up(edge * scale) for edge in image.size)
    probability = detector(pixels_of(image.resize((width, height)))[None])[0, 0].numpy()
    spots = label(dilation(probability > TEXT, footprint_rectangle((2, 2))))
    boxes = []
    for spot in regionprops(spots, intensity_image=probability):
        top, left, bottom, right = spot.bbox
        if spot.intensity_mean < SURE or min(bottom - top, right - left) < SMALLEST:
            continue
        grow = GROWN * (bottom - top) * (right - left) / (2 * (bottom - top + right - left))
        edges = (left - grow, top - grow, right + grow, bottom + grow)
        scaled = [edge * size / of for edge, size, of in zip(edges, image.size * 2, (width, height) * 2, strict=True)]
        limits = zip(map(round, scaled), image.size * 2, strict=True)
        boxes.append(tuple(min(max(edge, 0), limit) for edge, limit in limits))
    return sorted(boxes, key=lambda box: (box[1], box[0]))


def decode(probabilities: torch.Tensor, characters: list[str]) -> tuple[str, float]:
    """The text of a line, and the mean probability of its characters.

    The network gives the probabilities of all characters at each place (places x characters). The same character at
    neighbouring places is one character, and character 0 means that there is none (CTC).
    """
    best, chosen = probabilities.max(1)
    kept = (chosen != 0) & (chosen != torch.cat([chosen.new_zeros(1), chosen[:-1]]))
    text = "".join(characters[i] for i in chosen[kept].tolist())
    return text, best[kept].mean().item() if kept.any() else 0.0


def drawn() -> Image.Image:
    """A picture with the lines of WORDS, in several sizes and colours. One of them is upside down."""
    image = Image.new("RGB", (640, 320), (250, 245, 230))
    for number, (words, colour) in enumerate(zip(WORDS, ("black", "darkblue", "black", "darkred"), strict=True)):
        font = ImageFont.load_default(30 + 6 * (number % 2))
        line = Image.new("RGB", (600, 60), image.getpixel((0, 0)))
        ImageDraw.Draw(line).text((5, 8), words, colour, font)
        image.paste(line.rotate(180) if number == UPSIDE_DOWN else line, (20, 15 + 75 * number))
    return image


def framed(image: Image.Image, lines: list[Line]) -> Image.Image:
    """The picture with the boxes of the lines."""
    picture = image.copy()
    for line in lines:
        ImageDraw.Draw(picture).rectangle(line.box, outline=LIGHT, width=3)
    return picture


def show(cpu: list[Line], device: list[Line]) -> None:
    table = Table("left, top, right, bottom", "device", "confidence", "CPU", "confidence")
    for mine, other in zip(device, cpu, strict=False):
        box = ", ".join(map(str, mine.box))
        table.add_row(box, mine.text, f"{mine.confidence:.4f}", other.text, f"{other.confidence:.4f}")
    console.print(table, markup=False)


def main(
    image: Annotated[
        str | None, typer.Option("--image", metavar="FILE|URL", help="a picture with horizontal lines of text")
    ] = None,
    out: OutOption = Path("text.png"),
) -> None:
    """Reads the text of a picture with PaddleOCR's networks on the device, and compares with ONNX Runtime."""
    picture = read_images([image], ())[image] if image else drawn()
    folder = installed("rapidocr_onnxruntime") / "models"
    on_cpu = {name: OnCPU(folder / file) for name, file in MODELS.items()}
    on_device = {name: OnDevice(folder / file) for name, file in MODELS.items()}
    characters = on_cpu["recogniser"].characters()
    readers = [Reader(**networks, characters=characters) for networks in (on_cpu, on_device)]
    cpu = readers[0].read(picture)
    if not cpu:
        raise typer.BadParameter("ONNX Runtime finds no text in the picture", param_hint="--image")
    with step("Compiling and reading"):
        device = readers[1].read(picture)
    seconds = time_per_call([reader.read for reader in readers], picture)
    show(cpu, device)
    write_by(out, lambda unfinished: framed(picture, device).save(unfinished, format="png"))
    facts = {"compile time": ", ".join(f"{name} {short_time(one.seconds)}" for name, one in on_device.items())}
    facts |= {f"time, {where}": short_time(taken) for where, taken in zip(("CPU", "device"), seconds, strict=True)}
    print_facts(facts | {"picture": str(out)})
    pairs = zip(device, cpu, strict=False)
    checks = {
        "every line reads as on the CPU": [line.text for line in device] == [line.text for line in cpu],
        f"confidences within {SAME:g} of the CPU's": all(abs(a.confidence - b.confidence) <= SAME for a, b in pairs),
    }
    if not image:
        checks["the device reads what was drawn"] = tuple(line.text for line in device) == WORDS
    conclude(checks)


if __name__ == "__main__":
    run(main)
