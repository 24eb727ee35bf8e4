"""A trained model as one fixed function: images in, probabilities and their uncertainty out, nothing left to chance.

Two expectations are replaced by fixed averages, whose points are buffers of the module:

    f̂(x) = (1/S) Σ_i g(h(t_{ν_i}(x)))               S orbit points ν_i, a Latin hypercube, the same for every image;
    E[y | x] ≈ (1/K) Σ_k E[y | mean + std·ε_k]      K points ε_k, a scrambled Sobol sequence, the same for every image;

the latter only where the likelihood has neither a closed form nor a quadrature (Softmax). The law of f̂ is exact, as in
:meth:`orbitune.gp.GPHead.marginal`; its Cholesky factors are computed once, here.
"""

import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.quasirandom import SobolEngine

from orbitune.errors import InputError
from orbitune.gp import OrbitMarginal, RootLaw
from orbitune.gp.orbit_kernel import evaluate
from orbitune.likelihoods import Bernoulli, FactorizedLikelihood, Gaussian, Likelihood, Softmax
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.orbits import Orbit


class OrbitFeatureMap(nn.Module):
    """Features (N, S, D) of inputs under S fixed transformations."""

    params: Tensor  # (1, S, P)

    def __init__(self, orbit: Orbit, backbone: nn.Module, orbit_size: int, seed: int):
        super().__init__()
        if orbit_size < 1:
            raise InputError(f"expected orbit_size ≥ 1, got {orbit_size}")
        self.orbit, self.backbone = orbit, backbone
        with torch.no_grad():
            params = orbit.sample_params(1, orbit_size, torch.Generator().manual_seed(seed))
        self.register_buffer("params", params)

    def forward(self, inputs: Float[Tensor, "N *event"]) -> Float[Tensor, "N S D"]:
        """Warp with all parameter vectors, and run the network once."""
        points = self.orbit.transform(inputs, self.params.expand(inputs.shape[0], -1, -1))
        return self.backbone(points.flatten(0, 1)).unflatten(0, (-1, self.params.shape[1]))


class FixedGP(nn.Module):
    """An :class:`InvariantGP` with a fixed orbit and fixed points in f. ``output_names`` says what it returns."""

    Z: Tensor  # (M, D)
    whitener: Tensor  # L⁻¹ (M, M)
    q_mean: Tensor  # m (M, C)
    q_root: Tensor  # R (C or 1, M, M)
    draws: Tensor | None  # ε (K, 1, C)

    def __init__(self, model: InvariantGP, orbit_size: int, num_f_samples: int, seed: int):
        super().__init__()
        self.features = OrbitFeatureMap(model.orbit, model.backbone, orbit_size, seed)
        self.kernel, self.likelihood = model.head.kernel, model.likelihood
        with torch.no_grad():
            L, q = model.head.factor_Kuu().L, model.head.law()
            identity = torch.eye(len(L), dtype=L.dtype, device=L.device)
            self.register_buffer("Z", model.head.Z.detach())
            self.register_buffer("whitener", torch.linalg.solve_triangular(L, identity, upper=False))
            self.register_buffer("q_mean", q.mean)
            self.register_buffer("q_root", q.root)
            fixed_already = isinstance(self.likelihood, FactorizedLikelihood)
            draws = None if fixed_already else sobol_normal(num_f_samples, model.head.num_outputs, seed)[:, None].to(L)
            self.register_buffer("draws", draws)
        match self.likelihood:
            case Gaussian(labels=False):
                self.output_names = ("y_mean", "y_std")
            case _:
                first = "probabilities" if _has_labels(self.likelihood) else "y_mean"
                self.output_names = (first, "f_mean", "f_std")

    def marginal(self, inputs: Float[Tensor, "N *event"]) -> OrbitMarginal:
        """The exact law of f̂, as :meth:`orbitune.gp.GPHead.marginal` has it, without a factorisation."""
        H = self.features(inputs).to(self.Z.dtype)  # (N, S, D)
        num_points = H.shape[1]
        Kuf = evaluate(self.kernel, self.Z, H.flatten(0, 1)).unflatten(1, (-1, num_points)).mean(-1)  # (M, N)
        kff = evaluate(self.kernel, H, H).mean((-2, -1))  # (N,)
        A = self.whitener @ Kuf  # (M, N)
        residual = (kff - A.square().sum(0)).clamp_min(0)
        mean = A.mT @ self.q_mean  # (N, C)
        explained = RootLaw(self.q_mean, self.q_root).variance_of(A).mT  # (N, C or 1)
        return OrbitMarginal(mean, (residual[:, None] + explained).expand_as(mean), A.mT)

    def forward(self, inputs: Float[Tensor, "N *event"]) -> tuple[Tensor, ...]:
        """Single-precision tensors (N, C), in the order of ``output_names``."""
        law = self.marginal(inputs)
        if self.draws is None:
            prediction = self.likelihood.predictive_mean(law, 0, None)
        else:
            points = law.mean + law.var.sqrt() * self.draws  # (K, N, C)
            prediction = self.likelihood.conditional_mean(points.flatten(0, 1)).unflatten(0, (len(self.draws), -1))
            prediction = prediction.mean(0)
        match self.likelihood:
            case Gaussian(labels=False) as gaussian:
                outputs = (prediction, gaussian.predictive_variance(law).sqrt())
            case likelihood:
                outputs = (_both_classes(likelihood, prediction), law.mean, law.var.sqrt())
        return tuple(output.float() for output in outputs)


class FixedNetwork(nn.Module):
    """An :class:`OrbitNetwork` with a fixed orbit. Without a GP there is no uncertainty to report."""

    def __init__(self, model: OrbitNetwork, orbit_size: int, seed: int):
        super().__init__()
        self.features = OrbitFeatureMap(model.orbit, model.backbone, orbit_size, seed)
        self.readout, self.likelihood = model.readout, model.likelihood
        # One-hot codes that were regressed on are no probabilities without a predictive density.
        labels = _has_labels(self.likelihood) and not isinstance(self.likelihood, Gaussian)
        self.output_names = ("probabilities" if labels else "y_mean", "f_mean")

    def forward(self, inputs: Float[Tensor, "N *event"]) -> tuple[Tensor, ...]:
        """Single-precision tensors (N, C), in the order of ``output_names``."""
        f = self.readout(self.features(inputs)).mean(1)
        return _both_classes(self.likelihood, self.likelihood.conditional_mean(f)).float(), f.float()


def fixed_predictor(
    model: InvariantGP | OrbitNetwork, *, orbit_size: int = 32, num_f_samples: int = 256, seed: int = 0
) -> FixedGP | FixedNetwork:
    """The model as a deterministic module (on a copy, in evaluation mode, without gradients).

    Args:
        model: trained.
        orbit_size: S, orbit points averaged per image; a finite orbit is used whole.
        num_f_samples: K, points in f for a likelihood without closed form.
        seed: of the orbit points and of the points in f.
    """
    if num_f_samples < 1:
        raise InputError(f"expected num_f_samples ≥ 1, got {num_f_samples}")
    model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    if isinstance(model, InvariantGP):
        return FixedGP(model, orbit_size, num_f_samples, seed).eval()
    return FixedNetwork(model, orbit_size, seed).eval()


def sobol_normal(num: int, dims: int, seed: int) -> Float[Tensor, "K C"]:
    """Points of a scrambled Sobol sequence, mapped to standard normal numbers: evener than independent draws."""
    uniform = SobolEngine(dims, scramble=True, seed=seed).draw(num, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp(1e-9, 1 - 1e-9))


def _has_labels(likelihood: Likelihood) -> bool:
    return isinstance(likelihood, Softmax | Bernoulli) or (isinstance(likelihood, Gaussian) and likelihood.labels)


def _both_classes(likelihood: Likelihood, prediction: Float[Tensor, "N C"]) -> Float[Tensor, "N C2"]:
    """One Bernoulli output is the probability of the second of two classes."""
    if isinstance(likelihood, Bernoulli) and likelihood.num_outputs == 1:
        return torch.cat((1 - prediction, prediction), dim=1)
    return prediction
