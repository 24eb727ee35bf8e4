"""Paper, Fig. 1: on data from an even function, the marginal likelihood prefers the sign-invariant GP.

The plain GP fits the training points better; the invariant one predicts better, and its evidence says so.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from matplotlib.figure import Figure
from rich.table import Table
from torch import Tensor

from orbitune.backbones import Identity
from orbitune.experiments.record import write_record
from orbitune.gp import GPHead, JitterPolicy, NaturalPosterior
from orbitune.likelihoods import Gaussian
from orbitune.model import InvariantGP
from orbitune.objectives import collapsed_elbo, natural_gradient_step, sample_elbo
from orbitune.orbits import IdentityOrbit, Orbit, SignFlip

PAPER = {
    "plain": {"train_mse": 0.047, "test_mse": 0.572, "log_marginal_likelihood": -13.16},
    "sign-invariant": {"train_mse": 0.100, "test_mse": 0.235, "log_marginal_likelihood": -12.2},
}


@dataclass(frozen=True)
class Fig1Config:
    """The data and how carefully hyper-parameters are optimised."""

    num_datasets: int  # how often the comparison is repeated; the figure shows the first
    num_train: int = 20
    num_test: int = 200
    half_width: float = 3.0  # inputs are uniform on (−half_width, half_width)
    noise_variance: float = 0.05
    initial_lengthscales: tuple[float, ...] = (0.5, 1.5)  # restarts: the evidence has several optima
    num_steps: int = 200
    learning_rate: float = 0.05


BUDGETS = {
    "smoke": Fig1Config(num_datasets=2, num_steps=100),
    "laptop": Fig1Config(num_datasets=20),
    "paper": Fig1Config(num_datasets=100),
}


@dataclass(frozen=True)
class Fit:
    """A fitted GP with its scores."""

    model: InvariantGP
    train_mse: float
    test_mse: float
    log_marginal_likelihood: float
    hyper_parameters: dict[str, float]

    def scores(self) -> dict[str, Any]:
        """The numbers under the paper's figure."""
        return {
            "train_mse": self.train_mse,
            "test_mse": self.test_mse,
            "log_marginal_likelihood": self.log_marginal_likelihood,
            **self.hyper_parameters,
        }


def even_function(x: Tensor) -> Tensor:
    """The truth: a smooth function with f(x) = f(−x)."""
    return torch.cos(2 * x) + 0.15 * x.square() - 1


def draw_data(config: Fig1Config, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Noisy values of the even function at random inputs: (N, 1) train inputs and targets, then test."""
    noise = math.sqrt(config.noise_variance)
    data: list[Tensor] = []
    for num in (config.num_train, config.num_test):
        x = config.half_width * (2 * torch.rand(num, 1, generator=generator, dtype=torch.float64) - 1)
        data += [x, even_function(x) + noise * torch.randn(num, 1, generator=generator, dtype=torch.float64)]
    return data[0], data[1], data[2], data[3]


def fit_gp(orbit: Orbit, data: tuple[Tensor, Tensor, Tensor, Tensor], config: Fig1Config) -> Fit:
    """Maximise the log marginal likelihood over lengthscale, variance and noise.

    With an inducing input at every point of every training orbit, ±x_n, the collapsed bound is the log marginal
    likelihood itself (up to jitter).
    """
    x, y, x_test, y_test = data
    candidates = [_optimise(orbit, x, y, lengthscale, config) for lengthscale in config.initial_lengthscales]
    model, evidence = max(candidates, key=lambda candidate: candidate[1])
    natural_gradient_step(model, sample_elbo(model, x, y, num_data=len(x), orbit_size=1), rate=1.0)
    train_mse, test_mse = (
        (model.predict(inputs, orbit_size=1) - targets).square().mean().item()
        for inputs, targets in ((x, y), (x_test, y_test))
    )
    kernel: Any = model.head.kernel
    likelihood: Any = model.likelihood
    hyper_parameters = {
        "lengthscale": kernel.base_kernel.lengthscale.item(),
        "kernel_variance": kernel.outputscale.item(),
        "noise_variance": likelihood.noise_variance.item(),
    }
    return Fit(model, train_mse, test_mse, evidence, hyper_parameters)


def _optimise(orbit: Orbit, x: Tensor, y: Tensor, lengthscale: float, config: Fig1Config) -> tuple[InvariantGP, float]:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = torch.tensor(lengthscale)
    Z = torch.cat((x, -x))
    posterior = NaturalPosterior(len(Z), 1, shared_covariance=True)
    head = GPHead(kernel, Z, posterior, jitter=JitterPolicy(start=1e-8))
    likelihood = Gaussian(noise_variance=0.1).double()
    model = InvariantGP(orbit, Identity(), head, likelihood)
    optimiser = torch.optim.Adam([*kernel.parameters(), *likelihood.parameters()], lr=config.learning_rate)

    def evidence() -> Tensor:
        return collapsed_elbo(model, x, y, orbit_size=1)

    for _ in range(config.num_steps):
        optimiser.zero_grad()
        (-evidence()).backward()
        optimiser.step()
    return model, evidence().item()


ORDERINGS = {
    "plain_better_train_mse": lambda plain, invariant: plain["train_mse"] < invariant["train_mse"],
    "invariant_better_test_mse": lambda plain, invariant: invariant["test_mse"] < plain["test_mse"],
    "invariant_higher_evidence": lambda plain, invariant: (
        invariant["log_marginal_likelihood"] > plain["log_marginal_likelihood"]
    ),
}


def run(config: Fig1Config, seed: int, out: Path) -> dict[str, Any]:
    """Compare both models on ``num_datasets`` draws of the data; writes fig1.json and fig1.png.

    ``models`` in the result are averages over the datasets; the figure shows the first of them.
    """
    torch.set_num_threads(1)  # matrices of 40 × 40: more threads would only wait for each other
    generator = torch.Generator().manual_seed(seed)
    datasets: list[dict[str, Any]] = []
    for index in range(config.num_datasets):
        data = draw_data(config, generator)
        fits = {"plain": fit_gp(IdentityOrbit(), data, config), "sign-invariant": fit_gp(SignFlip(), data, config)}
        scores = {name: fit.scores() for name, fit in fits.items()}
        orderings = {name: holds(scores["plain"], scores["sign-invariant"]) for name, holds in ORDERINGS.items()}
        datasets.append({"models": scores, "orderings": orderings})
        if index == 0:
            out.mkdir(parents=True, exist_ok=True)
            plot(fits, data, config).savefig(out / "fig1.png", dpi=120)
    averages = {name: _mean_over([dataset["models"][name] for dataset in datasets]) for name in PAPER}
    fractions = _mean_over([dataset["orderings"] for dataset in datasets])
    result = {
        "models": averages,
        "paper": PAPER,
        "orderings": {name: holds(averages["plain"], averages["sign-invariant"]) for name, holds in ORDERINGS.items()},
        "fraction_of_datasets_with_ordering": fractions,
        "datasets": datasets,
    }
    return write_record(out / "fig1.json", "fig1", config, seed, result)


def table(record: dict[str, Any]) -> Table:
    """Our scores beside the paper's, and how often the orderings hold."""
    metrics = list(PAPER["plain"])
    fractions = record["fraction_of_datasets_with_ordering"].items()
    caption = ", ".join(f"{name.replace('_', ' ')}: {fraction:.0%} of data sets" for name, fraction in fractions)
    shown = Table("model", *(metric.replace("_", " ") for metric in metrics), title="fig1", caption=caption)
    for model, paper in PAPER.items():
        ours = record["models"][model]
        shown.add_row(model, *(f"{ours[metric]:.3f} (paper {paper[metric]:g})" for metric in metrics))
    return shown


def _mean_over(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}


def plot(fits: dict[str, Fit], data: tuple[Tensor, Tensor, Tensor, Tensor], config: Fig1Config) -> Figure:
    """Posterior mean and two standard deviations of both models, side by side."""
    x, y, x_test, y_test = data
    grid = torch.linspace(-config.half_width, config.half_width, 241, dtype=torch.float64).unsqueeze(1)
    with matplotlib.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.subplots(1, 2, sharex=True, sharey=True)
        for axis, (name, fit) in zip(axes, fits.items(), strict=True):
            with torch.no_grad():
                law = fit.model.marginal(grid, orbit_size=1)
            at, mean, std = grid[:, 0].numpy(), law.mean[:, 0].numpy(), law.var[:, 0].sqrt().numpy()
            axis.fill_between(at, mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2, lw=0, label="±2 std of f")
            axis.plot(at, mean, color="C0", label="posterior mean")
            axis.plot(at, even_function(grid[:, 0]).numpy(), color="0.4", ls=":", label="truth")
            axis.plot(x_test[:, 0].numpy(), y_test[:, 0].numpy(), ".", color="0.75", ms=3, zorder=0, label="test")
            axis.plot(x[:, 0].numpy(), y[:, 0].numpy(), "ko", ms=4, label="train")
            axis.set_title(
                f"{name} GP\ntrain MSE {fit.train_mse:.3f}, test MSE {fit.test_mse:.3f}\n"
                f"log marginal likelihood {fit.log_marginal_likelihood:.2f}",
                fontsize=9,
            )
            axis.set_xlabel("x")
        axes[0].set_ylabel("y")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure
