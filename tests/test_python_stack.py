import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tt_torch.python_stack import with_room


def nothing() -> None:
    return None


def calls(depth: int) -> int:
    """The page faults of 2,000 calls from a frame that is `depth` frames above this one."""
    if depth:
        return calls(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(2000):
        nothing()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


@pytest.mark.skipif(not (3, 11) <= sys.version_info < (3, 14), reason="frames of Python 3.10 do not lie in chunks")
def test_no_depth_of_the_stack_makes_calls_slow():
    """At one depth in about 200 each call maps a chunk of the stack, which is a page fault per call."""
    # A new thread begins with a chunk of the usual size. The stack of this one may be in a larger chunk.
    with ThreadPoolExecutor(1) as thread:
        assert max(thread.submit(lambda: max(map(calls, range(400)))).result() for _ in range(3)) >= 2000
        assert thread.submit(lambda: max(map(with_room(calls), range(400)))).result() < 100


def test_arguments_results_and_errors_pass_through():
    assert with_room(divmod)(7, 2) == (3, 1)
    assert with_room(sorted)([1, 2], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        with_room(divmod)(1, 0)
