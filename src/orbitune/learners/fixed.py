"""Baselines that learn no range: a network and a GP at a given orbit, and the plain network."""

from dataclasses import dataclass

from orbitune.gp import NaturalPosterior
from orbitune.learners.base import Learner, Outcome, Problem, choose_inducing, make_head, steps_of, training_elbo
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
        network = self.fresh_network(problem, orbit, run, name)
        self.train(network, problem, run, name)
        return network

    def fresh_network(self, problem: Problem, orbit: Orbit, run: Run, name: str) -> OrbitNetwork:
        """A network before its training, tracked by the run."""
        network = build_network(orbit, problem.make_backbone, problem.likelihood, problem.inputs, run.generator)
        run.track(name, network)
        return network

    def train(self, network: OrbitNetwork, problem: Problem, run: Run, name: str) -> None:
        """One phase of log-likelihood."""
        phase = Phase(
            name,
            "log-likelihood",
            ("backbone", "readout", "likelihood"),
            steps=steps_of(self.epochs, len(problem.inputs), self.batch_size),
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            batch_size=self.batch_size,
        )
        train(network, problem.inputs, problem.targets, phase, run)


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
        name = "network at fixed ranges"
        network = self.network.fresh_network(problem, problem.orbit, run, name)
        if any(parameter.requires_grad for parameter in network.backbone.parameters()):
            with run.within(0.75):
                self.network.train(network, problem, run, name)
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
