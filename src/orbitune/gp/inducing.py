"""Where the inducing inputs go, and at what scale the kernel starts."""

import logging
from typing import Literal, get_args

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

from orbitune.errors import InputError, unknown_name
from orbitune.gp.orbit_kernel import evaluate
from orbitune.random import device_of, permutation

logger = logging.getLogger(__name__)
InducingMethod = Literal["greedy", "kmeans", "random"]


@torch.no_grad()
def select_inducing(
    features: Float[Tensor, "N D"],
    num_inducing: int,
    kernel: Kernel,
    method: InducingMethod = "greedy",
    generator: torch.Generator | None = None,
) -> Float[Tensor, "M D"]:
    """Choose M inducing inputs from, or amid, the features of training inputs.

    "greedy" takes at each step the point with the largest conditional variance given those taken (Burt et al., 2020);
    it returns fewer than M points, and says so in the log, once nothing is left to explain. "kmeans" returns cluster
    centres, "random" a subset without replacement.
    """
    if not 1 <= num_inducing <= features.shape[0]:
        raise InputError(
            f"number of inducing inputs: expected between 1 and the number of data, {features.shape[0]}; "
            f"got {num_inducing}"
        )
    match method:
        case "greedy":
            return features[_greedy_variance(features, num_inducing, kernel)].clone()
        case "kmeans":
            seed = int(torch.randint(2**31 - 1, (), generator=generator, device=device_of(generator)))
            from sklearn.cluster import KMeans  # takes as long to import as torch

            centres = KMeans(num_inducing, n_init=1, random_state=seed).fit(features.cpu().numpy()).cluster_centers_
            return torch.as_tensor(centres, dtype=features.dtype, device=features.device)
        case "random":
            order = permutation(features.shape[0], generator, features.device)
            return features[order[:num_inducing]].clone()
        case _:
            raise unknown_name("way to choose inducing inputs", method, get_args(InducingMethod))


def _greedy_variance(features: Float[Tensor, "N D"], num_inducing: int, kernel: Kernel) -> list[int]:
    """Pivoted Cholesky of K(features, features): row j of ``rows`` is row j of L⁻¹K for the points chosen so far."""
    variance = kernel(features, diag=True).clone()  # (N,) conditional variance given the chosen points
    enough = variance.max() * max(1e-10, 10 * torch.finfo(features.dtype).eps)  # less is rounding
    rows = torch.zeros(num_inducing, features.shape[0], dtype=features.dtype, device=features.device)  # (M, N)
    chosen: list[int] = []
    for j in range(num_inducing):
        pivot = int(variance.argmax())
        if variance[pivot] <= enough:
            logger.warning("%d of %d inducing inputs explain the features entirely; using %d", j, num_inducing, j)
            break
        chosen.append(pivot)
        covariance = evaluate(kernel, features[pivot : pivot + 1], features)[0]  # (N,)
        explained = rows[:j, pivot] @ rows[:j]
        rows[j] = (covariance - explained) / variance[pivot].sqrt()
        variance = variance - rows[j].square()
        variance[pivot] = 0
    return chosen


@torch.no_grad()
def median_distance(
    features: Float[Tensor, "N D"], generator: torch.Generator | None = None, max_points: int = 1000
) -> float:
    """Median distance between (a random subset of) the features: there, kernels neither vanish nor saturate."""
    order = permutation(features.shape[0], generator, features.device)
    distances = torch.pdist(features[order[:max_points]])
    positive = distances[distances > 0]
    return positive.median().item() if len(positive) else 1.0


def default_kernel(
    features: Float[Tensor, "N D"], generator: torch.Generator | None = None, *, ard: bool = False
) -> ScaleKernel:
    """Squared-exponential kernel of variance 1 whose lengthscale starts at the median distance of the features."""
    kernel = ScaleKernel(RBFKernel(ard_num_dims=features.shape[1] if ard else None)).to(features)
    kernel.outputscale = 1.0
    kernel.base_kernel.lengthscale = torch.tensor(median_distance(features, generator))
    return kernel
