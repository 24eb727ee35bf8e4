"""Small models for tests, in double precision, with a q(u) that is nobody's special case."""

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from orbitune.backbones import Identity
from orbitune.gp import GPHead, JitterPolicy, NaturalPosterior
from orbitune.model import InvariantGP
from orbitune.orbits import Orbit


def rbf_kernel(variance=1.3, lengthscale=0.8):
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = torch.tensor(variance), torch.tensor(lengthscale)
    return kernel


def random_head(generator, num_inducing=6, dim=2, num_outputs=3, shared_covariance=False, kernel=None, **options):
    Z = torch.randn(num_inducing, dim, generator=generator, dtype=torch.float64)
    posterior = NaturalPosterior(num_inducing, num_outputs, shared_covariance=shared_covariance).double()
    factor = torch.randn(posterior.precision.shape, generator=generator, dtype=torch.float64)
    posterior.precision += factor @ factor.mT
    posterior.theta += 3 * torch.randn(posterior.theta.shape, generator=generator, dtype=torch.float64)
    options.setdefault("jitter", JitterPolicy(start=1e-10))
    return GPHead(kernel or rbf_kernel(), Z, posterior, **options)


def shallow_model(orbit, likelihood, head):
    return InvariantGP(orbit, Identity(), head, likelihood.double())


class NoiseOrbit(Orbit):
    """x_a = x + N(0, s²I): the orbit for which the squared-exponential kernel has closed forms."""

    names = ("shift_x", "shift_y")
    units = ("", "")

    def __init__(self, std=0.5):
        super().__init__()
        self.std = torch.nn.Parameter(torch.tensor(std, dtype=torch.float64))

    def sample_params(self, batch, size, generator):
        return self.std * torch.randn(batch, size, 2, generator=generator, dtype=torch.float64)

    def transform(self, inputs, params):
        return inputs.unsqueeze(1) + params

    def ranges(self):
        return {name: (-2 * self.std.item(), 2 * self.std.item()) for name in self.names}
