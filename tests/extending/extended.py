"""Ops of a user, for tests: `new_op` defines an op with a CPU form and a fake form."""

from __future__ import annotations

import itertools

import torch

_numbers = itertools.count()
LIBRARY = torch.library.Library("extended", "DEF")


def new_op(signature, function, fake=None):
    """A new op `extended::op_<number><signature>`. The function is its CPU form and, without `fake`, its fake form."""
    name = f"op_{next(_numbers)}"
    LIBRARY.define(f"{name}{signature}")
    LIBRARY.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"extended::{name}", fake or function, lib=LIBRARY)
    return getattr(torch.ops.extended, name)
