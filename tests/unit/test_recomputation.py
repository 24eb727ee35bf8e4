"""What the backward pass computes again changes memory and time, not results."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from orbitune import features, recomputation
from orbitune.features import features_of_points
from orbitune.orbits import AffineOrbit

NUM_INPUTS, ORBIT_SIZE = 5, 3
PRODUCT_BYTES = NUM_INPUTS * (8 * 8 + 3 * 6 * 6) * 8  # of warp and convolution of one point of each input


class Count(TorchDispatchMode):
    """How often an operation is computed."""

    def __init__(self, operation):
        super().__init__()
        self.operation, self.count = operation, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is self.operation
        return func(*args, **(kwargs or {}))


@pytest.fixture
def inputs(generator):
    return torch.rand(NUM_INPUTS, 1, 8, 8, generator=generator, dtype=torch.float64)


@pytest.fixture
def small_pieces(monkeypatch):
    """One point of each input per piece."""
    monkeypatch.setattr(features, "MAX_POINTS", 7)
    monkeypatch.setattr(features, "MAX_PIECE_POINTS", 7)
    monkeypatch.setattr(recomputation, "COSTLY", 9)
    monkeypatch.setattr(recomputation, "MAX_KEPT_BYTES", 0)


def network(*between):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), *between, nn.Flatten(), nn.Linear(3 * 36, 4)).double()


def compute_once(monkeypatch):
    """The same pieces, and with them the same batch statistics, without a second pass."""
    monkeypatch.setattr(recomputation.Recomputation, "checkpoint", lambda self, piece, part: piece(part))


def gradients(backbone, inputs, autocast=False):
    orbit = AffineOrbit({"rotation": (-0.5, 0.4)}).double()
    params = orbit.sample_params(NUM_INPUTS, ORBIT_SIZE, torch.Generator().manual_seed(0))
    backbone.zero_grad()
    torch.manual_seed(1)  # of dropout
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        H = features_of_points(orbit, backbone, inputs, params)
    H.double().mean(1).sin().sum().backward()
    return [H.detach(), *(p.grad.clone() for p in (*orbit.parameters(), *backbone.parameters()))]


@pytest.mark.parametrize(("num_kept", "num_repeated"), [(0, 2), (1, 1), (2, 0)])
def test_products_are_computed_once_where_there_is_room_for_them(
    inputs, small_pieces, monkeypatch, num_kept, num_repeated
):
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", 0)
    expected = gradients(network(nn.Tanh()), inputs)
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", num_kept * PRODUCT_BYTES)
    with (
        Count(torch.ops.aten.convolution.default) as convolutions,
        Count(torch.ops.aten.grid_sampler_2d.default) as warps,
    ):
        found = gradients(network(nn.Tanh()), inputs)
    assert convolutions.count == warps.count == ORBIT_SIZE + num_repeated
    torch.testing.assert_close(found, expected)


def test_nothing_is_computed_again_where_there_is_room_for_all_that_is_kept(inputs, small_pieces, monkeypatch):
    def passes_and_bytes(max_kept_bytes):
        monkeypatch.setattr(recomputation, "MAX_KEPT_BYTES", max_kept_bytes)
        monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", 0)
        measured = []
        total = recomputation.KeptBytes.__exit__
        monkeypatch.setattr(
            recomputation.KeptBytes, "__exit__", lambda self, *e: measured.append(self.total) or total(self, *e)
        )
        with Count(torch.ops.aten.convolution.default) as convolutions:
            found = gradients(network(nn.Tanh()), inputs)
        return convolutions.count, measured[0], found

    again, piece_bytes, expected = passes_and_bytes(0)
    # A warp's image and grid, tanh and what the linear layer keeps: more than the products, far less than a megabyte.
    assert PRODUCT_BYTES < piece_bytes < 10 * PRODUCT_BYTES
    for room, count in ((ORBIT_SIZE * piece_bytes, ORBIT_SIZE), (ORBIT_SIZE * piece_bytes - 1, again)):
        found = passes_and_bytes(room)
        assert found[0] == count
        torch.testing.assert_close(found[2], expected)
    assert again == ORBIT_SIZE + 2  # the first piece is never computed again


@pytest.mark.parametrize("max_bytes", [0, 2**30])
@pytest.mark.parametrize(
    "between",
    [(nn.Tanh(),), (nn.ReLU(inplace=True),), (nn.BatchNorm2d(3), nn.ReLU())],
    ids=["tanh", "relu in place", "batch norm"],
)
def test_pieces_that_are_computed_again_give_the_same_gradients(inputs, small_pieces, monkeypatch, between, max_bytes):
    backbone = network(*between)
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", max_bytes)
    in_pieces = gradients(copy.deepcopy(backbone), inputs)
    compute_once(monkeypatch)
    torch.testing.assert_close(in_pieces, gradients(backbone, inputs))


@pytest.mark.parametrize("max_bytes", [0, 2**30])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_statistics_are_counted_once(inputs, small_pieces, monkeypatch, momentum, max_bytes):
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", max_bytes)
    again, once = (network(nn.BatchNorm2d(3, momentum=momentum)) for _ in range(2))
    gradients(again, inputs)
    compute_once(monkeypatch)
    gradients(once, inputs)
    assert again[1].num_batches_tracked == ORBIT_SIZE
    torch.testing.assert_close(list(again.buffers()), list(once.buffers()))
    assert again[1].momentum == momentum


@pytest.mark.parametrize("max_bytes", [0, 2**30])
def test_dropout_drops_the_same_again(inputs, small_pieces, monkeypatch, max_bytes):
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", max_bytes)
    in_pieces = gradients(network(nn.Dropout(0.5)), inputs)
    compute_once(monkeypatch)
    torch.testing.assert_close(in_pieces, gradients(network(nn.Dropout(0.5)), inputs))


@pytest.mark.parametrize("max_bytes", [0, 2**30])
def test_bfloat16_weights_are_cast_in_every_piece(inputs, small_pieces, monkeypatch, max_bytes):
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", max_bytes)
    in_pieces = gradients(network(nn.ReLU()).float(), inputs.float(), autocast=True)
    monkeypatch.setattr(features, "MAX_POINTS", 100)
    whole = gradients(network(nn.ReLU()).float(), inputs.float(), autocast=True)
    assert in_pieces[0].dtype == torch.bfloat16
    torch.testing.assert_close(in_pieces, whole, rtol=0.05, atol=0.05)


def test_a_second_backward_pass_is_possible_where_nothing_is_kept(inputs, small_pieces, monkeypatch):
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", 0)
    backbone, orbit = network(nn.Tanh()), AffineOrbit(learn=()).double()
    H = features_of_points(orbit, backbone, inputs, torch.zeros(NUM_INPUTS, ORBIT_SIZE, 7).double())
    first, second = (torch.autograd.grad(H.sum(), list(backbone.parameters()), retain_graph=True) for _ in range(2))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("max_kept_bytes", [0, 2**30])
def test_a_pass_without_a_backward_pass_leaves_nothing_behind(inputs, small_pieces, monkeypatch, max_kept_bytes):
    monkeypatch.setattr(recomputation, "MAX_KEPT_BYTES", max_kept_bytes)
    layer, kept = nn.Tanh(), []  # it keeps its output
    layer.register_forward_hook(lambda module, args, output: kept.append(weakref.ref(output)))
    orbit = AffineOrbit(learn=()).double()
    features_of_points(orbit, network(layer), inputs, torch.zeros(NUM_INPUTS, ORBIT_SIZE, 7).double())
    gc.collect()
    assert kept and all(output() is None for output in kept)


@pytest.mark.parametrize(
    ("operation", "shapes", "expected"),
    [
        (torch.ops.aten.convolution.default, [(7, 2, 5, 5), (3, 2, 3, 3)], 18),
        (torch.ops.aten.addmm.default, [(4,), (7, 6), (6, 4)], 6),
        (torch.ops.aten.mm.default, [(7, 6), (6, 4)], 6),
        (torch.ops.aten.bmm.default, [(2, 7, 6), (2, 6, 4)], 6),
        (torch.ops.aten.relu.default, [(7, 6)], 0),
    ],
)
def test_multiplications_per_entry(operation, shapes, expected):
    assert recomputation.multiplications(operation, *map(torch.empty, shapes)) == expected
