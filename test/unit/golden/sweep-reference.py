#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reference values for sweep/, by NumPy and SciPy and by other ways than sweep/ goes.

    python3 sweep-reference.py >sweep-reference.txt     (made with SciPy 1.17.1, NumPy 2.4.6)

Quantiles and distributions are SciPy's. kappa is two-stage least squares over all cells with a dummy
for each block, its interval the roots of a paired t test's p, found by brentq. The hinge is fitted by
scipy.optimize.minimize_scalar over s with lstsq inside, the ends of its profile again by brentq. The
Wilcoxon interval comes from all 2^n sign patterns.
"""
import itertools
import numpy as np
from scipy import optimize, stats


def row(kind, *values):
    print(kind, *(repr(float(v)) for v in values))


def distributions():
    for df in (1, 2, 3, 7, 7.5, 11, 23, 100, 1e4):
        for t in (-30, -2.3646, -1, -1e-3, 0, 0.5, 1.96, 4, 25):
            row("t_cdf", t, df, stats.t.cdf(t, df))
        for p in (0.0005, 0.025, 0.2, 0.5, 0.8, 0.95, 0.975, 0.9995):
            row("t_quantile", p, df, stats.t.ppf(p, df))
    for d1, d2 in ((1, 3), (1, 7), (1, 22), (1, 400), (2, 10), (5, 5)):
        for p in (0.05, 0.5, 0.95, 0.99):
            row("f_quantile", p, d1, d2, stats.f.ppf(p, d1, d2))
    for a, b in ((0.5, 0.5), (1, 3), (3.5, 0.5), (50, 0.5), (200, 300)):
        for x in (0.001, 0.2, 0.4, 0.7, 0.999):
            row("beta_inc", a, b, x, stats.beta.cdf(x, a, b))
    for p in (1e-6, 0.025, 0.3, 0.5, 0.9, 0.999):
        row("normal_quantile", p, stats.norm.ppf(p))


def walsh(v):
    n = len(v)
    averages = sorted((v[i] + v[j]) / 2 for i in range(n) for j in range(i, n))
    ranks = np.arange(1, n + 1)
    w = np.sort([np.dot(ranks, s) for s in itertools.product((0, 1), repeat=n)])
    k = 0
    while np.mean(w <= k) <= 0.025:
        k += 1
    return np.median(averages), averages[k - 1], averages[-k]


def cells(rng, blocks, arms, slope, slack, noise):
    x = np.arange(arms) * 10.0
    block = rng.normal(0, 5, (blocks, 1))
    xs = x * (1 + rng.normal(0, 0.01, (blocks, arms)))
    return 100 + block + slope * np.maximum(0, x - slack) + rng.normal(0, noise, (blocks, arms)), xs


def kappa(t, x):
    """Two-stage least squares; the instrument is the arm's mean dose."""
    blocks, arms = t.shape
    dummies = np.kron(np.eye(blocks), np.ones((arms, 1)))
    z = np.column_stack([np.tile(x.mean(0), blocks), dummies])
    first = z @ np.linalg.lstsq(z, x.ravel(), rcond=None)[0]
    second = np.column_stack([first, dummies])
    return np.linalg.lstsq(second, t.ravel(), rcond=None)[0][0]


def fieller(t, x, k):
    w = x.mean(0) - x.mean()

    def p(c):
        e = (t - c * x) @ w
        return stats.ttest_1samp(e, 0).pvalue - 0.05

    e = (t - k * x) @ w
    return optimize.brentq(p, k - 3, k), optimize.brentq(p, k, k + 3), stats.sem(e) / np.mean(x @ w)


def hinge(t, x):
    blocks, arms = t.shape
    xm = np.tile(x.mean(0), blocks)
    dummies = np.kron(np.eye(blocks), np.ones((arms, 1)))
    n, top = blocks * (arms - 1), x.mean(0).max()

    def fit(s):
        a = np.column_stack([np.maximum(0, xm - s), dummies])
        b = np.linalg.lstsq(a, t.ravel(), rcond=None)[0]
        r = t.ravel() - a @ b
        return r @ r, b[0]

    grid = np.linspace(0, top * 0.999, 997)
    g = grid[np.argmin([fit(s)[0] for s in grid])]
    best = optimize.minimize_scalar(lambda s: fit(s)[0], method="bounded", options={"xatol": 1e-10},
                                    bounds=(max(0, g - top / 500), g + top / 500)).x
    rss, slope = fit(best)
    limit = rss * (1 + stats.f.ppf(0.95, 1, n - 2) / (n - 2))
    lo = optimize.brentq(lambda s: fit(s)[0] - limit, 0, best)
    hi = optimize.brentq(lambda s: fit(s)[0] - limit, best, top * 0.999)

    def aicc(r, p):
        return n * np.log(r / n) + 2 * p + 2 * p * (p + 1) / (n - p - 1)

    return best, lo, hi, slope, aicc(fit(0)[0], 2) - aicc(rss, 3)


def main():
    rng = np.random.default_rng(20240229)
    distributions()
    for n in (6, 8, 11, 14):
        v = np.round(rng.standard_t(2, n), 3)
        row("hodges_lehmann", n, *v, *walsh(v))
        row("theil_sen", n, *v, stats.theilslopes(v).slope)
    for blocks, arms, slope, slack, noise in ((8, 2, 1, 0, 1), (12, 4, 0.4, 0, 2), (9, 5, 1, 17, 1),
                                              (16, 6, 1.8, 24, 2)):
        t, x = cells(rng, blocks, arms, slope, slack, noise)
        k = kappa(t, x)
        row("kappa", blocks, arms, *t.ravel(), *x.ravel(), k, *fieller(t, x, k))
        if slack:
            row("hinge", blocks, arms, *t.ravel(), *x.ravel(), *hinge(t, x))


main()
