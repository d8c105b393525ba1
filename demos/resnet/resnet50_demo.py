"""ResNet-50 classifies photographs on the device and on the CPU, side by side.

python demos/resnet/resnet50_demo.py [--image FILE|URL]... [--run_interactive] [--dtype bf16] [--batch N] [--save FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from huggingface_hub import HfApi
from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
from transformers import ResNetConfig, ResNetForImageClassification
from transformers.utils.logging import disable_progress_bar

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the demo runs from any folder

import image_classification
from classification import Classifier, Images, compare, show
from common import DtypeOption, OutOption, SaveOption, compile_for_device, console, run, step
from photographs import ImagesOption, read_images

PRETRAINED = "microsoft/resnet-50"
HUB_SECONDS = 5  # the time limit for the hub's first answer; the download itself may take longer

SAMPLES = ("china.jpg", "flower.jpg")


class Logits(torch.nn.Module):
    """A model of transformers that returns the logits alone."""

    def __init__(self, model: ResNetForImageClassification) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model(pixels).logits


def load_classifier() -> tuple[Classifier, str | None]:
    """Returns the pretrained model, or one with seeded random weights and the reason for them."""
    disable_progress_bar()
    try:
        return _classifier(_pretrained()), None
    except (HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError) as error:
        reason = "offline mode" if isinstance(error, OfflineModeIsEnabled) else str(error).splitlines()[0]
        return _random(), reason


def _classifier(model: ResNetForImageClassification) -> Classifier:
    """The classifier with the mean and the deviation of ImageNet. Without pretrained weights, classes have no names."""
    names = model.config.id2label
    return Classifier(
        name="ResNet-50",
        model=Logits(model).eval(),
        mean=[0.485, 0.456, 0.406],
        deviation=[0.229, 0.224, 0.225],
        label=lambda i: f"class {i}" if names[i].startswith("LABEL_") else names[i].split(",")[0],
    )


def _pretrained() -> torch.nn.Module:
    """Loads from the local cache, or from the hub if it answers a short request. A download itself retries for long."""
    try:
        return ResNetForImageClassification.from_pretrained(PRETRAINED, local_files_only=True)
    except OSError:
        HfApi().model_info(PRETRAINED, timeout=HUB_SECONDS)
    try:
        return ResNetForImageClassification.from_pretrained(PRETRAINED)
    except OSError as error:  # transformers raises this for many reasons; the cause is the real one
        raise error.__cause__ or error from None


def _random() -> Classifier:
    """A model with random weights. One pass over photographs sets the running statistics of its normalizations.

    With the initial statistics, activations would grow from layer to layer until one class had all the probability.
    """
    torch.manual_seed(0)
    classifier = _classifier(ResNetForImageClassification(ResNetConfig(num_labels=1000)))
    for module in classifier.model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        classifier.model.train()(*classifier.batches(read_images([], SAMPLES), len(SAMPLES)))
    classifier.model.eval()
    return classifier


def answer_questions(show: Callable[[Images], object]) -> None:
    """Shows the photographs that the user names, one after the other, until the user stops."""
    while True:
        try:
            place = console.input("path or URL of a photograph (nothing: the samples; stop: the end): ").strip()
        except EOFError:
            return
        if place == "stop":
            return
        try:
            show(read_images([place] if place else [], SAMPLES))
        except typer.BadParameter as error:
            console.print(f"cannot be read: {error.message}", soft_wrap=True, markup=False)


def main(
    image: ImagesOption = [],  # noqa: B006 - typer's form of an option that may be absent
    run_interactive: Annotated[
        bool, typer.Option("--run_interactive", help="ask for photographs, one after the other")
    ] = False,
    dtype: DtypeOption = None,
    batch: Annotated[int, typer.Option(min=1, max=256, help="images per call")] = 1,
    save: SaveOption = None,
    out: OutOption = None,
) -> None:
    """Classifies photographs with ResNet-50 on the device and compares with PyTorch on the CPU.

    If there are no pretrained weights, the names of EfficientNet-Lite0, whose weights are pretrained, are shown, too.
    """
    if image and run_interactive:
        raise typer.BadParameter("with --run_interactive, photographs are named when it asks", param_hint="--image")
    images = read_images(image, SAMPLES)
    with step("Loading the model"):
        classifier, missing = load_classifier()
        source = f"pretrained weights of {PRETRAINED}"
        if missing:
            source = f"random weights (seed 0): the Hugging Face hub does not answer ({missing})"
        console.print(f"{classifier.name} with {source}", soft_wrap=True)
        beside = image_classification.load_classifier() if missing else None
    compiled, facts = compile_for_device(classifier.model, classifier.batches(images, batch)[:1], dtype, save)
    if run_interactive:
        return answer_questions(partial(show, classifier, compiled, batch=batch, beside=beside))
    compare(classifier, compiled, images, batch, facts, out, beside)


if __name__ == "__main__":
    run(main)
