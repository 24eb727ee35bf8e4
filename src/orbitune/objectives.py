"""What is maximised: tensors in, named terms out.

Each bound of the log marginal likelihood walks an input through the model once: one orbit, one backbone call, one
Cholesky factor of Kuu.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitune.errors import InputError
from orbitune.features import check_inputs
from orbitune.gp import (
    NaturalPosterior,
    OrbitFeatures,
    OrbitMarginal,
    OrbitMoments,
    WhitenedLaw,
    collapsed_bound,
    draw_functions,
)
from orbitune.likelihoods import Gaussian
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.orbits import Orbit
from orbitune.random import permutation, symmetric_beta


@dataclass(frozen=True)
class ElboTerms:
    """ELBO = data_fit − kl, for all N data.

    ``law`` (of f̂, one row per orbit) and ``targets`` (encoded, one per row) are kept for :func:`natural_gradient_step`,
    which then needs no network pass of its own; pathwise samples have no law.
    """

    data_fit: Float[Tensor, ""]
    q: WhitenedLaw
    num_data: int
    law: OrbitMarginal | OrbitMoments | None
    targets: Tensor

    @cached_property
    def kl(self) -> Float[Tensor, ""]:
        """KL(q(u) ‖ p(u))."""
        return self.q.kl()

    @property
    def elbo(self) -> Float[Tensor, ""]:
        """The bound itself, summed over data."""
        return self.data_fit - self.kl

    @property
    def per_datum(self) -> Float[Tensor, ""]:
        """The bound divided by N: the number to report, and a good scale for optimisers."""
        return self.elbo / self.num_data

    @property
    def loss(self) -> Float[Tensor, ""]:
        """−``per_datum`` for optimisers: up to the KL, which costs an inverse, where none of them moves q(u)."""
        return -self.per_datum if self.q.requires_grad else -self.data_fit / self.num_data


@dataclass(frozen=True)
class LogLikelihood:
    """The mean log-likelihood of a minibatch under a network."""

    per_datum: Float[Tensor, ""]

    @property
    def loss(self) -> Float[Tensor, ""]:
        """What optimisers minimise."""
        return -self.per_datum


def log_likelihood(
    model: OrbitNetwork,
    inputs: Float[Tensor, "B *event"],
    targets: Shaped[Tensor, "B *T"],
    *,
    orbit_size: int = 1,
    label_smoothing: float = 0.0,
    mixup: float = 0.0,
    generator: torch.Generator | None = None,
) -> LogLikelihood:
    """(1/B) Σ_n log p(y_n | f̂(x_n)) of a network: what pre-training maximises. No prior, hence no protection.

    With smoothing s: (1 − s) log p(y_n | f̂) + s (1/C) Σ_c log p(c | f̂), so that certainty is not rewarded without end.
    With mixup α: λ log p(y_n | f̂(x)) + (1 − λ) log p(y_m | f̂(x)) for x = λ x_n + (1 − λ) x_m, with a random partner
    m and λ ~ Beta(α, α) for each n, so that the network is straight between its images (Zhang et al. 2018).

    Args:
        model: a network with its orbit.
        inputs: minibatch (B, …).
        targets: one per input.
        orbit_size: S, orbit points averaged per input; 1 is ordinary augmentation.
        label_smoothing: s; 0 for targets that are not labels.
        mixup: α; 0 for images as they are.
        generator: randomness of the orbit and of the mixing.
    """
    if not 0 <= mixup < math.inf:
        raise InputError(f"mixup is the α of a Beta(α, α) distribution, or 0 for none: expected 0 ≤ α < ∞, got {mixup}")
    encoded = model.encode(inputs, targets)

    def log_prob(f: Tensor, encoded: Tensor) -> Tensor:
        own = model.likelihood.log_prob(f, encoded)  # (B,)
        return own.lerp(model.likelihood.mean_log_prob(f), label_smoothing) if label_smoothing else own

    if not mixup:
        return LogLikelihood(log_prob(model(inputs, orbit_size, generator), encoded).mean())
    check_inputs(inputs)
    partner = permutation(len(inputs), generator, inputs.device)
    share = symmetric_beta(len(inputs), mixup, generator, inputs)  # of the partner
    mixed = inputs.lerp(inputs[partner], share.reshape(-1, *[1] * (inputs.ndim - 1)))
    f = model(mixed, orbit_size, generator)
    own = log_prob(f, encoded)  # (B,)
    return LogLikelihood(own.lerp(log_prob(f, encoded[partner]), share.to(own)).mean())


def unbiased_elbo(
    model: InvariantGP,
    inputs: Float[Tensor, "B *event"],
    targets: Shaped[Tensor, "B *T"],
    *,
    num_data: int,
    orbit_size: int,
    backward_points: int | None = None,
    generator: torch.Generator | None = None,
) -> ElboTerms:
    """The paper's Gaussian bound: an unbiased estimate of the ELBO of the *infinite* orbit average.

    ELBO = (N/B) Σ_n E log N(y_n; f(x_n), σ²) − KL, with (μ, μ², τ) from two independent halves of the orbit.

    Args:
        model: with a Gaussian likelihood.
        inputs: minibatch (B, …).
        targets: one per input.
        num_data: N; the data term is scaled by N/B.
        orbit_size: S points per input in all, hence an even number (finite orbits ignore it).
        backward_points: how many of them are back-propagated through, at random; None is all.
        generator: randomness of the orbit.
    """
    check_halves(model.orbit, orbit_size)
    _gaussian(model)
    encoded = model.encode(inputs, targets)
    # All its terms are linear in either half: products are of one with the other.
    features = model.orbit_features(inputs, max(1, orbit_size // 2), 2, generator, backward_points, linear=True)
    return unbiased_bound(model, features, encoded, num_data=num_data)


def sample_elbo(
    model: InvariantGP,
    inputs: Float[Tensor, "B *event"],
    targets: Shaped[Tensor, "B *T"],
    *,
    num_data: int,
    orbit_size: int,
    num_orbits: int = 1,
    num_f_samples: int = 16,
    pathwise: bool = False,
    backward_points: int | None = None,
    generator: torch.Generator | None = None,
) -> ElboTerms:
    """The paper's sample bound, for every log-concave likelihood; it tightens as the orbit size grows.

    ELBO ≥ (N/B) Σ_n (1/S_g) Σ_k (1/S_A) Σ_j log p(y_n | f̂_k^j(x_n)) − KL, with f̂ the mean of g over S_o orbit points.

    Args:
        model: any.
        inputs: minibatch (B, …).
        targets: one per input.
        num_data: N; the data term is scaled by N/B.
        orbit_size: S_o.
        num_orbits: S_A.
        num_f_samples: S_g; unused where the exact law of f̂ leads to a closed form or to quadrature.
        backward_points: how many of the points are back-propagated through, at random; None is all.
        pathwise: draw S_g functions g_k by Matheron's rule (as the paper does) rather than using the exact law of f̂.
        generator: randomness of the orbit and of the draws.
    """
    encoded = model.encode(inputs, targets)
    features = model.orbit_features(inputs, orbit_size, num_orbits, generator, backward_points)
    return sample_bound(
        model,
        features,
        encoded,
        num_data=num_data,
        num_f_samples=num_f_samples,
        pathwise=pathwise,
        generator=generator,
    )


def unbiased_bound(model: InvariantGP, features: OrbitFeatures, encoded: Tensor, *, num_data: int) -> ElboTerms:
    """:func:`unbiased_elbo` from features that are already there, and encoded targets (B, …)."""
    _check_num_data(num_data)
    likelihood = _gaussian(model)
    with full_precision(features.values):
        q = model.head.law()
        moments = model.head.moments(features, q)
        data_fit = likelihood.expected_log_prob(moments, encoded)  # (B,)
        return ElboTerms(data_fit.mean() * num_data, q, num_data, moments, encoded)


def sample_bound(
    model: InvariantGP,
    features: OrbitFeatures,
    encoded: Tensor,
    *,
    num_data: int,
    num_f_samples: int = 16,
    pathwise: bool = False,
    generator: torch.Generator | None = None,
) -> ElboTerms:
    """:func:`sample_elbo` from features that are already there, and encoded targets (B, …)."""
    _check_num_data(num_data)
    encoded = encoded.repeat_interleave(features.values.shape[1], dim=0)  # (B·A, …)
    H = features.values.flatten(0, 1)  # (B·A, S, D)
    with full_precision(H):
        q = model.head.law()
        if pathwise:
            law = None
            f = draw_functions(model.head, q, num_f_samples, generator).orbit_mean(H, features.weights)  # (K, B·A, C)
            data_fit = model.likelihood.log_prob_of_points(f, encoded)  # (K, B·A)
        else:
            law = model.head.marginal(H, q, features.weights)
            data_fit = model.likelihood.expected_log_prob(law, encoded, num_f_samples, generator)  # (B·A,)
        return ElboTerms(data_fit.mean() * num_data, q, num_data, law, encoded)


def collapsed_elbo(
    model: InvariantGP,
    inputs: Float[Tensor, "N *event"],
    targets: Shaped[Tensor, "N *T"],
    *,
    orbit_size: int,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """The Gaussian sample bound with q(u) at its optimum, on all data at once; the model's own q(u) plays no part.

    Args:
        model: with a Gaussian likelihood.
        inputs: all training inputs (N, …).
        targets: one per input.
        orbit_size: S_o.
        generator: randomness of the orbit.
    """
    likelihood = _gaussian(model)
    encoded = model.encode(inputs, targets)
    features = model.orbit_features(inputs, orbit_size, generator=generator)
    projection = model.head.project(features.values[:, 0], features.weights)
    return collapsed_bound(projection, encoded, likelihood.noise_variance)


@torch.no_grad()
def natural_gradient_step(
    model: InvariantGP,
    terms: ElboTerms,
    *,
    rate: float,
    num_f_samples: int = 16,
    generator: torch.Generator | None = None,
) -> None:
    """Move q(u) by one stochastic natural-gradient step, from what a bound has already computed.

    Args:
        model: its head must hold a NaturalPosterior.
        terms: the bound of a minibatch, by the exact law.
        rate: ρ in [0, 1].
        num_f_samples: draws per expectation, where these are sampled.
        generator: randomness of the draws.
    """
    posterior, law = model.head.posterior, terms.law
    if not isinstance(posterior, NaturalPosterior):
        raise InputError(f"natural gradients need a NaturalPosterior, the head holds a {type(posterior).__name__}")
    if law is None:
        raise InputError("natural gradients need the law of f̂, which pathwise samples do not have: pathwise=False")
    # OrbitMoments come from unbiased_elbo alone, which has checked that the likelihood is Gaussian.
    expected_derivatives: Any = model.likelihood.expected_derivatives
    gradient, curvature = expected_derivatives(law, terms.targets, num_f_samples, generator)
    posterior.step(law.whitened, law.mean, gradient, curvature, scale=terms.num_data / len(law.mean), rate=rate)


def full_precision(like: Tensor) -> torch.autocast:
    """The last layer's linear algebra is never done in bfloat16, whatever the network around it does."""
    return torch.autocast(like.device.type, enabled=False)


def check_halves(orbit: Orbit, orbit_size: int) -> None:
    """The unbiased bound needs two halves of an orbit, unless that is finite."""
    if not orbit.exact and (orbit_size < 2 or orbit_size % 2):
        raise InputError(f"the unbiased bound splits the orbit into halves: orbit_size must be even, got {orbit_size}")


def _gaussian(model: InvariantGP) -> Gaussian:
    if not isinstance(model.likelihood, Gaussian):
        raise InputError(
            f"this bound holds for the Gaussian likelihood only, got {type(model.likelihood).__name__}; "
            "use sample_elbo, which holds for every log-concave likelihood"
        )
    return model.likelihood


def _check_num_data(num_data: int) -> None:
    if num_data < 1:
        raise InputError(f"num_data is the size of the training set: expected at least 1, got {num_data}")
