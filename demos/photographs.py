"""Photographs for the demos: those that the user names by path or URL, and samples from installed packages."""

from __future__ import annotations

import urllib.request
from http.client import HTTPException
from io import BytesIO
from typing import Annotated

import typer
from common import installed
from PIL import Image, UnidentifiedImageError

SECONDS = 5  # the time limit for the answer of a server

# The folders of the samples: a package, and a folder in it. All of these pictures may be used freely.
FOLDERS = {
    "astronaut.png": ("skimage", "data"),
    "chelsea.png": ("skimage", "data"),
    "china.jpg": ("sklearn", "datasets/images"),
    "coffee.png": ("skimage", "data"),
    "flower.jpg": ("sklearn", "datasets/images"),
}

ImagesOption = Annotated[
    list[str],
    typer.Option("--image", metavar="FILE|URL", help="path or URL of a photograph; may be given several times"),
]


def read_images(places: list[str], samples: tuple[str, ...]) -> dict[str, Image.Image]:
    """The photographs at these paths and URLs, or the named samples.

    Raises BadParameter for one that cannot be read.
    """
    return {place: _named(place) for place in places} or {name: sample(name) for name in samples}


def _named(place: str) -> Image.Image:
    try:
        return _read(place)
    except UnidentifiedImageError:
        reason = "this is no picture in a known format"
    except OSError as error:
        reason = error.strerror or str(error)
    except (HTTPException, ValueError, Image.DecompressionBombError) as error:
        reason = str(error)
    raise typer.BadParameter(f"{place!r}: {' '.join(reason.split())}", param_hint="--image")


def _read(place: str) -> Image.Image:
    if not place.startswith(("http://", "https://")):
        return Image.open(place).convert("RGB")
    with urllib.request.urlopen(place, timeout=SECONDS) as answer:
        return Image.open(BytesIO(answer.read())).convert("RGB")


def sample(name: str) -> Image.Image:
    """One of the photographs of FOLDERS."""
    package, folder = FOLDERS[name]
    return Image.open(installed(package) / folder / name).convert("RGB")
