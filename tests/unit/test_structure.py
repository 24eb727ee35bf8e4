"""What a step costs: network calls, Cholesky factorisations and the largest kernel matrix, counted."""

import threading
import weakref

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch import nn

import orbitune.gp.orbit_kernel as orbit_kernel
import orbitune.gp.squared_exponential as squared_exponential
from builders import NoiseOrbit, random_head, shallow_model
from orbitune import features, recomputation
from orbitune.learners import CrossFit, Problem, fold
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.model import InvariantGP
from orbitune.objectives import sample_bound, sample_elbo, unbiased_elbo
from orbitune.orbits import AffineOrbit
from orbitune.training import Phase, Run, train, trainer

BOUNDS = {
    "unbiased": (unbiased_elbo, {}, lambda: Gaussian(3)),
    "sample, exact law": (sample_elbo, {"num_orbits": 2}, lambda: Softmax(3)),
    "sample, pathwise": (sample_elbo, {"num_orbits": 2, "pathwise": True}, lambda: Softmax(3)),
}


@pytest.fixture
def inputs(generator):
    return torch.randn(5, 2, generator=generator, dtype=torch.float64)


def targets_for(likelihood):
    return torch.tensor([0, 1, 2, 0, 1]) if isinstance(likelihood, Softmax) else torch.zeros(5, 3, dtype=torch.float64)


@pytest.mark.parametrize("name", BOUNDS)
def test_one_backbone_call_and_one_cholesky_of_kuu_per_elbo(generator, inputs, monkeypatch, name):
    bound, options, make_likelihood = BOUNDS[name]
    model = shallow_model(NoiseOrbit(), make_likelihood(), random_head(generator))
    calls, factored = [], []
    model.backbone.register_forward_hook(lambda module, args, output: calls.append(len(output)))
    cholesky_ex = torch.linalg.cholesky_ex
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda K: factored.append(tuple(K.shape)) or cholesky_ex(K))
    bound(model, inputs, targets_for(model.likelihood), num_data=5, orbit_size=4, generator=generator, **options)
    assert calls == [5 * 4 * options.get("num_orbits", 1)]
    # Kuu (M, M) once, and the precision of q(u) (C, M, M) once.
    assert sorted(factored) == [(3, 6, 6), (6, 6)]


@pytest.mark.parametrize("name", BOUNDS)
def test_computing_in_pieces_changes_neither_value_nor_gradient(generator, inputs, name):
    bound, options, make_likelihood = BOUNDS[name]
    model = shallow_model(NoiseOrbit(), make_likelihood(), random_head(generator))
    results = []
    for max_entries in (2**24, 60, 1):
        model.head.max_kernel_entries = max_entries
        fixed = torch.Generator().manual_seed(3)
        terms = bound(
            model, inputs, targets_for(model.likelihood), num_data=5, orbit_size=8, generator=fixed, **options
        )
        parameters = [p for group in model.parameter_groups().values() for p in group]
        gradients = torch.autograd.grad(terms.elbo, parameters, allow_unused=True)
        results.append([terms.elbo, *(g for g in gradients if g is not None)])
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])


@pytest.mark.parametrize(
    ("base", "module", "function"),
    [(RBFKernel, squared_exponential, "entries"), (MaternKernel, orbit_kernel, "evaluate")],
)
def test_the_largest_kernel_matrix_does_not_grow_with_the_orbit(generator, inputs, monkeypatch, base, module, function):
    head = random_head(generator, kernel=ScaleKernel(base()).double(), max_kernel_entries=500)
    model = shallow_model(NoiseOrbit(), Softmax(3), head)
    compute, sizes = getattr(module, function), []

    def counted(*args):
        K = compute(*args)
        sizes.append(K.numel())
        return K

    monkeypatch.setattr(module, function, counted)
    for orbit_size in (8, 80):
        sample_elbo(
            model, inputs, targets_for(model.likelihood), num_data=5, orbit_size=orbit_size, generator=generator
        ).elbo.backward()
    assert max(sizes) <= 500
    assert len(sizes) > 20


@pytest.mark.parametrize(("backward_points", "expected"), [(None, [20]), (1, [15, 5])])
def test_a_training_step_with_its_natural_gradient_sees_every_point_once_and_factors_each_matrix_once(
    generator, inputs, monkeypatch, backward_points, expected
):
    model = shallow_model(NoiseOrbit(), Softmax(3), random_head(generator))
    calls, factored = [], []
    model.backbone.register_forward_hook(lambda module, args, output: calls.append(len(output)))
    cholesky_ex = torch.linalg.cholesky_ex
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda K: factored.append(tuple(K.shape)) or cholesky_ex(K))
    phase = Phase(
        "GP",
        "sample",
        ("orbit", "kernel"),
        steps=1,
        natural_rate=0.1,
        batch_size=5,
        orbit_size=4,
        backward_points=backward_points,
    )
    run = Run(None)
    run.track("model", model)
    train(model, inputs, targets_for(model.likelihood), phase, run)
    assert calls == expected  # the natural gradient needs no pass of its own
    assert sorted(factored) == [(3, 6, 6), (6, 6)]


def test_activations_kept_for_the_backward_pass_are_bounded_however_large_the_orbit(generator, inputs, monkeypatch):
    hidden = 40 * 50 * 8  # bytes of the hidden layer of a piece of 40 points
    monkeypatch.setattr(features, "MAX_POINTS", 40)
    monkeypatch.setattr(features, "MAX_PIECE_POINTS", 40)
    monkeypatch.setattr(recomputation, "COSTLY", 2)
    monkeypatch.setattr(recomputation, "MAX_PRODUCT_BYTES", 3 * hidden)
    recorded, passes = [], []

    class Recorded(recomputation.Recomputation):
        def __init__(self, backbone):
            super().__init__(backbone)
            passes.append(self)

    monkeypatch.setattr(recomputation, "Recomputation", Recorded)
    monkeypatch.setattr(recomputation, "MAX_KEPT_BYTES", 0)
    model = shallow_model(NoiseOrbit(), Softmax(3), random_head(generator))
    model.backbone = torch.nn.Sequential(torch.nn.Linear(2, 50), torch.nn.Tanh(), torch.nn.Linear(50, 2)).double()
    for orbit_size in (8, 80, 160):
        params = model.orbit.sample_params(5, orbit_size, generator)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: recorded.append(t.nbytes) or t, lambda t: t):
            features.features_of_points(model.orbit, model.backbone, inputs, params)
        if orbit_size == 8:
            assert max(recorded) == hidden  # 40 points: kept as a whole
            recorded.clear()
    assert max(recorded, default=0) < hidden  # outside of pieces nothing is kept, and inside of them products
    assert [3 * hidden <= one.product_bytes < 4 * hidden for one in passes] == [True, True]


@pytest.mark.parametrize("learner", ["phase", "evidence"])
def test_nothing_that_a_step_keeps_outlasts_it(generator, inputs, monkeypatch, learner):
    kept = []

    def remembering(bound):
        def compute(*args, **options):
            assert all(terms() is None for terms in kept)  # or two steps' activations would be alive at once
            terms = bound(*args, **options)
            kept.append(weakref.ref(terms))
            return terms

        return compute

    if learner == "phase":
        monkeypatch.setattr(trainer, "sample_elbo", remembering(sample_elbo))
        model = shallow_model(NoiseOrbit(), Softmax(3), random_head(generator))
        phase = Phase("GP", "sample", ("kernel",), 3, natural_rate=0.1, batch_size=5, orbit_size=4)
        train(model, inputs, targets_for(model.likelihood), phase, Run(None))
    else:
        monkeypatch.setattr(fold, "sample_elbo", remembering(sample_elbo))
        monkeypatch.setattr(fold, "sample_bound", remembering(sample_bound))
        images, labels = torch.rand(12, 1, 8, 8, generator=generator), torch.arange(12) % 3
        problem = Problem(
            images, labels, AffineOrbit(), Softmax(3), lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        )
        settings = CrossFit(folds=2, max_rounds=1, first_epochs=0.1, steps=2, warm_first=2, num_inducing=4)
        settings.learn_orbit(AffineOrbit(), problem, Run(None))
    assert len(kept) == (3 if learner == "phase" else 2 * 2 + 2 * 2)  # warm-up and evidence of either fold


def test_a_prediction_factors_each_matrix_once_however_many_inputs(generator, inputs, monkeypatch):
    model = shallow_model(NoiseOrbit(), Softmax(3), random_head(generator))
    factored, cholesky_ex = [], torch.linalg.cholesky_ex
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda K: factored.append(tuple(K.shape)) or cholesky_ex(K))
    model.predict(inputs.repeat(3, 1), orbit_size=2**11, num_f_samples=2, generator=generator)  # an input per chunk
    assert sorted(factored) == [(3, 6, 6), (6, 6)]


def test_network_steps_factor_each_matrix_of_the_last_layer_once_and_gp_steps_see_it_move(
    generator, inputs, monkeypatch
):
    model = InvariantGP(NoiseOrbit(), nn.Linear(2, 2).double(), random_head(generator), Softmax(3))
    factored, cholesky_ex = [], torch.linalg.cholesky_ex
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda K: factored.append(tuple(K.shape)) or cholesky_ex(K))
    run = Run(None)
    run.track("model", model)
    for name, groups, times in (
        ("network", ("backbone",), 1),
        ("GP", ("kernel",), 3),
        ("network again", ("backbone",), 1),
    ):
        factored.clear()
        train(model, inputs, targets_for(model.likelihood), Phase(name, "sample", groups, 3, orbit_size=4), run)
        assert sorted(factored) == [(3, 6, 6)] * times + [(6, 6)] * times


def test_a_last_layer_that_stands_still_gives_the_same_bound_and_gradients_and_then_moves_again(generator, inputs):
    model = InvariantGP(NoiseOrbit(), nn.Linear(2, 2).double(), random_head(generator), Softmax(3))
    model.head.requires_grad_(False)

    def bound_and_gradient():
        seeded = torch.Generator().manual_seed(1)
        bound = sample_elbo(model, inputs, targets_for(model.likelihood), num_data=5, orbit_size=4, generator=seeded)
        return bound.per_datum, torch.autograd.grad(bound.per_datum, model.backbone.weight)[0]

    expected = bound_and_gradient()
    with model.head.standing_still():
        first, second = bound_and_gradient(), bound_and_gradient()
    for found in (first, second):
        torch.testing.assert_close(found, expected)
    with torch.no_grad():
        model.head.Z.mul_(0.5)
    assert bound_and_gradient()[0] != expected[0]


def test_threads_that_predict_at_the_same_time_leave_no_factors_behind(generator, inputs):
    head = random_head(generator)
    first, second = head.standing_still(), head.standing_still()
    entered, left = threading.Event(), threading.Event()

    def other():
        with second:
            head.factor_Kuu()
            entered.set()
            left.wait()

    thread = threading.Thread(target=other)
    with first:
        thread.start()
        entered.wait()
    left.set()
    thread.join()
    before = head.factor_Kuu().L.clone()
    with torch.no_grad():
        head.Z.mul_(0.5)
    assert head.factor_Kuu().L.requires_grad and not torch.equal(head.factor_Kuu().L, before)
