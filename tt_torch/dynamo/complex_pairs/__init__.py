"""Complex numbers as pairs of real tensors, because the device has no complex numbers."""

from tt_torch.dynamo.complex_pairs import arithmetic, called_graphs, fourier, functions  # noqa: F401  (importing fills the table of rules)
from tt_torch.dynamo.complex_pairs.pairs import has_complex, is_complex, to_pairs

__all__ = ["has_complex", "is_complex", "to_pairs"]
