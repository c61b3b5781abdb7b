# SPDX-License-Identifier: MIT
"""Ratios of paired runs: the geometric mean with its t interval, Hodges-Lehmann with the signed-rank interval, drift.

A pair is two processes, one after the other; y = ln(time of A / time of B). Nothing is dropped: all y are kept and shown.
"""
import math


def _beta_fraction(a, b, x):
    """Continued fraction of the incomplete beta function (modified Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 400):
        for num in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1.0 + num * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + num / c
            c = c if abs(c) > tiny else tiny
            h *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return h


def _beta(a, b, x):
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) +
                     b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def t_cdf(t, df):
    half = _beta(df / 2, 0.5, df / (df + t * t)) / 2
    return half if t < 0 else 1 - half


def t_quantile(p, df):
    low, high = -1e6, 1e6
    for _ in range(200):
        mid = (low + high) / 2
        low, high = (mid, high) if t_cdf(mid, df) < p else (low, mid)
    return (low + high) / 2


def median(values):
    v = sorted(values)
    return (v[len(v) // 2] + v[(len(v) - 1) // 2]) / 2


def mean_interval(y, level):
    """Mean of y and its t interval; (mean, None, None) of a single one."""
    n = len(y)
    mean = math.fsum(y) / n
    if n < 2:
        return mean, None, None
    s = math.sqrt(math.fsum((v - mean)**2 for v in y) / (n - 1))
    half = t_quantile((1 + level) / 2, n - 1) * s / math.sqrt(n)
    return mean, mean - half, mean + half


def walsh(y):
    return sorted((y[i] + y[j]) / 2 for i in range(len(y)) for j in range(i, len(y)))


def signed_rank_counts(n):
    """How many of the 2^n signs give each sum of positive ranks."""
    counts = [1]
    for rank in range(1, n + 1):
        grown = counts + [0] * rank
        for i, c in enumerate(counts):
            grown[i + rank] += c
        counts = grown
    return counts


def hodges_lehmann(y, level):
    """Median of the pairwise means, and the exact signed-rank interval; None where n is too small for the level."""
    means, counts = walsh(y), signed_rank_counts(len(y))
    total, tail, k = 2**len(y), 0, 0
    while k < len(counts) and (tail + counts[k]) / total <= (1 - level) / 2:
        tail += counts[k]
        k += 1
    if not k:
        return median(means), None, None
    return median(means), means[k - 1], means[len(means) - k]


def drift(y):
    """Slope of y over the index, and Durbin-Watson of y about its mean; (None, None) where all are equal."""
    n = len(y)
    mean = math.fsum(y) / n
    square = math.fsum((v - mean)**2 for v in y)
    if n < 3 or square == 0:
        return None, None
    middle = (n - 1) / 2
    slope = (math.fsum((i - middle) * (v - mean) for i, v in enumerate(y)) /
             math.fsum((i - middle)**2 for i in range(n)))
    return slope, math.fsum((y[i] - y[i - 1])**2 for i in range(1, n)) / square


class Ratio:
    """Times of A over times of B, paired."""

    def __init__(self, pairs, level=0.975):
        self.y = [math.log(a / b) for a, b in pairs]
        self.n, self.level = len(self.y), level
        exp = lambda v: None if v is None else math.exp(v)
        self.mean, self.low, self.high = map(exp, mean_interval(self.y, level))
        self.hl, self.hl_low, self.hl_high = map(exp, hodges_lehmann(self.y, level))
        self.slope, self.dw = drift(self.y)

    def __str__(self):
        span = lambda low, high: "none" if low is None else f"{low:.4f}..{high:.4f}"
        text = (f"{self.mean:.4f}  t {100 * self.level:.1f}% [{span(self.low, self.high)}]  "
                f"Hodges-Lehmann {self.hl:.4f} [{span(self.hl_low, self.hl_high)}]  n={self.n}  "
                f"y sorted: {' '.join(f'{v:.5f}' for v in sorted(self.y))}")
        if self.slope is not None:
            text += f"  drift {self.slope:+.1e} a pair, Durbin-Watson {self.dw:.2f}"
        return text
