"""The fixed predictor, and the same as an ONNX graph."""

import json
import sys
from functools import cache

import gpytorch
import pytest
import torch
from torch import nn

from orbitune import build_model, natural_gradient_step, sample_elbo
from orbitune.backbones import MnistCNN, ResNet18
from orbitune.errors import ExportError, InputError
from orbitune.export import fixed_predictor, onnx_difference, to_onnx
from orbitune.export.predictor import sobol_normal
from orbitune.gp import OrbitMarginal
from orbitune.likelihoods import Bernoulli, Gaussian, Poisson, Softmax
from orbitune.network import OrbitNetwork
from orbitune.orbits import AffineOrbit, IdentityOrbit, SignFlip

WIDE = {"rotation": (-1.5, 2.0), "log_scale_x": (-0.2, 0.3), "shear_y": (-0.3, 0.1), "translate_x": (-0.2, 0.4)}
GREY, COLOUR = (1, 12, 11), (3, 12, 11)


def trained(likelihood, image_shape=GREY, orbit=None, kernel=None, backbone=None, num_inducing=15):
    """A model with a q(u) that has seen a few labels: nobody's special case."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(40, *image_shape, generator=generator)
    targets = likelihood.encode(likelihood.example_targets())
    targets = likelihood.example_targets()[torch.randint(len(targets), (40,), generator=generator)]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = backbone or MnistCNN(image_shape, num_features=6)
    orbit = AffineOrbit(WIDE) if orbit is None else orbit
    model = build_model(
        orbit, backbone, likelihood, images, num_inducing=num_inducing, kernel=kernel, generator=generator
    )
    for _ in range(3):
        terms = sample_elbo(model, images, targets, num_data=40, orbit_size=4, generator=generator)
        natural_gradient_step(model, terms, rate=0.5, generator=generator)
    return model


def matern():
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))
    kernel.outputscale, kernel.base_kernel.lengthscale = 5.0, 0.3
    return kernel


# The first two are the fast ones; the others go through the exporter in the slow suite.
MODELS = {
    "softmax, grey": lambda: (trained(Softmax(4)), GREY),
    "softmax, colour, border": lambda: (trained(Softmax(3), COLOUR, AffineOrbit(WIDE, padding="border")), COLOUR),
    "softmax, residual network, reflection": lambda: (
        trained(Softmax(3), COLOUR, AffineOrbit(WIDE, padding="reflection"), backbone=ResNet18(3, 6, width=4)),
        COLOUR,
    ),
    "gaussian on labels": lambda: (trained(Gaussian(4, labels=True)), GREY),
    "regression": lambda: (trained(Gaussian(2)), GREY),
    "bernoulli, another kernel": lambda: (trained(Bernoulli(), kernel=matern()), GREY),
    "counts, sign flips": lambda: (trained(Poisson(), orbit=SignFlip()), GREY),
    "softmax, no orbit": lambda: (trained(Softmax(3), orbit=IdentityOrbit()), GREY),
}
FAST = list(MODELS)[:2]


@cache
def model_and_shape(name):
    return MODELS[name]()


@pytest.fixture(scope="module")
def softmax_model():
    return model_and_shape("softmax, grey")[0]


@pytest.fixture
def images(generator):
    return torch.rand(9, *GREY, generator=generator)


@pytest.mark.parametrize("name", MODELS)
def test_the_fixed_law_is_that_of_the_model_on_the_same_orbit(name, generator):
    model, shape = model_and_shape(name)
    inputs = torch.rand(5, *shape, generator=generator)
    predictor = fixed_predictor(model, orbit_size=6, seed=3)
    with torch.no_grad():
        law = predictor.marginal(inputs)
        points = model.orbit.transform(inputs, predictor.features.params.expand(5, -1, -1))
        features = model.backbone.eval()(points.flatten(0, 1)).unflatten(0, points.shape[:2])
        # In double, as the predictor has them: kernel entries of single-precision features are of single precision.
        expected = model.head.marginal(features.double(), model.head.posterior.law())
    torch.testing.assert_close(law.mean, expected.mean, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(law.var, expected.var, rtol=1e-6, atol=1e-7)


def test_probabilities_are_those_of_the_model_up_to_its_own_randomness(softmax_model, images, generator):
    predictor = fixed_predictor(softmax_model, orbit_size=256, num_f_samples=1024)
    probabilities, _, _ = predictor(images)
    expected = softmax_model.predict(images, 256, num_f_samples=20_000, generator=generator)
    torch.testing.assert_close(probabilities.double(), expected, atol=0.01, rtol=0)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(9))


def test_sobol_points_are_evener_than_draws():
    """E softmax(f), K = 256: the fixed points are within 0.006 of 200,000 draws, whose error is 0.001."""
    generator = torch.Generator().manual_seed(0)
    mean, std = 3 * torch.randn(20, 10, generator=generator), 2 * torch.rand(20, 10, generator=generator)
    law = OrbitMarginal(mean, std.square(), mean)
    exact = sum(Softmax(10).predictive_mean(law, 50_000, generator) for _ in range(4)) / 4
    points = sobol_normal(256, 10, seed=0).float()[:, None]
    assert ((mean + std * points).softmax(-1).mean(0) - exact).abs().max() < 0.006


def test_nothing_is_left_to_chance_and_the_model_is_left_alone(softmax_model, images):
    before = {name: value.clone() for name, value in softmax_model.state_dict().items()}
    first, second = (fixed_predictor(softmax_model, orbit_size=4)(images) for _ in range(2))
    other = fixed_predictor(softmax_model, orbit_size=4, seed=1)(images)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], other[0])
    assert all(torch.equal(value, before[name]) for name, value in softmax_model.state_dict().items())
    assert all(parameter.requires_grad for parameter in softmax_model.orbit.parameters())


def test_one_image_does_not_depend_on_the_others(softmax_model, images):
    predictor = fixed_predictor(softmax_model, orbit_size=4)
    for together, alone in zip(predictor(images), predictor(images[:1]), strict=True):
        torch.testing.assert_close(together[:1], alone)


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in FAST)]
)
def test_onnxruntime_agrees_with_torch_for_batches_of_one_and_seven(name, generator):
    for library in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    model, shape = model_and_shape(name)
    predictor = fixed_predictor(model, orbit_size=5, num_f_samples=32)
    content = to_onnx(predictor, shape)
    differences = onnx_difference(content, predictor, torch.rand(7, *shape, generator=generator), (1, 7))
    assert tuple(differences) == predictor.output_names
    assert max(differences.values()) < 1e-4


def test_outputs_are_named_after_what_they_are():
    names = {
        name: fixed_predictor(model_and_shape(name)[0], orbit_size=2).output_names
        for name in MODELS
        if "residual" not in name
    }
    assert names["softmax, grey"] == names["gaussian on labels"] == ("probabilities", "f_mean", "f_std")
    assert names["regression"] == ("y_mean", "y_std")
    assert names["counts, sign flips"] == ("y_mean", "f_mean", "f_std")


def test_a_bernoulli_output_becomes_two_probabilities(images):
    model, _ = model_and_shape("bernoulli, another kernel")
    probabilities, f_mean, _ = fixed_predictor(model, orbit_size=3)(images)
    assert probabilities.shape == (9, 2) and f_mean.shape == (9, 1)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(9))


def test_regression_reports_the_noise_in_its_std(images):
    model, _ = model_and_shape("regression")
    predictor = fixed_predictor(model, orbit_size=3)
    mean, std = predictor(images)
    with torch.no_grad():
        law = predictor.marginal(images)
    torch.testing.assert_close(mean, law.mean.float())
    torch.testing.assert_close(std.square(), (law.var + model.likelihood.noise_variance).detach().float())


def test_a_network_without_a_gp_is_exported_without_uncertainty(images, generator):
    for library in ("onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    network = OrbitNetwork(AffineOrbit(WIDE), nn.Flatten(), nn.Linear(132, 3), Softmax(3))
    predictor = fixed_predictor(network, orbit_size=4)
    assert predictor.output_names == ("probabilities", "f_mean")
    assert max(onnx_difference(to_onnx(predictor, GREY), predictor, images).values()) < 1e-4


def test_the_file_says_what_is_in_it(softmax_model):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    content = to_onnx(fixed_predictor(softmax_model, orbit_size=2), GREY, {"class_names": ["a", "b", "c", "d"]})
    graph = onnx.load_from_string(content)
    onnx.checker.check_model(graph)
    assert {p.key: json.loads(p.value) for p in graph.metadata_props}["class_names"] == ["a", "b", "c", "d"]
    (images,) = graph.graph.input
    sizes = [d.dim_param or d.dim_value for d in images.type.tensor_type.shape.dim]
    assert images.name == "images" and sizes == ["N", 1, 12, 11]
    assert not {node.op_type for node in graph.graph.node} & {"RandomNormal", "RandomNormalLike", "RandomUniform"}


@pytest.mark.parametrize("settings", [{"orbit_size": 0}, {"num_f_samples": 0}])
def test_no_points_are_refused(softmax_model, settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        fixed_predictor(softmax_model, **settings)


def test_a_network_that_depends_on_values_is_refused_with_a_reason(softmax_model):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")

    class Branching(nn.Module):
        def forward(self, images):
            return images.flatten(1) if images.mean() > 0.5 else -images.flatten(1)

    network = OrbitNetwork(IdentityOrbit(), Branching(), nn.Linear(132, 3), Softmax(3))
    with pytest.raises(ExportError, match="depend on values"):
        to_onnx(fixed_predictor(network, orbit_size=1), GREY)


def test_missing_onnx_is_answered_with_how_to_get_it(softmax_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ExportError, match=r"pip install 'orbitune\[export\]'"):
        to_onnx(fixed_predictor(softmax_model, orbit_size=2), GREY)
