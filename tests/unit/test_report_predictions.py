"""What a fit leaves for the report, and what-if sweeps."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from builders import random_head
from orbitune.backbones import Identity
from orbitune.data import from_arrays
from orbitune.errors import CheckpointError
from orbitune.gp import OrbitMarginal
from orbitune.likelihoods import Bernoulli, Gaussian, Softmax
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.report.predictions import collect_predictions, read_predictions, write_predictions
from orbitune.report.whatif import most_changed, sweep
from orbitune.training.evaluation import accuracy, class_probabilities, without_orbit


@pytest.fixture
def dataset():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(30, 10, 8, 3), dtype=np.uint8)
    return from_arrays(images, np.arange(30) % 3, images[:20], np.arange(20) % 3, name="noise")


def probabilities(num, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(3), size=num))


def test_predictions_come_back_as_they_were_written(dataset, tmp_path):
    written = collect_predictions(dataset, probabilities(20), probabilities(20, 1), None)
    write_predictions(tmp_path, written)
    read = read_predictions(tmp_path)
    assert read.plain is None
    for name in ("labels", "invariant", "single", "uncertain", "uncertain_images", "example_images", "example_labels"):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
    assert [path.name for path in tmp_path.iterdir()] == ["predictions.npz"]


def test_the_least_sure_come_first_and_examples_are_of_all_classes(dataset):
    p = probabilities(20)
    p[7], p[11] = torch.full((3,), 1 / 3), torch.tensor([0.35, 0.33, 0.32])
    found = collect_predictions(dataset, p, p, p)
    assert found.uncertain[:2].tolist() == [7, 11] and len(found.uncertain) == 12
    np.testing.assert_array_equal(found.uncertain_images[0], dataset.x_test[7].numpy())
    assert found.example_labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_large_images_are_kept_as_thumbnails(dataset):
    large = dataset.resized(400, 320)
    found = collect_predictions(large, probabilities(20), probabilities(20), None)
    assert found.uncertain_images.shape == (12, 3, 96, 77)
    assert found.example_images.shape == (6, 3, 400, 320)  # the model must be able to read these


def test_without_a_test_set_there_are_examples_to_learn_from_only(dataset, tmp_path):
    write_predictions(tmp_path, collect_predictions(replace(dataset, x_test=None, y_test=None), None, None, None))
    read = read_predictions(tmp_path)
    assert read.num_test == 0 and len(read.example_images) == 6


def test_a_missing_file_is_none_and_a_damaged_one_an_error(tmp_path):
    assert read_predictions(tmp_path) is None
    (tmp_path / "predictions.npz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(CheckpointError, match=r"damaged.*orbitune report RUN DATA"):
        read_predictions(tmp_path)
    np.savez(tmp_path / "predictions.npz", labels=np.zeros(3))
    with pytest.raises(CheckpointError, match="damaged"):
        read_predictions(tmp_path)


def shallow(generator, orbit, likelihood, num_outputs):
    head = random_head(generator, dim=64, num_outputs=num_outputs, shared_covariance=likelihood.shared_curvature)
    return InvariantGP(orbit, Identity(), head, likelihood.double())


@pytest.fixture
def image(generator):
    return torch.rand(1, 8, 8, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("likelihood", "outputs"), [(Softmax(3), 3), (Gaussian(3, labels=True), 3), (Bernoulli(), 1)], ids=lambda x: str(x)
)
def test_a_sweep_goes_beyond_the_range_and_its_band_holds_the_mean(likelihood, outputs, generator, image):
    orbit = AffineOrbit({"rotation": (-0.5, 0.5), "translate_x": (-0.7, 0.1)}, learn=()).double()
    model = shallow(generator, orbit, likelihood, outputs)
    for name, reach in (("rotation", math.pi), ("translate_x", 1.05), ("shear_x", 1.0)):
        result = sweep(model, image, 1, name, 4, generator)
        assert result.values[[0, -1]].tolist() == pytest.approx([-reach, reach])
        assert result.truth.label == 1 != result.rival.label
        for curve in (result.truth, result.rival):
            assert ((curve.low >= 0) & (curve.low <= curve.mean + 1e-9) & (curve.high <= 1)).all()
            assert (curve.mean <= curve.high + 1e-9).all()
        value, untouched = result.pictures[len(result.pictures) // 2]
        assert value == 0 and torch.equal(untouched, image)


def test_a_model_that_only_sees_brightness_does_not_care_about_quarter_turns(generator, image):
    class Brightness(torch.nn.Module):
        def forward(self, x):
            return x.flatten(1).sum(1, keepdim=True).expand(-1, 2) / 30

    model = InvariantGP(AffineOrbit(learn=()).double(), Brightness(), random_head(generator), Softmax(3).double())
    result = sweep(model, image, 0, "rotation", 1, generator)
    quarter = [0, 9, 18, 27, 36]  # −180°, −90°, …
    torch.testing.assert_close(result.truth.mean[quarter], result.truth.mean[18].expand(5))


def test_a_network_has_a_curve_but_no_band(generator, image):
    network = OrbitNetwork(
        AffineOrbit(learn=()).double(), Identity(), torch.nn.Linear(64, 3).double(), Softmax(3).double()
    )
    result = sweep(network, image, 2, "rotation", 2, generator)
    assert result.truth.low is None and result.truth.mean.shape == result.values.shape


def test_the_example_with_most_to_see_is_chosen(generator):
    flat = torch.full((1, 8, 8), 0.5)
    edge = flat.clone()
    edge[:, :, 4:] = 1.0
    assert most_changed(AffineOrbit({"translate_x": (-0.1, 0.1)}, learn=()), torch.stack((flat, edge)), generator) == 1


def test_without_orbit_is_the_same_model_at_the_image_as_it_is(generator, image):
    model = shallow(generator, AffineOrbit({"rotation": (-3.0, 3.0)}, learn=()).double(), Softmax(3), 3)
    single = without_orbit(model)
    assert isinstance(single.orbit, IdentityOrbit) and single.head is model.head
    fixed = AffineOrbit(learn=()).double()
    at_zero = InvariantGP(fixed, model.backbone, model.head, model.likelihood)
    law, same = single.marginal(image[None], 1), at_zero.marginal(image[None], 1)
    torch.testing.assert_close((law.mean, law.var), (same.mean, same.var))


def test_two_classes_from_one_output_are_counted_right(generator):
    readout = torch.nn.Linear(64, 1)
    network = OrbitNetwork(IdentityOrbit(), Identity(), readout, Bernoulli())
    images = torch.randn(50, 1, 8, 8, generator=generator)
    labels = (readout(images.flatten(1))[:, 0] > 0).long()
    assert 5 < labels.sum() < 45
    assert accuracy(network, images, labels, 1, generator) == 1
    p = class_probabilities(network, images, 1, generator)
    torch.testing.assert_close(p.sum(1), torch.ones(50))


def test_one_hot_regression_gives_probabilities_with_and_without_a_gp(generator):
    likelihood = Gaussian(3, labels=True).double()
    f = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    p = likelihood.conditional_mean(f)
    torch.testing.assert_close(p.sum(1), torch.ones(5, dtype=torch.float64))
    codes = torch.eye(3, dtype=torch.float64)
    density = torch.stack([likelihood.log_prob(f, code.expand(5, 3)) for code in codes], dim=1)
    torch.testing.assert_close(p, density.softmax(1))
    certain = OrbitMarginal(f, torch.zeros_like(f), torch.zeros(5, 4, dtype=torch.float64))
    torch.testing.assert_close(p, likelihood.predictive_mean(certain))
