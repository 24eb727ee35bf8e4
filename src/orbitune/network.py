"""The network without a Gaussian process: f̂(x) = mean over the orbit of a linear readout of the features.

It is the paper's baseline (M1), what pre-training trains, and the model of the maximum-likelihood counter-example.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitune.features import check_inputs, chunks_of, evaluating, extract_features, features_of_points
from orbitune.inputs import StoredImages
from orbitune.likelihoods import Likelihood
from orbitune.model import encode_targets, partition
from orbitune.orbits import Orbit
from orbitune.random import seeded


class OrbitNetwork(nn.Module):
    """orbit ∘ backbone ∘ linear readout ∘ likelihood."""

    def __init__(self, orbit: Orbit, backbone: nn.Module, readout: nn.Linear, likelihood: Likelihood):
        super().__init__()
        self.orbit, self.backbone, self.readout, self.likelihood = orbit, backbone, readout, likelihood

    def forward(
        self, inputs: Float[Tensor, "B *event"], orbit_size: int = 1, generator: torch.Generator | None = None
    ) -> Float[Tensor, "B C"]:
        """f̂: the mean readout over S points of the orbit."""
        check_inputs(inputs)
        params = self.orbit.sample_params(inputs.shape[0], orbit_size, generator)
        readouts = self.readout(features_of_points(self.orbit, self.backbone, inputs, params))  # (B, S, C)
        # Under autocast these are of low precision; what likelihoods compute from the mean should not be.
        return readouts.mean(1, dtype=self.readout.weight.dtype)

    @torch.no_grad()
    def predict(
        self,
        inputs: Float[Tensor, "B *event"] | StoredImages,
        orbit_size: int = 1,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "B C"]:
        """E[y | f̂]; for labels, class probabilities."""
        with evaluating(self.backbone):
            f = torch.cat([self(chunk, orbit_size, generator) for chunk in chunks_of(inputs, orbit_size)])
        return self.likelihood.conditional_mean(f)

    def encode(self, inputs: Float[Tensor, "B *event"] | StoredImages, targets: Shaped[Tensor, "B *T"]) -> Tensor:
        """Targets checked, in the form the likelihood works with."""
        return encode_targets(self.likelihood, inputs, targets)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """A partition of all parameters: orbit (φ), backbone (w), readout, likelihood."""
        return partition(
            self, orbit=self.orbit, backbone=self.backbone, readout=self.readout, likelihood=self.likelihood
        )


def build_network(
    orbit: Orbit,
    make_backbone: Callable[[], nn.Module],
    likelihood: Likelihood,
    example: Float[Tensor, "B *event"] | StoredImages,
    generator: torch.Generator,
) -> OrbitNetwork:
    """A fresh network with a readout of the right size; its initial weights come from the generator."""
    with seeded(generator):
        backbone = make_backbone().to(example.device)
        if example.ndim == 4:  # images: convolutions are faster with channels last
            backbone = backbone.to(memory_format=torch.channels_last)  # ty: ignore[no-matching-overload]
        with torch.no_grad(), evaluating(backbone):
            num_features = extract_features(backbone, example[:2]).shape[1]
        readout = nn.Linear(num_features, likelihood.num_outputs).to(example.device, example.dtype)
    return OrbitNetwork(orbit, backbone, readout, likelihood)
