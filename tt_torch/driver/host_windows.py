"""StableHLO's select_and_scatter over large windows, which the host computes in NumPy. This imports no compiler."""

from __future__ import annotations

from math import prod

import numpy as np

from tt_torch.driver.host_integers import BODIES, COMPARISONS, Array, Ints, of_arrays, pad, windows


@of_arrays
def select_and_scatter(
    x: Array, source: Array, first: Array, select: str, body: str, sizes: Ints, steps: Ints, low: Ints, high: Ints
) -> Array:
    """In each window, `select` says whether the best element so far stays. Padding is never chosen. Several elements of
    the source for one place are combined in their order."""
    between, rank = [0] * x.ndim, x.ndim
    inside = pad(np.ones(x.shape, bool), np.array(False), low, high, between)
    padded = pad(x, first, low, high, between)
    places = np.arange(padded.size).reshape(padded.shape)
    flat = [windows(each, sizes, steps, [1] * rank).reshape(-1, prod(sizes)) for each in (padded, inside, places)]
    values, there, numbers = flat
    best, known, chosen = values[:, 0].copy(), there[:, 0].copy(), numbers[:, 0].copy()
    for i in range(1, prod(sizes)):
        takes = there[:, i] & ~(known & COMPARISONS[select](best, values[:, i]))
        best, chosen = np.where(takes, values[:, i], best), np.where(takes, numbers[:, i], chosen)
        known |= there[:, i]
    result = np.full(padded.size, first)
    BODIES[body].at(result, chosen, source.reshape(-1))
    kept = tuple(slice(begin, begin + n) for begin, n in zip(low, x.shape, strict=True))
    made: Array = result.reshape(padded.shape)[kept]
    return made
