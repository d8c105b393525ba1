"""ResNet-50 classifies photographs on the device and on the CPU, side by side.

python demos/resnet/resnet50_demo.py [--image FILE|URL]... [--run_interactive] [--dtype bf16] [--batch N] [--save FILE]
"""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from typing import Annotated

import torch
import typer
from huggingface_hub import HfApi
from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
from PIL import Image, UnidentifiedImageError
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_sample_images
from transformers import ResNetConfig, ResNetForImageClassification
from transformers.utils.logging import disable_progress_bar

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the demo runs from any folder

from common import (
    DtypeOption,
    SaveOption,
    compile_for_device,
    conclude,
    console,
    print_facts,
    run,
    short_time,
    step,
    time_per_call,
)

from tt_torch.tools.utils import calculate_pcc

PRETRAINED = "microsoft/resnet-50"
HUB_SECONDS = 5  # the time limit for the hub's first answer; the download itself may take longer

Classifier = Callable[[torch.Tensor], torch.Tensor]  # from pixels to logits

# The preprocessing with which the model was trained.
SIZE, CROP_SHARE = 224, 0.875
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def load_model() -> tuple[torch.nn.Module, str]:
    """Returns the pretrained model, or one with seeded random weights, and a text that says which of the two it is."""
    disable_progress_bar()
    try:
        return _pretrained().eval(), f"pretrained weights of {PRETRAINED}"
    except (HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError) as error:
        reason = "offline mode" if isinstance(error, OfflineModeIsEnabled) else str(error).splitlines()[0]
        return _random().eval(), f"random weights (seed 0): the Hugging Face hub does not answer ({reason})"


def _pretrained() -> torch.nn.Module:
    """Loads from the local cache, or from the hub if it answers a first, short request. Downloads retry for long."""
    try:
        return ResNetForImageClassification.from_pretrained(PRETRAINED, local_files_only=True)
    except OSError:
        HfApi().model_info(PRETRAINED, timeout=HUB_SECONDS)
    try:
        return ResNetForImageClassification.from_pretrained(PRETRAINED)
    except OSError as error:  # transformers raises this for many reasons; the cause is the real one
        raise error.__cause__ or error from None


def _random() -> torch.nn.Module:
    torch.manual_seed(0)
    model = ResNetForImageClassification(ResNetConfig(num_labels=1000))
    # One pass over photographs sets the running statistics. With the initial statistics, activations would grow from
    # layer to layer until one class had all the probability.
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        model.train()(torch.stack([preprocess(image) for image in sample_images().values()]))
    return model


def sample_images() -> dict[str, Image.Image]:
    """The two photographs that come with scikit-learn."""
    sample = load_sample_images()
    names = [Path(name).name for name in sample.filenames]
    return {name: Image.fromarray(pixels) for name, pixels in zip(names, sample.images, strict=True)}


def read_images(places: list[str]) -> dict[str, Image.Image]:
    """The photographs at these paths and URLs, or the sample ones. Raises BadParameter for one that cannot be read."""
    try:
        return {place: read_image(place) for place in places} or sample_images()
    except (UnidentifiedImageError, OSError, HTTPException, ValueError, Image.DecompressionBombError) as error:
        raise typer.BadParameter(str(error), param_hint="--image") from None


def read_image(place: str) -> Image.Image:
    if not place.startswith(("http://", "https://")):
        return Image.open(place).convert("RGB")
    with urllib.request.urlopen(place, timeout=HUB_SECONDS) as answer:
        return Image.open(BytesIO(answer.read())).convert("RGB")


def preprocess(image: Image.Image) -> torch.Tensor:
    """Scales the shortest edge to 256, crops the middle 224 x 224, and normalizes by ImageNet's mean and deviation.

    Returns a float32 tensor of shape (3, 224, 224).
    """
    scale = int(SIZE / CROP_SHARE) / min(image.size)
    width, height = (max(SIZE, round(edge * scale)) for edge in image.size)
    left, top = (width - SIZE) // 2, (height - SIZE) // 2
    resized = image.resize((width, height), Image.Resampling.BICUBIC)
    middle = resized.crop((left, top, left + SIZE, top + SIZE))
    pixels = torch.frombuffer(bytearray(middle.tobytes()), dtype=torch.uint8).reshape(SIZE, SIZE, 3)
    return ((pixels / 255 - MEAN) / STD).permute(2, 0, 1)


def in_batches(images: list[torch.Tensor], size: int) -> list[torch.Tensor]:
    """Batches of exactly `size` images. The images are repeated to fill the last batch."""
    count = -(-len(images) // size) * size
    filled = [images[i % len(images)] for i in range(count)]
    return [torch.stack(filled[i : i + size]) for i in range(0, count, size)]


def label(model: torch.nn.Module, index: int) -> str:
    name = model.config.id2label[index]
    return f"class {index}" if name.startswith("LABEL_") else name.split(",")[0]


def top_five(model: torch.nn.Module, cpu: torch.Tensor, device: torch.Tensor) -> Table:
    table = Table()
    for column in ("", "CPU", "probability", "device", "probability"):
        table.add_column(column, justify="right" if column == "probability" else "left")
    rankings = [logits.float().softmax(-1).topk(5) for logits in (cpu, device)]
    for rank in range(5):
        cells = []
        for ranking in rankings:
            cells += [label(model, ranking.indices[rank].item()), f"{ranking.values[rank]:.4f}"]
        table.add_row(str(rank + 1), *cells)
    return table


def show(
    model: torch.nn.Module, classifiers: Sequence[Classifier], batch: int, images: dict[str, Image.Image]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prints a table per image; returns the logits of the CPU and of the device, which `classifiers` compute."""
    batches = in_batches([preprocess(picture) for picture in images.values()], batch)
    cpu, device = (torch.cat([classify(pixels) for pixels in batches]) for classify in classifiers)
    for name, theirs, ours in zip(images, cpu, device, strict=False):  # each image is shown once
        console.print(Text(name, style="bold"), soft_wrap=True)
        console.print(top_five(model, theirs, ours))
    return cpu, device


def answer_questions(show: Callable[[dict[str, Image.Image]], object]) -> None:
    """Shows the photographs that the user names, one after the other, until the user stops."""
    while True:
        try:
            place = console.input("path or URL of a photograph (nothing: the samples; stop: the end): ").strip()
        except EOFError:
            return
        if place == "stop":
            return
        try:
            show(read_images([place] if place else []))
        except typer.BadParameter as error:
            console.print(f"cannot be read: {error.message}", soft_wrap=True, markup=False)


def main(
    image: Annotated[list[str], typer.Option(help="path or URL of a photograph; may be given several times")] = [],  # noqa: B006 - typer's form of an option that may be absent
    run_interactive: Annotated[
        bool, typer.Option("--run_interactive", help="ask for photographs, one after the other")
    ] = False,
    dtype: DtypeOption = None,
    batch: Annotated[int, typer.Option(min=1, max=256, help="images per call")] = 1,
    save: SaveOption = None,
) -> None:
    """Classifies photographs with ResNet-50 on the device and compares with PyTorch on the CPU."""
    if image and run_interactive:
        raise typer.BadParameter("with --run_interactive, photographs are named when it asks", param_hint="--image")
    images = read_images(image)
    with step("Loading the model"):
        model, source = load_model()
    console.print(f"ResNet-50 with {source}", soft_wrap=True)

    first = in_batches([preprocess(picture) for picture in images.values()], batch)[:1]
    compiled, facts = compile_for_device(model, first, dtype, save)
    classifiers = [torch.no_grad()(lambda pixels: model(pixels).logits), lambda pixels: compiled(pixels).logits]
    if run_interactive:
        return answer_questions(partial(show, model, classifiers, batch))
    with step("Classifying"):
        seconds = time_per_call(classifiers, *first)
    cpu, device = show(model, classifiers, batch, images)
    pcc = min(calculate_pcc(ours, theirs) for ours, theirs in zip(device, cpu, strict=True))
    how = f"(batch {batch}, {torch.get_num_threads()} threads)"
    for where, total in zip(("CPU", "device"), seconds, strict=True):
        facts[f"time per image, {where}"] = f"{short_time(total / batch)} {how}"
    print_facts(facts | {"PCC": f"{pcc:.6f} (device against CPU, lowest of all images)"})
    required = 0.99 if "bf16" in facts["compute type"] else 0.9999
    conclude({f"PCC at least {required}": pcc >= required})


if __name__ == "__main__":
    run(main)
