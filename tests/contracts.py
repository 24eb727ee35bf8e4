"""What every public orbit, likelihood and backbone must do, as checks that are run over all of them.

A class takes part by having an example below; a public class without one fails the suite. A check is a function whose
name starts with ``module_`` (for all three kinds), ``orbit_``, ``likelihood_`` or ``backbone_``. It takes an example
and makes what it needs from it, so checks cannot disturb each other.
"""

import copy
import importlib
import inspect
import itertools
import pickle
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from orbitune import backbones, likelihoods, orbits
from orbitune.gp import OrbitMarginal
from orbitune.likelihoods import (
    Bernoulli,
    FactorizedLikelihood,
    Gaussian,
    Likelihood,
    Poisson,
    Softmax,
    check_log_concave,
)
from orbitune.orbits import AffineOrbit, IdentityOrbit, Orbit, SignFlip

SIZE = 5  # S, points per orbit where the number does not matter
NUM_DRAWS = 5000  # K of brute-force averages


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normals(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64).to(dtype)


# ================================================================================================== kinds of example


@dataclass(frozen=True)
class Example(ABC):
    """How to make a module, and how to run all of it."""

    factory: Callable[[], nn.Module]

    def make(self) -> nn.Module:
        return self.factory()

    @abstractmethod
    def run(self, module: nn.Module, dtype: torch.dtype, seed: int = 1) -> dict[str, Tensor]:
        """Everything the module computes from fixed inputs of a dtype, each from a fresh generator, by name."""


@dataclass(frozen=True)
class OrbitExample(Example):
    event: tuple[int, ...]  # the shape of one input

    def inputs(self, batch: int = 3, dtype: torch.dtype = torch.float32) -> Tensor:
        return normals(batch, *self.event, seed=0, dtype=dtype)

    def run(self, module, dtype, seed=1):
        params = module.sample_params(3, SIZE, seeded(seed))
        return {"params": params, "points": module(self.inputs(3, dtype), SIZE, seeded(seed))}


@dataclass(frozen=True)
class LikelihoodExample(Example):
    kind: Literal["labels", "binary", "counts", "numbers"]

    def targets(self, likelihood: Likelihood, batch: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Encoded targets, the examples in turn."""
        examples = likelihood.example_targets()
        return in_dtype(likelihood.encode(examples[torch.arange(batch) % len(examples)]), dtype)

    def case(self, batch: int = 4) -> tuple[Likelihood, OrbitMarginal, Tensor]:
        likelihood = self.make().double()
        return likelihood, random_law(batch, likelihood.num_outputs), self.targets(likelihood, batch)

    def run(self, module, dtype, seed=1, batch=4):
        law, targets = random_law(batch, module.num_outputs, dtype), self.targets(module, batch, dtype)
        gradient, curvature = module.expected_derivatives(law, targets, 6, seeded(seed))
        return {
            "log_prob": module.log_prob(law.mean, targets),
            "conditional_mean": module.conditional_mean(law.mean),
            "expected_log_prob": module.expected_log_prob(law, targets, 6, seeded(seed)),
            "expected gradient": gradient,
            "expected curvature": curvature,
            "predictive_mean": module.predictive_mean(law, 6, seeded(seed)),
            "log_predictive": module.log_predictive(law, targets, 6, seeded(seed)),
        }

    def support(self) -> tuple[Tensor, float]:
        """All targets (Y, …) and a weight such that Σ_y weight · p(y) = 1 under :func:`narrow_law`."""
        num_outputs = self.make().num_outputs
        if self.kind == "labels":
            return torch.arange(num_outputs), 1.0
        # Counts: narrow laws have rates below 10 except with probability 1e-7, and P(Poisson(10) ≥ 40) < 1e-11.
        # Numbers: all of N(|μ| < 1, σ² ≥ 0.7) lies within 8 of zero; the trapezium rule of step h is then off by
        # exp(−2π²σ²/h²) < 1e-23.
        step = 0.5
        values = {
            "binary": torch.arange(2.0),
            "counts": torch.arange(40.0),
            "numbers": torch.arange(-8.0, 8.0, step),
        }[self.kind]
        rows = torch.tensor(list(itertools.product(values.tolist(), repeat=num_outputs)))
        return rows, step**num_outputs if self.kind == "numbers" else 1.0


@dataclass(frozen=True)
class BackboneExample(Example):
    event: tuple[int, ...]  # the shape of one input
    num_features: int  # D

    def make(self) -> nn.Module:
        """In evaluation mode. Networks are initialised from torch's global generator: it is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.factory().eval()

    def inputs(self, batch: int = 3, dtype: torch.dtype = torch.float32) -> Tensor:
        return normals(batch, *self.event, seed=0, dtype=dtype)

    def run(self, module, dtype, seed=1):
        return {"features": module(self.inputs(3, dtype))}


def random_law(batch: int, num_outputs: int, dtype: torch.dtype = torch.float64) -> OrbitMarginal:
    """Means of size 1 and variances between 0.2 and 1.2."""
    var = 0.2 + torch.rand(batch, num_outputs, generator=seeded(3), dtype=torch.float64).to(dtype)
    return OrbitMarginal(normals(batch, num_outputs, seed=2, dtype=dtype), var, torch.zeros(batch, 1, dtype=dtype))


def narrow_law(batch: int, num_outputs: int) -> OrbitMarginal:
    """Means between −1 and 1, variances between 0.02 and 0.12."""
    law = random_law(batch, num_outputs)
    return OrbitMarginal(law.mean.tanh(), law.var / 10, law.whitened)


def in_dtype(targets: Tensor, dtype: torch.dtype) -> Tensor:
    return targets.to(dtype) if targets.is_floating_point() else targets


# ========================================================================================================== examples

IMAGE = (3, 5, 8)  # several channels, not square, one side odd
RANGES = {"rotation": (-1.0, 2.0), "log_scale_x": (-0.5, 0.25), "shear_y": (0.125, 0.5)}
RECIPROCAL = {"learn": RANGES, "parameterisation": "reciprocal", "padding": "reflection"}

ORBITS: dict[type[Orbit], dict[str, OrbitExample]] = {
    AffineOrbit: {
        "direct": OrbitExample(lambda: AffineOrbit(RANGES), IMAGE),
        "symmetric": OrbitExample(lambda: AffineOrbit(symmetric=True, start=0.3, padding="border"), IMAGE),
        "reciprocal": OrbitExample(lambda: AffineOrbit(RANGES, **RECIPROCAL), IMAGE),
    },
    IdentityOrbit: {
        "vector": OrbitExample(IdentityOrbit, (2,)),
        "image": OrbitExample(IdentityOrbit, IMAGE),
    },
    SignFlip: {
        "vector": OrbitExample(SignFlip, (2,)),
        "image": OrbitExample(SignFlip, IMAGE),
    },
}

LIKELIHOODS: dict[type[Likelihood], dict[str, LikelihoodExample]] = {
    Gaussian: {
        "one": LikelihoodExample(lambda: Gaussian(1, noise_variance=0.7), "numbers"),
        "two": LikelihoodExample(lambda: Gaussian(2, noise_variance=0.7), "numbers"),
        "labels": LikelihoodExample(lambda: Gaussian(3, noise_variance=0.7, labels=True), "labels"),
    },
    Softmax: {
        "three": LikelihoodExample(lambda: Softmax(3), "labels"),
    },
    Bernoulli: {
        "one": LikelihoodExample(Bernoulli, "binary"),
        "two": LikelihoodExample(lambda: Bernoulli(2), "binary"),
    },
    Poisson: {
        "one": LikelihoodExample(Poisson, "counts"),
        "two": LikelihoodExample(lambda: Poisson(2), "counts"),
    },
}

BACKBONES: dict[type[nn.Module], dict[str, BackboneExample]] = {
    backbones.Identity: {
        "image": BackboneExample(backbones.Identity, (3, 4, 5), 60),
    },
    backbones.MLP: {
        "vector": BackboneExample(lambda: backbones.MLP(7, (6,), 5), (7,), 5),
        "image": BackboneExample(lambda: backbones.MLP(60, (8, 6), 5), (3, 4, 5), 5),
    },
    backbones.MnistCNN: {
        "image": BackboneExample(lambda: backbones.MnistCNN((3, 9, 13), 7), (3, 9, 13), 7),
    },
    backbones.PcamNet: {
        "image": BackboneExample(lambda: backbones.PcamNet((2, 37, 46), 7), (2, 37, 46), 7),
    },
    backbones.ResNet18: {
        "image": BackboneExample(lambda: backbones.ResNet18(2, 7, width=4), (2, 9, 14), 7),
    },
}

# Public modules of orbitune.backbones that are parts of networks, not networks.
BUILDING_BLOCKS = {backbones.ResidualBlock}


def public_orbits() -> set[type]:
    return public_subclasses(Orbit, orbits)


def public_likelihoods() -> set[type]:
    return public_subclasses(Likelihood, likelihoods)


def public_backbones() -> set[type]:
    return public_subclasses(nn.Module, backbones) - BUILDING_BLOCKS


def public_subclasses(base: type, room) -> set[type]:
    """All concrete public subclasses of ``base`` that are defined anywhere in a module or package of Orbitune."""
    for module in pkgutil.walk_packages(getattr(room, "__path__", []), room.__name__ + "."):
        importlib.import_module(module.name)
    found: set[type] = set()
    waiting = [base]
    while waiting:
        new = set(waiting.pop().__subclasses__()) - found
        found |= new
        waiting += new
    return {
        cls
        for cls in found
        if (cls.__module__ + ".").startswith(room.__name__ + ".")
        and not cls.__name__.startswith("_")
        and not inspect.isabstract(cls)
    }


# ===================================================================================================== of all modules


def module_survives_pickling(example: Example) -> None:
    module = disturbed(example.make())
    twin = pickle.loads(pickle.dumps(module))
    assert_same_results(example.run(twin, torch.float32), example.run(module, torch.float32))


def module_survives_deepcopy(example: Example) -> None:
    module = disturbed(example.make())
    assert_same_results(example.run(copy.deepcopy(module), torch.float32), example.run(module, torch.float32))


def module_shares_nothing_with_its_deepcopy(example: Example) -> None:
    module = example.make()
    before = example.run(module, torch.float32)
    disturbed(copy.deepcopy(module))
    assert_same_results(example.run(module, torch.float32), before)


def module_is_restored_from_its_state_dict(example: Example) -> None:
    module, other = disturbed(example.make()), example.make()
    other.load_state_dict(module.state_dict())
    assert_same_results(example.run(other, torch.float32), example.run(module, torch.float32))


def module_is_reproducible_by_its_generator(example: Example) -> None:
    module = example.make()
    assert_same_results(example.run(module, torch.float32, seed=7), example.run(module, torch.float32, seed=7))


def module_leaves_the_global_generator_alone(example: Example) -> None:
    before = torch.get_rng_state()
    example.run(example.make(), torch.float32)
    assert torch.equal(torch.get_rng_state(), before)


def module_moves_to_double_precision_entirely(example: Example) -> None:
    module = example.make().to(torch.float64)
    for name, tensor in module.state_dict().items():
        assert tensor.dtype == torch.float64 or not tensor.is_floating_point(), f"{name} stayed {tensor.dtype}"


def module_computes_in_double_precision(example: Example) -> None:
    results = example.run(example.make().double(), torch.float64)
    assert {name: value.dtype for name, value in results.items()} == dict.fromkeys(results, torch.float64)


def module_computes_in_single_precision(example: Example) -> None:
    results = example.run(example.make(), torch.float32)
    assert {name: value.dtype for name, value in results.items()} == dict.fromkeys(results, torch.float32)


def disturbed(module: nn.Module) -> nn.Module:
    """The same module with parameters and buffers that no constructor gives."""
    with torch.no_grad():
        for tensor in module.state_dict().values():
            if tensor.is_floating_point():
                tensor.mul_(1.25)
    return module


def assert_same_results(got: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 0) -> None:
    """By default bit for bit, where both sides ran the same operations on the same numbers."""
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            got[name], value, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


# ========================================================================================================= of orbits


def orbit_names_its_parameters(example: OrbitExample) -> None:
    orbit = example.make()
    assert tuple(orbit.ranges()) == orbit.names
    assert len(orbit.units) == len(orbit.names)


def orbit_ranges_are_ordered(example: OrbitExample) -> None:
    assert all(low <= high for low, high in example.make().ranges().values())


def orbit_shows_its_ranges_when_printed(example: OrbitExample) -> None:
    orbit = example.make()
    assert all(name in repr(orbit) for name in orbit.names)


def orbit_samples_params_of_shape_B_S_P(example: OrbitExample) -> None:
    orbit = example.make()
    size = len(orbit.elements) if orbit.exact else SIZE  # a finite orbit is used whole
    assert orbit.sample_params(4, SIZE, seeded(1)).shape == (4, size, len(orbit.names))


def orbit_samples_params_within_its_ranges(example: OrbitExample) -> None:
    orbit = example.make()
    params = orbit.sample_params(4, SIZE, seeded(1))
    for p, (low, high) in enumerate(orbit.ranges().values()):
        # low + (high − low)·ε with ε < 1 is rounded once more than high is.
        assert params[..., p].min() >= low - 1e-6
        assert params[..., p].max() <= high + 1e-6


def orbit_transforms_to_shape_B_S_event(example: OrbitExample, batch: int = 3) -> None:
    orbit = example.make()
    params = orbit.sample_params(batch, SIZE, seeded(1))
    assert orbit.transform(example.inputs(batch), params).shape == (batch, params.shape[1], *example.event)


def orbit_takes_a_batch_of_one(example: OrbitExample) -> None:
    orbit_transforms_to_shape_B_S_event(example, batch=1)


def orbit_takes_an_orbit_of_one_point(example: OrbitExample) -> None:
    assert example.make()(example.inputs(3), 1, seeded(1)).isfinite().all()


def orbit_transforms_every_input_by_itself(example: OrbitExample) -> None:
    orbit, inputs = example.make(), example.inputs(3)
    params = orbit.sample_params(3, SIZE, seeded(1))
    one_by_one = [orbit.transform(inputs[b : b + 1], params[b : b + 1]) for b in range(3)]
    # The same operations in other vector lanes: rounding of float32 on numbers of size 1.
    torch.testing.assert_close(orbit.transform(inputs, params), torch.cat(one_by_one), rtol=0, atol=1e-5)


def orbit_applies_every_parameter_vector_by_itself(example: OrbitExample) -> None:
    orbit, inputs = example.make(), example.inputs(3)
    params = orbit.sample_params(3, SIZE, seeded(1))
    one_by_one = [orbit.transform(inputs, params[:, s : s + 1]) for s in range(params.shape[1])]
    # The same operations in other vector lanes: rounding of float32 on numbers of size 1.
    torch.testing.assert_close(orbit.transform(inputs, params), torch.cat(one_by_one, dim=1), rtol=0, atol=1e-5)


def orbit_leaves_its_inputs_alone(example: OrbitExample) -> None:
    inputs = example.inputs()
    example.make()(inputs, SIZE, seeded(1))
    assert torch.equal(inputs, example.inputs())


def orbit_keeps_the_dtype_of_its_inputs(example: OrbitExample) -> None:
    """Whatever its own: images may be single while φ is double."""
    assert example.make().double()(example.inputs(dtype=torch.float32), SIZE, seeded(1)).dtype == torch.float32


def orbit_differs_between_seeds_unless_exact(example: OrbitExample) -> None:
    orbit = example.make()
    first, second = (example.run(orbit, torch.float32, seed=seed)["points"] for seed in (7, 8))
    assert torch.equal(first, second) == orbit.exact


def orbit_agrees_between_single_and_double_precision(example: OrbitExample) -> None:
    orbit, inputs = example.make(), example.inputs()
    params = orbit.sample_params(3, SIZE, seeded(1))
    single, double = orbit.transform(inputs, params), orbit.transform(inputs.double(), params.double())
    # Positions of up to 10 pixels are off by 10 · 2⁻²³ ≈ 1e-6, and the slopes of the images are below 10 per pixel.
    torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-4)


# ==================================================================================================== of likelihoods


def likelihood_is_log_concave(example: LikelihoodExample) -> None:
    check_log_concave(example.make())


def likelihood_returns_documented_shapes(example: LikelihoodExample, batch: int = 4) -> None:
    likelihood = example.make()
    num_outputs = likelihood.num_outputs
    results = example.run(likelihood, torch.float32, batch=batch)
    assert {name: tuple(value.shape) for name, value in results.items()} == {
        "log_prob": (batch,),
        "conditional_mean": (batch, num_outputs),
        "expected_log_prob": (batch,),
        "expected gradient": (batch, num_outputs),
        "expected curvature": (batch, 1 if likelihood.shared_curvature else num_outputs),
        "predictive_mean": (batch, num_outputs),
        "log_predictive": (batch,),
    }


def likelihood_takes_a_batch_of_one(example: LikelihoodExample) -> None:
    likelihood_returns_documented_shapes(example, batch=1)


def likelihood_takes_as_many_inputs_as_outputs(example: LikelihoodExample) -> None:
    likelihood_returns_documented_shapes(example, batch=example.make().num_outputs)


def likelihood_treats_every_input_by_itself(example: LikelihoodExample) -> None:
    """With N == C, shapes would not notice a confusion of the two axes; values do."""

    def results(rows: slice) -> dict[str, Tensor]:
        f, y = law.mean[rows], targets[rows]
        gradient, curvature = likelihood.derivatives(f, y)
        values = {"log_prob": likelihood.log_prob(f, y), "conditional_mean": likelihood.conditional_mean(f)}
        return values | {"gradient": gradient, "curvature": curvature}

    likelihood, law, targets = example.case(batch=max(2, example.make().num_outputs))
    whole = results(slice(None))
    for n in range(len(law.mean)):
        row = slice(n, n + 1)
        # Rounding of float64 on numbers of size 1 to 10.
        assert_same_results(results(row), {name: value[row] for name, value in whole.items()}, tolerance=1e-13)


def likelihood_differs_between_seeds_only_where_it_samples(example: LikelihoodExample) -> None:
    """A product over outputs has one-dimensional expectations only, for which nothing is sampled."""
    likelihood = example.make()
    first, second = (example.run(likelihood, torch.float32, seed=seed) for seed in (7, 8))
    for name in ("expected_log_prob", "expected gradient", "predictive_mean", "log_predictive"):
        assert torch.equal(first[name], second[name]) == isinstance(likelihood, FactorizedLikelihood), name


def likelihood_agrees_between_single_and_double_precision(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    single = copy.deepcopy(likelihood).float().log_prob(law.mean.float(), in_dtype(targets, torch.float32))
    # Rounding of float32 on numbers of size 1 to 10.
    torch.testing.assert_close(single.double(), likelihood.log_prob(law.mean, targets), rtol=1e-5, atol=1e-5)


def likelihood_derivatives_are_those_of_autograd(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    gradient, curvature = likelihood.derivatives(law.mean, targets)
    for n, f in enumerate(law.mean):
        log_prob = lambda f, n=n: likelihood.log_prob(f[None], targets[n : n + 1])[0]  # noqa: E731
        slope = torch.autograd.functional.jacobian(log_prob, f)  # (C,)
        hessian = torch.autograd.functional.hessian(log_prob, f)  # (C, C)
        # Two exact formulas: only rounding of float64, on numbers of size 1 to 10, tells them apart.
        torch.testing.assert_close(gradient[n], slope, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(curvature[n], -hessian.diagonal(), rtol=1e-12, atol=1e-12)


def likelihood_derivatives_are_finite_differences(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    gradient, curvature = likelihood.derivatives(law.mean, targets)
    step = 1e-3
    for c in range(likelihood.num_outputs):
        offset = torch.zeros_like(law.mean)
        offset[:, c] = step
        below, here, above = (likelihood.log_prob(law.mean + k * offset, targets) for k in (-1, 0, 1))  # (N,)
        # Central differences are off by step²/6 · |∂³| and step²/12 · |∂⁴|, and these derivatives are below 30;
        # rounding adds 1e-15 · |log p| / step² ≈ 1e-8.
        torch.testing.assert_close(gradient[:, c], (above - below) / (2 * step), rtol=0, atol=1e-5)
        torch.testing.assert_close(curvature[:, c], -(above - 2 * here + below) / step**2, rtol=0, atol=1e-5)


def likelihood_curvature_is_not_negative(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case(batch=60)
    assert (likelihood.derivatives(5 * law.mean, targets)[1] >= 0).all()


def likelihood_expected_curvature_is_not_negative(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case(batch=12)
    wide = OrbitMarginal(law.mean, 9 * law.var, law.whitened)
    assert (likelihood.expected_derivatives(wide, targets, 8, seeded(9))[1] >= 0).all()


@torch.no_grad()
def likelihood_expected_log_prob_is_that_of_brute_force(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    got = likelihood.expected_log_prob(law, targets, NUM_DRAWS, seeded(9))
    assert_mean_of(likelihood.log_prob_of_points(draws_of(law), targets), got)


@torch.no_grad()
def likelihood_expected_derivatives_are_those_of_brute_force(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    draws = draws_of(law)  # (K, N, C)
    repeated = targets.expand(NUM_DRAWS, *targets.shape).flatten(0, 1)  # (K·N, …)
    gradients, curvatures = likelihood.derivatives(draws.flatten(0, 1), repeated)
    gradient, curvature = likelihood.expected_derivatives(law, targets, NUM_DRAWS, seeded(9))
    assert_mean_of(gradients.detach().reshape(draws.shape), gradient)
    assert_mean_of(curvatures.detach().reshape(draws.shape), curvature.expand_as(gradient))


@torch.no_grad()
def likelihood_log_predictive_is_that_of_brute_force(example: LikelihoodExample) -> None:
    """log p(y) = log E p(y | f̂), normalised over labels (which a Gaussian on one-hot codes does not do by itself)."""

    def estimate(points: Tensor) -> Tensor:
        log_density = log_mean_density(points, targets)  # (N,)
        if example.kind != "labels":
            return log_density
        labels = torch.arange(likelihood.num_outputs)[:, None].expand(-1, len(targets))  # (C, N)
        codes = [in_dtype(likelihood.encode(label), torch.float64) for label in labels]
        return log_density - torch.stack([log_mean_density(points, code) for code in codes]).logsumexp(0)

    def log_mean_density(points: Tensor, codes: Tensor) -> Tensor:
        return likelihood.log_prob_of_points(points, codes).exp().mean(0).log()

    likelihood, law, targets = example.case()
    # Means over batches of 250 draws. Their logarithm is biased by −var/500, far below its own spread √(var/250).
    estimates = torch.stack([estimate(points) for points in draws_of(law).split(250)])  # (K/250, N)
    assert_mean_of(estimates, likelihood.log_predictive(law, targets, NUM_DRAWS, seeded(9)))


@torch.no_grad()
def likelihood_expected_log_prob_is_that_of_dense_quadrature(example: LikelihoodExample) -> None:
    """For products over outputs, E log p = Σ_c E log p_c."""
    likelihood, law, targets = example.case()
    if isinstance(likelihood, FactorizedLikelihood):
        log_prob_each, weights = on_dense_grid(likelihood, law, targets)
        expected = torch.einsum("g,gnc->n", weights, log_prob_each)
        # 20 Gauss–Hermite nodes are good to 1e-9 for the logistic function at the largest variance here, 1.2.
        torch.testing.assert_close(likelihood.expected_log_prob(law, targets, 1), expected, rtol=0, atol=1e-8)


@torch.no_grad()
def likelihood_log_predictive_is_that_of_dense_quadrature(example: LikelihoodExample) -> None:
    """For products over outputs, log E p = Σ_c log E p_c, because outputs are independent under the law."""
    likelihood, law, targets = example.case()
    if isinstance(likelihood, FactorizedLikelihood) and example.kind != "labels":
        log_prob_each, weights = on_dense_grid(likelihood, law, targets)
        expected = torch.einsum("g,gnc->nc", weights, log_prob_each.exp()).log().sum(-1)
        # 50 Gauss–Hermite nodes about the mode of a log-concave integrand.
        tolerance = 1e-7
        torch.testing.assert_close(likelihood.log_predictive(law, targets, 1), expected, rtol=0, atol=tolerance)


def on_dense_grid(likelihood: FactorizedLikelihood, law: OrbitMarginal, targets: Tensor) -> tuple[Tensor, Tensor]:
    """log p(y_c | f_c) (G, N, C) at G values of f, and weights (G,): the trapezium rule, exact to rounding."""
    x = torch.linspace(-12, 12, 1001, dtype=torch.float64)
    f = law.mean + law.var.sqrt() * x[:, None, None]  # (G, N, C)
    repeated = targets.expand(len(x), *targets.shape).flatten(0, 1)
    return likelihood.log_prob_each(f.flatten(0, 1), repeated).reshape(f.shape), (-x.square() / 2).softmax(0)


def likelihood_expectation_at_zero_variance_is_the_value_at_the_mean(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    point = OrbitMarginal(law.mean, torch.zeros_like(law.var), law.whitened)
    expected = likelihood.expected_log_prob(point, targets, 8, seeded(9))
    # √var is bounded below by 1e-76; what is left is the rounding of a weighted sum.
    torch.testing.assert_close(expected, likelihood.log_prob(law.mean, targets), rtol=1e-12, atol=1e-12)


def likelihood_expectation_has_finite_gradients_at_zero_variance(example: LikelihoodExample) -> None:
    likelihood, law, targets = example.case()
    mean, var = law.mean.requires_grad_(), torch.zeros_like(law.var).requires_grad_()
    likelihood.expected_log_prob(OrbitMarginal(mean, var, law.whitened), targets, 8, seeded(9)).sum().backward()
    assert mean.grad.isfinite().all()
    assert var.grad.isfinite().all()


def likelihood_expected_gradient_is_the_slope_of_expected_log_prob(example: LikelihoodExample) -> None:
    """Bonnet's identity E[∂ log p/∂f] = ∂ E[log p]/∂mean, which fixed nodes and fixed draws obey exactly."""
    likelihood, law, targets = example.case()
    law.mean.requires_grad_()
    value = likelihood.expected_log_prob(law, targets, 64, seeded(9))
    (slope,) = torch.autograd.grad(value.sum(), law.mean)
    gradient, _ = likelihood.expected_derivatives(law, targets, 64, seeded(9))
    # Rounding of float64 in sums of 64 terms of size 1 to 10.
    torch.testing.assert_close(gradient, slope, rtol=1e-11, atol=1e-11)


def likelihood_predictive_law_sums_to_one(example: LikelihoodExample) -> None:
    """Over all labels, zeros and ones, counts, or the real line(s)."""
    p, _ = predictive_law(example)
    # What the support leaves out: see ``support``.
    torch.testing.assert_close(p.sum(0), torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-6)


def likelihood_predictive_mean_is_the_mean_of_the_predictive_law(example: LikelihoodExample) -> None:
    """Σ_y y p(y); y is one-hot for labels, hence p(label) = exp(log_predictive) is also what predictive_mean says."""
    p, values = predictive_law(example)
    likelihood = example.make().double()
    expected = likelihood.predictive_mean(narrow_law(3, likelihood.num_outputs), 32, seeded(9))
    # What the support leaves out, times targets of up to 40.
    torch.testing.assert_close(p.mT @ values, expected, rtol=0, atol=1e-5)


def predictive_law(example: LikelihoodExample) -> tuple[Tensor, Tensor]:
    """Probabilities p(y) (Y, N) of all targets under the N = 3 rows of a narrow law, and the targets (Y, C)."""
    likelihood = example.make().double()
    law = narrow_law(3, likelihood.num_outputs)
    targets, weight = example.support()
    codes = in_dtype(likelihood.encode(targets), torch.float64)  # (Y, …)
    if isinstance(likelihood, FactorizedLikelihood):  # nothing is sampled, so all of them go in one call
        rows = torch.arange(3).repeat(len(codes))
        laws = OrbitMarginal(law.mean[rows], law.var[rows], law.whitened[rows])
        log_p = likelihood.log_predictive(laws, codes.repeat_interleave(3, dim=0), 1).reshape(-1, 3)
    else:  # the same draws for every target
        repeated = (code.expand(3, *code.shape) for code in codes)
        log_p = torch.stack([likelihood.log_predictive(law, code, 32, seeded(9)) for code in repeated])
    values = torch.eye(likelihood.num_outputs, dtype=torch.float64) if example.kind == "labels" else codes
    return weight * log_p.exp(), values


def draws_of(law: OrbitMarginal) -> Tensor:
    return law.mean + law.var.sqrt() * normals(NUM_DRAWS, *law.mean.shape, seed=4)  # (K, N, C)


def assert_mean_of(samples: Tensor, got: Tensor, num_errors: float = 4) -> None:
    """``got`` is the mean of ``samples`` (K, …) up to 4 standard errors, of which ``got`` may have as many itself."""
    error = samples.std(0) * (2 / len(samples)) ** 0.5
    # Where nothing varies (a constant curvature) only rounding is left.
    wrong = (got - samples.mean(0)).abs() > num_errors * error + 1e-9
    assert not wrong.any(), f"got {got}, brute force says {samples.mean(0)} ± {error}"


# ====================================================================================================== of backbones


def backbone_maps_inputs_to_vectors(example: BackboneExample) -> None:
    assert example.make()(example.inputs(3)).shape == (3, example.num_features)


def backbone_takes_a_batch_of_one(example: BackboneExample) -> None:
    assert example.make()(example.inputs(1)).shape == (1, example.num_features)


def backbone_treats_every_input_by_itself(example: BackboneExample) -> None:
    backbone, inputs = example.make().double(), example.inputs(3, torch.float64)
    one_by_one = torch.cat([backbone(inputs[n : n + 1]) for n in range(3)])
    # Sums of up to a few thousand terms of size 1, in other orders.
    torch.testing.assert_close(backbone(inputs), one_by_one, rtol=1e-9, atol=1e-11)


def backbone_agrees_between_single_and_double_precision(example: BackboneExample) -> None:
    backbone, inputs = example.make(), example.inputs()
    single, double = backbone(inputs).double(), copy.deepcopy(backbone).double()(inputs.double())
    # float32 sums of a few thousand terms through up to 18 layers, on features of size 1.
    torch.testing.assert_close(single, double, rtol=1e-3, atol=1e-4)


def backbone_passes_gradients_to_its_inputs(example: BackboneExample) -> None:
    """The orbit learns through them."""
    inputs = example.inputs().requires_grad_()
    example.make()(inputs).sum().backward()
    assert inputs.grad.isfinite().all()
    assert (inputs.grad.flatten(1) != 0).any(dim=1).all()


def backbone_passes_gradients_to_all_its_parameters(example: BackboneExample) -> None:
    backbone, inputs = example.make(), example.inputs(8).requires_grad_()
    backbone(inputs).square().sum().backward()
    assert [name for name, parameter in backbone.named_parameters() if not (parameter.grad != 0).any()] == []


# =========================================================================================================== the lists


def checks_of(kind: str) -> list[Callable[[Example], None]]:
    return [check for name, check in globals().items() if name.startswith(kind + "_") and callable(check)]
