"""Takes the pictures of docs/profiling.md: `python -m tests.profiling.pictures results/perf/profile.html`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser import Browser

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
# For each picture: the width and height of the screen, and the reader's choice of colors.
PICTURES = {"profile_light.png": (1000, 1250, "light"), "profile_dark.png": (400, 1000, "dark")}


def main(page: Path) -> None:
    for name, (width, height, colors) in PICTURES.items():
        with TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
            browser.resize(width, height)
            browser.prefer(colors)
            browser.open(page.resolve().as_uri())
            browser.wait("document.body.dataset.drawn === 'yes'")
            browser.run(
                "document.querySelector('.plot').previousElementSibling.previousElementSibling.scrollIntoView()"
            )
            browser.settle()
            (DOCS / name).write_bytes(browser.screenshot())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("error: give one page: python -m tests.profiling.pictures results/perf/profile.html")
    main(Path(sys.argv[1]))
