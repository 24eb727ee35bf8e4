"""Baselines that learn no range: a network and a GP at a given orbit, and the plain network."""

from dataclasses import dataclass

from orbitune.gp import NaturalPosterior
from orbitune.learners.base import Learner, Outcome, Problem, choose_inducing, make_head, training_elbo
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork, build_network
from orbitune.orbits import IdentityOrbit, Orbit
from orbitune.training import Phase, Run, Schedule, train


@dataclass(frozen=True)
class PlainNetwork(Learner):
    """The network alone, without augmentation (the paper's M1)."""

    epochs: float = 30
    learning_rate: float = 0.001
    schedule: Schedule = Schedule.cosine
    batch_size: int = 100

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """One phase of log-likelihood."""
        return Outcome(self.train_network(problem, IdentityOrbit(), run, "plain network"), None)

    def train_network(self, problem: Problem, orbit: Orbit, run: Run, name: str) -> OrbitNetwork:
        """A network trained on one draw per input and step from a fixed orbit."""
        network = build_network(orbit, problem.make_backbone, problem.likelihood, problem.inputs, run.generator)
        run.track(name, network)
        phase = Phase(
            name,
            "log-likelihood",
            ("backbone", "readout", "likelihood"),
            steps=max(1, round(self.epochs * len(problem.inputs) / self.batch_size)),
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            batch_size=self.batch_size,
        )
        train(network, problem.inputs, problem.targets, phase, run)
        return network


@dataclass(frozen=True)
class FixedRanges(Learner):
    """Network and GP at the orbit as given: nothing about φ is learned ("small inv." in the paper's Table 2).

    It is also the last stage of :class:`CrossFit`, at the ranges that were learned.
    """

    network: PlainNetwork = PlainNetwork()
    head_steps: int = 100
    natural_rate: float = 0.2
    num_inducing: int = 300
    batch_size: int = 200
    orbit_size: int = 8

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """Train the network on the orbit, then the GP in place of its last layer."""
        network = self.network.train_network(problem, problem.orbit, run, "network at fixed ranges")
        network.backbone.eval()
        chosen = run.once(
            "fixed/inducing",
            lambda: choose_inducing(network.backbone, problem.inputs[:5000], self.num_inducing, problem, run.generator),
        )
        head = make_head(chosen, problem, NaturalPosterior)
        model = InvariantGP(problem.orbit, network.backbone, head, problem.likelihood.to(head.Z))
        run.track("model", model)
        phase = Phase(
            "GP at fixed ranges",
            "sample",
            ("kernel", "likelihood"),
            self.head_steps,
            learning_rate=0.03,
            natural_rate=self.natural_rate,
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
        )
        train(model, problem.inputs, problem.targets, phase, run)
        return Outcome(
            model,
            training_elbo(model, problem, self.orbit_size, run),
        )
