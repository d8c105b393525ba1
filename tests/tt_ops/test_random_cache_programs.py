"""Random programs write to caches and read old and new values. Results and caches must be as in eager PyTorch."""

from __future__ import annotations

import random

import pytest
import torch

import tt_torch

# Lines of a program. Its caches a and b (7, 2, 32, 8) consist of pages, and its cache w (3, 2, 64, 8) is whole. The
# rows r (1, 3, 2, 8) have the positions p (3,). The prompt x (1, 2, 32, 8) belongs to the user u (1,).
LINES = [
    "a.copy_(tt.paged_update_cache(a, r, p, table))",
    "b.copy_(tt.paged_update_cache(b, r * 2, p, table))",
    "a.copy_(tt.paged_fill_cache(a, x, table))",
    "b.copy_(tt.paged_fill_cache(a, x, table, u))",
    "a.copy_(tt.paged_update_cache(tt.paged_update_cache(a, r, p, table), r * 3, p.flip(0), table))",
    "a.copy_(b)",
    "w.copy_(tt.fill_cache(w, x.expand(2, 2, 32, 8), 1))",
    "w.copy_(tt.fill_cache(w, x[:, :, :20], 2))",
    "w.copy_(tt.fill_cache(w, a[:3], 0))",
    "w.copy_(tt.update_cache(w, r[0, :, :, None], u, 0))",
    "w.index_copy_(2, u, r[0, :, :, None])",
    "w[:, :, :32] = x",
    "w[:, :, :32] = w[:, :, 32:]",
    "w[:, :, :32] = w[:, :, :32] * 2",
    "a[:3].copy_(w[:, :, :32])",
    "out.append(a.sum(2))",
    "out.append(a + b)",
    "out.append(w[:, :, 3:].clone())",
    "out.append(tt.paged_update_cache(a, r, p, table))",
    "out.append(tt.fill_cache(w, x, 0))",
    "x = x + a[:1]",
    "r = r + w[None, :, :, 0]",
]


def random_program(seed: int) -> str:
    chosen = random.Random(seed).choices(LINES, k=random.Random(seed + 1).randint(2, 6))
    body = "".join(f"    {line}\n" for line in chosen)
    return f"def program(a, b, w, r, p, table, u, x):\n    out = []\n{body}    return out, x + 1"


def drawn(*size: int) -> torch.Tensor:
    return torch.randint(-3, 4, size).float()


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_on_caches(seed: int) -> None:
    source, space = random_program(seed), {"tt": torch.ops.tt}
    exec(source, space)
    torch.manual_seed(seed)
    ours = [drawn(7, 2, 32, 8), drawn(7, 2, 32, 8), drawn(3, 2, 64, 8)]
    theirs = [cache.clone() for cache in ours]
    run = torch.compile(space["program"], backend=tt_torch.backend, fullgraph=True, options={"fallback": "error"})
    for _ in range(2):
        positions, table = torch.randint(-9, 64, (3,), dtype=torch.int32), (torch.randperm(6) + 1).reshape(3, 2)
        given = (drawn(1, 3, 2, 8), positions, table, torch.randint(0, 3, (1,)), drawn(1, 2, 32, 8))
        with torch.no_grad():
            got, expected = run(*ours, *given), space["program"](*theirs, *given)
        torch.testing.assert_close(got, expected, msg=lambda text: f"{text}\n{source}")
        torch.testing.assert_close(ours, theirs, msg=lambda text: f"{text}\n{source}")
