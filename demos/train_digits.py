"""Training on the device: forward, backward and the optimizer's step of a CNN for handwritten digits.

python demos/train_digits.py [--epochs N] [--optimizer adamw] [-o loss.png]
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from common import OutOption, conclude, console, print_facts, run, save_curves, short_time
from digits import BATCH, accuracy, load_data, make_model, predict
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

import tt_torch

POINTS = 1.0  # the largest accepted difference of the accuracies, in percent


class Optimizer(StrEnum):
    """The values of --optimizer."""

    sgd = "sgd"
    adam = "adam"
    adamw = "adamw"


def make_optimizer(name: Optimizer, model: nn.Module) -> torch.optim.Optimizer:
    if name == Optimizer.sgd:
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](model.parameters(), lr=2e-3)


def on_device(function: Any) -> Any:
    """Compiles a function. An op that would run on the host is an error."""
    options = {"compiler_config": tt_torch.CompilerConfig(fallback="error").with_env()}
    return torch.compile(function, backend=tt_torch.backend, dynamic=False, options=options)


def batches(count: int, epochs: int) -> list[torch.Tensor]:
    """The indices of each step's images. Each epoch is shuffled anew, and its incomplete last batch is left out."""
    return [part for _ in range(epochs) for part in torch.randperm(count).split(BATCH) if len(part) == BATCH]


def train(
    title: str,
    model: Callable[[torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    step: Callable[[], Any],
    data: tuple[torch.Tensor, torch.Tensor],
    order: list[torch.Tensor],
) -> list[float]:
    """Trains, and returns the loss of each step. The progress bar shows it, too."""
    images, labels = data
    losses: list[float] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, TextColumn("loss {task.fields[loss]:.3f}"), console=console) as progress:
        task = progress.add_task(title, total=len(order), loss=float("nan"))
        for batch in order:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            step()
            losses.append(loss.item())
            progress.update(task, advance=1, loss=losses[-1])
    return losses


def first_and_last(losses: list[float]) -> str:
    return f"{losses[0]:.4f} at the first step, {losses[-1]:.4f} at the last"


def main(
    epochs: Annotated[int, typer.Option(min=1, max=1000, help="passes over the training set")] = 8,
    optimizer: Annotated[Optimizer, typer.Option(help="the optimizer; its step runs on the device")] = Optimizer.adamw,
    out: OutOption = Path("train_digits.png"),
) -> None:
    """Trains a small CNN on scikit-learn's digits on the device, and trains it on the CPU for comparison."""
    torch._logging.set_logs(dynamo=logging.ERROR)  # otherwise Dynamo warns that it ignores profiler marks of steps
    torch.manual_seed(0)
    train_images, test_images, train_labels, test_labels = load_data()
    model = make_model()
    reference, data, order = copy.deepcopy(model), (train_images, train_labels), batches(len(train_images), epochs)
    ours = make_optimizer(optimizer, model)
    theirs = make_optimizer(optimizer, reference)
    start = time.perf_counter()
    device = train("On the device", on_device(model), ours, on_device(ours.step), data, order)
    taken = time.perf_counter() - start
    cpu = train("On the CPU", reference, theirs, theirs.step, data, order)

    on_the_device = accuracy(predict(on_device(model.eval()), test_images), test_labels)
    on_the_cpu = accuracy(predict(reference.eval(), test_images), test_labels)
    lines = {name: (range(1, len(losses) + 1), losses) for name, losses in (("device", device), ("CPU", cpu))}
    labels = {"title": "Training on the digits", "xlabel": "step", "ylabel": "cross entropy"}
    save_curves(out, lines, **labels, yscale="log")
    print_facts(
        {
            "steps": f"{len(order)} of {BATCH} images, {optimizer}",
            "time on the device": f"{short_time(taken)}, compiling included",
            "loss, device": first_and_last(device),
            "loss, CPU": first_and_last(cpu),
            "test images": str(len(test_images)),
            "accuracy, device": f"{on_the_device:.2f} %",
            "accuracy, CPU": f"{on_the_cpu:.2f} %",
            "loss curve": str(out),
        }
    )
    conclude(
        {
            "the first losses are the CPU's": abs(device[0] - cpu[0]) < 1e-3,
            f"accuracy within {POINTS:g} point of the CPU's": abs(on_the_device - on_the_cpu) <= POINTS,
        }
    )


if __name__ == "__main__":
    run(main)
