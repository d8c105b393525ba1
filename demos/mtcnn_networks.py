"""The three networks of MTCNN in PyTorch, with the trained weights that the package mtcnn has for Keras.

K. Zhang et al., "Joint Face Detection and Alignment Using Multitask Cascaded Convolutional Networks", 2016. The package
facenet-pytorch has them for PyTorch, but it demands versions of torch and torchvision from 2024.
"""

from __future__ import annotations

import joblib
import torch
from common import installed
from torch import nn


class Network(nn.Module):
    """A trunk, and heads on it: the corrections of the box, sometimes the landmarks, and last whether it is a face."""

    def __init__(self, trunk: list[nn.Module], heads: list[nn.Module]) -> None:
        super().__init__()
        self.trunk, self.heads = nn.Sequential(*trunk), nn.ModuleList(heads)

    def forward(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        features = self.trunk(pixels)
        *regressions, face = (head(features) for head in self.heads)
        return [*regressions, face.softmax(1)[:, 1]]


class ByColumns(nn.Module):
    """Flattens N x C x H x W in the order W, H, C. The networks were trained with Matlab, which stores columns."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features.permute(0, 3, 2, 1).flatten(1)


def _convolution(inputs: int, outputs: int, size: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, size), nn.PReLU(outputs)]


def _pool(size: int, whole: bool = False) -> nn.Module:
    """Maxima with stride 2. With `whole`, only whole windows count; otherwise the last ones may reach over the edge."""
    return nn.MaxPool2d(size, 2, ceil_mode=not whole)


def proposal_network() -> Network:
    """P-Net: for each 12 x 12 window of a picture, in steps of 2, whether it is a face, and how to move its edges."""
    trunk = [*_convolution(3, 10, 3), _pool(2), *_convolution(10, 16, 3), *_convolution(16, 32, 3)]
    return _with_weights(Network(trunk, [nn.Conv2d(32, 4, 1), nn.Conv2d(32, 2, 1)]), "pnet")


def refining_network() -> Network:
    """R-Net: the same for patches of 24 x 24."""
    trunk = [*_convolution(3, 28, 3), _pool(3), *_convolution(28, 48, 3), _pool(3, whole=True)]
    trunk += [*_convolution(48, 64, 2), ByColumns(), nn.Linear(576, 128), nn.PReLU(128)]
    return _with_weights(Network(trunk, [nn.Linear(128, 4), nn.Linear(128, 2)]), "rnet")


def output_network() -> Network:
    """O-Net: the same for patches of 48 x 48, and the places of eyes, nose and corners of the mouth."""
    trunk = [*_convolution(3, 32, 3), _pool(3), *_convolution(32, 64, 3), _pool(3, whole=True)]
    trunk += [*_convolution(64, 64, 3), _pool(2), *_convolution(64, 128, 2)]
    trunk += [ByColumns(), nn.Linear(1152, 256), nn.PReLU(256)]
    return _with_weights(Network(trunk, [nn.Linear(256, 4), nn.Linear(256, 10), nn.Linear(256, 2)]), "onet")


def _with_weights(network: Network, name: str) -> Network:
    """Loads the weights. Keras has H x W x in x out for a convolution, in x out for a layer, 1 x 1 x C for a PReLU."""
    arrays = [torch.tensor(a) for a in joblib.load(installed("mtcnn") / "assets" / "weights" / f"{name}.lz4")]
    orders = {1: (0,), 2: (1, 0), 3: (2, 0, 1), 4: (3, 2, 0, 1)}
    with torch.no_grad():
        for parameter, array in zip(network.parameters(), arrays, strict=True):
            parameter.copy_(array.permute(orders[array.dim()]).reshape(parameter.shape))
    return network.eval()
