"""Programs of the fuzzer that are written as texts."""

from __future__ import annotations

import re

import torch

from tt_torch.fuzz.programs import Program, Statement


def program(*texts: str, **inputs: torch.Tensor) -> Program:
    """`v0 = texts[0]`, and so on; the last one is the output."""
    words = [tuple(dict.fromkeys(re.findall(r"\b[xyv]\d*\b", text))) for text in texts]
    statements = tuple(Statement(f"v{i}", text, words[i]) for i, text in enumerate(texts))
    return Program(inputs, statements, (statements[-1].result,))
