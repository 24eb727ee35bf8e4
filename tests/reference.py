"""Slow, obvious numpy: what the library computes, written a second time without its tricks."""

import numpy as np


def rbf(x1, x2, variance, lengthscale):
    """k(x, x') = v exp(−‖x − x'‖² / 2ℓ²)."""
    return np.array([[variance * np.exp(-np.sum((a - b) ** 2) / (2 * lengthscale**2)) for b in x2] for a in x1])


def sparse_posterior(K, X, Z, u_mean, u_cov, jitter):
    """Mean and covariance of g(X) under q: g | u exact, u ~ N(u_mean, u_cov)."""
    Kuu = K(Z, Z) + jitter * np.eye(len(Z))
    alpha = np.linalg.solve(Kuu, K(Z, X)).T  # (N, M)
    return alpha @ u_mean, K(X, X) - alpha @ (Kuu - u_cov) @ alpha.T


def gaussian_log_density(y, mean, cov):
    residual = y - mean
    _, log_det = np.linalg.slogdet(cov)
    return -0.5 * (len(y) * np.log(2 * np.pi) + log_det + residual @ np.linalg.solve(cov, residual))


def sgpr(K, X, Z, y, noise_variance, jitter):
    """Titsias' optimal q(u) = N(mean, cov) and bound, with N × N matrices."""
    Kuu = K(Z, Z) + jitter * np.eye(len(Z))
    Kuf = K(Z, X)
    Sigma = np.linalg.inv(Kuu + Kuf @ Kuf.T / noise_variance)
    mean, cov = Kuu @ Sigma @ Kuf @ y / noise_variance, Kuu @ Sigma @ Kuu
    Qff = Kuf.T @ np.linalg.solve(Kuu, Kuf)
    trace = np.trace(K(X, X) - Qff)
    bound = gaussian_log_density(y, 0, Qff + noise_variance * np.eye(len(X))) - trace / (2 * noise_variance)
    return mean, cov, bound


def noise_orbit_Kuf(Z, X, variance, lengthscale, std):
    """E k(z, x + N(0, s²I)) for the squared-exponential kernel: a wider, lower bump."""
    shrink = (lengthscale**2 / (lengthscale**2 + std**2)) ** (X.shape[1] / 2)
    return shrink * rbf(Z, X, variance, np.sqrt(lengthscale**2 + std**2))


def noise_orbit_kff(X, variance, lengthscale, std):
    """E k(x + ε, x + ε') with independent ε, ε' ~ N(0, s²I)."""
    return np.full(len(X), variance * (lengthscale**2 / (lengthscale**2 + 2 * std**2)) ** (X.shape[1] / 2))


def even_orbit_kernel(Z, variance, lengthscale):
    """K(a, b) for the mixed process {g at Z, f(x) = ½[g(x) + g(−x)] elsewhere}: averages over x wherever a is not Z."""

    def average(a):
        return [a] if a is Z else [a, -a]

    def K(a, b):
        blocks = [rbf(s, t, variance, lengthscale) for s in average(a) for t in average(b)]
        return sum(blocks) / len(blocks)

    return K
