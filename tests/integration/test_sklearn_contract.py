"""Every check of scikit-learn's own test suite for estimators; none is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from orbitune import InvariantClassifier, InvariantRegressor


@parametrize_with_checks([InvariantClassifier(budget="smoke"), InvariantRegressor(budget="smoke")])
def test_scikit_learns_contract(estimator, check):
    check(estimator)
