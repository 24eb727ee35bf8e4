"""The paper's coordinate ascent: pre-train, replace the last layer, alternate between GP and network."""

from dataclasses import dataclass

from orbitune.learners.base import Learner, Outcome, Problem, objective_of, require_halves, training_elbo
from orbitune.learners.pretrained import pretrained_model
from orbitune.likelihoods import Gaussian
from orbitune.training import Phase, Run, Schedule, train

GP_GROUPS = ("orbit", "kernel", "inducing", "variational", "likelihood")


@dataclass(frozen=True)
class CoordinateAscent(Learner):
    """Pre-train the network by log-likelihood; then GP phases and network phases (ELBO as loss) in turn.

    The evidence is that of data the network has memorised, which is why it is fragile: for the Gaussian likelihood the
    kernel and noise variances are held fixed, or the orbit collapses (paper, Fig. 5).

    Attributes:
        pretrain_steps: of the plain network (batch 200, Adam 0.001).
        cycles: how often a GP phase and a network phase follow each other; the last is a GP phase.
        gp_steps, network_steps: steps per phase.
        gp_learning_rate, network_learning_rate: of Adam in each phase, with their schedules.
        fix_variances: hold kernel variance and noise at their initial values; None does so for the Gaussian likelihood.
        kernel_variance, lengthscale: initial values; None is the median distance of features.
        natural_rate: 0 trains q(u) by Adam as the paper does; else the rate of natural-gradient steps.
    """

    pretrain_steps: int = 2000
    cycles: int = 2
    gp_steps: int = 500
    network_steps: int = 300
    gp_learning_rate: float = 0.003
    network_learning_rate: float = 0.0003
    gp_schedule: Schedule = Schedule.steps
    network_schedule: Schedule = Schedule.cyclic
    fix_variances: bool | None = None
    kernel_variance: float = 1.0
    lengthscale: float | None = None
    natural_rate: float = 0.0
    num_inducing: int = 200
    batch_size: int = 200
    orbit_size: int = 16

    def check(self, problem: Problem) -> None:
        """The unbiased bound needs an even orbit."""
        require_halves(problem, self.orbit_size)

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """Alternate; the paper decides when to toggle with validation data, here the numbers of steps are given."""
        self.check(problem)
        model = pretrained_model(
            problem,
            run,
            self.pretrain_steps,
            self.num_inducing,
            self.natural_rate,
            self.kernel_variance,
            self.lengthscale,
        )
        fix = isinstance(problem.likelihood, Gaussian) if self.fix_variances is None else self.fix_variances
        if fix:
            for name, parameter in model.named_parameters():
                if name.endswith(("raw_outputscale", "log_noise_variance")):
                    parameter.requires_grad_(False)
        phases = [self._gp_phase(0, problem)]
        for cycle in range(1, self.cycles):
            phases += [self._network_phase(cycle, problem), self._gp_phase(cycle, problem)]
        for done, phase in enumerate(phases):
            with run.within(1 / (len(phases) - done)):
                train(model, problem.inputs, problem.targets, phase, run)
        elbo = training_elbo(model, problem, self.orbit_size, run)
        return Outcome(model, elbo)

    def _gp_phase(self, cycle: int, problem: Problem) -> Phase:
        return Phase(
            f"GP {cycle + 1}",
            objective_of(problem.likelihood),
            GP_GROUPS,
            self.gp_steps,
            learning_rate=self.gp_learning_rate,
            schedule=self.gp_schedule,
            natural_rate=self.natural_rate,
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
        )

    def _network_phase(self, cycle: int, problem: Problem) -> Phase:
        return Phase(
            f"network {cycle}",
            objective_of(problem.likelihood),
            ("backbone",),
            self.network_steps,
            learning_rate=self.network_learning_rate,
            schedule=self.network_schedule,
            batch_size=self.batch_size,
            orbit_size=self.orbit_size,
        )
