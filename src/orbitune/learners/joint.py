"""Deep kernel learning: everything at once, under the ELBO. The paper's first counter-example (Fig. 3)."""

from dataclasses import dataclass
from functools import partial

from orbitune.gp import CholeskyPosterior, NaturalPosterior
from orbitune.inputs import take
from orbitune.learners.base import Learner, Outcome, Problem, choose_inducing, make_head, objective_of, training_elbo
from orbitune.model import InvariantGP
from orbitune.network import build_network
from orbitune.orbits import IdentityOrbit
from orbitune.training import Phase, Run, train


@dataclass(frozen=True)
class Joint(Learner):
    """Network, GP and orbit trained together from fresh weights.

    The bound protects the last layer from overfitting, not the network: it learns features that hardly vary within a
    class, from which no signal for the orbit is left.
    """

    steps: int = 2000
    learning_rate: float = 0.001
    natural_rate: float = 0.0
    num_inducing: int = 200
    batch_size: int = 200
    orbit_size: int = 8

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """One phase with all groups."""
        fresh = problem.likelihood.for_network()  # only its backbone is used
        network = build_network(IdentityOrbit(), problem.make_backbone, fresh, problem.inputs, run.generator)
        chosen = run.once(
            "inducing",
            lambda: choose_inducing(
                network.backbone.eval(), take(problem.inputs, slice(5000)), self.num_inducing, problem, run.generator
            ),
        )
        make_posterior = NaturalPosterior if self.natural_rate else partial(CholeskyPosterior, initial_variance=0.01)
        head = make_head(chosen, problem, make_posterior, 1.0)
        model = InvariantGP(problem.orbit, network.backbone, head, problem.likelihood.to(head.Z))
        run.track("model", model)
        everything = Phase(
            "joint",
            objective_of(problem.likelihood),
            tuple(model.parameter_groups()),
            self.steps,
            learning_rate=self.learning_rate,
            natural_rate=self.natural_rate,
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
        )
        train(model, problem.inputs, problem.targets, everything, run)
        return Outcome(
            model,
            training_elbo(model, problem, self.orbit_size, run),
        )
