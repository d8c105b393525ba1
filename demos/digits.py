"""A classifier of handwritten digits, which you train on the CPU and evaluate on the device.

python demos/digits.py [--epochs N] [--dtype bf16] [--save model.ttnn]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
import typer
from common import DtypeOption, SaveOption, compile_for_device, conclude, console, print_facts, run
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from tt_torch.tools.utils import calculate_pcc

BATCH = 64  # the last batch of the test set is smaller, and gets a program of its own
POINTS = 0.5  # the largest accepted difference of the accuracies, in percent


def load_data() -> list[torch.Tensor]:
    """The training and test images (N x 1 x 8 x 8, values from 0 to 1), then the training and test labels."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    """Trains with plain PyTorch: Adam, cross entropy and shuffled batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.train()
    for _ in track(range(epochs), description="Training on the CPU", console=console):
        for batch in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()


@torch.no_grad()
def predict(model: Callable[[torch.Tensor], torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """The logits of all images. The model was compiled for BATCH images, so the last batch is filled up with zeros."""
    filled = nn.functional.pad(images, (0, 0, 0, 0, 0, 0, 0, -len(images) % BATCH))
    return torch.cat([model(batch) for batch in filled.split(BATCH)])[: len(images)]


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    return (logits.argmax(1) == labels).float().mean().item() * 100


def main(
    epochs: Annotated[int, typer.Option(min=1, max=1000, help="passes over the training set")] = 10,
    dtype: DtypeOption = None,
    save: SaveOption = None,
) -> None:
    """Trains a small CNN on scikit-learn's digits and evaluates it on the device and on the CPU."""
    torch.manual_seed(0)
    train_images, test_images, train_labels, test_labels = load_data()
    model = make_model()
    train(model, train_images, train_labels, epochs)
    compiled, facts = compile_for_device(model, (test_images[:BATCH],), dtype, save)
    cpu, device = predict(model, test_images), predict(compiled, test_images)
    on_cpu, on_device = accuracy(cpu, test_labels), accuracy(device, test_labels)
    print_facts(
        facts
        | {
            "test images": f"{len(test_images)}, in batches of {BATCH}",
            "accuracy, CPU": f"{on_cpu:.2f} %",
            "accuracy, device": f"{on_device:.2f} %",
            "PCC": f"{calculate_pcc(device, cpu):.6f} (device against CPU)",
        }
    )
    conclude({f"accuracy within {POINTS} points of the CPU's": abs(on_cpu - on_device) <= POINTS})


if __name__ == "__main__":
    run(main)
