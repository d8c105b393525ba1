"""Composites with a rule, beside ops that native passes rewrite: these passes refuse a module that lacks a function."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from foreign_programs import Program, check, randn

X, T = randn(3, 4), "tensor<3x4xf32>"
GELU = f"""
%g = stablehlo.composite "tenstorrent.gelu_tanh" %a {{decomposition = @own}} : ({T}) -> {T}
"""
OWN = f"""
func.func private @own(%a: {T}) -> {T} {{
  return %a : {T}
}}"""
BESIDE = {
    "complex": (
        f"%z = stablehlo.complex %g, %a : tensor<3x4xcomplex<f32>>\n"
        f"%e = stablehlo.exponential %z : tensor<3x4xcomplex<f32>>\n"
        f"%0 = stablehlo.imag %e : (tensor<3x4xcomplex<f32>>) -> {T}",
        lambda x: torch.complex(F.gelu(x, approximate="tanh"), x).exp().imag,
    ),
    "CHLO": (f"%0 = chlo.sinh %g : {T} -> {T}", lambda x: F.gelu(x, approximate="tanh").sinh()),
    "sizes": (
        f"%s = stablehlo.constant dense<[4, 3]> : tensor<2xi32>\n"
        f"%d = stablehlo.dynamic_reshape %g, %s : ({T}, tensor<2xi32>) -> tensor<?x?xf32>\n"
        f"%0 = stablehlo.reshape %d : (tensor<?x?xf32>) -> {T}",
        lambda x: F.gelu(x, approximate="tanh"),
    ),
    "factorization": (
        f"%p = stablehlo.dot_general %g, %g, contracting_dims = [1] x [1] : ({T}, {T}) -> tensor<3x3xf32>\n"
        f"%c = stablehlo.cholesky %p, lower = true : tensor<3x3xf32>\n"
        f"%0 = stablehlo.dot_general %c, %a, contracting_dims = [1] x [0] : (tensor<3x3xf32>, {T}) -> {T}",
        lambda x: torch.linalg.cholesky((g := F.gelu(x, approximate="tanh")) @ g.T) @ x,
    ),
}
PROGRAMS = [
    Program(f"a composite and {name}", GELU + body, f"%0 : {T}", (X,), expected, OWN)
    for name, (body, expected) in BESIDE.items()
]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_program(program: Program) -> None:
    check(program)
