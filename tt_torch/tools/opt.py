"""`python -m tt_torch.tools.opt` is `tt-torch opt`."""

from __future__ import annotations

import sys

from tt_torch.tools.cli import app

if __name__ == "__main__":
    app(["opt", *sys.argv[1:]])
