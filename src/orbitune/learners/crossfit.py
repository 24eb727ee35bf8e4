"""Cross-fitted evidence: every image is scored by a network that has never seen it."""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from orbitune.errors import InputError
from orbitune.features import frozen
from orbitune.gp import NaturalPosterior, OrbitFeatures
from orbitune.inputs import take
from orbitune.learners.base import (
    Learner,
    Outcome,
    Problem,
    choose_inducing,
    draw_seed,
    frozen_features,
    make_head,
    objective_of,
    steps_of,
)
from orbitune.learners.fixed import FixedRanges
from orbitune.learners.look_ahead import LookAhead
from orbitune.learners.rounds import RoundSummary, settled
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork, build_network
from orbitune.objectives import natural_gradient_step, sample_bound, sample_elbo, unbiased_elbo
from orbitune.orbits import Orbit, UniformOrbit
from orbitune.orbits.ranges import Parameterisation
from orbitune.random import permutation
from orbitune.training import Minibatches, Phase, PlannedLoop, Run, train
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

    def learn(self, problem: Problem, run: Run) -> Outcome:
        """Learn φ from the evidence of held-out folds, then a model of all data at φ."""
        orbit = problem.orbit
        if not any(parameter.requires_grad for parameter in orbit.parameters()):  # there is no φ to learn
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
        order = run.once("folds", lambda: permutation(len(problem.inputs), run.generator, torch.device("cpu")))
        folds = min(self.folds, len(order))
        held_out = [order[k::folds] for k in range(folds)]
        network_orbit = orbit
        if isinstance(orbit, UniformOrbit):
            network_orbit = LookAhead(orbit, self.look_ahead, self.look_ahead_floor)
        networks = [
            build_network(
                network_orbit,
                problem.make_backbone,
                problem.likelihood.for_network(),
                problem.inputs,
                run.generator,
            )
            for _ in held_out
        ]
        if self.folds == 1 and list(networks[0].backbone.parameters()):
            raise InputError(
                "folds = 1 would score every image by a network that has seen it, and such evidence says nothing about "
                "the ranges; expected folds ≥ 2, or a backbone without parameters (identity)"
            )
        optimiser = self._orbit_optimiser(orbit)
        run.track("orbit", orbit)
        run.track("orbit optimiser", optimiser)
        for k, network in enumerate(networks):
            run.track(f"network {k + 1}", network)
        models: list[InvariantGP] = []
        rounds: list[dict[str, Any]] = []
        for r in range(1, self.max_rounds + 1):
            with run.within(0.5):
                for k, network in enumerate(networks if folds > 1 else ()):
                    seen = torch.cat([*held_out[:k], *held_out[k + 1 :]])
                    with run.within(1 / (folds - k)):
                        self._train_network(network, seen, r, k, problem, run)
            models = [
                self._new_head(orbit, network, models[k] if models else None, held_out[k], r, k, problem, run)
                for k, network in enumerate(networks)
            ]
            for group in optimiser.param_groups:
                group["lr"] = group["initial_lr"] * self.decay ** max(0, r - self.decay_from + 1)
            with frozen(*(network.backbone for network in networks)):
                for k, model in enumerate(models):
                    self._warm_up(model, held_out[k], r, k, problem, run)
                summary = self._ascend(models, held_out, optimiser, r, problem, run)
            rounds.append(run.once(f"round {r}/summary", summary.state_dict))
            if settled(rounds, self.tolerance) or run.late:
                break
        # The mean over the last round's second half is steadier than where its last step happened to end.
        torch.nn.utils.vector_to_parameters(rounds[-1]["parameters"], orbit.parameters())
        orbit.clamp_()
        for k in range(folds):  # nothing of the folds is needed any more
            run.untrack(f"network {k + 1}")
            run.untrack(f"model {k + 1}")
        run.untrack("orbit optimiser")
        return rounds[-1]["elbo"]

    def _orbit_optimiser(self, orbit: Orbit) -> SignificantAdam:
        centres = [p for name, p in orbit.named_parameters() if name.endswith("raw_centre")]
        others = [p for name, p in orbit.named_parameters() if not name.endswith("raw_centre")]
        groups = [
            {"params": others, "lr": self.orbit_learning_rate},
            {"params": centres, "lr": self.orbit_learning_rate * self.centre_factor},
        ]
        return SignificantAdam([group | {"initial_lr": group["lr"]} for group in groups if group["params"]])

    def _train_network(self, network: OrbitNetwork, seen: Tensor, r: int, k: int, problem: Problem, run: Run) -> None:
        """Adapt the network of fold k to the current ranges, on the data of the other folds."""
        epochs = self.first_epochs if r == 1 else self.epochs
        phase = Phase(
            f"round {r}: network {k + 1}",
            "log-likelihood",
            ("backbone", "readout", "likelihood"),
            steps=steps_of(epochs, len(seen), self.network_batch_size),
            batch_size=self.network_batch_size,
        )
        train(network, take(problem.inputs, seen), problem.targets[seen], phase, run)

    def _new_head(
        self,
        orbit: Orbit,
        network: OrbitNetwork,
        previous: InvariantGP | None,
        held: Tensor,
        r: int,
        k: int,
        problem: Problem,
        run: Run,
    ) -> InvariantGP:
        """A GP on the adapted network's features of the held-out fold; kernel and likelihood go on from before."""
        chosen = run.once(
            f"round {r}/inducing {k + 1}",
            lambda: choose_inducing(
                network.backbone,
                take(problem.inputs, held[: self.warm_inputs]),
                self.num_inducing,
                problem,
                run.generator,
            ),
        )
        head = make_head(chosen, problem, NaturalPosterior)
        likelihood = copy.deepcopy(problem.likelihood).to(head.Z)
        if previous is not None:
            head.kernel.load_state_dict(previous.head.kernel.state_dict())
            likelihood.load_state_dict(previous.likelihood.state_dict())
        model = InvariantGP(orbit, network.backbone.eval(), head, likelihood)
        run.track(f"model {k + 1}", model)
        return model

    def _warm_up(self, model: InvariantGP, held: Tensor, r: int, k: int, problem: Problem, run: Run) -> None:
        """Bring q(u) and the kernel to the current ranges, on features that are computed once."""
        seed = run.once(f"round {r}/warm seed {k + 1}", lambda: draw_seed(run.generator))
        hyper_parameters = [*model.head.kernel.parameters(), *model.likelihood.parameters()]
        optimiser = torch.optim.Adam(hyper_parameters, lr=3 * self.kernel_learning_rate, betas=(0.9, 0.99))
        inputs, targets = take(problem.inputs, held[: self.warm_inputs]), problem.targets[held[: self.warm_inputs]]
        encoded = model.encode(inputs, targets)
        batches = Minibatches(len(inputs), 500, run.generator)
        features: Tensor | None = None
        steps = self.warm_first if r == 1 else self.warm
        for step in run.steps(f"round {r}: warm-up {k + 1}", steps, optimiser=optimiser, batches=batches):
            if features is None:  # here, and not before the loop, the network is what it was when the run was saved
                with run.network_precision(inputs.device):
                    features = frozen_features(model, inputs, max(1, self.orbit_size // 2), seed)
            batch = batches.next()
            terms = sample_bound(
                model,
                OrbitFeatures(features[batch].unsqueeze(1), model.orbit.exact),
                encoded[batch],
                num_data=len(held),
                num_f_samples=self.num_f_samples,
                generator=run.generator,
            )
            _step(optimiser, terms.per_datum)
            self._natural_step(model, terms, 1.0 if step == 0 else 0.3, run)

    def _ascend(
        self,
        models: list[InvariantGP],
        held_out: list[Tensor],
        orbit_optimiser: SignificantAdam,
        r: int,
        problem: Problem,
        run: Run,
    ) -> RoundSummary:
        """Raise the evidence of all folds together in φ, and of each in its own q(u), kernel and likelihood."""
        orbit = models[0].orbit
        hyper_parameters = [p for m in models for p in (*m.head.kernel.parameters(), *m.likelihood.parameters())]
        optimiser = torch.optim.Adam(hyper_parameters, lr=self.kernel_learning_rate, betas=(0.9, 0.99))
        batches = [Minibatches(len(held), self.batch_size, run.generator) for held in held_out]
        summary = RoundSummary()
        items = {f"batches {k + 1}": b for k, b in enumerate(batches)} | {"optimiser": optimiser, "summary": summary}
        for step in run.steps(f"round {r}: evidence", self.steps, **items):
            orbit_optimiser.zero_grad()
            optimiser.zero_grad()
            elbo = 0.0
            for model, held, fold_batches in zip(models, held_out, batches, strict=True):
                batch = held[fold_batches.next()]
                with run.network_precision(problem.inputs.device):
                    terms = self._bound(model, problem.inputs[batch], problem.targets[batch], len(held), run)
                (terms.loss / len(models)).backward()
                self._natural_step(model, terms, self.natural_rate, run)
                elbo += terms.per_datum.item() / len(models)
            orbit_optimiser.step()
            optimiser.step()
            orbit.clamp_()
            summary.add(orbit, elbo, average=step >= self.steps // 2)  # by then the kernel has followed
            run.log(phase="evidence", round=r, step=step, **measurements(terms), ranges=orbit.ranges())
        return summary

    def _bound(self, model: InvariantGP, inputs: Tensor, targets: Tensor, num_data: int, run: Run):
        if objective_of(model.likelihood) == "unbiased":
            return unbiased_elbo(
                model, inputs, targets, num_data=num_data, orbit_size=self.orbit_size, generator=run.generator
            )
        return sample_elbo(
            model,
            inputs,
            targets,
            num_data=num_data,
            orbit_size=self.orbit_size,
            num_f_samples=self.num_f_samples,
            generator=run.generator,
        )

    def _natural_step(self, model: InvariantGP, terms: Any, rate: float, run: Run) -> None:
        natural_gradient_step(model, terms, rate=rate, num_f_samples=self.num_f_samples, generator=run.generator)


def _step(optimiser: torch.optim.Optimizer, objective: Tensor) -> None:
    optimiser.zero_grad()
    (-objective).backward()
    optimiser.step()
