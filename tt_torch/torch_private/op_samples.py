"""Private names of PyTorch's tests: samples of ops. They need the packages of the extra `sweeps`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

from torch.testing._internal import common_methods_invocations  # 2.13.0: for seeded_by_the_caller
from torch.testing._internal.common_methods_invocations import op_db  # 2.13.0: without it there is no sweep over ops

__all__ = ["op_db"]


# 2.13.0: without it each sample of a random op sets the seed in a way that Dynamo cannot trace.
def seeded_by_the_caller() -> AbstractContextManager[object]:
    """While this context is active, samples of random ops do not set the seed."""
    return mock.patch.object(common_methods_invocations, "wrapper_set_seed", lambda op, *args, **kw: op(*args, **kw))
