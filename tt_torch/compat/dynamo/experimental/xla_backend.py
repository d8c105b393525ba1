"""Old names: `tt_torch.dynamo.experimental.xla_backend`. There is one backend, and no XLA in it."""

from tt_torch.driver.backend import backend as xla_backend

__all__ = ["xla_backend"]
