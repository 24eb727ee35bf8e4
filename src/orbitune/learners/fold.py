"""One part of the training set, as cross-fitting sees it."""

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from orbitune.gp import NaturalPosterior, OrbitFeatures
from orbitune.inputs import Inputs, take
from orbitune.learners.base import (
    Problem,
    choose_inducing,
    draw_seed,
    frozen_features,
    make_head,
    objective_of,
    steps_of,
)
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.objectives import ElboTerms, natural_gradient_step, sample_bound, sample_elbo, unbiased_elbo
from orbitune.orbits import Orbit
from orbitune.training import Minibatches, Phase, Run, train

if TYPE_CHECKING:
    from orbitune.learners.crossfit import CrossFit


class Fold:
    """Inputs that are held out, a network that is trained on all others, and a GP on its features that scores them.

    Args:
        number: from 1.
        held: indices of the inputs held out.
        seen: indices of those the network may see; none where it has nothing to train.
        network: with the orbit that it is trained on.
        settings: how all this is done.
        problem: the data.
    """

    model: InvariantGP
    """Of the current round; see :meth:`renew_model`."""

    def __init__(
        self, number: int, held: Tensor, seen: Tensor, network: OrbitNetwork, settings: "CrossFit", problem: Problem
    ):
        self.number, self.held, self.seen, self.network = number, held, seen, network
        self.settings, self.problem = settings, problem

    def train_network(self, r: int, run: Run) -> None:
        """Adapt the network to the current ranges, on the data of the other folds."""
        if not len(self.seen):
            return
        settings = self.settings
        epochs = settings.first_epochs if r == 1 else settings.epochs
        phase = Phase(
            f"round {r}: network {self.number}",
            "log-likelihood",
            ("backbone", "readout", "likelihood"),
            steps=steps_of(epochs, len(self.seen), settings.network_batch_size),
            batch_size=settings.network_batch_size,
        )
        train(self.network, take(self.problem.inputs, self.seen), self.problem.targets[self.seen], phase, run)

    def renew_model(self, orbit: Orbit, r: int, run: Run) -> None:
        """A GP on the adapted network's features of what is held out; kernel and likelihood go on from before."""
        backbone = self.network.backbone
        chosen = run.once(
            f"round {r}/inducing {self.number}",
            lambda: choose_inducing(
                backbone, self._some_inputs(), self.settings.num_inducing, self.problem, run.generator
            ),
        )
        head = make_head(chosen, self.problem, NaturalPosterior)
        likelihood = copy.deepcopy(self.problem.likelihood).to(head.Z)
        if r > 1:
            head.kernel.load_state_dict(self.model.head.kernel.state_dict())
            likelihood.load_state_dict(self.model.likelihood.state_dict())
        self.model = InvariantGP(orbit, backbone.eval(), head, likelihood)
        run.track(f"model {self.number}", self.model)

    def warm_up(self, r: int, run: Run) -> None:
        """Bring q(u) and the kernel to the current ranges, on features that are computed once."""
        model, settings = self.model, self.settings
        seed = run.once(f"round {r}/warm seed {self.number}", lambda: draw_seed(run.generator))
        optimiser = torch.optim.Adam(self.hyper_parameters(), lr=3 * settings.kernel_learning_rate, betas=(0.9, 0.99))
        inputs = self._some_inputs()
        encoded = model.encode(inputs, self.problem.targets[self.held[: settings.warm_inputs]])
        batches = Minibatches(len(inputs), 500, run.generator)
        features: Tensor | None = None
        steps = settings.warm_first if r == 1 else settings.warm
        for step in run.steps(f"round {r}: warm-up {self.number}", steps, optimiser=optimiser, batches=batches):
            if features is None:  # here, and not before the loop, the network is what it was when the run was saved
                with run.network_precision(inputs.device):
                    features = frozen_features(model, inputs, max(1, settings.orbit_size // 2), seed)
            batch = batches.next()
            terms = sample_bound(
                model,
                OrbitFeatures(features[batch].unsqueeze(1), model.orbit.exact),
                encoded[batch],
                num_data=len(self.held),
                num_f_samples=settings.num_f_samples,
                generator=run.generator,
            )
            optimiser.zero_grad()
            (-terms.per_datum).backward()
            optimiser.step()
            self.natural_step(terms, 1.0 if step == 0 else 0.3, run)
            del terms  # with all that its graph keeps

    def evidence(self, batch: Tensor, run: Run) -> ElboTerms:
        """The bound of everything held out, from a minibatch of it."""
        chosen = self.held[batch]
        inputs, targets = self.problem.inputs[chosen], self.problem.targets[chosen]
        num_data, size, generator = len(self.held), self.settings.orbit_size, run.generator
        with run.network_precision(inputs.device):
            if objective_of(self.model.likelihood) == "unbiased":
                return unbiased_elbo(
                    self.model, inputs, targets, num_data=num_data, orbit_size=size, generator=generator
                )
            return sample_elbo(
                self.model,
                inputs,
                targets,
                num_data=num_data,
                orbit_size=size,
                num_f_samples=self.settings.num_f_samples,
                generator=generator,
            )

    def natural_step(self, terms: ElboTerms, rate: float, run: Run) -> None:
        """Move q(u) along its natural gradient."""
        natural_gradient_step(
            self.model, terms, rate=rate, num_f_samples=self.settings.num_f_samples, generator=run.generator
        )

    def hyper_parameters(self) -> list[nn.Parameter]:
        """Of kernel and likelihood."""
        return [*self.model.head.kernel.parameters(), *self.model.likelihood.parameters()]

    def _some_inputs(self) -> Inputs:
        """As many of those held out as warm-ups and inducing inputs need."""
        return take(self.problem.inputs, self.held[: self.settings.warm_inputs])
