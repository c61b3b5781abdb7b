# SPDX-License-Identifier: MIT
"""The network of tests/clients/derivatives.c as plain formulas: the loss of a step and the state after it.

Scalars are floats, or dual numbers, which carry the derivative in one direction along. Nothing here is taken from the
kernels: no sum is in their order and softmax is not shifted, so results agree to rounding and not to the bit.
"""
import math

BATCH, SIDE, WIDTH, OUT, FEATURES, KEY_TOKENS = 2, 3, 2, 3, 4, 2
PIXELS = SIDE * SIDE
RATE, DECAY, KEEP, EPS, MOMENTUM, TEMPERATURE = 0.05, 0.1, 0.7, 1e-3, 0.1, 0.5


class Dual:
    """v + d e, e * e = 0."""

    __slots__ = ("v", "d")

    def __init__(self, v, d=0.0):
        self.v, self.d = v, d

    def __add__(self, o):
        return Dual(self.v + o.v, self.d + o.d) if isinstance(o, Dual) else Dual(self.v + o, self.d)

    def __sub__(self, o):
        return Dual(self.v - o.v, self.d - o.d) if isinstance(o, Dual) else Dual(self.v - o, self.d)

    def __mul__(self, o):
        if isinstance(o, Dual):
            return Dual(self.v * o.v, self.v * o.d + self.d * o.v)
        return Dual(self.v * o, self.d * o)

    def __truediv__(self, o):
        if isinstance(o, Dual):
            return Dual(self.v / o.v, (self.d * o.v - self.v * o.d) / (o.v * o.v))
        return Dual(self.v / o, self.d / o)

    def __rsub__(self, o):
        return Dual(o - self.v, -self.d)

    def __rtruediv__(self, o):
        return Dual(o / self.v, -o * self.d / (self.v * self.v))

    def __neg__(self):
        return Dual(-self.v, -self.d)

    __radd__, __rmul__ = __add__, __mul__


def tanh(x):
    if not isinstance(x, Dual):
        return math.tanh(x)
    t = math.tanh(x.v)
    return Dual(t, x.d * (1 - t * t))


def exp(x):
    return Dual(math.exp(x.v), x.d * math.exp(x.v)) if isinstance(x, Dual) else math.exp(x)


def log(x):
    return Dual(math.log(x.v), x.d / x.v) if isinstance(x, Dual) else math.log(x)


def sqrt(x):
    return Dual(math.sqrt(x.v), x.d / (2 * math.sqrt(x.v))) if isinstance(x, Dual) else math.sqrt(x)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def rows(flat, width):
    return [flat[i:i + width] for i in range(0, len(flat), width)]


def softmax(x):
    e = [exp(v) for v in x]
    total = sum(e)
    return [v / total for v in e]


def philox(key, offset, lane):
    """The first of the four words of Philox 4x32-10."""
    low = 0xFFFFFFFF
    c, k = [offset & low, offset >> 32, lane, 0], [key & low, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c[0]


def embed(t, token, image, pixels):
    """[batch][channel][pixel]"""
    table = rows(t["table"], WIDTH)
    return [[[tanh(table[t[token][b * pixels + p]][c] + t[image][(b * WIDTH + c) * pixels + p])
              for p in range(pixels)] for c in range(WIDTH)] for b in range(BATCH)]


def conv(t, x):
    w = rows(rows(t["conv_w"], 3), 3)  # [out * in][3][3]

    def at(b, o, r, s):
        total = t["conv_b"][o]
        for c in range(WIDTH):
            for i in range(max(0, r - 1), min(SIDE, r + 2)):
                for j in range(max(0, s - 1), min(SIDE, s + 2)):
                    total = total + x[b][c][i * SIDE + j] * w[o * WIDTH + c][i - r + 1][j - s + 1]
        return tanh(total)

    return [[[at(b, o, p // SIDE, p % SIDE) for p in range(PIXELS)] for o in range(OUT)] for b in range(BATCH)]


def batchnorm(t, x):
    y = [[None] * OUT for _ in range(BATCH)]
    means, variances = [], []
    for c in range(OUT):
        values = [v for b in range(BATCH) for v in x[b][c]]
        mean = sum(values) / len(values)
        squares = sum((v - mean) * (v - mean) for v in values)
        scale = t["bn_gain"][c] / sqrt(squares / len(values) + EPS)
        for b in range(BATCH):
            y[b][c] = [(v - mean) * scale + t["bn_shift"][c] for v in x[b][c]]
        means.append(t["running_mean"][c] * (1 - MOMENTUM) + mean * MOMENTUM)
        variances.append(t["running_var"][c] * (1 - MOMENTUM) + squares / (len(values) - 1) * MOMENTUM)
    return y, {"running_mean": means, "running_var": variances}


def dropout(t, x):
    key, offset = t["counter"]
    flat = [v for sample in x for channel in sample for v in channel]
    y = [v / KEEP if philox(key, offset, i) < KEEP * 2 ** 32 else v * 0 for i, v in enumerate(flat)]
    return rows(y, OUT * PIXELS), {"counter": [key, offset + 1]}


def columns(w, width):
    return [w[i::width] for i in range(width)]


def linear(t, x):
    w = columns(t["linear_w"], FEATURES)
    return [[tanh(dot(sample, w[f]) + t["linear_b"][f]) for f in range(FEATURES)] for sample in x]


def attention(t, x):
    def project(name):
        return [[dot(sample, w) for w in columns(t[name], FEATURES)] for sample in x]

    used = t["cursor"][0]
    keys = rows(t["keys"], FEATURES)[:used] + project("wk")
    values = rows(t["values"], FEATURES)[:used] + project("wv")
    y = []
    for q in project("wq"):
        p = softmax([dot(q, k) / 2 for k in keys])
        y.append([dot(p, [v[f] for v in values]) for f in range(FEATURES)])
    after = {"cursor": [used + BATCH]}
    for name, cache in (("keys", keys), ("values", values)):
        flat = [v for row in cache for v in row]
        after[name] = flat + t[name][len(flat):]
    return y, after


def contrast(t, z, keys):
    queue = rows(t["queue"], FEATURES)
    losses = [-log(softmax([dot(z[b], k) / TEMPERATURE for k in [keys[b]] + queue])[0]) for b in range(BATCH)]
    head, after = t["head"][0], list(queue)
    for b in range(BATCH):
        after[(head + b) % len(queue)] = keys[b]
    return losses, {"queue": [v for row in after for v in row], "head": [(head + BATCH) % len(queue)]}


def forward(t):
    """(the loss of each sample, state after the step) of a step that begins with the tensors t."""
    x, after = batchnorm(t, conv(t, embed(t, "token", "image", PIXELS)))
    x, more = dropout(t, x)
    after.update(more)
    x, more = attention(t, linear(t, x))
    after.update(more)
    keys = [[v for channel in sample for v in channel] for sample in embed(t, "key_token", "key_image", KEY_TOKENS)]
    losses, more = contrast(t, x, keys)
    after.update(more)
    return losses, after


def loss(t):
    return sum(forward(t)[0]) / BATCH


def updated(t, grad):
    """The parameters after the step, and what was seen of the table between its two updates: {name: values}."""
    after = {name: [v - RATE * d for v, d in zip(t[name], g)] for name, g in grad.items()
             if name not in ("table", "image", "key_image")}
    table, by_image, by_key = (rows(x, WIDTH) for x in (t["table"], *rows(grad["table"], len(t["table"]))))
    for tokens, g in ((t["key_token"], by_key), (t["token"], by_image)):
        for row in set(tokens):
            table[row] = [v - RATE * (d + DECAY * v) for v, d in zip(table[row], g[row])]
        after.setdefault("watched", [v for row in table for v in row] * 2)
    after["table"] = [v for row in table for v in row]
    return after


def moved(t, name, direction, by):
    return dict(t, **{name: [v + by * d for v, d in zip(t[name], direction)]})


def dual_derivative(t, name, direction):
    return loss(dict(t, **{name: [Dual(v, d) for v, d in zip(t[name], direction)]})).d


def difference_quotient(t, name, direction, h):
    """Central, in double precision."""
    return (loss(moved(t, name, direction, h)) - loss(moved(t, name, direction, -h))) / (2 * h)
