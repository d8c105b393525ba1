"""The sweep of single ops: samples of PyTorch's OpInfo database, compiled and compared with eager."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.records.lines import Record
from tt_torch.sweep.compare import Arguments, check_sample
from tt_torch.torch_private.op_samples import op_db, outside_of_a_test_case, seeded_by_the_caller
from tt_torch.workers.engine import Item

DTYPES = ("float32", "bfloat16", "int64", "bool")


def items(dtypes: Sequence[str], samples: int) -> Iterator[Item]:
    """One item per op, dtype and sample index. If an op has fewer samples, the verdict of the item is "absent"."""
    call = f"{__name__}:run_sample"
    for info in sorted(op_db, key=lambda info: info.full_name):
        for dtype in dtypes:
            if not info.supports_dtype(getattr(torch, dtype), "cpu"):
                continue
            for index in range(samples):
                arguments = {"op": info.name, "variant": info.variant_test_name, "dtype": dtype, "sample": index}
                yield Item(f"{info.full_name}/{dtype}/{index}", call, arguments)


def run_sample(op: str, variant: str, dtype: str, sample: int, compiler: str) -> Record:
    """The record of one sample, compiled by `compiler`."""
    (info,) = (info for info in op_db if (info.name, info.variant_test_name) == (op, variant))
    value = sample_of(info, getattr(torch, dtype), sample)
    if value is None:
        return {"verdict": "absent"}
    values = Fact.ALLOCATES not in facts.named(op)  # the values of uninitialized memory cannot be compared
    with seeded_by_the_caller():  # the comparison sets seeds itself
        return check_sample(_function(info), value, values, compiler)


def sample_of(info: Any, dtype: torch.dtype, index: int) -> Arguments | None:
    """The arguments of sample `index`, which do not depend on the order of requests; None if there are fewer."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    with outside_of_a_test_case():
        sample = next(itertools.islice(info.sample_inputs("cpu", dtype), index, None), None)
    return None if sample is None else ((sample.input, *sample.args), sample.kwargs)


def _function(info: Any) -> Function:
    op = info.op

    def sample(*args: Argument, **kwargs: Argument) -> Result:
        return op(*args, **kwargs)

    return sample
