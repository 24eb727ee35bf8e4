"""One module per table or figure of the paper, each with ``BUDGETS`` and ``run(config, seed, out)``."""

from types import ModuleType

from orbitune.experiments import fig1

EXPERIMENTS: dict[str, ModuleType] = {"fig1": fig1}
