"""A name that users know: `torch.compile(model, backend=tt_torch.dynamo.backend.backend)`."""

from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import backend

__all__ = ["BackendOptions", "CompilerConfig", "backend"]
