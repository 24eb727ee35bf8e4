"""One orbit point and no network: our model must be GPyTorch's SVGP."""

import gpytorch
import torch

from builders import random_head, rbf_kernel, shallow_model
from orbitune.likelihoods import Gaussian
from orbitune.objectives import sample_elbo, unbiased_elbo
from orbitune.orbits import IdentityOrbit


class SVGP(gpytorch.models.ApproximateGP):
    def __init__(self, Z, mean, cov, kernel):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(Z)).double()
        strategy = gpytorch.variational.VariationalStrategy(
            self, Z, distribution, learn_inducing_locations=False, jitter_val=1.3e-10
        )
        super().__init__(strategy)
        self.kernel = kernel
        distribution.variational_mean.data.copy_(mean)
        distribution.chol_variational_covar.data.copy_(torch.linalg.cholesky(cov))
        strategy.variational_params_initialized.fill_(1)
        self.double()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(torch.zeros(len(x), dtype=x.dtype), self.kernel(x))


def test_mean_variance_kl_and_elbo_equal_gpytorchs(generator):
    head = random_head(generator, num_outputs=3)
    model = shallow_model(IdentityOrbit(), Gaussian(3, 0.3), head)
    X = torch.randn(7, 2, generator=generator, dtype=torch.float64)
    Y = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    marginal = model.marginal(X, orbit_size=1)
    q = head.posterior.law()

    kl, elbo = 0.0, 0.0
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = 0.3
    for c in range(3):
        svgp = SVGP(head.Z.detach(), q.mean[:, c], q.root[c].mT @ q.root[c], rbf_kernel()).eval()
        svgp_marginal = svgp(X)
        torch.testing.assert_close(marginal.mean[:, c], svgp_marginal.mean, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(marginal.var[:, c], svgp_marginal.variance, rtol=1e-6, atol=1e-6)
        svgp_kl = svgp.variational_strategy.kl_divergence()
        elbo = elbo + likelihood.expected_log_prob(Y[:, c], svgp_marginal).sum() - svgp_kl
        kl = kl + svgp_kl
    torch.testing.assert_close(q.kl(), kl, rtol=1e-8, atol=1e-8)
    for bound in (unbiased_elbo, sample_elbo):
        ours = bound(model, X, Y, num_data=7, orbit_size=1).elbo
        torch.testing.assert_close(ours, elbo, rtol=1e-6, atol=1e-6)
