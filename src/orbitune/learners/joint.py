"""Deep kernel learning: everything at once, under the ELBO. The paper's first counter-example (Fig. 3)."""

from dataclasses import dataclass

from orbitune.learners.base import Learner, Outcome, Problem, objective_of, require_halves, training_elbo
from orbitune.learners.pretrained import pretrained_model
from orbitune.training import Phase, Run, train


@dataclass(frozen=True)
class Joint(Learner):
    """Network, GP and orbit trained together.

    The bound protects the last layer from overfitting, not the network: it learns features that hardly vary within a
    class, from which no signal for the orbit is left.

    Attributes:
        pretrain_steps: of the network alone, by log-likelihood. A few are needed: the features of fresh weights grow a
            hundredfold in the first steps and leave inducing inputs and lengthscale behind, where every kernel is zero.
    """

    pretrain_steps: int = 200
    steps: int = 2000
    learning_rate: float = 0.001
    natural_rate: float = 0.0
    num_inducing: int = 200
    batch_size: int = 200
    orbit_size: int = 8

    def check(self, problem: Problem) -> None:
        """The unbiased bound needs an even orbit."""
        require_halves(problem, self.orbit_size)

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """One phase with all groups."""
        self.check(problem)
        model = pretrained_model(problem, run, self.pretrain_steps, self.num_inducing, self.natural_rate)
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
        return Outcome(model, training_elbo(model, problem, self.orbit_size, run))
