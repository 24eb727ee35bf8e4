"""Labels."""

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from orbitune.errors import InputError
from orbitune.estimators.base import InvariantEstimator
from orbitune.estimators.parts import own_likelihood
from orbitune.likelihoods import Likelihood
from orbitune.saving import make_likelihood

NUM_F_SAMPLES = 256  # draws of f per probability


class InvariantClassifier(ClassifierMixin, InvariantEstimator):
    """A classifier that learns which transformations of its inputs do not change the label.

    X may hold images (n, H, W), (n, H, W, Ch) or (n, Ch, H, W) with any scale of pixels, flat images (n, features) if
    ``image_shape`` is given, and otherwise vectors (n, features): there is nothing to be invariant to then, unless
    ``orbit`` says so.

    Args:
        orbit: what may be learned. None: all seven parameters of :class:`~orbitune.orbits.AffineOrbit` for images,
            nothing for vectors. Or names of some of them, such as ``["rotation"]``; or any
            :class:`~orbitune.orbits.Orbit`, which is copied and acts on inputs as they are given.
        backbone: the name of a network ("mnist-cnn", "resnet18", "mlp", …), which sees rescaled inputs (images over
            their largest pixel, vectors standardised); a function that makes an ``nn.Module``, or a module to start
            from, which see inputs as they are. None is "mnist-cnn" for images and "identity" for vectors.
        likelihood: "softmax" (None), "gaussian" (regression on one-hot codes), "bernoulli" (two classes), or a
            :class:`~orbitune.likelihoods.Likelihood` with one output per class.
        kernel: a function (num_features, lengthscale, variance) → GPyTorch kernel; None is squared-exponential.
        learner: how ranges are found: "crossfit", "coordinate", "joint", "max-likelihood", "fixed" or "plain", with
            the settings of ``budget``; or a :class:`~orbitune.learners.Learner` with settings of its own.
        budget: "smoke" (seconds: does it run?), "laptop", "demo" or "paper".
        time_limit: seconds that ``fit`` may take, roughly; training is cut short to end with a usable model. The result
            then depends on the speed of the machine. None trains to the end, and the same seed gives the same model.
        predict_orbit_size: transformed copies of an input over which a prediction is averaged.
        image_shape: (H, W), (H, W, Ch) or (Ch, H, W) of flat images.
        layout: where the channels are: "NHWC", "NCHW", or "auto", which takes the one axis of length 1, 3 or 4 and
            refuses to guess if both or neither are.
        random_state: an int, a RandomState, or None.
        verbose: show progress on standard error.
        run_dir: keep checkpoints and histories in this directory, one sub-directory for every fit with other data or
            parameters. The same fit, with an int as ``random_state``, continues where it was stopped.

    Attributes:
        classes_: the labels, sorted.
        orbit_: learned range (low, high) of each parameter of the orbit, by name.
        elbo_: evidence per training input (of held-out folds for "crossfit"), None where the learner has none.
        history_: what was measured while training, a dict per line.
        n_iter_: training steps taken.
        model_: the PyTorch model.
        input_shape_: shape of an image as it was given, None for vectors.
        n_features_in_: features, or pixels times channels.
        seed_: of training and of predictions, which are functions of the input alone.
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> "InvariantClassifier":
        """Learn the ranges of the orbit and a model that is invariant to them, from these data alone."""
        inputs, y = self._read_training_data(X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"all {len(y)} labels are {self.classes_.tolist()[0]!r}: with one class there is nothing to tell "
                "apart. Expected at least two classes in y"
            )
        self._learn(inputs, torch.tensor(labels), self._likelihood(len(self.classes_)))
        return self

    def _likelihood(self, num_classes: int) -> Likelihood:
        if isinstance(self.likelihood, Likelihood):
            allowed = (num_classes, 1) if num_classes == 2 else (num_classes,)
            return own_likelihood(self.likelihood, allowed, f"y has {num_classes} classes")
        return make_likelihood("softmax" if self.likelihood is None else self.likelihood, num_classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class (n, n_classes), averaged over the learned orbit."""
        probabilities = self._predict_each(
            X, lambda law, generator: self.model_.likelihood.predictive_mean(law, NUM_F_SAMPLES, generator)
        )
        if probabilities.shape[1] == 1:  # one output: the probability of the second class
            return np.hstack((1 - probabilities, probabilities))
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of every input (n,)."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]
