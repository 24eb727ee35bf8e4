"""What the classifier and the regressor share: parameters, the way from arrays to a trained model, and its facts."""

from abc import ABC
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from orbitune.errors import InputError, Interrupted
from orbitune.estimators.inputs import Shape, as_rows, shape_of_inputs, to_inputs
from orbitune.estimators.parts import backbone_maker, learner_of, orbit_of
from orbitune.estimators.prediction import predict_each
from orbitune.gp import OrbitMarginal
from orbitune.learners import Problem
from orbitune.learners.base import squared_exponential
from orbitune.likelihoods import Likelihood
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.training import Run, Silent, on_screen


class InvariantEstimator(BaseEstimator, ABC):
    """Base of the estimators; see :class:`~orbitune.InvariantClassifier` for the parameters.

    X is validated as rows, so that ``n_features_in_`` is the number of pixels of an image, whatever its shape.
    """

    model_: InvariantGP | OrbitNetwork
    input_shape_: Shape | None
    orbit_: dict[str, tuple[float, float]]
    elbo_: float | None
    history_: list[dict[str, Any]]
    n_iter_: int
    seed_: int
    n_features_in_: int

    # Without type hints: by scikit-learn's contract a constructor stores whatever comes; ``fit`` looks at it.
    def __init__(
        self,
        orbit=None,
        *,
        backbone=None,
        likelihood=None,
        kernel=None,
        learner="crossfit",
        budget="laptop",
        time_limit=None,
        predict_orbit_size=32,
        image_shape=None,
        layout="auto",
        random_state=None,
        verbose=False,
        run_dir=None,
    ):
        self.orbit = orbit
        self.backbone = backbone
        self.likelihood = likelihood
        self.kernel = kernel
        self.learner = learner
        self.budget = budget
        self.time_limit = time_limit
        self.predict_orbit_size = predict_orbit_size
        self.image_shape = image_shape
        self.layout = layout
        self.random_state = random_state
        self.verbose = verbose
        self.run_dir = run_dir

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _read_training_data(self, X: Any, y: Any, **options: Any) -> tuple[Tensor, np.ndarray]:
        """X as tensor (N, …) and y as array, checked."""
        rows, own_shape = as_rows(X)
        images = own_shape is not None or self.image_shape is not None
        dtype = np.float32 if images else np.float64
        rows, y = validate_data(self, rows, y, dtype=dtype, ensure_min_samples=2, **options)
        self.input_shape_ = shape_of_inputs(own_shape, self.image_shape, rows.shape[1])
        return to_inputs(rows, self.input_shape_, self.layout), y

    def _read_inputs(self, X: Any) -> Tensor:
        """X as tensor (N, …), checked to be like the training data."""
        check_is_fitted(self, "model_")
        rows, own_shape = as_rows(X)
        if own_shape not in (None, self.input_shape_):
            expected = "vectors" if self.input_shape_ is None else f"images of shape {self.input_shape_}"
            raise InputError(f"this model was fitted to {expected}, but X holds inputs of shape {own_shape}")
        dtype = np.float64 if self.input_shape_ is None else np.float32
        rows = validate_data(self, rows, dtype=dtype, reset=False)
        return to_inputs(rows, self.input_shape_, self.layout)

    def _learn(self, inputs: Tensor, targets: Tensor, likelihood: Likelihood) -> None:
        """Train, and keep the model and what is known about it."""
        self._check_numbers()
        learner = learner_of(self.learner, self.budget)
        kernel = squared_exponential if self.kernel is None else self.kernel
        orbit, make_backbone = orbit_of(self.orbit, inputs), backbone_maker(self.backbone, inputs)
        problem = Problem(inputs, targets, orbit, likelihood, make_backbone, kernel)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        run = Run(
            self._run_directory(inputs, targets, seed),
            seed=seed,
            resume=True,
            progress=on_screen() if self.verbose else Silent(),
            time_limit=None if self.time_limit is None else float(self.time_limit),
        )
        try:
            with run.active():
                run.plan(learner.plan(len(inputs)))
                outcome = learner.learn(problem, run)
                run.restore()  # if the run was finished before, nothing else has put its weights back
                run.save()
        except Interrupted as error:  # an ordinary error would be one failed fit of many to GridSearchCV
            raise KeyboardInterrupt(str(error)) from error
        self.model_, self.elbo_, self.seed_ = outcome.model.eval(), outcome.elbo_per_datum, seed
        self.orbit_, self.history_, self.n_iter_ = outcome.model.orbit.ranges(), run.history, run.num_steps

    def _check_numbers(self) -> None:
        if not isinstance(self.predict_orbit_size, int) or self.predict_orbit_size < 1:
            raise InputError(f"predict_orbit_size must be a whole number ≥ 1, got {self.predict_orbit_size!r}")
        if self.time_limit is not None and not (isinstance(self.time_limit, (int, float)) and self.time_limit > 0):
            raise InputError(f"time_limit must be None or a number of seconds > 0, got {self.time_limit!r}")
        if self.kernel is not None and not callable(self.kernel):
            raise InputError(
                "kernel must be None or a function (num_features, lengthscale, variance) → GPyTorch kernel, "
                f"got {self.kernel!r}"
            )

    def _run_directory(self, inputs: Tensor, targets: Tensor, seed: int) -> Path | None:
        """A directory of its own for every fit with other data, parameters or seed."""
        if self.run_dir is None:
            return None
        settings = {name: value for name, value in self.get_params().items() if name not in ("verbose", "run_dir")}
        try:
            key = joblib.hash((settings | {"random_state": seed}, inputs.numpy(), targets.numpy()))
        except Exception as error:  # whatever pickle has to say about somebody's function
            raise InputError(
                f"run_dir needs parameters that can be pickled, to know a fit when it comes again: {error}. "
                "Define functions at the top of a module, not as lambda"
            ) from error
        return Path(self.run_dir) / str(key)

    def _predict_each(self, X: Any, summarise: Callable[[OrbitMarginal, torch.Generator], Tensor]) -> np.ndarray:
        """What ``summarise`` makes of the law of f̂ at each row of X."""
        inputs = self._read_inputs(X)
        return predict_each(self.model_, inputs, self.predict_orbit_size, self.seed_, summarise).double().numpy()
