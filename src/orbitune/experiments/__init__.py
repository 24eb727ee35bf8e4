"""One module per table or figure of the paper, each with ``BUDGETS``,
``run(config, seed, out)`` and ``table(record)``; and one on ranges that we planted ourselves.
"""

from types import ModuleType

from orbitune.experiments import fig1, planted

EXPERIMENTS: dict[str, ModuleType] = {"fig1": fig1, "planted": planted}
