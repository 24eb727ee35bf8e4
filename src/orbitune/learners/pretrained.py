"""A network pre-trained by log-likelihood, its last layer replaced by a GP: where the paper's schemes begin."""

from functools import partial

from orbitune.gp import CholeskyPosterior, NaturalPosterior
from orbitune.learners.base import Problem, choose_inducing, make_head
from orbitune.model import InvariantGP
from orbitune.network import build_network
from orbitune.orbits import IdentityOrbit
from orbitune.training import Phase, Run, train


def pretrained_model(
    problem: Problem,
    run: Run,
    pretrain_steps: int,
    num_inducing: int,
    natural_rate: float,
    kernel_variance: float = 1.0,
    lengthscale: float | None = None,
) -> InvariantGP:
    """The model before its first joint, GP or network step; both it and the network are the run's to save.

    Args:
        pretrain_steps: of the plain network, without an orbit (batch 200, Adam 0.001).
        natural_rate: 0 for a q(u) that Adam can train, else one for natural-gradient steps.
        kernel_variance, lengthscale: initial values; None is the median distance of features.
    """
    likelihood = problem.likelihood.for_network()
    network = build_network(IdentityOrbit(), problem.make_backbone, likelihood, problem.inputs, run.generator)
    run.track("network", network)
    pretrain = Phase("pre-train", "log-likelihood", ("backbone", "readout"), pretrain_steps)
    with run.within(0.5):
        train(network, problem.inputs, problem.targets, pretrain, run)
    chosen = run.once(
        "inducing",
        lambda: choose_inducing(network.backbone.eval(), problem.inputs, num_inducing, problem, run.generator),
    )
    if lengthscale is not None:
        chosen = {**chosen, "lengthscale": chosen["lengthscale"].new_tensor(lengthscale)}
    make_posterior = NaturalPosterior if natural_rate else partial(CholeskyPosterior, initial_variance=0.01)
    head = make_head(chosen, problem, make_posterior, kernel_variance)
    model = InvariantGP(problem.orbit, network.backbone, head, problem.likelihood.to(head.Z))
    run.track("model", model)
    return model
