"""What the machine can do."""

import platform
import subprocess
import sys

import pytest
import torch

import orbitune
from orbitune.backbones import MLP
from orbitune.learners import CrossFit, FixedRanges, PlainNetwork, Problem
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.machine import has_bfloat16_units
from orbitune.network import build_network
from orbitune.objectives import log_likelihood
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.training import Run

# In a process of its own: the setting is for the whole process and cannot be taken back.
PROGRAM = """
import resource, torch
from orbitune.machine import keep_freed_memory
if {keep}:
    assert keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(12_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_memory_that_is_freed_and_allocated_again_is_not_fetched_from_the_kernel_again():
    def faults(keep):
        program = PROGRAM.format(keep=keep)
        return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)

    assert faults(keep=True) < 0.1 * faults(keep=False)


def test_this_processor_has_bfloat16_units_or_not_and_other_devices_are_not_guessed():
    assert has_bfloat16_units(torch.device("cpu")) in (True, False)
    assert not has_bfloat16_units(torch.device("meta"))


@pytest.mark.parametrize("likelihood", [Softmax(3), Gaussian(3, labels=True)], ids=["softmax", "gaussian"])
def test_networks_run_in_bfloat16_where_it_is_fast_and_the_last_layer_does_not(monkeypatch, generator, likelihood):
    monkeypatch.setattr(orbitune.training.run, "has_bfloat16_units", lambda device: True)
    inputs = torch.rand(40, 1, 8, 8, generator=generator)
    targets = torch.arange(40) % 3
    seen = []

    def make_backbone():
        backbone = MLP(64, (16,), 5)
        backbone.register_forward_hook(lambda module, args, output: seen.append(output.dtype))
        return backbone

    learner = CrossFit(
        max_rounds=1,
        first_epochs=0.5,
        steps=2,
        warm_first=2,
        num_inducing=8,
        final=FixedRanges(PlainNetwork(epochs=0.5), head_steps=2, num_inducing=8),
    )
    problem = Problem(inputs, targets, AffineOrbit(learn="rotation"), likelihood, make_backbone)
    model = learner.learn(problem, Run(None)).model
    assert torch.bfloat16 in seen
    assert all(p.dtype == torch.float32 for p in model.backbone.parameters())
    assert model.head.Z.dtype == torch.float64
    assert model.predict(inputs, 4, generator=generator).isfinite().all()


def test_a_single_precision_last_layer_is_left_alone_by_autocast(generator):
    inputs = torch.rand(10, 4, generator=generator)
    model = orbitune.build_model(
        IdentityOrbit(), MLP(4, (8,), 5), Softmax(2), inputs, num_inducing=4, dtype=torch.float32, generator=generator
    )
    with torch.autocast("cpu", torch.bfloat16):
        terms = orbitune.sample_elbo(
            model, inputs, torch.arange(10) % 2, num_data=10, orbit_size=1, generator=generator
        )
    assert terms.per_datum.dtype == torch.float32 and terms.per_datum.isfinite()


def test_a_network_under_autocast_has_its_likelihood_in_single_precision(generator):
    inputs = torch.rand(10, 4, generator=generator)
    network = build_network(IdentityOrbit(), lambda: MLP(4, (8,), 5), Softmax(2), inputs, generator)
    with torch.autocast("cpu", torch.bfloat16):
        assert network(inputs).dtype == torch.float32
        assert log_likelihood(network, inputs, torch.arange(10) % 2).per_datum.dtype == torch.float32
