"""Code of the demos that classify photographs: preprocessing, and tables of the names that CPU and device give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from common import conclude, console, print_facts, save_figure, short_time, step, time_per_call
from PIL import Image
from rich.table import Table
from rich.text import Text

from tt_torch.tools.utils import calculate_pcc

SIZE, CROP_SHARE = 224, 0.875  # the preprocessing with which both models were trained
SHOWN = 5  # the most probable classes that are shown

Network = Callable[[torch.Tensor], torch.Tensor]  # from pixels, N x 3 x 224 x 224, to logits, N x 1000
Images = dict[str, Image.Image]


@dataclass(frozen=True)
class Classifier:
    """A model, the mean and deviation of pixels (0 to 1) with which it was trained, and the names of its classes."""

    name: str
    model: torch.nn.Module
    mean: list[float]
    deviation: list[float]
    label: Callable[[int], str]

    def preprocess(self, image: Image.Image) -> torch.Tensor:
        """Scales the shortest edge to 256, crops the middle 224 x 224, and normalizes.

        Returns a float32 tensor of shape (3, 224, 224).
        """
        scale = int(SIZE / CROP_SHARE) / min(image.size)
        width, height = (max(SIZE, round(edge * scale)) for edge in image.size)
        left, top = (width - SIZE) // 2, (height - SIZE) // 2
        resized = image.resize((width, height), Image.Resampling.BICUBIC)
        middle = resized.crop((left, top, left + SIZE, top + SIZE))
        pixels = torch.frombuffer(bytearray(middle.tobytes()), dtype=torch.uint8).reshape(SIZE, SIZE, 3)
        return ((pixels / 255 - torch.tensor(self.mean)) / torch.tensor(self.deviation)).permute(2, 0, 1)

    def batches(self, images: Images, size: int) -> list[torch.Tensor]:
        """Batches of exactly `size` images. The images are repeated to fill the last batch."""
        pixels = [self.preprocess(image) for image in images.values()]
        count = -(-len(pixels) // size) * size
        filled = [pixels[i % len(pixels)] for i in range(count)]
        return [torch.stack(filled[i : i + size]) for i in range(0, count, size)]

    def logits(self, network: Network, images: Images, batch: int = 1) -> torch.Tensor:
        """The logits (images x classes) that `network` computes, which is the model or its compiled form."""
        with torch.no_grad():
            return torch.cat([network(pixels) for pixels in self.batches(images, batch)])[: len(images)]

    def top(self, logits: torch.Tensor) -> list[tuple[str, float]]:
        """The names and probabilities of the most probable classes."""
        found = logits.float().softmax(-1).topk(SHOWN)
        return [(self.label(i), p) for i, p in zip(found.indices.tolist(), found.values.tolist(), strict=True)]


def table(columns: dict[str, list[tuple[str, float]]]) -> Table:
    """Names and probabilities, one pair of columns per ranking."""
    shown = Table()
    shown.add_column("")
    for title in columns:
        shown.add_column(title)
        shown.add_column("probability", justify="right")
    for rank, row in enumerate(zip(*columns.values(), strict=True), 1):
        shown.add_row(str(rank), *(cell for name, p in row for cell in (name, f"{p:.4f}")))
    return shown


def show(
    classifier: Classifier, compiled: Network, images: Images, batch: int = 1, beside: Classifier | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prints a table per image, and returns the logits of the CPU and of the device. `beside` runs on the CPU."""
    cpu, device = (classifier.logits(network, images, batch) for network in (classifier.model, compiled))
    others = beside.logits(beside.model, images) if beside else None
    for i, name in enumerate(images):
        columns = {"CPU": classifier.top(cpu[i]), "device": classifier.top(device[i])}
        if beside and others is not None:
            columns[beside.name] = beside.top(others[i])
        console.print(Text(name, style="bold"), soft_wrap=True)
        console.print(table(columns))
    return cpu, device


def compare(
    classifier: Classifier,
    compiled: Network,
    images: Images,
    batch: int,
    facts: dict[str, str],
    out: Path | None,
    beside: Classifier | None = None,
) -> None:
    """Classifies on CPU and device, prints the names and `facts`, writes the picture `out`, and checks the device."""
    first = classifier.batches(images, batch)[0]
    with step("Classifying"), torch.no_grad():
        seconds = time_per_call([classifier.model, compiled], first)
    cpu, device = show(classifier, compiled, images, batch, beside)
    pcc = min(calculate_pcc(ours, theirs) for ours, theirs in zip(device, cpu, strict=True))
    how = f"(batch {batch}, {torch.get_num_threads()} threads)"
    for where, total in zip(("CPU", "device"), seconds, strict=True):
        facts[f"time per image, {where}"] = f"{short_time(total / batch)} {how}"
    facts["PCC"] = f"{pcc:.6f} (device against CPU, lowest of all images)"
    if out:
        draw({name: (images[name], classifier.top(row)) for name, row in zip(images, device, strict=True)}, out)
        facts["picture"] = str(out)
    print_facts(facts)
    required = 0.99 if "bf16" in facts["compute type"] else 0.9999
    conclude({f"PCC at least {required}": pcc >= required})


def draw(found: dict[str, tuple[Image.Image, list[tuple[str, float]]]], path: Path) -> None:
    """Writes each photograph and the probabilities of its names, as bars, into one PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.2 * len(found)), dpi=100, layout="constrained")
    cells = figure.subplots(len(found), 2, squeeze=False, width_ratios=(2, 3))
    for (name, (image, top)), (left, right) in zip(found.items(), cells, strict=True):
        left.imshow(image.copy())
        left.set_axis_off()
        left.set_title(Path(name).name, fontsize=9, loc="left")
        bars = right.barh(range(SHOWN), [p for _, p in top], color="tab:blue", height=0.6)
        right.bar_label(bars, [f" {text}  {p:.1%}" for text, p in top])
        right.set(xlim=(0, 1.6), ylim=(SHOWN - 0.5, -0.5))
        right.set_axis_off()
    save_figure(figure, path)
