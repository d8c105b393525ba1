"""A hook of mkdocs.yml: the site has pages of the repository that are outside of docs/, and their links work.

The Markdown files are written for a code host, where a link names a file of the repository. On the site, a link to one
of PAGES leads to its page, and a link to a file that has no page becomes plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "third_party/README.md": "third_party.md",
}
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"\[([^\]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of PAGES."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page, with links for the site."""
    name = page.file.src_uri
    return for_site(markdown, SOURCES.get(name, f"docs/{name}"), name)


def for_site(markdown: str, source: str, page: str) -> str:
    """The text of the file `source` with the links of `page`. Both are paths: in the repository, and on the site.

    In `docs/map.md`, `[README](../third_party/README.md)` becomes `[README](third_party.md)`. In `README.md`,
    `[map](docs/map.md)` becomes `[map](map.md)`, and `[demos/](demos)` becomes `demos/`.
    """

    def replace(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = os.path.normpath(PurePosixPath(source).parent / target)
        if "://" in target or not (ROOT / path).exists():
            return link[0]  # for mkdocs, which refuses a link that leads nowhere
        if path in PAGES:
            path = PAGES[path]
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        else:
            return text
        return f"[{text}]({os.path.relpath(path, PurePosixPath(page).parent)}{anchor or ''})"

    return LINK.sub(replace, markdown)
