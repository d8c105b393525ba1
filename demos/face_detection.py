"""MTCNN with its pretrained weights finds faces, eyes, noses and mouths, on the device and on the CPU.

python demos/face_detection.py [--image FILE|URL] [--smallest PIXELS] [--dtype bf16] [-o faces.png]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from common import (
    Dtype,
    DtypeOption,
    OutOption,
    compile_for_device,
    conclude,
    console,
    print_facts,
    run,
    short_time,
    step,
    time_per_call,
)
from mtcnn_networks import output_network, proposal_network, refining_network
from photographs import read_images
from PIL import Image, ImageDraw
from rich.table import Table

from tt_torch.files import write_by

WINDOW, STRIDE = 12, 2  # of P-Net, in pixels
SHRINK = 0.709  # from one level of the pyramid to the next
LEAST = (0.6, 0.7, 0.7)  # the least probability of a face in each of the three networks
REFINED, FINAL = (24, 64), (48, 16)  # the size of a patch, and the number of patches per call of R-Net and O-Net
SAME = {Dtype.f32: 0.99, Dtype.bf16: 0.85}  # the least overlap of a face on the device with the CPU's
LIGHT = (90, 255, 90)

Network = Callable[[torch.Tensor], list[torch.Tensor]]


@dataclass
class Faces:
    """Boxes (N x 4: left, top, right, bottom), probabilities (N), and landmarks (N x 5 x 2), in pixels."""

    boxes: torch.Tensor
    scores: torch.Tensor
    landmarks: torch.Tensor


def pixels_of(image: Image.Image) -> torch.Tensor:
    """Values from -1 to 1, of shape 3 x H x W."""
    return (torch.tensor(np.asarray(image), dtype=torch.float32).permute(2, 0, 1) - 127.5) / 128


def pyramid(image: Image.Image, smallest: int) -> tuple[torch.Tensor, list[tuple[float, int, int, int]]]:
    """The photograph in several sizes, side by side in one picture (1 x 3 x H x W), so that one program suffices.

    In the first size, a face of `smallest` pixels is as large as P-Net's window. Also returns for each level: its
    scale, the column of its first window, and the numbers of its rows and columns of windows.
    """
    scale, levels, left = WINDOW / smallest, [], 0
    pictures = []
    while min(image.size) * scale >= WINDOW:
        width, height = (round(edge * scale) for edge in image.size)
        pictures.append(pixels_of(image.resize((width, height), Image.Resampling.BOX)))
        levels.append((scale, left // STRIDE, (height - WINDOW) // STRIDE + 1, (width - WINDOW) // STRIDE + 1))
        left += width + width % STRIDE
        scale *= SHRINK
    canvas = torch.zeros(1, 3, pictures[0].shape[1], left)
    for picture, (_, first, _, _) in zip(pictures, levels, strict=True):
        canvas[0, :, : picture.shape[1], first * STRIDE : first * STRIDE + picture.shape[2]] = picture
    return canvas, levels


def overlap(boxes: torch.Tensor, others: torch.Tensor, of_smaller: bool = False) -> torch.Tensor:
    """The intersection of each box with each other one, as a share of their union, or of the smaller box."""
    low, high = torch.maximum(boxes[:, None, :2], others[:, :2]), torch.minimum(boxes[:, None, 2:], others[:, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    areas, other_areas = ((b[:, 2:] - b[:, :2]).prod(-1) for b in (boxes, others))
    whole = torch.minimum(areas[:, None], other_areas) if of_smaller else areas[:, None] + other_areas - common
    return common / whole


def best(boxes: torch.Tensor, scores: torch.Tensor, most: float, of_smaller: bool = False) -> torch.Tensor:
    """The indices of the boxes that overlap no box with a higher score by more than `most` (NMS)."""
    order = scores.argsort(descending=True, stable=True)
    kept: list[int] = []
    overlaps = overlap(boxes, boxes, of_smaller)
    for i in order.tolist():
        if not kept or overlaps[i, kept].max() <= most:
            kept.append(i)
    return torch.tensor(kept, dtype=torch.long)


def corrected(boxes: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Moves each edge by its offset, which is a share of the box's width or height."""
    return boxes + offsets * (boxes[:, 2:] - boxes[:, :2]).repeat(1, 2)


def squares(boxes: torch.Tensor) -> torch.Tensor:
    """The squares with the same centres, and with the longer edge."""
    centre, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]).amax(1, keepdim=True) / 2
    return torch.cat([centre - half, centre + half], dim=1)


def propose(network: Network, image: Image.Image, smallest: int) -> torch.Tensor:
    """First step: P-Net looks at windows in all sizes. Returns squares."""
    canvas, levels = pyramid(image, smallest)
    offsets, faces = network(canvas)
    boxes, scores = [], []
    for scale, first, rows, columns in levels:
        found = faces[0, :rows, first : first + columns]
        y, x = (found > LEAST[0]).nonzero(as_tuple=True)
        corners = torch.stack([x, y], dim=1) * STRIDE
        windows = torch.cat([corners, corners + WINDOW], dim=1) / scale
        kept = best(windows, found[y, x], 0.5)
        boxes.append(corrected(windows[kept], offsets[0, :, y[kept], first + x[kept]].T))
        scores.append(found[y, x][kept])
    together, kept = torch.cat(boxes), best(torch.cat(boxes), torch.cat(scores), 0.7)
    return squares(together[kept])


def look_closer(network: Network, image: Image.Image, boxes: torch.Tensor, size: int, batch: int) -> list[torch.Tensor]:
    """The outputs of R-Net or O-Net for the patches in the boxes. The last batch is filled up with zeros."""
    corners = boxes.round().int().tolist()
    patches = [pixels_of(image.crop(box).resize((size, size), Image.Resampling.BILINEAR)) for box in corners]
    patches += [torch.zeros(3, size, size)] * (-len(patches) % batch)
    outputs = [network(part) for part in torch.stack(patches).split(batch)] if patches else []
    return [torch.cat(parts)[: len(boxes)] for parts in zip(*outputs, strict=True)]


def detect(networks: list[Network], image: Image.Image, smallest: int) -> Faces:
    """All faces. Each network looks at the windows that the one before it has found."""
    boxes = propose(networks[0], image, smallest)
    if len(boxes):
        offsets, scores = look_closer(networks[1], image, boxes, *REFINED)
        likely = scores > LEAST[1]
        kept = best(boxes[likely], scores[likely], 0.7)
        boxes = squares(corrected(boxes[likely][kept], offsets[likely][kept]))
    if not len(boxes):
        return Faces(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, 5, 2))
    offsets, points, scores = look_closer(networks[2], image, boxes, *FINAL)
    edges = (boxes[:, 2:] - boxes[:, :2])[:, None]
    landmarks = boxes[:, None, :2] + points.unflatten(1, (2, 5)).mT * edges
    likely = scores > LEAST[2]
    boxes, scores, landmarks = corrected(boxes, offsets)[likely], scores[likely], landmarks[likely]
    kept = best(boxes, scores, 0.7, of_smaller=True)
    return Faces(boxes[kept], scores[kept], landmarks[kept])


def draw(image: Image.Image, faces: Faces, path: Path) -> None:
    """Writes the photograph with a box around each face and dots on its landmarks, as a PNG."""
    picture = image.copy()
    pen, width = ImageDraw.Draw(picture), max(2, min(image.size) // 200)
    for box, landmarks in zip(faces.boxes.tolist(), faces.landmarks.tolist(), strict=True):
        pen.rectangle(box, outline=LIGHT, width=width)
        for x, y in landmarks:
            pen.ellipse((x - width, y - width, x + width, y + width), fill=LIGHT)
    write_by(path, lambda unfinished: picture.save(unfinished, format="png"))


def table(cpu: Faces, device: Faces) -> Table:
    """Each face of the device, its probability, and how much its box overlaps the nearest box of the CPU."""
    shown = Table()
    for title in ("face", "left, top, right, bottom", "probability", "overlap with the CPU's"):
        shown.add_column(title, justify="left" if title == "face" else "right")
    for i, box in enumerate(device.boxes):
        nearest = overlap(device.boxes[i : i + 1], cpu.boxes).max().item() if len(cpu.boxes) else 0.0
        corners = ", ".join(f"{edge:.1f}" for edge in box)
        shown.add_row(str(i + 1), corners, f"{device.scores[i]:.4f}", f"{nearest:.4f}")
    return shown


def same_faces(cpu: Faces, device: Faces, least: float) -> bool:
    """Whether CPU and device find equally many faces, and each overlaps a face of the other by at least `least`."""
    if len(cpu.boxes) != len(device.boxes):
        return False
    overlaps = overlap(device.boxes, cpu.boxes)
    return not len(overlaps) or bool((overlaps.amax(0) >= least).all() and (overlaps.amax(1) >= least).all())


def main(
    image: Annotated[str | None, typer.Option(metavar="FILE|URL", help="path or URL of a photograph")] = None,
    smallest: Annotated[
        int | None,
        typer.Option(min=WINDOW, help="the edge of the smallest face, in pixels; by default 1/12 of the shorter edge"),
    ] = None,
    dtype: DtypeOption = None,
    out: OutOption = Path("faces.png"),
) -> None:
    """Finds faces in a photograph with a pretrained MTCNN on the device, and compares with the CPU."""
    ((name, picture),) = read_images([image] if image else [], ("astronaut.png",)).items()
    size = smallest or max(WINDOW, min(picture.size) // 12)
    if min(picture.size) < size:
        raise typer.BadParameter(f"{name} has {picture.width} x {picture.height} pixels", param_hint="--smallest")
    with step("Loading the networks"):
        networks = [proposal_network(), refining_network(), output_network()]
        console.print("MTCNN with pretrained weights")
    inputs = [pyramid(picture, size)[0], *(torch.zeros(batch, 3, edge, edge) for edge, batch in (REFINED, FINAL))]
    facts, compiled = {}, []
    for title, network, example in zip(("P-Net", "R-Net", "O-Net"), networks, inputs, strict=True):
        program, about = compile_for_device(network, (example,), dtype, None)
        compiled.append(program)
        shape = " x ".join(map(str, example.shape))
        facts[title] = f"input {shape}, compiled in {about['compile time']}, binary of {about['binary']}"
    with step("Looking for faces"), torch.no_grad():
        cpu, device = (detect(three, picture, size) for three in (networks, compiled))
        seconds = time_per_call([partial(detect, networks), partial(detect, compiled)], picture, size, repeats=1)
    console.print(table(cpu, device))
    draw(picture, device, out)
    facts |= {f"time, {where}": short_time(t) for where, t in zip(("CPU", "device"), seconds, strict=True)}
    print_facts(facts | {"compute type": about["compute type"], "picture": str(out)})
    least = SAME[Dtype.bf16 if "bf16" in about["compute type"] else Dtype.f32]
    conclude({f"the faces are the CPU's (overlap at least {least})": same_faces(cpu, device, least)})


if __name__ == "__main__":
    run(main)
