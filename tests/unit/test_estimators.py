"""The scikit-learn face: images in every layout, labels of every kind, and what users build around it."""

import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from torch import nn

from orbitune import InvariantClassifier, InvariantRegressor
from orbitune.errors import InputError
from orbitune.estimators.inputs import Rescale
from orbitune.learners import FixedRanges, PlainNetwork
from orbitune.likelihoods import Bernoulli, Poisson, Softmax
from orbitune.orbits import AffineOrbit, SignFlip

QUICK = FixedRanges(network=PlainNetwork(epochs=1.0), head_steps=20, num_inducing=20, orbit_size=2)


def classifier(**parameters):
    return InvariantClassifier(**{"learner": QUICK, "backbone": "mlp", "random_state": 0} | parameters)


def regressor(**parameters):
    return InvariantRegressor(**{"learner": QUICK, "backbone": "mlp", "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def digits():
    """40 zeros and ones of 8×8 pixels between 0 and 16."""
    images, labels = load_digits(n_class=2, return_X_y=True)
    return images[:40].reshape(-1, 8, 8), labels[:40]


@pytest.fixture(scope="module")
def fitted(digits):
    return classifier().fit(*digits)


# ---------------------------------------------------------------------------------------------------------- inputs


def test_images_of_every_layout_and_type_give_the_same_model(digits, fitted):
    images, labels = digits
    expected = fitted.predict_proba(images)
    assert fitted.score(images, labels) > 0.9
    for X, parameters in [
        (images[..., None], {}),
        (images[:, None], {}),
        (images.reshape(40, 64), {"image_shape": (8, 8)}),
        (torch.tensor(images), {}),
        (images.astype(np.uint8), {}),
        (images.tolist(), {}),
    ]:
        np.testing.assert_allclose(classifier(**parameters).fit(X, labels).predict_proba(X), expected, atol=1e-6)


def test_flat_images_may_be_predicted_for_a_model_of_images(digits, fitted):
    images, _ = digits
    np.testing.assert_array_equal(fitted.predict_proba(images.reshape(40, 64)), fitted.predict_proba(images))
    assert fitted.n_features_in_ == 64 and fitted.input_shape_ == (8, 8)


def test_where_the_channels_are_is_found_or_told(digits):
    images, labels = digits
    colours = np.stack([images, images / 2, 16 - images], axis=-1)  # (n, 8, 8, 3)
    last = classifier().fit(colours, labels)
    first = classifier().fit(np.moveaxis(colours, -1, 1), labels)
    flat = classifier(image_shape=(8, 8, 3)).fit(colours.reshape(40, -1), labels)
    expected = last.predict_proba(colours)
    np.testing.assert_allclose(first.predict_proba(np.moveaxis(colours, -1, 1)), expected)
    np.testing.assert_allclose(flat.predict_proba(colours.reshape(40, -1)), expected)
    with pytest.raises(InputError, match="layout='NCHW'"):
        classifier().fit(colours[:, :3], labels)
    assert classifier(layout="NHWC").fit(colours[:, :3], labels).model_.backbone[1][1].in_features == 3 * 8 * 3


def test_the_scale_of_pixels_does_not_matter_and_zero_stays_zero(digits, fitted):
    images, labels = digits
    bright = classifier().fit(images * 255 / 16, labels).predict_proba(images * 255 / 16)
    np.testing.assert_allclose(bright, fitted.predict_proba(images), atol=1e-4)
    rescale = Rescale(torch.tensor(images)[:, None])
    assert rescale(torch.zeros(1)) == 0 and rescale(torch.tensor(images)).max() == 1


def test_vectors_are_standardised_and_constant_features_ignored(generator):
    vectors = torch.randn(50, 3, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 100.0, 0.0]) + 7
    scaled = Rescale(vectors)(vectors)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(scaled.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))


def test_square_vectors_are_vectors_with_a_hint(digits, caplog):
    images, labels = digits
    model = classifier().fit(images.reshape(40, 64), labels)
    assert model.orbit_ == {} and model.input_shape_ is None
    assert "image_shape=(8, 8)" in caplog.text


# ------------------------------------------------------------------------------------------------- orbits and parts


def test_the_learned_ranges_are_a_mapping_and_the_users_orbit_is_left_alone(digits):
    orbit = AffineOrbit(learn=["rotation"], start=0.2)
    before = orbit.ranges()
    model = classifier(orbit=orbit, learner="crossfit", budget="smoke").fit(*digits)
    assert orbit.ranges() == before
    assert model.orbit_.keys() == before.keys() and model.orbit_["rotation"] != before["rotation"]
    assert model.orbit_["shear_x"] == (0, 0)
    assert model.n_iter_ > 10 and isinstance(model.elbo_, float)
    assert {"phase", "elbo", "ranges", "seconds"} <= model.history_[-1].keys()


def test_names_choose_affine_parameters(digits):
    orbit = classifier(orbit=["rotation", "shear_y"]).fit(*digits).orbit_
    assert {name for name, (low, high) in orbit.items() if high > low} == {"rotation", "shear_y"}


def test_an_orbit_of_vectors_acts_in_the_users_units(generator):
    """Even functions of x, although x is far from centred: standardised first, the sign would mean something else."""
    x = torch.linspace(1, 3, 30).numpy()[:, None]
    model = regressor(orbit=SignFlip(), backbone=None).fit(x, np.sin(3 * x[:, 0]))
    np.testing.assert_allclose(model.predict(-x), model.predict(x))
    assert model.score(-x, np.sin(3 * x[:, 0])) > 0.9


def small_network():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4))


def test_a_network_of_ones_own_sees_inputs_as_they_are(digits):
    images, labels = digits
    module = small_network()
    largest = []
    module.register_forward_pre_hook(lambda m, args: largest.append(args[0].max().item()))
    classifier(backbone=module, orbit=[]).fit(images, labels)
    assert max(largest) == 16
    assert classifier(backbone=small_network).fit(images, labels).model_.head.Z.shape[1] == 4


@pytest.mark.parametrize("likelihood", ["softmax", "gaussian", "bernoulli", Softmax(2), Bernoulli()], ids=str)
@pytest.mark.parametrize("learner", [QUICK, PlainNetwork(epochs=30.0)], ids=["gp", "network"])
def test_probabilities_are_probabilities(digits, likelihood, learner):
    images, labels = digits
    model = classifier(likelihood=likelihood, learner=learner).fit(images, labels)
    probabilities = model.predict_proba(images)
    assert probabilities.shape == (40, 2) and (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.score(images, labels) > 0.9


# ---------------------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize("names", [["no", "yes"], [7, -3], [True, False], [0.0, 1.0]], ids=str)
def test_labels_of_any_type_come_back(digits, fitted, names):
    images, labels = digits
    named = np.array(names)[labels]
    model = classifier().fit(images, named)
    assert list(model.classes_) == sorted(names)
    assert set(model.predict(images)) <= set(names) and (model.predict(images) == named).mean() > 0.9


def test_targets_in_other_units_give_the_same_predictions_in_those_units(digits):
    images, labels = digits
    y = labels + np.linspace(0, 1, 40)
    plain, other = regressor().fit(images, y), regressor().fit(images, 100 + 50 * y)
    mean, std = plain.predict(images, return_std=True)
    other_mean, other_std = other.predict(images, return_std=True)
    np.testing.assert_allclose(other_mean, 100 + 50 * mean, rtol=1e-3)
    np.testing.assert_allclose(other_std, 50 * std, rtol=1e-3)
    assert other.elbo_ == pytest.approx(plain.elbo_ - np.log(50), abs=1e-3)
    assert plain.score(images, y) > 0.5 and (std > 0).all()


def test_several_targets_keep_their_shape(digits):
    images, labels = digits
    for y in (np.stack([labels, 1 - labels, labels * 3], axis=1), labels[:, None], labels):
        model = regressor().fit(images, y)
        mean, std = model.predict(images, return_std=True)
        assert mean.shape == std.shape == y.shape == model.predict(images).shape


@pytest.mark.parametrize("likelihood", ["poisson", Poisson()], ids=str)
def test_counts(digits, likelihood):
    images, labels = digits
    model = regressor(likelihood=likelihood).fit(images, labels * 5)
    mean, std = model.predict(images, return_std=True)
    assert (mean > 0).all() and (std**2 > mean).all()  # overdispersed: Poisson's own variance, and that of the rate
    assert mean[labels == 1].mean() > mean[labels == 0].mean() + 1


# ------------------------------------------------------------------------------------------------------ predictions


def test_a_prediction_does_not_depend_on_its_neighbours(digits, fitted):
    images, _ = digits
    together = fitted.predict_proba(images)
    np.testing.assert_array_equal(fitted.predict_proba(images), together)
    np.testing.assert_allclose(fitted.predict_proba(images[::-1])[::-1], together, atol=1e-6)
    np.testing.assert_allclose(np.vstack([fitted.predict_proba(x[None]) for x in images]), together, atol=1e-6)
    assert fitted.model_.orbit.ranges()["rotation"][1] > 0  # there was something to draw


def test_a_fit_leaves_every_global_generator_alone(digits):
    states = lambda: [*torch.get_rng_state().tolist(), *np.random.get_state()[1]]  # noqa: E731, NPY002
    before = states()
    classifier().fit(*digits).predict(digits[0])
    assert states() == before


def test_the_seed_decides(digits, fitted):
    images, labels = digits
    expected = fitted.predict_proba(images)
    assert np.array_equal(classifier().fit(images, labels).predict_proba(images), expected)
    same = classifier(random_state=np.random.RandomState(0)).fit(images, labels)
    assert np.array_equal(same.predict_proba(images), expected)
    assert not np.array_equal(classifier(random_state=1).fit(images, labels).predict_proba(images), expected)


# ----------------------------------------------------------------------------------------- what users build around it


def test_pipelines_searches_clones_and_pickles(digits):
    images, labels = digits
    pipeline = make_pipeline(MinMaxScaler(), classifier(image_shape=(8, 8)))
    grid = {"invariantclassifier__orbit": [["rotation"], None], "invariantclassifier__predict_orbit_size": [1]}
    search = GridSearchCV(clone(pipeline), grid, cv=2, error_score="raise").fit(images.reshape(40, 64), labels)
    assert search.best_score_ > 0.8
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(
        again.predict_proba(images.reshape(40, 64)), search.predict_proba(images.reshape(40, 64))
    )


def test_the_estimators_are_not_imported_before_they_are_needed():
    script = "import orbitune, sys; assert 'orbitune.estimators' not in sys.modules; orbitune.InvariantRegressor()"
    subprocess.run([sys.executable, "-c", script], check=True)


class Impatient(nn.Module):
    """A user who presses Ctrl-C at the fifth step, once."""

    calls = 0

    def __init__(self):
        super().__init__()
        self.network = small_network()

    def forward(self, images):
        Impatient.calls += 1
        if Impatient.calls == 5:
            signal.raise_signal(signal.SIGINT)
        return self.network(images)


def test_an_interrupted_fit_goes_on_in_its_directory_and_a_finished_one_is_read_back(digits, tmp_path):
    images, labels = digits
    model = classifier(backbone=Impatient, run_dir=tmp_path, orbit=["rotation"])
    Impatient.calls = 100
    expected = clone(model).set_params(run_dir=None).fit(images, labels)
    Impatient.calls = 0
    with pytest.raises(KeyboardInterrupt):  # which no search takes for a failed fit
        model.fit(images, labels)
    model.fit(images, labels)
    np.testing.assert_array_equal(model.predict_proba(images), expected.predict_proba(images))
    assert model.n_iter_ == expected.n_iter_ and len(model.history_) == len(expected.history_)
    assert len(list(tmp_path.iterdir())) == 1
    steps = Impatient.calls
    read_back = clone(model).fit(images, labels)
    assert Impatient.calls - steps < 5  # building the network and choosing the inducing inputs, no training
    np.testing.assert_array_equal(read_back.predict_proba(images), expected.predict_proba(images))
    clone(model).fit(images[1:], labels[1:])
    assert len(list(tmp_path.iterdir())) == 2


# ----------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"orbit": ["rotaton"]}, "rotation"),
        ({"orbit": 3}, "names of affine parameters"),
        ({"backbone": "vgg"}, "mnist-cnn"),
        ({"backbone": lambda: "network"}, "made a str"),
        ({"backbone": "pcam"}, "too small"),
        ({"likelihood": "student"}, "softmax"),
        ({"likelihood": Softmax(3)}, "y has 2 classes: expected 2 or 1"),
        ({"learner": "magic"}, "crossfit"),
        ({"learner": "crossfit", "budget": "weekend"}, "laptop"),
        ({"layout": "CHW"}, "NHWC"),
        ({"image_shape": (4, 16)}, r"X holds images of shape \(8, 8\)"),
        ({"predict_orbit_size": 0}, "whole number"),
        ({"time_limit": -1}, "seconds"),
        ({"kernel": "rbf"}, "GPyTorch kernel"),
        ({"backbone": lambda: small_network(), "run_dir": "never made"}, "pickled"),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_a_mistake_in_a_parameter_gets_a_sentence(digits, parameters, message):
    with pytest.raises(InputError, match=message):
        classifier(**parameters).fit(*digits)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"image_shape": (3, 3)}, "9 features per image, but X has 4 features"),
        ({"image_shape": 4}, "image_shape must be"),
        ({"orbit": ["rotation"]}, "say image_shape"),
        ({"backbone": "mnist-cnn"}, "say image_shape"),
    ],
    ids=str,
)
def test_a_mistake_about_vectors_gets_a_sentence(parameters, message):
    with pytest.raises(InputError, match=message):
        classifier(**parameters).fit(np.eye(4), [0, 1, 0, 1])


def test_mistakes_in_data_get_a_sentence(digits, fitted):
    images, labels = digits
    with pytest.raises(ValueError, match="one class"):
        classifier().fit(images, np.zeros(40, dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        classifier().fit(np.where(images > 15, np.nan, images), labels)
    with pytest.raises(InputError, match=r"images of shape \(8, 8\), but X holds inputs of shape \(4, 16\)"):
        fitted.predict(images.reshape(40, 4, 16))
    with pytest.raises(ValueError, match="63 features, but InvariantClassifier is expecting 64"):
        fitted.predict(images.reshape(40, 64)[:, :63])
    with pytest.raises(InputError, match="likelihood of a regressor"):
        regressor(likelihood="softmax").fit(images, labels)
