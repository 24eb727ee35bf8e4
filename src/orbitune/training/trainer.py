"""The training loop."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from orbitune.errors import unknown_name
from orbitune.inputs import Inputs
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.objectives import (
    ElboTerms,
    LogLikelihood,
    log_likelihood,
    natural_gradient_step,
    sample_elbo,
    unbiased_elbo,
)
from orbitune.random import seeded
from orbitune.training.minibatches import Minibatches
from orbitune.training.phases import Phase
from orbitune.training.run import Run

LOG_EVERY = 10


def train(model: InvariantGP | OrbitNetwork, inputs: Inputs, targets: Tensor, phase: Phase, run: Run) -> None:
    """Train the groups of a phase on (N, …) inputs and (N, …) targets; everything else stays bit-identical.

    The model must be tracked by the run. Parameters that the user has fixed (``requires_grad_(False)``) stay fixed.
    """
    with only_training(model, phase) as parameters, last_layer_still(model, phase):
        optimiser = adam(parameters, phase) if parameters else None
        batches = Minibatches(len(inputs), phase.batch_size, run.generator)
        items = {"batches": batches} | ({"optimiser": optimiser} if optimiser else {})
        for step in run.steps(phase.name, phase.steps, **items):
            batch = batches.next().to(inputs.device)
            # Dropout draws from torch's global generator.
            with seeded(run.generator), run.network_precision(inputs.device):
                terms = evaluate(model, inputs[batch], targets[batch], len(inputs), phase, run.generator)
            pace = run.pace(step, phase.steps)
            if optimiser:
                for group in optimiser.param_groups:
                    group["lr"] = phase.learning_rate * phase.schedule.factor(pace, phase.steps)
                optimiser.zero_grad()
                terms.loss.backward()
                optimiser.step()
                model.orbit.clamp_()
            if phase.natural_rate and isinstance(model, InvariantGP) and isinstance(terms, ElboTerms):
                rate = phase.natural_rate * phase.natural_schedule.factor(pace, phase.steps)
                natural_gradient_step(
                    model, terms, rate=rate, num_f_samples=phase.num_f_samples, generator=run.generator
                )
            if step % LOG_EVERY == 0 or step == phase.steps - 1:
                run.log(phase=phase.name, step=step, **measurements(terms), ranges=model.orbit.ranges())
            del terms  # or this step's graph, and what was kept for it, would outlast the next step's forward pass


def adam(parameters: list[nn.Parameter], phase: Phase) -> torch.optim.AdamW:
    """Adam with the decoupled weight decay of a phase; without decay, Adam itself."""
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": phase.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=phase.learning_rate, fused=True)


def evaluate(
    model: InvariantGP | OrbitNetwork,
    inputs: Tensor,
    targets: Tensor,
    num_data: int,
    phase: Phase,
    generator: torch.Generator,
) -> ElboTerms | LogLikelihood:
    """The phase's objective on a minibatch."""
    if isinstance(model, OrbitNetwork):
        if phase.objective != "log-likelihood":
            raise unknown_name("objective of a network", phase.objective, ("log-likelihood",))
        return log_likelihood(
            model,
            inputs,
            targets,
            orbit_size=phase.orbit_size,
            label_smoothing=phase.label_smoothing,
            mixup=phase.mixup,
            generator=generator,
        )
    match phase.objective:
        case "sample":
            return sample_elbo(
                model,
                inputs,
                targets,
                num_data=num_data,
                orbit_size=phase.orbit_size,
                num_f_samples=phase.num_f_samples,
                backward_points=phase.backward_points,
                generator=generator,
            )
        case "unbiased":
            return unbiased_elbo(
                model,
                inputs,
                targets,
                num_data=num_data,
                orbit_size=phase.orbit_size,
                backward_points=phase.backward_points,
                generator=generator,
            )
        case _:
            raise unknown_name("objective of an invariant GP", phase.objective, ("sample", "unbiased"))


def measurements(terms: ElboTerms | LogLikelihood) -> dict[str, float]:
    """The terms of an objective, per datum, as numbers."""
    if isinstance(terms, LogLikelihood):
        return {"log_likelihood": terms.per_datum.item()}
    return {
        "elbo": terms.per_datum.item(),
        "data_fit": terms.data_fit.item() / terms.num_data,
        "kl": terms.kl.item() / terms.num_data,
    }


def last_layer_still(model: InvariantGP | OrbitNetwork, phase: Phase) -> AbstractContextManager:
    """Where a phase trains nothing of the GP, its matrices are factored once and not in every step."""
    if not isinstance(model, InvariantGP) or phase.natural_rate:
        return nullcontext()
    moves = any(parameter.requires_grad for parameter in model.head.parameters())
    return nullcontext() if moves else model.head.standing_still()


@contextmanager
def only_training(model: InvariantGP | OrbitNetwork, phase: Phase) -> Generator[list[nn.Parameter]]:
    """Freeze all parameters but those of the phase's groups, and give those.

    A backbone that does not train is in evaluation mode, so that batch statistics do not move either; dropout is for
    the log-likelihood only (the paper disables it under the GP).
    """
    groups = model.parameter_groups()
    for name in phase.groups:
        if name not in groups:
            raise unknown_name("parameter group", name, groups)
    free = {id(p) for p in model.parameters() if p.requires_grad}
    chosen = [p for name in phase.groups for p in groups[name] if id(p) in free]
    model.backbone.train("backbone" in phase.groups)
    if phase.objective != "log-likelihood":
        for module in model.backbone.modules():
            if isinstance(module, nn.modules.dropout._DropoutNd):
                module.eval()
    model.requires_grad_(False)
    for parameter in chosen:
        parameter.requires_grad_(True)
    try:
        yield chosen
    finally:
        for parameter in model.parameters():
            parameter.requires_grad_(id(parameter) in free)
            parameter.grad = None
        model.backbone.eval()
