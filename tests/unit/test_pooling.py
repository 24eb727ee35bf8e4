"""Our pooling is PyTorch's, whichever way it is computed."""

import pytest
import torch
from torch import nn

from orbitune.pooling import MaxPool2x2

SHAPES = [(3, 2, 8, 6), (1, 5, 7, 9), (4, 3, 2, 3)]
LAYOUTS = [torch.contiguous_format, torch.channels_last]


@pytest.fixture(params=SHAPES, ids=str)
def shape(request):
    return request.param


def images(shape, layout, generator, dtype=torch.float64):
    # Few different numbers, so that windows have ties.
    return torch.randint(4, shape, generator=generator).to(dtype).contiguous(memory_format=layout)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_values_and_layout_are_those_of_pytorch(shape, layout, dtype, generator):
    x = images(shape, layout, generator, dtype)
    expected = nn.functional.max_pool2d(x, 2)
    found = MaxPool2x2()(x)
    assert torch.equal(found, expected)
    assert found.is_contiguous(memory_format=layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_values_and_gradients_are_those_of_pytorch(shape, layout, generator):
    x = images(shape, layout, generator).requires_grad_()
    weights = torch.randn(nn.functional.max_pool2d(x, 2).shape, generator=generator, dtype=x.dtype)
    expected, found = nn.functional.max_pool2d(x, 2), MaxPool2x2()(x)
    assert torch.equal(found, expected)
    assert torch.equal(*(torch.autograd.grad((weights * y).sum(), x)[0] for y in (expected, found)))


def test_second_derivatives_are_those_of_pytorch(generator):
    x = torch.rand(2, 3, 4, 6, generator=generator, dtype=torch.float64)
    weight = torch.randn(2, 3, 3, 3, generator=generator, dtype=torch.float64).requires_grad_()

    def second_derivative(pool):
        y = pool(nn.functional.conv2d(x.clone().requires_grad_(), weight)).tanh()
        (first,) = torch.autograd.grad(y.square().sum(), weight, create_graph=True)
        return torch.autograd.grad(first.square().sum(), weight)[0]

    torch.testing.assert_close(second_derivative(MaxPool2x2()), second_derivative(nn.MaxPool2d(2)))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_images_without_a_window_are_refused(requires_grad):
    with pytest.raises(RuntimeError, match="too small"):
        MaxPool2x2()(torch.zeros(1, 1, 1, 4, requires_grad=requires_grad))


def test_planes_with_more_entries_than_two_bytes_can_number(generator):
    x = torch.rand(1, 1, 260, 260, generator=generator).requires_grad_()
    expected, found = nn.functional.max_pool2d(x, 2), MaxPool2x2()(x)
    assert torch.equal(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (expected, found)))


def test_it_keeps_two_bytes_per_window_and_not_its_input(generator):
    kept = []
    x = images((3, 2, 8, 6), torch.channels_last, generator).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.nbytes) or t, lambda t: t):
        y = MaxPool2x2()(x)
    assert kept == [2 * y.numel()]


def test_nan_is_not_overlooked():
    x = torch.tensor([[[[1.0, 2.0], [float("nan"), 0.0]]]])
    assert MaxPool2x2()(x).isnan().all()
    assert MaxPool2x2()(x.requires_grad_()).isnan().all()


def test_exported_programs_have_the_operation_itself():
    program = torch.export.export(MaxPool2x2(), (torch.rand(1, 1, 4, 4),))
    assert any("max_pool2d" in str(node.target) for node in program.graph.nodes)
