"""What if: the prediction for one image while one transform parameter is swept over and beyond its learned range."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.orbits import UniformOrbit
from orbitune.random import normal
from orbitune.training.evaluation import both_classes

# How far a sweep goes to either side, if the learned range is not wider: about as far as the image is recognisable.
REACH = {
    "rotation": torch.pi,
    "log_scale_x": 1.0,
    "log_scale_y": 1.0,
    "shear_x": 1.0,
    "shear_y": 1.0,
    "translate_x": 0.8,
    "translate_y": 0.8,
}
NUM_VALUES, NUM_PICTURES, NUM_DRAWS = 37, 7, 256
BAND = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Curve:
    """The probability of a class at each swept value: mean, and the band of what f may be (None without a GP)."""

    label: int
    mean: Tensor
    low: Tensor | None
    high: Tensor | None


@dataclass(frozen=True, eq=False)
class Sweep:
    """One parameter swept.

    Attributes:
        name: of the parameter.
        values: (G,) that it takes; all others are zero.
        pictures: (value, image (Ch, H, W)) at a few of them.
        truth: the probability of the image's own class.
        rival: that of the class which comes closest or wins elsewhere.
    """

    name: str
    values: Tensor
    pictures: tuple[tuple[float, Tensor], ...]
    truth: Curve
    rival: Curve


@torch.no_grad()
def sweep(
    model: InvariantGP | OrbitNetwork,
    image: Float[Tensor, "Ch H W"],
    label: int,
    name: str,
    orbit_size: int,
    generator: torch.Generator,
) -> Sweep:
    """Transform an image by a range of values of one parameter, and predict each (averaged over its own orbit)."""
    orbit = model.orbit
    assert isinstance(orbit, UniformOrbit)  # only these have ranges to sweep
    index = orbit.names.index(name)
    half = NUM_VALUES // 2
    values = torch.arange(-half, half + 1) / half * reach(orbit, name)  # the middle is exactly zero
    params = torch.zeros(1, NUM_VALUES, len(orbit.names))
    params[0, :, index] = values
    images = orbit.transform(image[None], params)[0]  # (G, Ch, H, W)
    mean, low, high = probabilities_with_band(model, images, orbit_size, generator)
    elsewhere = mean.clone()
    elsewhere[:, label] = -1
    rival = int(elsewhere.amax(0).argmax())
    shown = range(0, NUM_VALUES, (NUM_VALUES - 1) // (NUM_PICTURES - 1))

    def curve(c: int) -> Curve:
        return Curve(c, mean[:, c], None if low is None else low[:, c], None if high is None else high[:, c])

    pictures = tuple((float(values[i]), images[i]) for i in shown)
    return Sweep(name, values, pictures, curve(label), curve(rival))


def most_changed(orbit: UniformOrbit, images: Float[Tensor, "B Ch H W"], generator: torch.Generator) -> int:
    """Which of the images its orbit changes most, in pixels: there is most to see on it."""
    with torch.no_grad():
        points = orbit(images, 16, generator)
    return int((points - images[:, None]).abs().flatten(1).mean(1).argmax())


def reach(orbit: UniformOrbit, name: str) -> float:
    """How far to either side a parameter is worth varying: beyond its learned range, within its limit."""
    low, high = orbit.ranges()[name]
    return min(max(REACH.get(name, 1.0), 1.5 * max(-low, high)), orbit.limits.get(name, float("inf")))


@torch.no_grad()
def probabilities_with_band(
    model: InvariantGP | OrbitNetwork, images: Tensor, orbit_size: int, generator: torch.Generator
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Class probabilities (G, C), and their quantiles under the posterior of f̂ where there is one."""
    if isinstance(model, OrbitNetwork):
        return both_classes(model.predict(images, orbit_size, generator=generator)), None, None
    law = model.marginal(images, orbit_size, generator)
    # The same draws at every value: the curves differ by what is swept, not by chance.
    eps = normal((NUM_DRAWS, 1, law.mean.shape[1]), generator, law.mean)
    f = law.mean + law.var.clamp_min(0).sqrt() * eps  # (K, G, C)
    p = both_classes(model.likelihood.conditional_mean(f.flatten(0, 1))).unflatten(0, f.shape[:2])
    low, high = p.quantile(torch.tensor(BAND).to(p), dim=0)
    return p.mean(0), low, high
