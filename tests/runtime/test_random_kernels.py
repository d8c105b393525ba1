"""Random numbers of a program: their range, their seed, and what a dropout keeps."""

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
