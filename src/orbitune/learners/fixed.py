"""Baselines that learn no range: networks and a GP at a given orbit, and the plain network."""

import copy
from dataclasses import dataclass, replace

from orbitune.gp import NaturalPosterior
from orbitune.learners.base import Learner, Outcome, Problem, choose_inducing, make_head, steps_of, training_elbo
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork, build_network
from orbitune.orbits import IdentityOrbit, Orbit
from orbitune.training import Phase, PlannedLoop, Run, Schedule, train
from orbitune.training.evaluation import without_orbit

PLAIN, AUGMENTED = "plain network", "augmented network"
NETWORK, GP, NETWORK_UNDER_ELBO = "network at fixed ranges", "GP at fixed ranges", "network under the ELBO"


@dataclass(frozen=True)
class PlainNetwork(Learner):
    """The network alone, without augmentation (the paper's M1).

    Attributes:
        label_smoothing: share of every label that is spread over all classes, less than 1; 0 for none.
        mixup: α of Beta(α, α), by which images and their labels are mixed in pairs; 0 for none. For few images.
        orbit_size: where it is trained on an orbit, points per input and step, whose readouts are averaged.
    """

    learns_ranges = False

    epochs: float = 30.0
    learning_rate: float = 0.001
    schedule: Schedule = Schedule.cosine
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    mixup: float = 0.0
    batch_size: int = 100
    orbit_size: int = 1

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """One phase of log-likelihood."""
        return Outcome(self.train_network(problem, IdentityOrbit(), run, PLAIN), None)

    def plan(self, num_data: int, name: str = PLAIN) -> list[PlannedLoop]:
        """One loop."""
        return [PlannedLoop(name, steps_of(self.epochs, num_data, self.batch_size), f"network, {self.orbit_size}")]

    def train_network(self, problem: Problem, orbit: Orbit, run: Run, name: str) -> OrbitNetwork:
        """A network trained on draws from a fixed orbit."""
        network = self.fresh_network(problem, orbit, run, name)
        self.train(network, problem, run, name)
        return network

    def fresh_network(self, problem: Problem, orbit: Orbit, run: Run, name: str) -> OrbitNetwork:
        """A network before its training, tracked by the run."""
        likelihood = copy.deepcopy(problem.likelihood)  # what a network makes of it is no start for a GP
        network = build_network(orbit, problem.make_backbone, likelihood, problem.inputs, run.generator)
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
            weight_decay=self.weight_decay,
            label_smoothing=self.label_smoothing,
            mixup=self.mixup,
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
        )
        train(network, problem.inputs, problem.targets, phase, run)


@dataclass(frozen=True)
class AugmentedNetwork(Learner):
    """The network alone, trained on draws from the orbit as given ("NN + small inv." in the paper's Table 2).

    Attributes:
        average: whether it averages over the orbit to predict, too, or is shown the image as it is.
    """

    learns_ranges = False

    network: PlainNetwork = PlainNetwork()
    average: bool = True

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """One phase of log-likelihood on the orbit."""
        orbit = problem.orbit.requires_grad_(False)
        network = self.network.train_network(problem, orbit, run, AUGMENTED)
        return Outcome(network if self.average else without_orbit(network), None)

    def plan(self, num_data: int) -> list[PlannedLoop]:
        """One loop."""
        return self.network.plan(num_data, AUGMENTED)


@dataclass(frozen=True)
class FixedRanges(Learner):
    """Network and GP at the orbit as given: nothing about φ is learned ("small inv." in the paper's Table 2).

    It is also the last stage of :class:`CrossFit`, at the ranges that were learned.

    Attributes:
        network: how the network is trained before the GP replaces its last layer.
        head_steps: steps on kernel, likelihood and q(u), with the network frozen.
        head_learning_rate: of these steps; it falls as a cosine.
        move_inducing: whether they move the inducing inputs too: worth it for a shallow model, whose features are the
            pixels; chosen among the features of a network they are good where they are.
        elbo_steps: steps on the network after that, with the ELBO as its loss, while q(u) follows by natural gradients;
            0 for none.
        elbo_learning_rate, elbo_batch_size: of these steps; the rate falls likewise.
    """

    learns_ranges = False
    natural_only = True

    network: PlainNetwork = PlainNetwork()
    head_steps: int = 100
    head_learning_rate: float = 0.03
    move_inducing: bool = False
    natural_rate: float = 0.2
    num_inducing: int = 300
    batch_size: int = 200
    orbit_size: int = 8
    elbo_steps: int = 0
    elbo_learning_rate: float = 0.0003
    elbo_batch_size: int = 100

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """Train the network on the orbit, then the GP in place of its last layer, then the network under the GP."""
        pretraining = replace(problem, likelihood=problem.likelihood.for_network())
        network = self.network.fresh_network(pretraining, problem.orbit, run, NETWORK)
        if any(parameter.requires_grad for parameter in network.backbone.parameters()):
            with run.within(0.75):
                self.network.train(network, pretraining, run, NETWORK)
        network.backbone.eval()
        chosen = run.once(
            "fixed/inducing",
            lambda: choose_inducing(network.backbone, problem.inputs, self.num_inducing, problem, run.generator),
        )
        head = make_head(chosen, problem, NaturalPosterior)
        model = InvariantGP(problem.orbit, network.backbone, head, problem.likelihood.to(head.Z))
        run.track("model", model)
        gp_phase = Phase(
            GP,
            "sample",
            ("kernel", "likelihood", *(("inducing",) if self.move_inducing else ())),
            self.head_steps,
            learning_rate=self.head_learning_rate,
            schedule=Schedule.cosine,
            natural_rate=self.natural_rate,
            natural_schedule=Schedule.cosine,  # at the end q(u) knows many minibatches, and the kernel stands still
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
        )
        train(model, problem.inputs, problem.targets, gp_phase, run)
        if self.elbo_steps:
            network_phase = replace(
                gp_phase,
                name=NETWORK_UNDER_ELBO,
                groups=("backbone",),
                steps=self.elbo_steps,
                learning_rate=self.elbo_learning_rate,
                batch_size=self.elbo_batch_size,
            )
            train(model, problem.inputs, problem.targets, network_phase, run)
        return Outcome(model, training_elbo(model, problem, self.orbit_size, run))

    def plan(self, num_data: int) -> list[PlannedLoop]:
        """Network, GP and, if wanted, the network again."""
        loops = [*self.network.plan(num_data, NETWORK), PlannedLoop(GP, self.head_steps, GP)]
        return (
            [*loops, PlannedLoop(NETWORK_UNDER_ELBO, self.elbo_steps, NETWORK_UNDER_ELBO)] if self.elbo_steps else loops
        )
