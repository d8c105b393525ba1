"""Rows of the op table: complex numbers, which are pairs of real numbers on the device."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from op_rows import Maker, Row, b1, f32, i64

Z, Z2 = torch.complex64, torch.complex128
TO = torch.ops.aten._to_copy


def z(*shape: int) -> Maker:
    return lambda _: torch.randn(*shape, dtype=Z)


def z_of(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, x * 2 - 1)


def written(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Writes real values to places of complex ones; their imaginary part becomes zero."""
    row, whole = z.clone(), z.clone()
    row[1:] = x[1:]
    return row, whole.copy_(x), z.select_scatter(x[0], 0, 1)


def number_written(z: torch.Tensor) -> torch.Tensor:
    z = z.clone()
    z[1:] = 3.0
    return z


ONE = (f32,)
COMPLEX = [
    Row("complex in and out", lambda z: z * 2, [z(3, 4)], ONE),
    Row("conjugate in", lambda z: z * 2, [lambda _: torch.randn(3, 4, dtype=Z).conj()], ONE),
    Row("complex of parts", lambda x: torch.complex(x, x[0]), [(3, 4)], ONE),
    Row("polar", lambda x: torch.polar(x.abs(), x), [(3, 4)], ONE),
    Row("from real", lambda x: x.to(Z) + 1, [(3, 4)], (f32, i64, b1)),
    Row("to complex128 and back", lambda z: z.to(Z2).to(Z) * 2, [z(3, 4)], ONE),
    Row("copied, and the real part alone", lambda z: (TO(z) * 2, TO(z, dtype=f32)), [z(3, 4)], ONE),
    Row("to real", lambda z: (z.real, z.imag), [z(3, 4)], ONE),
    Row("copied as pairs", lambda z: torch.view_as_complex_copy(torch.view_as_real_copy(z * 2).flip(0)), [z(3)], ONE),
    Row("conj", lambda z: (z.conj() * z, z.conj().t()), [z(3, 4)], ONE),
    Row("abs, angle, sgn", lambda z: (z.abs(), z.angle(), z.sgn()), [z(3, 4)], ONE),
    Row("sgn of zero", lambda x: z_of(x).mul(0).sgn(), [(3,)], ONE),
    Row("view_as_real", lambda z: torch.view_as_real(z) + 1, [z(3, 4)], ONE),
    Row("view_as_complex", lambda x: torch.view_as_complex(x).abs(), [(3, 4, 2)], ONE),
    Row("complex scalars", lambda x: (x + 1j, 2j * x, x - (1 + 2j), x / 3j), [(3, 4)], ONE),
    Row("complex and real", lambda z, x: (z + x, x - z, z * x, z / x, x / z), [z(3, 4), (3, 4)], ONE),
    Row("complex and complex", lambda z, w: (z + w, z - w, z * w, z / w), [z(3, 4), z(4)], ONE),
    Row("complex alpha", lambda z, w: (z.add(w, alpha=2), z.sub(w, alpha=2j)), [z(3), z(3)], ONE),
    Row("division of unlike sizes", lambda z, w: z / (w * 1e-20) * 1e-20, [z(7), z(7)], ONE),
    Row("reciprocal", lambda z: z.reciprocal(), [z(3, 4)], ONE),
    Row("exp and log", lambda z: (z.exp(), z.log()), [z(3, 4)], ONE),
    Row("complex compare", lambda z: (z == z.flip(0), z != z.flip(0)), [z(3, 2)], ONE),
    Row("complex isnan", lambda x: torch.complex(x, x / 0 * 0).isnan(), [(3,)], ONE),
    Row("complex mm", lambda z, w: (z @ w, z @ w[:, 0]), [z(3, 4), z(4, 5)], ONE),
    Row("complex bmm", lambda z, w: torch.bmm(z, w), [z(2, 3, 4), z(2, 4, 5)], ONE),
    Row("complex sums", lambda z: (z.sum(), z.mean(1), z.cumsum(0)), [z(3, 4)], ONE),
    Row("complex views", lambda z: (z.t(), z[:, 1:].flip(0), z.reshape(2, 6).unsqueeze(1)), [z(3, 4)], ONE),
    Row("complex cat and where", lambda z: torch.where(z.real > 0, torch.cat([z, z]), 1j), [z(1, 4)], ONE),
    Row("complex created", lambda z: (torch.zeros_like(z) + z, torch.full((3,), 2 - 1j) * z[0]), [z(2, 3)], ONE),
    Row("complex index", lambda z: z[[2, 0]], [z(3, 4)], ONE),
    Row("cat of complex and real", lambda z, x: (torch.cat([x, z]), torch.stack([z, x])), [z(3, 4), (3, 4)], ONE),
    Row("where of complex and real", lambda z, x: torch.where(x > 0, z, x), [z(3, 4), (3, 4)], ONE),
    Row("complex pad", lambda z: F.pad(z, (1, 2), value=3.0), [z(3, 4)], ONE),
    Row("complex masked_fill", lambda z, x: z.masked_fill(x > 0, 1 - 2j), [z(3, 4), (3, 4)], ONE),
    Row("real written to complex", written, [z(3, 4), (3, 4)], ONE),
    Row("complex written to real", lambda z, x: x.clone().copy_(z), [z(3, 4), (3, 4)], ONE),
    Row("number written to complex", number_written, [z(3, 4)], ONE),
    Row("complex scatter", lambda z: z.scatter(1, torch.tensor([[3, 0]]), z * 2), [z(1, 4)], ONE),
    Row("complex embedding", lambda z: F.embedding(torch.tensor([2, 0]), z), [z(3, 4)], ONE),
    *(
        Row(f"complex {f.__name__}", f, [z(3, 4)], ONE)
        for f in (torch.cos, torch.expm1, torch.log1p, torch.rsqrt, torch.sigmoid, torch.sin, torch.tan, torch.tanh)
    ),
    *(Row(f"complex {f.__name__}", f, [z(3, 4)], ONE) for f in (torch.cosh, torch.sinh, torch.sqrt)),
    Row("complex pow", lambda z, w: (z**w, z**2.5, 2.0**z, z**0), [z(3), z(3)], ONE),
    Row("complex128 sums", lambda z: (z.sum(dtype=Z2), z.mean(0, dtype=Z2), z.cumsum(0, dtype=Z2)), [z(3, 4)], ONE),
]

FOURIER = [
    *(
        Row(f"{f.__name__} {shape}", lambda x, f=f: f(x), [shape], ONE)
        for f in (torch.fft.fft, torch.fft.ifft, torch.fft.rfft, torch.fft.ihfft)
        for shape in [(8,), (2, 15), (67,), (2, 144), (1,)]
    ),
    *(Row(f"{f.__name__}", lambda z, f=f: f(z), [z(3, 6)], ONE) for f in (torch.fft.irfft, torch.fft.hfft)),
    *(
        Row(
            f"norm {norm}",
            lambda x, n=norm: (torch.fft.fft2(x, norm=n), torch.fft.irfftn(z_of(x), norm=n)),
            [(3, 6, 5)],
            ONE,
        )
        for norm in ("forward", "backward", "ortho")
    ),
    Row("fft of a length", lambda x: (torch.fft.fft(x, n=5), torch.fft.fft(x, n=12)), [(2, 8)], ONE),
    Row("irfft of odd length", lambda z: torch.fft.irfft(z, n=7), [z(4)], ONE),
    Row("fft of dims", lambda z: torch.fft.fftn(z, dim=(0, 2)), [z(3, 4, 5)], ONE),
    Row("fftshift", lambda x: torch.fft.fftshift(torch.fft.fft(x)), [(2, 7)], ONE),
    Row("stft", lambda x: torch.stft(x, 8, window=torch.hann_window(8), return_complex=True), [(2, 40)], ONE),
]
