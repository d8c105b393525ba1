"""What every test starts from: one seed, a fresh dynamo, IR verified after every step."""

from __future__ import annotations

import os
import sys

import pytest
import torch

# Workers of pytest-xdist share the cores; each with all threads would only get in each other's way.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

os.environ.setdefault("TT_TORCH_VERIFY_IR", "1")


@pytest.fixture(autouse=True)
def _fresh_start():
    torch.manual_seed(0)
    yield
    if "torch._dynamo.guards" in sys.modules:  # it empties the CPU's caches to time the guards of each graph
        sys.modules["torch._dynamo.guards"].profile_guard_manager = lambda *arguments: 0.0
    if "torch._dynamo" in sys.modules:  # importing it only to reset it would take seconds
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()  # graph breaks of one test are not those of the next
