"""Private names of PyTorch's tests: samples of ops. They need the packages of the extra `sweeps`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

from torch.testing._internal import (
    common_methods_invocations,  # 2.13.0: for seeded_by_the_caller
    common_utils,  # 2.13.0: for outside_of_a_test_case
)
from torch.testing._internal.common_methods_invocations import op_db  # 2.13.0: without it there is no sweep over ops
from torch.testing._internal.opinfo import core  # 2.13.0: for outside_of_a_test_case

__all__ = ["op_db"]


# 2.13.0: without it each sample of a random op sets the seed in a way that Dynamo cannot trace.
def seeded_by_the_caller() -> AbstractContextManager[object]:
    """While this context is active, samples of random ops do not set the seed."""
    return mock.patch.object(common_methods_invocations, "wrapper_set_seed", lambda op, *args, **kw: op(*args, **kw))


# 2.13.0: without it the samples of an op are made in a quarter of a second, nearly all of it in `inspect.stack`.
@contextmanager
def outside_of_a_test_case() -> Iterator[None]:
    """While this context is active, OpInfo does not search the stack for a unittest.TestCase that asks for samples."""
    with mock.patch.object(common_utils, "extract_test_fn", _none), mock.patch.object(core, "extract_test_fn", _none):
        yield


def _none() -> None:
    return None
