"""Maximum likelihood: the paper's second counter-example (appendix)."""

from dataclasses import dataclass

from orbitune.learners.base import Learner, Outcome, Problem
from orbitune.network import build_network
from orbitune.training import Phase, Run, train


@dataclass(frozen=True)
class MaximumLikelihood(Learner):
    """Network and orbit trained by the training log-likelihood, which ranges can only lower: they collapse.

    Attributes:
        label_smoothing: share of every label that is spread over all classes. Without it the likelihood of
            a network that knows its images by heart is nearly one on the whole orbit, and hardly moves the ranges.
    """

    steps: int = 2000
    learning_rate: float = 0.001
    batch_size: int = 200
    orbit_size: int = 8
    label_smoothing: float = 0.0

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """One phase; there is no evidence to report."""
        network = build_network(problem.orbit, problem.make_backbone, problem.likelihood, problem.inputs, run.generator)
        run.track("network", network)
        phase = Phase(
            "maximum likelihood",
            "log-likelihood",
            ("orbit", "backbone", "readout", "likelihood"),
            self.steps,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
            label_smoothing=self.label_smoothing,
        )
        train(network, problem.inputs, problem.targets, phase, run)
        return Outcome(network, None)
