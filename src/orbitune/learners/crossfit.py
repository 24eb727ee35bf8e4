"""Cross-fitted evidence: every image is scored by a network that has never seen it."""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from orbitune.errors import InputError
from orbitune.features import frozen
from orbitune.learners.base import Learner, Outcome, Problem, require_halves, steps_of
from orbitune.learners.fixed import FixedRanges
from orbitune.learners.fold import Fold
from orbitune.learners.look_ahead import LookAhead
from orbitune.learners.rounds import RoundSummary, settled
from orbitune.network import build_network
from orbitune.orbits import Orbit, UniformOrbit
from orbitune.orbits.ranges import KINDS, Parameterisation
from orbitune.random import permutation
from orbitune.training import Minibatches, PlannedLoop, Run
from orbitune.training.optimisers import SignificantAdam
from orbitune.training.trainer import measurements


@dataclass(frozen=True)
class CrossFit(Learner):
    """Alternate between networks trained without a fold and the evidence of that fold, until the ranges settle.

    On data a network has memorised, the evidence of its last layer is nearly flat in φ, and its sign depends on the
    lengthscale. On data it has not seen, it is a proper marginal likelihood: steep, and in step with test accuracy. No
    variance is fixed by hand and no validation label is used. See ``docs/crossfit.md`` for what was tried.

    Attributes:
        folds: the training set is split into as many parts; each is scored by a network trained on the others. 1 is
            for backbones without parameters, which can memorise nothing.
        max_rounds: rounds of (networks adapt to the current ranges, ranges follow the evidence).
        first_epochs, epochs: training of the networks before the first and before every later round.
        steps: ascent steps on φ per round, each over a minibatch of every fold.
        warm_first, warm: steps on q(u) and the kernel before φ moves, in the first and in later rounds; with a cold
            q(u) the gradient on φ points to collapse.
        orbit_learning_rate: of :class:`SignificantAdam`, on log half-widths; times ``centre_factor`` on centres.
        decay, decay_from: the learning rate is multiplied by ``decay`` in each round from this one on.
        coordinates: what φ is to the optimiser. Any choice leads to the same orbit; in "log", steps are relative.
        tolerance: the ranges have settled when no bound moves by more than this from one round to the next, twice.
        look_ahead, look_ahead_floor: how much wider than the current ranges the networks train; see :class:`LookAhead`.
        final: the model at the learned ranges, trained on all data.
    """

    natural_only = True

    folds: int = 2
    max_rounds: int = 6
    first_epochs: float = 15.0
    epochs: float = 4.0
    network_batch_size: int = 100
    steps: int = 26
    warm_first: int = 40
    warm: int = 12
    warm_inputs: int = 1500
    batch_size: int = 64
    orbit_size: int = 8
    num_f_samples: int = 16
    num_inducing: int = 200
    natural_rate: float = 0.1
    orbit_learning_rate: float = 0.2
    decay: float = 0.6
    decay_from: int = 4
    centre_factor: float = 0.2
    coordinates: Parameterisation = "log"
    kernel_learning_rate: float = 0.03
    tolerance: float = 0.06
    look_ahead: float = 1.2
    look_ahead_floor: float = 0.25
    final: FixedRanges = field(default_factory=FixedRanges)

    def check(self, problem: Problem) -> None:
        """The unbiased bound needs an even orbit; coordinates that the orbit asks for must be those of the learner."""
        if not _learnable(problem.orbit):
            return
        require_halves(problem, self.orbit_size)
        learned = problem.orbit.learned if isinstance(problem.orbit, UniformOrbit) else None
        if learned is not None and type(learned) not in (KINDS["direct"], KINDS[self.coordinates]):
            (asked,) = (name for name, kind in KINDS.items() if type(learned) is kind)
            raise InputError(
                f"the orbit asks for {asked!r} coordinates of its ranges, but CrossFit learns them in its own "
                f"({self.coordinates!r}): set coordinates = {asked!r} in its settings, too, or leave the orbit's out"
            )

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """Learn φ from the evidence of held-out folds, then a model of all data at φ."""
        self.check(problem)
        orbit = problem.orbit
        if not _learnable(orbit):
            return self.final.learn(problem, run)
        if isinstance(orbit, UniformOrbit):
            orbit = orbit.reparameterised(self.coordinates)
        with run.within(0.6):
            elbo = self.learn_orbit(orbit, problem, run)
        settled = copy.deepcopy(orbit).requires_grad_(False)
        outcome = self.final.learn(replace(problem, orbit=settled), run)
        return Outcome(outcome.model, elbo)

    def plan(self, num_data: int) -> list[PlannedLoop]:
        """Rounds, as many as there may be, and the final model."""
        seen = num_data - num_data // self.folds
        loops = []
        for r in range(1, self.max_rounds + 1):
            epochs, warm = (self.first_epochs, self.warm_first) if r == 1 else (self.epochs, self.warm)
            steps = steps_of(epochs, seen, self.network_batch_size)
            networks = range(1, self.folds + 1)
            loops += [PlannedLoop(f"round {r}: network {k}", steps, "network, 1") for k in networks if self.folds > 1]
            loops += [PlannedLoop(f"round {r}: warm-up {k}", warm, "warm-up") for k in networks]
            loops += [PlannedLoop(f"round {r}: evidence", self.steps, "evidence")]
        return loops + self.final.plan(num_data)

    def learn_orbit(self, orbit: Orbit, problem: Problem, run: Run) -> float:
        """Move the orbit to where the evidence of held-out data wants it; that evidence per datum."""
        folds = self._folds(orbit, problem, run)
        optimiser = self._orbit_optimiser(orbit)
        run.track("orbit", orbit)
        run.track("orbit optimiser", optimiser)
        for fold in folds:
            run.track(f"network {fold.number}", fold.network)
        rounds: list[dict[str, Any]] = []
        for r in range(1, self.max_rounds + 1):
            with run.within(0.5):
                for left, fold in zip(range(len(folds), 0, -1), folds, strict=True):
                    with run.within(1 / left):
                        fold.train_network(r, run)
            for fold in folds:
                fold.renew_model(orbit, r, run)
            for group in optimiser.param_groups:
                group["lr"] = group["initial_lr"] * self.decay ** max(0, r - self.decay_from + 1)
            with frozen(*(fold.network.backbone for fold in folds)):
                for fold in folds:
                    fold.warm_up(r, run)
                summary = self._ascend(orbit, folds, optimiser, r, run)
            rounds.append(run.once(f"round {r}/summary", summary.state_dict))
            # Remembered, because on resume there is more time again.
            if run.once(f"round {r}/last", lambda: settled(rounds, self.tolerance) or run.late):
                break
        # The mean over the last round's second half is steadier than where its last step happened to end.
        torch.nn.utils.vector_to_parameters(rounds[-1]["parameters"], orbit.parameters())
        orbit.clamp_()
        for fold in folds:  # nothing of the folds is needed any more
            run.untrack(f"network {fold.number}")
            run.untrack(f"model {fold.number}")
        run.untrack("orbit optimiser")
        return rounds[-1]["elbo"]

    def _folds(self, orbit: Orbit, problem: Problem, run: Run) -> list[Fold]:
        """The training set in random parts."""
        order = run.once("folds", lambda: permutation(len(problem.inputs), run.generator, torch.device("cpu")))
        number = min(self.folds, len(order))
        held_out = [order[k::number] for k in range(number)]
        if isinstance(orbit, UniformOrbit):
            orbit = LookAhead(orbit, self.look_ahead, self.look_ahead_floor)
        folds = []
        for k, held in enumerate(held_out):
            network = build_network(
                orbit, problem.make_backbone, problem.likelihood.for_network(), problem.inputs, run.generator
            )
            seen = torch.cat([order[:0], *held_out[:k], *held_out[k + 1 :]])
            folds.append(Fold(k + 1, held, seen, network, self, problem))
        if self.folds == 1 and list(folds[0].network.backbone.parameters()):
            raise InputError(
                "folds = 1 would score every image by a network that has seen it, and such evidence says nothing about "
                "the ranges; expected folds ≥ 2, or a backbone without parameters (identity)"
            )
        return folds

    def _orbit_optimiser(self, orbit: Orbit) -> SignificantAdam:
        centres = [p for name, p in orbit.named_parameters() if name.endswith("raw_centre")]
        others = [p for name, p in orbit.named_parameters() if not name.endswith("raw_centre")]
        groups = [
            {"params": others, "lr": self.orbit_learning_rate},
            {"params": centres, "lr": self.orbit_learning_rate * self.centre_factor},
        ]
        return SignificantAdam([group | {"initial_lr": group["lr"]} for group in groups if group["params"]])

    def _ascend(
        self, orbit: Orbit, folds: list[Fold], orbit_optimiser: SignificantAdam, r: int, run: Run
    ) -> RoundSummary:
        """Raise the evidence of all folds together in φ, and of each in its own q(u), kernel and likelihood."""
        hyper_parameters = [p for fold in folds for p in fold.hyper_parameters()]
        optimiser = torch.optim.Adam(hyper_parameters, lr=self.kernel_learning_rate, betas=(0.9, 0.99))
        batches = [Minibatches(len(fold.held), self.batch_size, run.generator) for fold in folds]
        summary = RoundSummary()
        items = {f"batches {fold.number}": b for fold, b in zip(folds, batches, strict=True)}
        for step in run.steps(f"round {r}: evidence", self.steps, optimiser=optimiser, summary=summary, **items):
            orbit_optimiser.zero_grad()
            optimiser.zero_grad()
            measured: list[dict[str, float]] = []
            for fold, fold_batches in zip(folds, batches, strict=True):
                terms = fold.evidence(fold_batches.next(), run)
                (terms.loss / len(folds)).backward()
                measured.append(measurements(terms))
                fold.natural_step(terms, self.natural_rate, run)
                del terms  # with all that its graph keeps
            orbit_optimiser.step()
            optimiser.step()
            orbit.clamp_()
            means = {name: sum(each[name] for each in measured) / len(folds) for name in measured[0]}
            summary.add(orbit, means["elbo"], average=step >= self.steps // 2)  # by then the kernel has followed
            run.log(phase="evidence", round=r, step=step, **means, ranges=orbit.ranges())
        return summary


def _learnable(orbit: Orbit) -> bool:
    """Whether there is a φ to learn."""
    return any(parameter.requires_grad for parameter in orbit.parameters())
