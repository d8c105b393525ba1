"""The ops `torch.ops.tt.*` as users of tt-xla know them: caches, attention on them, experts, tokens, types of weights.

Importing this package registers them with PyTorch, which happens when one of them is first named. Each op runs in eager
PyTorch and under every backend of torch.compile. Our compiler keeps it whole: in StableHLO it is the custom call that
tt-mlir reads (docs/tt_ops.md).
"""

from tt_torch.tt_ops import attention, caches, choosing, decoding, experts, weights  # noqa: F401 - registers
from tt_torch.tt_ops.registry import CALLS, Call

__all__ = ["CALLS", "Call"]
