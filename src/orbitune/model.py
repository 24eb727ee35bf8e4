"""The model: orbit ∘ backbone ∘ Gaussian process ∘ likelihood. Composition only."""

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitune.errors import InputError
from orbitune.features import check_inputs, chunks_of, evaluating, extract_features, features_of_points
from orbitune.gp import (
    GPHead,
    NaturalPosterior,
    OrbitFeatures,
    OrbitMarginal,
    default_kernel,
    select_inducing,
)
from orbitune.gp.inducing import InducingMethod
from orbitune.inputs import Inputs, StoredImages
from orbitune.likelihoods import Likelihood, check_log_concave
from orbitune.orbits import Orbit


class InvariantGP(nn.Module):
    """f(x) = E_{x_a ~ p(x_a | x, φ)} g(h_w(x_a)), y ~ p(y | f(x)).

    Non-invariant is an :class:`~orbitune.orbits.IdentityOrbit`; shallow is a :class:`~orbitune.backbones.Identity`
    backbone. There are no other switches. :func:`build_model` makes the head from data.

    Args:
        orbit: what may happen to an input.
        backbone: any module that maps inputs (N, …) to feature vectors (N, D).
        head: the GP on feature vectors.
        likelihood: log-concave in f; it is probed, and refused if it is not.
    """

    def __init__(self, orbit: Orbit, backbone: nn.Module, head: GPHead, likelihood: Likelihood):
        super().__init__()
        if head.num_outputs != likelihood.num_outputs:
            raise InputError(
                f"the GP has {head.num_outputs} outputs, "
                f"but {type(likelihood).__name__} expects {likelihood.num_outputs}"
            )
        check_log_concave(likelihood)
        self.orbit, self.backbone, self.head, self.likelihood = orbit, backbone, head, likelihood

    def orbit_features(
        self,
        inputs: Float[Tensor, "B *event"],
        orbit_size: int,
        num_orbits: int = 1,
        generator: torch.Generator | None = None,
        backward_points: int | None = None,
        linear: bool = False,
    ) -> OrbitFeatures:
        """Draw the orbits, warp, and run the backbone: the only time in a step.

        Args:
            inputs: (B, …), what the orbit and the backbone expect.
            orbit_size: S, points per orbit.
            num_orbits: A, independently drawn orbits per input. A finite orbit is its own average: it is used once.
            generator: randomness of the orbit.
            backward_points: how many of the A·S points per input are back-propagated through; None is all of them.
            linear: whether the bound is linear in the average over each orbit; see :meth:`Orbit.draw`.
        """
        check_inputs(inputs)
        if orbit_size < 1 or num_orbits < 1:
            raise InputError(f"expected orbit_size ≥ 1 and num_orbits ≥ 1, got {orbit_size} and {num_orbits}")
        num_orbits = 1 if self.orbit.exact else num_orbits
        batch = inputs.shape[0]
        draws = [self.orbit.draw(batch, orbit_size, generator, linear=linear) for _ in range(num_orbits)]
        params = torch.cat([params for params, _ in draws], dim=1)
        features = features_of_points(self.orbit, self.backbone, inputs, params, backward_points, generator)
        values = features.unflatten(1, (num_orbits, -1))  # (B, A, S, D)
        return OrbitFeatures(values, self.orbit.exact, weights=draws[0].weights)

    def marginal(
        self,
        inputs: Float[Tensor, "B *event"],
        orbit_size: int,
        generator: torch.Generator | None = None,
    ) -> OrbitMarginal:
        """The law of f̂ at each input, over one orbit of S points, by the network in evaluation mode."""
        with evaluating(self.backbone):
            features = self.orbit_features(inputs, orbit_size, generator=generator)
        return self.head.marginal(features.values[:, 0], self.head.law(), features.weights)

    @torch.no_grad()
    def predict(
        self,
        inputs: Float[Tensor, "B *event"] | StoredImages,
        orbit_size: int,
        *,
        num_f_samples: int = 256,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "B C"]:
        """Predictive mean of y; for labels, class probabilities. Any number of inputs: they are taken in chunks."""
        with self.head.standing_still():
            means = [
                self.likelihood.predictive_mean(self.marginal(chunk, orbit_size, generator), num_f_samples, generator)
                for chunk in chunks_of(inputs, orbit_size)
            ]
        return torch.cat(means)

    @torch.no_grad()
    def log_predictive_density(
        self,
        inputs: Float[Tensor, "B *event"] | StoredImages,
        targets: Shaped[Tensor, "B *T"],
        orbit_size: int,
        *,
        num_f_samples: int = 256,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " B"]:
        """log p(y | x, data) of each target."""
        encoded = self.encode(inputs, targets)
        chunks = list(chunks_of(inputs, orbit_size))
        with self.head.standing_still():
            densities = [
                self.likelihood.log_predictive(self.marginal(x, orbit_size, generator), y, num_f_samples, generator)
                for x, y in zip(chunks, encoded.split(len(chunks[0])), strict=True)
            ]
        return torch.cat(densities)

    def encode(self, inputs: Float[Tensor, "B *event"] | StoredImages, targets: Shaped[Tensor, "B *T"]) -> Tensor:
        """Targets checked, one per input, in the form the likelihood works with."""
        return encode_targets(self.likelihood, inputs, targets)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """A partition of all parameters: orbit (φ), backbone (w), kernel, inducing (Z), variational (q), likelihood.

        ``variational`` is empty for :class:`~orbitune.gp.NaturalPosterior`, whose natural parameters are buffers.
        """
        return partition(
            self,
            orbit=self.orbit,
            backbone=self.backbone,
            kernel=self.head.kernel,
            inducing=self.head.Z,
            variational=self.head.posterior,
            likelihood=self.likelihood,
        )


def build_model(
    orbit: Orbit,
    backbone: nn.Module,
    likelihood: Likelihood,
    inputs: Float[Tensor, "N *event"],
    *,
    num_inducing: int,
    kernel: Kernel | None = None,
    inducing: InducingMethod = "greedy",
    dtype: torch.dtype = torch.float64,
    generator: torch.Generator | None = None,
) -> InvariantGP:
    """Put a GP on top of a backbone: inducing inputs and lengthscale come from the features of ``inputs``.

    Args:
        orbit, backbone, likelihood: see :class:`InvariantGP`.
        inputs: training inputs; all of them, or a subset large enough to choose from.
        num_inducing: M.
        kernel: any GPyTorch kernel; by default squared-exponential with the median distance as lengthscale.
        inducing: how inducing inputs are chosen; see :func:`~orbitune.gp.select_inducing`.
        dtype: precision of the last layer's linear algebra; the network keeps its own.
        generator: randomness of the choices.
    """
    check_inputs(inputs)
    with torch.no_grad(), evaluating(backbone):
        features = torch.cat([extract_features(backbone, chunk) for chunk in chunks_of(inputs)]).to(dtype)
    kernel = (kernel or default_kernel(features, generator)).to(features)
    Z = select_inducing(features, num_inducing, kernel, inducing, generator)
    posterior = NaturalPosterior(len(Z), likelihood.num_outputs, shared_covariance=likelihood.shared_curvature)
    head = GPHead(kernel, Z, posterior.to(Z.device))
    return InvariantGP(orbit.to(Z.device), backbone, head, likelihood.to(Z))


def encode_targets(likelihood: Likelihood, inputs: Inputs, targets: Tensor) -> Tensor:
    """Targets checked, one per input, in the form the likelihood works with, on the inputs' device."""
    if targets.shape[:1] != inputs.shape[:1]:
        raise InputError(
            f"expected one target per input, got {tuple(targets.shape)} targets for {tuple(inputs.shape)} inputs"
        )
    return likelihood.encode(targets.to(inputs.device))


def partition(model: nn.Module, **parts: nn.Module | nn.Parameter) -> dict[str, list[nn.Parameter]]:
    """The parameters of each part, checked to be all parameters of the model, each exactly once."""
    groups = {
        name: [part] if isinstance(part, nn.Parameter) else list(part.parameters()) for name, part in parts.items()
    }
    grouped = [id(parameter) for group in groups.values() for parameter in group]
    if sorted(grouped) != sorted(id(parameter) for parameter in model.parameters()):
        raise InputError("every parameter must belong to exactly one part of the model; some are shared or outside")
    return groups
