"""Writes docs/workarounds.md from the docstrings of the workarounds for Tenstorrent's library.

python -m tt_torch.tools.workaround_docs
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from tt_torch.files import write
from tt_torch.mlir.ttnn.passes.workarounds import ALL

HEAD = """# Workarounds

Tenstorrent's library refuses some ops, and makes the results of others in another form than TTNN describes. Each
section is a rule of `tt_torch/mlir/ttnn/passes/workarounds/`, and says what the compiler emits for such ops. The
library's messages are quoted. `python -m tt_torch.tools.workaround_docs` writes this page from the rules; do not
edit it.
"""


def page() -> str:
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for w in ALL:
        yield f"## {w.rule.__name__.replace('_', ' ').capitalize()}\n"
        yield f"{', '.join(f'`{op}`' for op in w.ops)}, ttnn {w.version}\n"
        text, _, quotes = inspect.cleandoc(w.rule.__doc__ or "").partition("\n\n")
        yield text + "\n"
        yield from (f"- {quote}" for quote in re.findall(r'"[^"]*"', " ".join(quotes.split())))
        yield ""


if __name__ == "__main__":
    write(Path("docs/workarounds.md"), page().encode())
