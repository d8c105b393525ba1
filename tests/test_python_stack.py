import resource
import sys

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
    depths = range(400)
    assert max(map(calls, depths)) >= 2000
    assert max(map(with_room(calls), depths)) < 100


def test_arguments_results_and_errors_pass_through():
    assert with_room(divmod)(7, 2) == (3, 1)
    assert with_room(sorted)([1, 2], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        with_room(divmod)(1, 0)
