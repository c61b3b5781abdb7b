#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train a small convolutional net on handwritten digits, with or without activation recomputation.

An ordinary training script. It needs tinygrad, and marks its segments with NVTX ranges as one does for a profiler:

    python train.py --steps 12 --out kept.jsonl                 activations are kept until backward
    python train.py --steps 12 --out again.jsonl --recompute    segments run again in backward
    python train.py --steps 12 --out asked.jsonl --recompute=asked    as replayshim says, if it is there

The net is a stem (convolution, BatchNorm, ReLU, dropout), one residual block that is applied twice with the same
weights (so that its BatchNorm has seen other activations between the two), and a head. The head classifies, and pulls
embeddings towards those of the same digit in a memory bank: a first-in first-out queue of the embeddings of the latest
batches, as in cross-batch memory or MoCo. Its forward reads the queue for the loss and then pushes the batch's own
embeddings, so the queue has moved on when backward comes.

With --recompute a segment keeps only its input; backward runs its forward again, the way gradient checkpointing does.
Nothing else differs. Whoever thinks that this cannot change the results overlooks the state that a forward moves on:
the running statistics, the random generator's counter, and the queue.

tinygrad is lazy, so a segment's gradient is built next to its forward, on a placeholder for the upstream gradient, and
the two are realized apart: first the output with everything that the forward moves on, later the gradient. Both modes
issue the same kernels; --recompute issues the forward ones twice.
"""
import argparse
import csv
import ctypes
import gzip
import hashlib
import json
import pathlib
import random

import nvtx
from tinygrad import Context, Tensor, dtypes, nn

CLASSES, WIDTH, EMBEDDING, QUEUE = 10, 8, 16, 96
TEMPERATURE, BANK_WEIGHT, DROPOUT = 0.2, 0.25, 0.1


class Stem:
	def __init__(self):
		self.conv = nn.Conv2d(1, WIDTH, 3, padding=1, bias=False)
		self.norm = nn.BatchNorm(WIDTH)

	def __call__(self, x):
		x = self.conv(x / 16.0).contiguous()
		return self.norm(x).relu().dropout(DROPOUT).max_pool2d(2)


class Residual:
	def __init__(self):
		self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False)
		self.norm = nn.BatchNorm(WIDTH)

	def __call__(self, x):
		return (x + self.norm(self.conv(x).contiguous()).relu()).dropout(DROPOUT)


class MemoryBank:
	"""A queue of embeddings and their digits; new ones push the oldest out. Empty places have digit -1."""

	def __init__(self, size, width):
		self.queue = Tensor.zeros(size, width).contiguous().is_param_(False)
		self.digits = Tensor.full((size,), -1, dtype=dtypes.int32).contiguous().is_param_(False)

	def loss(self, z, y):
		logits = z @ self.queue.T / TEMPERATURE
		same = (y.reshape(-1, 1) == self.digits.reshape(1, -1)).float()
		near = (logits.log_softmax(1) * same).sum(1) / same.sum(1).maximum(1)
		return -near.mean()

	def push(self, z, y):
		self.queue.assign(self.queue[len(z):].cat(z))
		self.digits.assign(self.digits[len(y):].cat(y))


class Head:
	def __init__(self):
		self.classify = nn.Linear(WIDTH * 16, CLASSES)
		self.embed = nn.Linear(WIDTH * 16, EMBEDDING)
		self.bank = MemoryBank(QUEUE, EMBEDDING)

	def __call__(self, x, y):
		x = x.flatten(1).dropout(DROPOUT)
		z = self.embed(x)
		z = (z / (z.square().sum(1, keepdim=True) + 1e-6).sqrt()).contiguous()
		loss = self.classify(x).sparse_categorical_crossentropy(y) + BANK_WEIGHT * self.bank.loss(z, y)
		self.bank.push(z.detach(), y)
		return loss


class Net:
	def __init__(self):
		self.stem, self.residual, self.head = Stem(), Residual(), Head()


def buffers(module):
	"""What a module carries along besides its weights, and the generator's counters."""
	kept = [t for t in nn.state.get_state_dict(module).values() if not t.is_param]
	return kept + list(Tensor._device_rng_counters.values())


def is_kept(name):
	"""Does a plan want the segment's activations kept? Asked of the library that a program may run under."""
	try:
		ask = ctypes.CDLL(None).replayshim_retain
	except AttributeError:
		return False
	base, _, invocation = name.partition("#")
	return ask(base.encode(), ctypes.c_long(int(invocation or -1))) == 1


class Segment:
	"""One invocation of a block: its input, what backward needs of it, and how to get that again."""

	def __init__(self, name, block, x, extra=(), recompute=False):
		self.name, self.block, self.x, self.extra = name, block, x, extra
		self.params = [t for t in nn.state.get_parameters(block) if t.is_param]
		self.recompute = not is_kept(name) if recompute == "asked" else recompute
		self.output, self.saved = None, None

	def run(self, phase):
		out = self.block(self.x, *self.extra)
		upstream = Tensor.empty(*out.shape)
		grads = out.gradient(self.x, *self.params, gradient=upstream)
		with nvtx.annotate(f"{phase}:{self.name}"):
			out.realize(*buffers(self.block))
		return out, upstream, grads

	def forward(self):
		out, *saved = self.run("forward")
		if not self.recompute:
			self.saved = saved
		return out

	def backward(self, gradient):
		upstream, grads = self.saved or self.run("replay")[1:]
		self.saved = None
		upstream.assign(gradient).realize()
		grads[0].realize(*grads[1:])
		for p, g in zip(self.params, grads[1:]):
			p.grad = g if p.grad is None else p.grad + g
		Tensor.realize(*[p.grad for p in self.params])
		return grads[0]


def train_step(net, optimizer, x, y, recompute):
	segments, h = [], x
	for name, block, extra in (("stem", net.stem, ()), ("residual#0", net.residual, ()),
			("residual#1", net.residual, ()), ("head", net.head, (y,))):
		segments.append(Segment(name, block, h, extra, recompute))
		h = segments[-1].forward()
	loss, h = h, Tensor.ones(*h.shape).contiguous().realize()
	optimizer.zero_grad()
	while segments:
		h = segments.pop().backward(h)
	optimizer.step()
	return loss


def load(path):
	with gzip.open(path, "rt", newline="") as f:
		rows = [[int(v) for v in row] for row in csv.reader(f)]
	return [bytes(r[:64]) for r in rows], [r[64] for r in rows]


def batches(images, digits, size, seed):
	order = random.Random(seed)
	while True:
		picks = order.sample(range(len(images)), len(images))
		for i in range(0, len(picks) - size + 1, size):
			pick = picks[i:i + size]
			x = Tensor(b"".join(images[k] for k in pick)).reshape(size, 1, 8, 8).float().contiguous()
			y = Tensor([digits[k] for k in pick], dtype=dtypes.int32)
			yield x.realize(), y.realize()


def digest(tensors):
	"""sha256 over the tensors' bytes, in the order of their names."""
	h = hashlib.sha256()
	for name in sorted(tensors):
		h.update(name.encode())
		h.update(bytes(tensors[name].data().cast("B") if tensors[name].ndim else tensors[name].data().tobytes()))
	return h.hexdigest()


def describe(step, loss, net, optimizer):
	"""One line of results, exact to the byte."""
	named = nn.state.get_state_dict(net)
	params = {k: t for k, t in named.items() if t.is_param}
	state = {k: t for k, t in named.items() if not t.is_param}
	counters = {f"rng.{k}": t for k, t in Tensor._device_rng_counters.items()}
	value = float(loss.item())
	return {"step": step, "loss": value.hex(), "loss_value": value,
		"gradients": digest({k: t.grad for k, t in params.items()}), "weights": digest(params),
		"state": digest({**state, **counters}),
		"running": digest({k: t for k, t in state.items() if ".norm." in k}), "counters": digest(counters),
		"queue": digest({k: t for k, t in state.items() if ".bank." in k}),
		"optimizer": digest({f"momentum.{i}": t for i, t in enumerate(optimizer.b)})}


def main():
	p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	p.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).with_name("digits.csv.gz"))
	p.add_argument("--steps", type=int, default=12)
	p.add_argument("--batch", type=int, default=32)
	p.add_argument("--lr", type=float, default=0.02)
	p.add_argument("--seed", type=int, default=1)
	p.add_argument("--recompute", nargs="?", const="all", choices=("all", "asked"),
		help="run segments again in backward instead of keeping them")
	p.add_argument("--out", type=pathlib.Path, help="write a line of results for each step here")
	args = p.parse_args()

	Tensor.manual_seed(args.seed)
	net = Net()
	named = nn.state.get_state_dict(net)
	Tensor.realize(*named.values(), *Tensor._device_rng_counters.values())
	optimizer = nn.optim.SGD(list(named.values()), lr=args.lr, momentum=0.9)
	Tensor.realize(optimizer.lr, *optimizer.b)
	data = batches(*load(args.data), args.batch, args.seed)
	out = args.out.open("w") if args.out else None

	with Context(TRAINING=1):
		for step in range(args.steps):
			x, y = next(data)
			with nvtx.annotate(f"step:{step}"):
				loss = train_step(net, optimizer, x, y, args.recompute)
			line = describe(step, loss, net, optimizer)
			print(f"step {step:3d}  loss {line['loss_value']:.6f}", flush=True)
			if out:
				out.write(json.dumps(line) + "\n")
				out.flush()


if __name__ == "__main__":
	main()
