"""The networks are those of the paper's appendix: layer by layer, and in their number of parameters."""

import pytest
import torch
from torch import nn

from orbitune.backbones import MLP, Identity, MnistCNN, PcamNet, ResidualBlock, ResNet18
from orbitune.errors import InputError
from orbitune.pooling import MaxPool2x2


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def random_images(*shape):
    return torch.rand(*shape, generator=seeded(0))  # (B, Ch, H, W)


def built(make):
    """In evaluation mode, initialised from torch's global generator, which is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def kinds_of(network):
    return [type(layer).__name__ for layer in network]


def layers_of(network, kind):
    return [layer for layer in network.modules() if isinstance(layer, kind)]


def shapes_through(network, image_shape):
    """Shape of one image after each layer that changes it."""
    values, shapes = random_images(1, *image_shape), []
    for layer in network:
        values = layer(values)
        if isinstance(layer, nn.Conv2d | MaxPool2x2 | nn.Linear):
            shapes.append(tuple(values.shape[1:]))
    return shapes


def num_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


# --------------------------------------------------------------------------------------------------- Identity and MLP


def test_identity_returns_the_flattened_input():
    images = random_images(2, 3, 4, 5)
    assert torch.equal(Identity()(images), images.reshape(2, 60))


def test_identity_has_no_parameters():
    assert num_parameters(Identity()) == 0


def test_mlp_has_the_hidden_layers_it_is_asked_for():
    linear = layers_of(MLP(12, hidden=(9, 8), num_features=7), nn.Linear)
    assert [(layer.in_features, layer.out_features) for layer in linear] == [(12, 9), (9, 8), (8, 7)]


def test_mlp_without_hidden_layers_is_one_layer():
    assert kinds_of(MLP(12, hidden=(), num_features=7)) == ["Flatten", "Linear", "ReLU"]


# ----------------------------------------------------------------------------------------------------------- MnistCNN


def test_mnist_cnn_has_the_layers_of_the_papers_table_with_pooling_before_relu():
    assert kinds_of(built(MnistCNN)) == [
        *("Conv2d", "MaxPool2x2", "ReLU"),
        *("Conv2d", "MaxPool2x2", "ReLU"),
        *("Flatten", "Linear", "ReLU", "Linear", "ReLU"),
    ]


def test_mnist_cnn_has_the_shapes_of_the_papers_table():
    assert shapes_through(built(MnistCNN), (1, 28, 28)) == [
        (20, 28, 28),  # filters 20, padding same
        (20, 14, 14),
        (50, 14, 14),  # filters 50, padding same
        (50, 7, 7),
        (500,),
        (50,),
    ]


def test_mnist_cnn_is_the_function_of_the_papers_table(generator):
    network = built(MnistCNN)
    conv_1, pool_1, relu_1, conv_2, pool_2, relu_2, *rest = network
    as_in_the_table = nn.Sequential(conv_1, relu_1, pool_1, conv_2, relu_2, pool_2, *rest)
    images = torch.randn(3, 1, 28, 28, generator=generator)
    assert torch.equal(network(images), as_in_the_table(images))


def test_mnist_cnn_filters_are_5_by_5():
    assert {layer.kernel_size for layer in layers_of(built(MnistCNN), nn.Conv2d)} == {(5, 5)}


def test_mnist_cnn_has_the_number_of_parameters_that_follows():
    convolutions = 20 * (1 * 25 + 1) + 50 * (20 * 25 + 1)
    fully_connected = 500 * (50 * 7 * 7 + 1) + 50 * (500 + 1)
    assert num_parameters(built(MnistCNN)) == convolutions + fully_connected


def test_mnist_cnn_takes_images_of_the_shape_it_is_built_for():
    assert built(lambda: MnistCNN((3, 11, 6), num_features=9))(random_images(2, 3, 11, 6)).shape == (2, 9)


def test_mnist_cnn_takes_images_of_4_by_4():
    assert built(lambda: MnistCNN((1, 4, 4)))(random_images(2, 1, 4, 4)).shape == (2, 50)


@pytest.mark.parametrize("shape", [(1, 3, 28), (1, 28, 3), (1, 0, 0)])
def test_mnist_cnn_refuses_images_that_are_too_small(shape):
    with pytest.raises(InputError, match=r"too small .* sides must be ≥ 4") as error:
        MnistCNN(shape)
    assert str(shape) in str(error.value)


# ------------------------------------------------------------------------------------------------------------ PcamNet


def test_pcam_net_has_the_layers_of_the_papers_table():
    block = ("Conv2d", "ReLU", "Conv2d", "MaxPool2x2", "ReLU")  # pooling before ReLU is the same function
    # The last fully connected layer has no activation.
    assert kinds_of(built(PcamNet)) == [*block * 3, "Flatten", "Linear", "ReLU", "Dropout", "Linear", "Dropout"]


def test_pcam_net_has_the_shapes_of_the_papers_table():
    assert shapes_through(built(PcamNet), (3, 96, 96)) == [
        (16, 94, 94),  # 3×3, padding valid
        (16, 92, 92),
        (16, 46, 46),
        (32, 44, 44),
        (32, 42, 42),
        (32, 21, 21),
        (64, 19, 19),
        (64, 17, 17),
        (64, 8, 8),
        (256,),
        (50,),
    ]


def test_pcam_net_filters_are_3_by_3():
    assert {layer.kernel_size for layer in layers_of(built(PcamNet), nn.Conv2d)} == {(3, 3)}


def test_pcam_net_drops_half_of_both_fully_connected_layers():
    assert [layer.p for layer in layers_of(built(PcamNet), nn.Dropout)] == [0.5, 0.5]


def test_pcam_net_drops_features_in_training_mode_only():
    network, images = built(lambda: PcamNet((1, 36, 36), num_features=200)), random_images(1, 1, 36, 36)
    assert (network(images) != 0).all()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        dropped = (network.train()(images) == 0).double().mean()
    # 200 features, each dropped with probability ½: within four standard errors.
    assert abs(dropped - 0.5) < 4 * (0.25 / 200) ** 0.5


def test_pcam_net_takes_the_smallest_images_it_allows():
    assert built(lambda: PcamNet((3, 36, 38), num_features=9))(random_images(1, 3, 36, 38)).shape == (1, 9)


@pytest.mark.parametrize("shape", [(3, 35, 96), (3, 96, 35), (3, 2, 2)])
def test_pcam_net_refuses_images_that_are_too_small(shape):
    with pytest.raises(InputError, match=r"too small .* sides must be ≥ 36") as error:
        PcamNet(shape)
    assert str(shape) in str(error.value)


# ----------------------------------------------------------------------------------------------------------- ResNet18


def test_resnet18_is_the_11_million_parameters_of_the_cifar_variant():
    """With ten outputs it has 11,173,962, as the well-known CIFAR ResNet-18; fifty features add 40 · 513."""
    with torch.device("meta"):  # counting needs no memory
        assert num_parameters(ResNet18(num_features=10)) == 11_173_962
        assert num_parameters(ResNet18()) == 11_173_962 + 40 * 513


def test_resnet18_has_17_convolutions_and_a_fully_connected_layer_beside_its_shortcuts():
    with torch.device("meta"):
        network = ResNet18()
    convolutions = [layer for layer in layers_of(network, nn.Conv2d) if layer.kernel_size == (3, 3)]
    assert (len(convolutions), len(layers_of(network, nn.Linear))) == (17, 1)
    assert sum(layer.kernel_size == (1, 1) for layer in layers_of(network, nn.Conv2d)) == 3


def test_the_strided_resnet18_is_that_of_he_et_al():
    """With a thousand outputs it has the published 11,689,512 parameters."""
    with torch.device("meta"):
        assert num_parameters(ResNet18(num_features=1000, strided=True)) == 11_689_512


@pytest.mark.parametrize(("strided", "shrunk"), [(False, 1), (True, 4)])
def test_resnet18_halves_the_image_three_times_and_doubles_its_width(strided, shrunk):
    network, values, shapes = built(lambda: ResNet18(width=4, strided=strided)), random_images(1, 3, 64, 96), []
    for layer in network:
        values = layer(values)
        if isinstance(layer, ResidualBlock):
            shapes.append(tuple(values.shape[1:]))
    height, width = 64 // shrunk, 96 // shrunk
    assert shapes == [(4 * 2**i, height // 2**i, width // 2**i) for i in range(4) for _ in range(2)]


def test_resnet18_features_are_those_after_a_relu():
    features = built(lambda: ResNet18(width=4))(random_images(8, 3, 8, 8))
    assert (features >= 0).all()
    assert (features > 0).any()


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("size", [(32, 32), (5, 9), (1, 1)])
def test_resnet18_takes_images_of_any_size(size, strided):
    assert built(lambda: ResNet18(3, width=4, strided=strided))(random_images(2, 3, *size)).shape == (2, 50)


def test_a_residual_block_with_zero_weights_is_a_relu():
    block = built(lambda: ResidualBlock(3, 3))
    with torch.no_grad():
        for layer in layers_of(block, nn.Conv2d):
            layer.weight.zero_()
    values = random_images(2, 3, 4, 5) - 0.5
    assert torch.equal(block(values), values.relu())
