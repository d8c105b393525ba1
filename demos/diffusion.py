"""A small diffusion model with random weights turns noise into a picture on the device, and into the same on the CPU.

python demos/diffusion.py [--steps N] [--size PIXELS] [--seed N] [--dtype bf16] [--save FILE] [-o diffusion.png]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from common import (
    DtypeOption,
    OutOption,
    SaveOption,
    compile_for_device,
    conclude,
    console,
    print_facts,
    run,
    save_figure,
    short_time,
    step,
    time_per_call,
)
from diffusers import DDIMScheduler, UNet2DModel
from matplotlib.figure import Figure

from tt_torch.tools.utils import calculate_pcc

LEAST = {False: 0.9999, True: 0.99}  # the PCC of each step with the CPU's, without and with bf16
LEAST_OF_END = 0.999  # the PCC of the last picture; in bf16, the steps make a small difference too large for this
SHOWN = 6  # states of the picture that are drawn

Network = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # from a picture and a time to the noise in it


class Noise(torch.nn.Module):
    """A U-Net of diffusers that returns the noise alone."""

    def __init__(self, unet: UNet2DModel) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, picture: torch.Tensor, moment: torch.Tensor) -> torch.Tensor:
        return self.unet(picture, moment, return_dict=False)[0]


def make_model(size: int) -> Noise:
    """A U-Net with two levels, attention in the lower one, and seeded random weights."""
    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=size,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    return Noise(unet).eval()


def make_scheduler(steps: int) -> DDIMScheduler:
    scheduler = DDIMScheduler(num_train_timesteps=1000, clip_sample=True)
    scheduler.set_timesteps(steps)
    return scheduler


@torch.no_grad()
def paint(network: Network, size: int, seed: int, steps: int) -> list[torch.Tensor]:
    """The picture (3 x size x size) before the first step and after each one. The scheduler runs on the host."""
    scheduler = make_scheduler(steps)
    picture = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(seed))
    states = [picture[0]]
    for moment in scheduler.timesteps:
        picture = scheduler.step(network(picture, moment.float().view(1)), moment, picture).prev_sample
        states.append(picture[0])
    return states


@torch.no_grad()
def lowest_pcc(network: Network, reference: Network, states: list[torch.Tensor]) -> float:
    """The lowest PCC between the noise that both networks find in the same pictures. One run made these pictures."""
    moments = make_scheduler(len(states) - 1).timesteps
    inputs = [(state[None], moment.float().view(1)) for state, moment in zip(states, moments, strict=False)]
    return min(calculate_pcc(network(*each), reference(*each)) for each in inputs)


def draw(rows: dict[str, list[torch.Tensor]], path: Path) -> None:
    """Shows some states of the picture, from noise to the end: one row per device."""
    count = min(SHOWN, len(next(iter(rows.values()))))
    figure = Figure(figsize=(1.5 * count, 3.4), dpi=100, layout="constrained")
    cells = figure.subplots(len(rows), count, squeeze=False)
    for (name, states), row in zip(rows.items(), cells, strict=True):
        for position, cell in enumerate(row):
            index = position * (len(states) - 1) // (count - 1)
            cell.imshow((states[index].clamp(-1, 1).permute(1, 2, 0) + 1) / 2)
            cell.set_title(f"{name}, step {index}", fontsize=8)
            cell.set_axis_off()
    save_figure(figure, path)


def main(
    steps: Annotated[int, typer.Option(min=1, max=1000, help="steps from noise to the picture")] = 20,
    size: Annotated[int, typer.Option(min=8, max=512, help="the picture's edge in pixels, a multiple of 8")] = 32,
    seed: Annotated[int, typer.Option(min=0, help="of the noise")] = 0,
    dtype: DtypeOption = None,
    save: SaveOption = None,
    out: OutOption = Path("diffusion.png"),
) -> None:
    """Runs a small diffusion model on the device and on the CPU. The weights are random, so it shows no thing."""
    if size % 8:
        raise typer.BadParameter(f"{size} is no multiple of 8", param_hint="--size")
    console.print("U-Net with random weights (seed 0): the picture shows no thing, but it must be the CPU's")
    model = make_model(size)
    inputs = (torch.zeros(1, 3, size, size), torch.zeros(1))
    compiled, facts = compile_for_device(model, inputs, dtype, save)
    with step("Painting"):
        cpu, device = (paint(network, size, seed, steps) for network in (model, compiled))
        seconds = time_per_call([partial(paint, model), partial(paint, compiled)], size, seed, steps, repeats=1)
    draw({"device": device, "CPU": cpu}, out)
    facts["model"] = f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} million parameters"
    for where, total in zip(("CPU", "device"), seconds, strict=True):
        facts[f"time, {where}"] = f"{short_time(total)} for {steps} steps"
    pcc, last = lowest_pcc(compiled, model, cpu), calculate_pcc(device[-1], cpu[-1])
    print_facts(
        facts
        | {
            "PCC of a step": f"{pcc:.6f} (device against CPU, lowest of all steps of the CPU's run)",
            "PCC of the end": f"{last:.6f} (of the pictures; small differences grow from step to step)",
            "picture": str(out),
        }
    )
    bf16 = "bf16" in facts["compute type"]
    checks = {f"PCC of each step at least {LEAST[bf16]}": pcc >= LEAST[bf16]}
    if not bf16:
        checks[f"PCC of the end at least {LEAST_OF_END}"] = last >= LEAST_OF_END
    conclude(checks)


if __name__ == "__main__":
    run(main)
