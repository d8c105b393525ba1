"""Many requests at once: Transformers' continuous batching, with the model and its paged cache on the device.

`prepare(model)` is enough for Transformers' own calls: `model.generate_batch`, `init_continuous_batching` and
`transformers serve`. `Engine` is a front for programs that serve requests from threads. docs/serving.md is its page.
"""

from __future__ import annotations

from tt_torch.serving.engine import Engine, Request
from tt_torch.serving.model import prepare

__all__ = ["Engine", "Request", "prepare"]
