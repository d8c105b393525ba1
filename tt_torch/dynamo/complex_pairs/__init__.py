"""Complex numbers as pairs of real tensors, which the device has."""

from tt_torch.dynamo.complex_pairs import arithmetic, fourier  # noqa: F401  (importing fills the table of rules)
from tt_torch.dynamo.complex_pairs.pairs import has_complex, is_complex, to_pairs

__all__ = ["has_complex", "is_complex", "to_pairs"]
