"""The squared-exponential orbit mean in tiles against the kernel evaluated entry by entry."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import orbitune.gp.orbit_kernel as orbit_kernel
import orbitune.gp.squared_exponential as squared_exponential_module
from builders import NoiseOrbit, random_head, shallow_model
from orbitune.gp import OrbitFeatures
from orbitune.gp.orbit_kernel import evaluate, orbit_mean_kff, orbit_mean_Kuf
from orbitune.gp.squared_exponential import is_squared_exponential, squared_exponential_mean
from orbitune.likelihoods import Softmax
from orbitune.objectives import sample_bound

M, N, S, D = 6, 5, 7, 3


def scaled(base):
    kernel = ScaleKernel(base).double()
    kernel.outputscale = 1.7
    return kernel


def squared_exponential(ard=False):
    base = RBFKernel(ard_num_dims=D if ard else None).double()
    base.lengthscale = torch.tensor([0.6, 1.0, 2.0]) if ard else 0.8
    return scaled(base)


@pytest.fixture
def tensors(generator):
    shapes = ((M, D), (N, S, D), (S,))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


@pytest.fixture(params=[0, 2**27], ids=["made again", "kept"])
def entries_kept(request, monkeypatch):
    monkeypatch.setattr(squared_exponential_module, "MAX_KEPT_BYTES", request.param)


@pytest.mark.usefixtures("entries_kept")
@pytest.mark.parametrize("max_entries", [2**20, 2 * S * M, 3 * M, 1])
@pytest.mark.parametrize("ard", [False, True])
def test_values_and_gradients_are_those_of_the_kernel(generator, tensors, ard, max_entries):
    Z, H, weights = tensors
    kernel = squared_exponential(ard)
    upstream = torch.randn(M, N, generator=generator, dtype=torch.float64)
    expected = torch.einsum("mns,s->mn", evaluate(kernel, Z, H.flatten(0, 1)).unflatten(1, (N, S)), weights)
    actual = orbit_mean_Kuf(kernel, Z, H, max_entries, weights)
    torch.testing.assert_close(actual, expected)
    wanted = [*tensors, *kernel.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad(actual, wanted, upstream), torch.autograd.grad(expected, wanted, upstream)
    )


@pytest.mark.usefixtures("entries_kept")
@pytest.mark.parametrize("max_entries", [2**20, 2 * S * S, 3 * S, 1])
@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("halves", [False, True])
def test_so_are_those_of_the_variance_of_an_average(generator, tensors, halves, ard, max_entries):
    _, H1, weights = tensors
    H2 = torch.randn(N, S, D, generator=generator, dtype=torch.float64).requires_grad_() if halves else H1
    kernel = squared_exponential(ard)
    upstream = torch.randn(N, generator=generator, dtype=torch.float64)
    expected = torch.einsum("nij,i,j->n", evaluate(kernel, H1, H2), weights, weights)
    actual = orbit_mean_kff(kernel, H1, H2, max_entries, weights)
    torch.testing.assert_close(actual, expected)
    wanted = [H1, *([H2] if halves else []), weights, *kernel.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad(actual, wanted, upstream), torch.autograd.grad(expected, wanted, upstream)
    )


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_gradients_are_given_where_they_are_wanted_only(tensors, needed):
    tensors = [tensor.detach().requires_grad_(i in needed) for i, tensor in enumerate(tensors)]
    wanted = [tensors[i] for i in needed]
    assert torch.autograd.gradcheck(lambda *_: squared_exponential_mean(*tensors, max_entries=3 * M), wanted)
    squared_exponential_mean(*tensors).sum().backward()
    assert [i for i, tensor in enumerate(tensors) if tensor.grad is not None] == list(needed)


@pytest.mark.parametrize(("max_kept_bytes", "times"), [(0, 3), (N * S * M * 8 - 1, 3), (N * S * M * 8, 1)])
def test_entries_are_made_once_where_they_are_few(tensors, monkeypatch, max_kept_bytes, times):
    made, entries = [], squared_exponential_module.entries
    monkeypatch.setattr(squared_exponential_module, "MAX_KEPT_BYTES", max_kept_bytes)
    monkeypatch.setattr(squared_exponential_module, "entries", lambda *args: made.append(1) or entries(*args))
    mean = squared_exponential_mean(*tensors)
    first, second = (torch.autograd.grad(mean.sum(), tensors, retain_graph=True) for _ in range(2))
    torch.testing.assert_close(first, second)  # nothing that is kept was changed
    assert len(made) == times  # forward, and in either backward pass
    made.clear()
    with torch.no_grad():
        squared_exponential_mean(*tensors)
    assert len(made) == 1


def test_points_on_inducing_inputs_far_from_the_origin_keep_their_digits(tensors):
    Z = (tensors[0].detach() + 1000).float()
    mean = squared_exponential_mean(Z, Z[:, None], torch.ones(1))
    torch.testing.assert_close(mean.diagonal(), torch.ones(M))
    assert mean.max() <= 1


@pytest.mark.parametrize(
    ("of_features", "of_layer", "expected"),
    [
        (torch.bfloat16, torch.float64, torch.float32),
        (torch.float32, torch.float64, torch.float32),
        (torch.float64, torch.float64, torch.float64),
        (torch.float64, torch.float32, torch.float32),
    ],
)
def test_entries_have_no_more_digits_than_the_features(generator, monkeypatch, of_features, of_layer, expected):
    head, entries, seen = random_head(generator).to(of_layer), squared_exponential_module.entries, set()
    monkeypatch.setattr(
        squared_exponential_module, "entries", lambda columns, h: seen.add(h.dtype) or entries(columns, h)
    )
    law = head.marginal(torch.randn(4, 5, 2, generator=generator).to(of_features), head.law())
    assert seen == {expected} and law.mean.dtype == law.var.dtype == of_layer


def test_entries_in_single_precision_change_the_bound_and_its_gradients_by_next_to_nothing(generator, monkeypatch):
    head = random_head(generator, num_inducing=40)
    model = shallow_model(NoiseOrbit(), Softmax(3), head)
    H = torch.randn(20, 1, 8, 2, generator=generator)
    targets = torch.randint(3, (20,), generator=generator)

    def bound_and_gradients():
        seeded = torch.Generator().manual_seed(1)
        terms = sample_bound(model, OrbitFeatures(H, False), targets, num_data=20, generator=seeded)
        return [terms.per_datum, *torch.autograd.grad(terms.per_datum, [head.Z, *head.kernel.parameters()])]

    single = bound_and_gradients()
    monkeypatch.setattr(type(head), "entry_dtype", lambda self, features: torch.float64)
    double = bound_and_gradients()
    for found, expected in zip(single, double, strict=True):
        assert not torch.equal(found, expected)
        assert (found - expected).norm() < 1e-3 * expected.norm()


def test_other_kernels_take_the_general_way(tensors, monkeypatch):
    Z, H, _ = tensors
    monkeypatch.setattr(orbit_kernel, "squared_exponential_mean", None)  # calling it would fail
    for kernel in (
        scaled(MaternKernel(nu=1.5)),
        scaled(RBFKernel(active_dims=(0, 2))),
        ScaleKernel(RBFKernel(), active_dims=(0, 1)).double(),
        scaled(RBFKernel() + MaternKernel()),
    ):
        expected = evaluate(kernel, Z, H.flatten(0, 1)).unflatten(1, (N, S)).mean(-1)
        torch.testing.assert_close(orbit_mean_Kuf(kernel, Z, H, 2**20), expected)
        torch.testing.assert_close(orbit_mean_kff(kernel, H, H, 2**20), evaluate(kernel, H, H).mean((1, 2)))


def test_a_subclass_is_not_taken_for_its_base():
    class Other(RBFKernel):
        pass

    assert is_squared_exponential(RBFKernel())
    assert not is_squared_exponential(Other())
    assert not is_squared_exponential(RBFKernel(batch_shape=torch.Size([2])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_entries_are_next_to_nothing_but_never_subnormal(dtype):
    Z, H = torch.zeros(1, 1, dtype=dtype), torch.full((1, 1, 1), 1e6, dtype=dtype)
    value = squared_exponential_mean(Z, H, torch.ones(1, dtype=dtype)).item()
    assert torch.finfo(dtype).tiny < value < 2 * torch.finfo(dtype).tiny ** 0.5
