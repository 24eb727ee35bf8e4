"""Bad input gets one clear error: of the right type, naming what was got and what was expected."""

import jaxtyping
import pytest
import torch
from gpytorch.kernels import PolynomialKernel
from torch import nn

from orbitune import InvariantGP, build_model, natural_gradient_step, sample_elbo, unbiased_elbo
from orbitune.backbones import Identity
from orbitune.errors import InputError, NotLogConcaveError, NumericalError, OrbituneError, UnsupportedKernelError
from orbitune.gp import CholeskyPosterior, GPHead, NaturalPosterior, default_kernel, select_inducing
from orbitune.likelihoods import Bernoulli, FactorizedLikelihood, Gaussian, Poisson, Softmax, check_log_concave
from orbitune.orbits import AffineOrbit
from orbitune.orbits.warp import warp

NUM = 12  # N = B
NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def as_users_call_it(monkeypatch):
    """Without the checks of shapes and types, which only tests have and which would speak first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def images():
    return torch.rand(NUM, 1, 4, 4, generator=seeded(0))


def labels():
    return torch.arange(NUM) % 3


def small_model(likelihood=None, *, backbone=None, inputs=None, num_inducing=4, **options):
    """Affine orbit, no network, four inducing inputs, softmax on three classes."""
    return build_model(
        AffineOrbit(),
        Identity() if backbone is None else backbone,
        Softmax(3) if likelihood is None else likelihood,
        images() if inputs is None else inputs,
        num_inducing=num_inducing,
        generator=seeded(1),
        **options,
    )


def bound_of(model, inputs=None, targets=None, orbit_size=2, **options):
    inputs, targets = images() if inputs is None else inputs, labels() if targets is None else targets
    return sample_elbo(model, inputs, targets, num_data=NUM, orbit_size=orbit_size, generator=seeded(2), **options)


def step_of(model, rate=0.5, **options):
    """A natural-gradient step from the law of all images."""
    natural_gradient_step(model, bound_of(model), rate=rate, generator=seeded(3), **options)


def assert_says(error, *parts):
    missing = [part for part in parts if part not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


# ------------------------------------------------------------------------------------------------------ kinds of error


@pytest.mark.parametrize("kind", [InputError, NotLogConcaveError, UnsupportedKernelError])
def test_errors_about_input_are_value_errors_of_ours(kind):
    assert issubclass(kind, ValueError)
    assert issubclass(kind, OrbituneError)


def test_numerical_errors_are_runtime_errors_of_ours():
    assert issubclass(NumericalError, RuntimeError)
    assert issubclass(NumericalError, OrbituneError)


# -------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize("shape", [(5, 4, 4), (4, 4), (5, 1, 1, 4, 4)])
def test_an_affine_orbit_refuses_images_of_the_wrong_rank(shape):
    with pytest.raises(InputError) as error:
        AffineOrbit()(torch.zeros(shape), 2, seeded(0))
    assert_says(error, "(B, Ch, H, W)", str(shape), "unsqueeze(1)")


@pytest.mark.parametrize("value", [NAN, INFINITY])
def test_images_that_are_not_finite_are_counted(value):
    bad = images()
    bad[3, 0, 1, 2] = bad[7] = value
    with pytest.raises(InputError) as error:
        bound_of(small_model(), bad)
    assert_says(error, f"2 of {NUM}", "NaN or infinite")


def test_a_model_is_not_built_from_images_with_nan():
    bad = images()
    bad[3] = NAN
    with pytest.raises(InputError) as error:
        small_model(inputs=bad)
    assert_says(error, f"1 of {NUM}", "NaN or infinite")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool])
def test_integer_images_are_refused_with_advice(dtype):
    with pytest.raises(InputError) as error:
        bound_of(small_model(), images().to(dtype))
    assert_says(error, "floating-point", str(dtype), "images.float() / 255")


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError) as error:
        bound_of(small_model(), images()[:0], labels()[:0])
    assert_says(error, "B ≥ 1", "(0, 1, 4, 4)")


def test_an_empty_batch_is_refused_by_predict():
    with pytest.raises(InputError) as error:
        small_model().predict(images()[:0], 2)
    assert_says(error, "B ≥ 1", "(0, 1, 4, 4)")


# ------------------------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(("offset", "got"), [(1, "from 1 to 3"), (-1, "from -1 to 1")])
@pytest.mark.parametrize("likelihood", [Softmax(3), Gaussian(3, labels=True)], ids=["Softmax", "Gaussian"])
def test_labels_out_of_range_are_refused(likelihood, offset, got):
    with pytest.raises(InputError) as error:
        likelihood.encode(labels() + offset)
    assert_says(error, "0 … 2", "3 classes", got)


@pytest.mark.parametrize("likelihood", [Softmax(3), Gaussian(3, labels=True)], ids=["Softmax", "Gaussian"])
def test_labels_that_are_floats_are_refused(likelihood):
    with pytest.raises(InputError) as error:
        likelihood.encode(labels().float())
    assert_says(error, "must be integers of shape (N,)", "torch.float32", "(12,)")


def test_one_hot_labels_are_refused_with_advice():
    with pytest.raises(InputError) as error:
        Softmax(3).encode(nn.functional.one_hot(labels()))
    assert_says(error, "(N,)", "(12, 3)", "argmax")


@pytest.mark.parametrize("num", [1, 6, 11, 24])
def test_a_bound_needs_one_target_per_input(num):
    with pytest.raises(InputError) as error:
        bound_of(small_model(), targets=torch.zeros(num, dtype=torch.long))
    assert_says(error, "one target per input", f"({num},)", "(12, 1, 4, 4)")


@pytest.mark.parametrize("num", [1, 6, 11, 24])
def test_the_unbiased_bound_needs_one_target_per_input(num):
    with pytest.raises(InputError) as error:
        unbiased_elbo(small_model(Gaussian()), images(), torch.zeros(num), num_data=NUM, orbit_size=2)
    assert_says(error, "one target per input", f"({num},)", "(12, 1, 4, 4)")


@pytest.mark.parametrize("num", [1, 6, 11, 24])
def test_a_predictive_density_needs_one_target_per_input(num):
    with pytest.raises(InputError) as error:
        small_model().log_predictive_density(images(), torch.zeros(num, dtype=torch.long), 2)
    assert_says(error, "one target per input", f"({num},)", "(12, 1, 4, 4)")


@pytest.mark.parametrize(("likelihood", "shape"), [(Gaussian(2), (5,)), (Bernoulli(3), (5, 2)), (Poisson(), (5, 2))])
def test_targets_with_the_wrong_number_of_outputs_are_refused(likelihood, shape):
    with pytest.raises(InputError) as error:
        likelihood.encode(torch.zeros(shape))
    assert_says(error, type(likelihood).__name__, f"(N, {likelihood.num_outputs})", str(shape))


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Poisson()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("value", [NAN, INFINITY])
def test_targets_that_are_not_finite_are_counted(likelihood, value):
    with pytest.raises(InputError) as error:
        likelihood.encode(torch.tensor([0.0, value, 1.0, value]))
    assert_says(error, type(likelihood).__name__, "2 values", "NaN or infinite")


@pytest.mark.parametrize(("targets", "got"), [([0.0, 2.0], "for example 2"), ([-1.0, 1.0], "for example -1")])
def test_bernoulli_refuses_targets_other_than_0_and_1(targets, got):
    with pytest.raises(InputError) as error:
        Bernoulli().encode(torch.tensor(targets))
    assert_says(error, "must be 0 or 1", got)


def test_bernoulli_names_a_target_between_0_and_1():
    """The smallest and the largest value, 0 and 1, would leave the user puzzled."""
    with pytest.raises(InputError) as error:
        Bernoulli().encode(torch.tensor([0.0, 0.25, 1.0]))
    assert_says(error, "must be 0 or 1", "0.25")


def test_poisson_refuses_negative_counts():
    with pytest.raises(InputError) as error:
        Poisson().encode(torch.tensor([-1, 2]))
    assert_says(error, "counts 0, 1, 2", "for example -1")


def test_poisson_refuses_counts_that_are_not_whole():
    with pytest.raises(InputError) as error:
        Poisson().encode(torch.tensor([1.5, 2.0]))
    assert_says(error, "counts 0, 1, 2", "for example 1.5")


# --------------------------------------------------------------------------------------------------------- likelihoods


class StudentT(FactorizedLikelihood):
    """Three degrees of freedom: its tails are not log-concave."""

    def log_prob_each(self, f, targets):
        return -2 * (1 + (targets - f).square() / 3).log()

    def conditional_mean(self, f):
        return f

    def example_targets(self):
        return torch.zeros(1, self.num_outputs)


class Rate(StudentT):
    """An exponential density with rate f, which a negative f makes NaN."""

    def log_prob_each(self, f, targets):
        return f.log() - targets * f


def test_a_model_refuses_a_likelihood_that_is_not_log_concave_and_says_why():
    with pytest.raises(NotLogConcaveError) as error:
        InvariantGP(AffineOrbit(), Identity(), small_model().head, StudentT(3))
    assert_says(
        error, "StudentT is not log-concave", "Jensen", "Counter-example", "Gaussian, Softmax, Bernoulli, Poisson"
    )


def test_a_likelihood_that_is_nan_where_it_is_probed_is_refused():
    with pytest.raises(InputError, match="Rate"):
        check_log_concave(Rate(1))


def test_a_model_refuses_a_likelihood_with_another_number_of_outputs():
    with pytest.raises(InputError) as error:
        InvariantGP(AffineOrbit(), Identity(), small_model().head, Softmax(4))
    assert_says(error, "3 outputs", "Softmax expects 4")


def test_a_likelihood_needs_an_output():
    with pytest.raises(InputError) as error:
        Softmax(0)
    assert_says(error, "Softmax", "at least one", "num_outputs=0")


@pytest.mark.parametrize("noise_variance", [0.0, -1.0, NAN])
def test_a_gaussian_needs_a_positive_noise_variance(noise_variance):
    with pytest.raises(InputError) as error:
        Gaussian(noise_variance=noise_variance)
    assert_says(error, "positive", str(noise_variance))


# -------------------------------------------------------------------------------------------------------------- orbits


@pytest.mark.parametrize("bounds", [(0.5, -0.5), (NAN, 1.0), (-1.0, NAN), (-INFINITY, 0.0), (0.0, INFINITY)])
def test_bounds_must_be_finite_and_ordered(bounds):
    with pytest.raises(InputError) as error:
        AffineOrbit({"shear_x": bounds})
    assert_says(error, "'shear_x'", "finite low ≤ high", f"low={bounds[0]}", f"high={bounds[1]}")


def test_bounds_of_ranges_that_are_not_learned_are_checked_too():
    with pytest.raises(InputError) as error:
        AffineOrbit({"shear_x": (0.5, -0.5)}, learn=["rotation"])
    assert_says(error, "'shear_x'", "low=0.5", "high=-0.5")


@pytest.mark.parametrize(
    "options", [{"ranges": {"rotate": (0.0, 1.0)}}, {"learn": ["rotate"]}], ids=["ranges", "learn"]
)
def test_an_unknown_parameter_is_answered_with_the_list_of_all(options):
    with pytest.raises(InputError) as error:
        AffineOrbit(**options)
    assert_says(error, "AffineOrbit", "'rotate'", *AffineOrbit.names)


def test_the_reciprocal_parameterisation_refuses_a_bound_of_zero():
    with pytest.raises(InputError) as error:
        AffineOrbit({"rotation": (0.0, 1.0)}, parameterisation="reciprocal")
    assert_says(error, "reciprocal", "bound 0", "low=[0.0", "high=[1.0", "(-0.05, 0.05)")


def test_a_symmetric_orbit_refuses_a_range_that_is_not():
    with pytest.raises(InputError) as error:
        AffineOrbit({"rotation": (-1.0, 2.0)}, symmetric=True)
    assert_says(error, "'rotation'", "symmetric", "low=-1.0", "high=2.0")


def test_an_unknown_padding_is_answered_with_the_list_of_all():
    with pytest.raises(InputError) as error:
        AffineOrbit(padding="wrap")
    assert_says(error, "padding", "'wrap'", "border", "reflection", "zeros")


def test_an_unknown_padding_is_refused_by_warp_too():
    with pytest.raises(InputError) as error:
        warp(images(), torch.zeros(NUM, 1, 2, 3), "wrap")
    assert_says(error, "padding", "'wrap'", "border", "reflection", "zeros")


def test_an_unknown_parameterisation_is_answered_with_the_list_of_all():
    with pytest.raises(InputError) as error:
        AffineOrbit(parameterisation="square")
    assert_says(error, "parameterisation", "'square'", "direct", "log", "reciprocal")


# ------------------------------------------------------------------------------------------------ the Gaussian process


@pytest.mark.parametrize("num_inducing", [0, -1, NUM + 1])
def test_the_number_of_inducing_inputs_lies_between_1_and_the_number_of_data(num_inducing):
    with pytest.raises(InputError) as error:
        small_model(num_inducing=num_inducing)
    assert_says(error, "inducing inputs", "between 1 and", str(NUM), f"got {num_inducing}")


def test_an_unknown_way_to_choose_inducing_inputs_is_answered_with_the_list_of_all():
    features = images().flatten(1)
    with pytest.raises(InputError) as error:
        select_inducing(features, 2, default_kernel(features, seeded(0)), "best", seeded(0))
    assert_says(error, "inducing", "'best'", "greedy", "kmeans", "random")


def test_q_of_another_size_than_the_inducing_inputs_is_refused():
    features = images().flatten(1)
    with pytest.raises(InputError) as error:
        GPHead(default_kernel(features, seeded(0)), features[:4], NaturalPosterior(5, 3))
    assert_says(error, "5 inducing values", "4 inducing inputs")


def test_a_backbone_that_returns_a_map_is_refused_with_advice():
    with pytest.raises(InputError) as error:
        small_model(backbone=nn.Conv2d(1, 2, 3))
    assert_says(error, "Conv2d", "(12, 1, 4, 4)", "(N, D)", "(12, 2, 2, 2)", "nn.Flatten()")


def test_a_backbone_that_mixes_up_the_batch_is_refused():
    with pytest.raises(InputError) as error:
        small_model(backbone=nn.Flatten(0, 2))
    assert_says(error, "Flatten", "(12, 1, 4, 4)", "(48, 4)")


def test_pathwise_draws_from_an_unsupported_kernel_say_what_to_do():
    model = small_model(kernel=PolynomialKernel(power=2))
    with pytest.raises(UnsupportedKernelError) as error:
        bound_of(model, pathwise=True)
    assert_says(error, "PolynomialKernel", "RBFKernel", "pathwise=False", "spectral_frequencies.register")


def test_a_kernel_unsupported_by_pathwise_draws_works_with_the_exact_law():
    assert bound_of(small_model(kernel=PolynomialKernel(power=2))).elbo.isfinite()


def test_nan_in_Kuu_is_reported_with_its_likely_causes():
    model = small_model()
    with torch.no_grad():
        model.head.Z[0, 0] = NAN
    with pytest.raises(NumericalError) as error:
        bound_of(model)
    assert_says(error, "Kuu (4×4)", "NaN", "(a)", "(b)")


def test_a_matrix_no_jitter_can_repair_is_reported_with_its_likely_causes():
    head = small_model().head
    with torch.no_grad():
        head.posterior.precision.neg_()
    with pytest.raises(NumericalError) as error:
        head.posterior.law()
    assert_says(error, "precision of q(u)", "not positive definite", "(a)", "(b)", "(c)")


# --------------------------------------------------------------------------------------------------- bounds and steps


def test_the_unbiased_bound_refuses_softmax_and_names_the_bound_to_use():
    with pytest.raises(InputError) as error:
        unbiased_elbo(small_model(), images(), labels(), num_data=NUM, orbit_size=2)
    assert_says(error, "Gaussian likelihood only", "Softmax", "sample_elbo")


@pytest.mark.parametrize("orbit_size", [-2, 0, 1, 3])
def test_the_unbiased_bound_needs_an_even_orbit_size(orbit_size):
    model = small_model(Gaussian(3, labels=True))
    with pytest.raises(InputError) as error:
        unbiased_elbo(model, images(), labels(), num_data=NUM, orbit_size=orbit_size)
    assert_says(error, "even", f"got {orbit_size}")


@pytest.mark.parametrize("orbit_size", [0, -1])
def test_an_orbit_needs_a_point(orbit_size):
    with pytest.raises(InputError) as error:
        bound_of(small_model(), orbit_size=orbit_size)
    assert_says(error, "orbit_size ≥ 1", f"got {orbit_size}")


def test_a_bound_needs_an_orbit():
    with pytest.raises(InputError) as error:
        bound_of(small_model(), num_orbits=0)
    assert_says(error, "num_orbits ≥ 1", "and 0")


def test_a_bound_needs_a_function_sample():
    with pytest.raises(InputError) as error:
        bound_of(small_model(), num_f_samples=0)
    assert_says(error, "num_f_samples ≥ 1", "got 0")


def test_a_prediction_needs_a_function_sample():
    with pytest.raises(InputError) as error:
        small_model().predict(images(), 2, num_f_samples=0)
    assert_says(error, "got 0")


def test_a_predictive_density_needs_a_function_sample():
    with pytest.raises(InputError) as error:
        small_model().log_predictive_density(images(), labels(), 2, num_f_samples=0)
    assert_says(error, "got 0")


def test_a_natural_gradient_step_needs_a_function_sample():
    with pytest.raises(InputError) as error:
        step_of(small_model(), num_f_samples=0)
    assert_says(error, "got 0")


def test_a_natural_gradient_step_needs_natural_parameters():
    features = images().flatten(1).double()
    head = GPHead(default_kernel(features, seeded(0)), features[:4], CholeskyPosterior(4, 3))
    with pytest.raises(InputError) as error:
        step_of(InvariantGP(AffineOrbit(), Identity(), head, Softmax(3).double()))
    assert_says(error, "NaturalPosterior", "CholeskyPosterior")


def test_a_natural_gradient_step_needs_the_law_that_a_pathwise_bound_does_not_have():
    model = small_model()
    terms = bound_of(model, pathwise=True)
    with pytest.raises(InputError, match="pathwise"):
        natural_gradient_step(model, terms, rate=0.5, generator=seeded(0))


@pytest.mark.parametrize("rate", [1.5, -0.1, NAN])
def test_the_rate_of_a_natural_gradient_step_lies_between_0_and_1(rate):
    with pytest.raises(InputError) as error:
        step_of(small_model(), rate=rate)
    assert_says(error, "0 ≤ rate ≤ 1", f"got {rate}")


def test_a_refused_natural_gradient_step_leaves_q_as_it_was():
    model = small_model()
    before = {name: tensor.clone() for name, tensor in model.head.posterior.state_dict().items()}
    with pytest.raises(InputError):
        step_of(model, rate=1.5)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.head.posterior.state_dict().items())


def test_a_curvature_per_output_does_not_fit_a_shared_covariance():
    model = small_model()
    shared = NaturalPosterior(4, 3, shared_covariance=True)
    model = InvariantGP(AffineOrbit(), Identity(), GPHead(model.head.kernel, model.head.Z, shared), model.likelihood)
    with pytest.raises(InputError) as error:
        step_of(model)
    assert_says(error, "shares one covariance", "3 outputs", "shared_covariance=False")


def test_a_number_for_a_range_is_refused():
    with pytest.raises(InputError) as error:
        AffineOrbit({"rotation": 0.3})
    assert_says(error, "'rotation'", "pair (low, high)", "got 0.3")
