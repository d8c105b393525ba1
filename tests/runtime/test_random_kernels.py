"""Random numbers of a program: their range, their seed, what a dropout keeps, and which tokens are drawn."""

import torch
from programs import Maker

from tt_torch.runtime import Binary, Executable


def uniform(low, high, seed):
    maker = Maker()
    y = maker.op("RandOp", low=low, high=high, seed=seed, size=[64, 64], out=maker.tensor((64, 64)))
    return Executable(Binary(maker.binary(y)))([])[0]


def test_uniform_numbers_fill_their_range():
    values = uniform(-2.0, 6.0, 7)
    assert -2.0 <= values.min() < -1.9 and 5.9 < values.max() < 6.0
    assert abs(values.mean() - 2.0) < 0.2


def test_a_seed_gives_the_same_numbers_and_no_seed_gives_others():
    assert torch.equal(uniform(0.0, 1.0, 7), uniform(0.0, 1.0, 7))
    assert not torch.equal(uniform(0.0, 1.0, 7), uniform(0.0, 1.0, 8))
    assert not torch.equal(uniform(0.0, 1.0, 0), uniform(0.0, 1.0, 0))


def dropout(x, prob, scale, seed=3):
    maker = Maker()
    source = maker.input(x.shape)
    y = maker.op("DropoutOp", **{"in": source}, prob=prob, scale=scale, seed=seed, out=maker.tensor(x.shape))
    return Executable(Binary(maker.binary(y)))([x])[0]


def test_dropout_scales_what_it_keeps():
    x = torch.rand(64, 64) + 1
    y = dropout(x, 0.25, 1.5)
    kept = y != 0
    torch.testing.assert_close(y[kept], 1.5 * x[kept])
    assert abs(kept.float().mean() - 0.75) < 0.03
    assert torch.equal(y, dropout(x, 0.25, 1.5)) and not torch.equal(y, dropout(x, 0.25, 1.5, seed=4))
    assert torch.equal(dropout(x, 0.0, 2.0), 2 * x) and not dropout(x, 1.0, 2.0).any()


def sampled(values, k, p, temp, seed=None, runs=1):
    """The tokens that are drawn for each user; the candidates have the numbers 100, 101, ..."""
    users, candidates = values.shape
    maker = Maker()
    names = {"input_values": (1, 1, users, candidates), "input_indices": (1, 1, users, candidates)}
    refs = {name: maker.input(shape, "Int32" if "indices" in name else "Float32") for name, shape in names.items()}
    types = {"k": "Int32", "p": "Float32", "temp": "Float32"}
    refs |= {name: maker.input((users,), dtype, tile=False) for name, dtype in types.items()}
    out = maker.tensor((1, 1, 1, users), "UInt32")
    maker.op("SamplingOp", **refs, out=out, **({} if seed is None else {"seed": seed}))
    executable = Executable(Binary(maker.binary(out)))
    numbers = torch.arange(100, 100 + candidates, dtype=torch.int32).expand(1, 1, users, candidates).contiguous()
    given = [values[None, None], numbers, torch.tensor(k, dtype=torch.int32), torch.tensor(p), torch.tensor(temp)]
    return torch.stack([executable(given)[0].flatten().long() for _ in range(runs)])


def test_tokens_are_drawn_from_the_most_likely_candidates():
    """The users have top-k, top-p, a k of zero, a temperature, and a p of zero."""
    values = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3])).expand(5, 4).contiguous()
    drawn = sampled(values, [2, 4, 0, 4, 4], [1.0, 0.6, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 2.0, 1.0], runs=2000)
    chances = torch.tensor(
        [[0, 4 / 7, 0, 3 / 7], [0, 4 / 7, 0, 3 / 7], [0, 1, 0, 0], [1 / 30, 16 / 30, 4 / 30, 9 / 30], [0, 1, 0, 0]]
    )
    for user, expected in enumerate(chances):
        found = torch.bincount(drawn[:, user] - 100, minlength=4) / len(drawn)
        assert ((found - expected).abs() < 0.05).all() and (found[expected == 0] == 0).all()


def test_a_seed_draws_the_same_tokens():
    values = torch.zeros(3, 64)
    one = [sampled(values, [64] * 3, [1.0] * 3, [1.0] * 3, seed=7, runs=3) for _ in range(2)]
    assert torch.equal(*one) and (one[0] == one[0][0]).all()
