"""The paper's networks, without their last layer. Any module that maps images to vectors will do instead."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitune.errors import InputError
from orbitune.pooling import MaxPool2x2


class Identity(nn.Module):
    """No network: the features are the input itself, flattened. With it a deep model is a shallow one."""

    def forward(self, images: Float[Tensor, "N *event"]) -> Float[Tensor, "N D"]:
        """Flatten."""
        return images.flatten(1)


class MLP(nn.Sequential):
    """Fully connected layers with ReLU between and after them."""

    def __init__(self, num_inputs: int, hidden: tuple[int, ...] = (256,), num_features: int = 50):
        layers: list[nn.Module] = [nn.Flatten()]
        for width_in, width_out in zip((num_inputs, *hidden), (*hidden, num_features), strict=True):
            layers += [nn.Linear(width_in, width_out), nn.ReLU()]
        super().__init__(*layers)


class MnistCNN(nn.Sequential):
    """The paper's network for MNIST variations: two 5×5 convolutions, two fully connected layers.

    Args:
        image_shape: (channels, height, width), sides at least 4.
        num_features: D.
    """

    def __init__(self, image_shape: tuple[int, int, int] = (1, 28, 28), num_features: int = 50):
        channels, height, width = image_shape
        num_flat = 50 * _positive(height // 4, image_shape, 4) * _positive(width // 4, image_shape, 4)
        super().__init__(
            nn.Conv2d(channels, 20, 5, padding="same"),
            MaxPool2x2(),  # before ReLU: the same function, on a quarter of the entries
            nn.ReLU(),
            nn.Conv2d(20, 50, 5, padding="same"),
            MaxPool2x2(),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(num_flat, 500),
            nn.ReLU(),
            nn.Linear(500, num_features),
            nn.ReLU(),
        )


class PcamNet(nn.Sequential):
    """The paper's VGG-like network for PatchCamelyon: three blocks of two valid 3×3 convolutions, then 256 and D units.

    Args:
        image_shape: (channels, height, width), sides at least 36.
        num_features: D.
        dropout: probability after each fully connected layer while in training mode; the paper disables it (``eval()``)
            once the GP is on top.
    """

    def __init__(self, image_shape: tuple[int, int, int] = (3, 96, 96), num_features: int = 50, dropout: float = 0.5):
        channels, *sides = image_shape
        layers: list[nn.Module] = []
        for width in (16, 32, 64):
            layers += [nn.Conv2d(channels, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3), MaxPool2x2(), nn.ReLU()]
            sides = [_positive((side - 4) // 2, image_shape, 36) for side in sides]
            channels = width
        super().__init__(
            *layers,
            nn.Flatten(),
            nn.Linear(channels * sides[0] * sides[1], 256),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(256, num_features),
            nn.Dropout(dropout),
        )


class ResNet18(nn.Sequential):
    """ResNet-18 with D post-ReLU features (paper: D = 50).

    Args:
        in_channels: channels of the images; their size is free.
        num_features: D.
        width: channels of the first stage; 64 is ResNet-18, less is a narrow one.
        strided: whether it begins as in He et al. (2016), with a 7×7 convolution of stride 2 and a pooling of stride 2;
            otherwise with a 3×3 convolution, which keeps all of a small image for the stages, at 16 times the cost.
    """

    def __init__(self, in_channels: int = 3, num_features: int = 50, width: int = 64, strided: bool = False):
        kernel, stride = (7, 2) if strided else (3, 1)
        layers: list[nn.Module] = [
            nn.Conv2d(in_channels, width, kernel, stride, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        if strided:
            layers.append(nn.MaxPool2d(3, stride=2, padding=1))
        channels = width
        for stage in range(4):
            out = width * 2**stage
            layers += [ResidualBlock(channels, out, stride=1 if stage == 0 else 2), ResidualBlock(out, out)]
            channels = out
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, num_features), nn.ReLU()]
        super().__init__(*layers)


class ResidualBlock(nn.Module):
    """relu(x + BN(conv(relu(BN(conv(x)))))), with a 1×1 convolution on the shortcut where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int = 1):
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(),
            nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
        )
        same_shape = stride == 1 and channels_in == channels_out
        self.shortcut = (
            nn.Identity()
            if same_shape
            else nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )
        )

    def forward(self, x: Float[Tensor, "N Ch H W"]) -> Float[Tensor, "N Ch2 H2 W2"]:
        """One block."""
        return torch.relu(self.shortcut(x) + self.residual(x))


def _positive(side: int, image_shape: tuple[int, ...], minimum: int) -> int:
    if side < 1:
        raise InputError(
            f"images of shape {tuple(image_shape)} are too small for this network: sides must be ≥ {minimum}"
        )
    return side
