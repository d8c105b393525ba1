"""Takes the pictures of docs/profiling.md. If a second page shows a program for a mesh, this also takes the picture of
docs/many_chips.md: `python -m tests.profiling.pictures results/perf/profile.html [results/mesh/profile.html]`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser import Browser

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
# For each picture: the width and height of the screen, and the reader's choice of colors.
PICTURES = {"profile_light.png": (1000, 1250, "light"), "profile_dark.png": (400, 1000, "dark")}


FIRST_PLOT = "document.querySelector('.plot').previousElementSibling.previousElementSibling"
BETWEEN_CHIPS = "[...document.querySelectorAll('h2')].find(heading => heading.textContent === 'Between the chips')"


def take(page: Path, name: str, size: tuple[int, int], colors: str, place: str) -> None:
    """Takes a picture of a page that begins at an element, which JavaScript finds."""
    with TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        browser.resize(*size)
        browser.prefer(colors)
        browser.open(page.resolve().as_uri())
        browser.wait("document.body.dataset.drawn === 'yes'")
        browser.run(f"{place}.scrollIntoView()")
        browser.settle()
        (DOCS / name).write_bytes(browser.screenshot())


def main(page: Path, of_mesh: Path | None = None) -> None:
    for name, (width, height, colors) in PICTURES.items():
        take(page, name, (width, height), colors, FIRST_PLOT)
    if of_mesh:
        take(of_mesh, "profile_chips.png", (1300, 350), "light", BETWEEN_CHIPS)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("error: give one or two pages: python -m tests.profiling.pictures results/perf/profile.html")
    main(*map(Path, sys.argv[1:]))
