#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The statistics of tests/bench/sparse.py against tables, brute force and known cases."""
import itertools
import math
import os
import random
import sys

TOP = os.environ.get("RS_TOP") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(TOP, "tests/bench"))
import sparse_stats as st  # noqa: E402

done = 0


def ok(good, what):
    global done
    done += 1
    print(f"{'ok' if good else 'not ok'} {done} - {what}")


def near(got, want, error, what):
    ok(got is not None and abs(got - want) <= error, f"{what}: {got}, {want} +- {error}")


# Student's t, from printed tables
for p, df, want in ((.975, 1, 12.7062), (.975, 4, 2.77645), (.95, 10, 1.81246), (.9875, 49, 2.3124),
                    (.995, 30, 2.75000), (.5, 7, 0), (.025, 4, -2.77645)):
    near(st.t_quantile(p, df), want, 6e-5, f"t quantile {p} with {df} degrees of freedom")
near(st.t_cdf(1, 1), .75, 1e-12, "t with one degree of freedom is Cauchy's")

# the mean's interval covers as often as it says
rng = random.Random(7)
hits = 0
for _ in range(4000):
    mean, low, high = st.mean_interval([rng.gauss(3, 2) for _ in range(5)], .9)
    hits += low <= 3 <= high
near(hits / 4000, .9, .015, "coverage of a 90% interval")

# signed ranks, counted out
for n in (1, 2, 5, 8):
    counts = [0] * (n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(r + 1 for r, s in enumerate(signs) if s)] += 1
    ok(st.signed_rank_counts(n) == counts, f"signed-rank counts of {n}")
# n = 10: 8 is the critical value at 5% two-sided, so the interval lies between the 9th mean and the 9th from above
y = [rng.gauss(0, 1) for _ in range(10)]
hl, low, high = st.hodges_lehmann(y, .95)
ok((low, high) == (st.walsh(y)[8], st.walsh(y)[-9]), "signed-rank interval at the tabulated place")
ok(low <= hl <= high and hl == st.median(st.walsh(y)), "Hodges-Lehmann is the median of the means")
ok(st.hodges_lehmann([1, 2, 3], .95)[1:] == (None, None), "no interval where there are too few pairs")
near(st.hodges_lehmann([0, 0, 0, 0, 0, 0, 0, 9], .9)[0], 0, 0, "an outlier does not move it")

# ratios
r = st.Ratio([(8, 10), (8, 10), (8, 10)])
near(r.mean, .8, 1e-12, "a ratio")
near(r.high - r.low, 0, 1e-12, "equal pairs leave no doubt")
ok(r.slope is None, "nor drift")
r = st.Ratio([(1, 2), (2, 1)])
near(r.mean, 1, 1e-12, "geometric mean")
near(math.log(r.high), st.t_quantile(.9875, 1) * math.log(2), 1e-3, "its interval")
r = st.Ratio([(math.exp(.1 * i), 1) for i in range(8)])
near(r.slope, .1, 1e-9, "drift is found")
ok(r.dw < .5, "and so is that neighbours are alike")
ok(st.drift([1, -1, 1, -1, 1, -1])[1] > 3, "and that they alternate")
r = st.Ratio([(3, 4)])
ok(r.low is None and "none" in str(r), "one pair has no interval, and says so")
print(f"1..{done}")
