/* SPDX-License-Identifier: MIT */
/*
 * Layers of a small network and their gradients in double precision, for tests/clients/derivatives.c. One thread an
 * output element (or row, or channel) and a fixed order of summation, so that equal inputs give equal bytes. Images
 * are [batch][channel][pixel], weights of linear layers [in][out].
 */
#define INDEX ((int)(blockIdx.x * blockDim.x + threadIdx.x))

/* --- for several layers --------------------------------------------------------------------- */

extern "C" __global__ void tanh_back(int n, const double *y, const double *dy, double *dx)
{
	int i = INDEX;

	if (i < n)
		dx[i] = dy[i] * (1 - y[i] * y[i]);
}

extern "C" __global__ void multiply(int n, const double *a, const double *b, double *out)
{
	int i = INDEX;

	if (i < n)
		out[i] = a[i] * b[i];
}

extern "C" __global__ void sgd_step(int n, double lr, const double *g, double *w)
{
	int i = INDEX;

	if (i < n)
		w[i] -= lr * g[i];
}

/* --- embedding: h = tanh(table[token] + image) ----------------------------------------------- */

extern "C" __global__ void embed(int n, int width, int pixels, const int *token,
				 const double *table, const double *image, double *h)
{
	int i = INDEX;

	if (i < n)
		h[i] = tanh(table[token[i / (width * pixels) * pixels + i % pixels] * width +
				  i / pixels % width] +
			    image[i]);
}

extern "C" __global__ void embed_back(int vocabulary, int width, int batch, int pixels,
				      const int *token, const double *dx, double *dtable)
{
	int i = INDEX;
	double sum = 0;

	if (i >= vocabulary * width)
		return;
	for (int b = 0; b < batch; b++)
		for (int p = 0; p < pixels; p++)
			if (token[b * pixels + p] == i / width)
				sum += dx[(b * width + i % width) * pixels + p];
	dtable[i] = sum;
}

/* Only rows that were looked up; decay: a weight's own, so that the others would show. */
extern "C" __global__ void sparse_update(int tokens, int vocabulary, int width, double lr,
					 double decay, const int *token, const double *g,
					 double *table)
{
	int row = INDEX, met = 0;

	if (row >= vocabulary)
		return;
	for (int t = 0; t < tokens; t++)
		met |= token[t] == row;
	for (int c = 0; met && c < width; c++)
		table[row * width + c] -=
			lr * (g[row * width + c] + decay * table[row * width + c]);
}

/* --- 2-D convolution, 3 x 3, padded by zeros: y = tanh(w * x + bias) -------------------------- */

extern "C" __global__ void conv(int n, int in, int out, int height, int width, const double *x,
				const double *w, const double *bias, double *y)
{
	int i = INDEX, pixels = height * width, o, row, col;
	double sum;

	if (i >= n)
		return;
	o = i / pixels % out;
	row = i % pixels / width;
	col = i % width;
	sum = bias[o];
	x += i / pixels / out * in * pixels;
	for (int c = 0; c < in; c++)
		for (int t = 0; t < 9; t++) {
			int r = row + t / 3 - 1, s = col + t % 3 - 1;

			if (r >= 0 && r < height && s >= 0 && s < width)
				sum += w[(o * in + c) * 9 + t] * x[c * pixels + r * width + s];
		}
	y[i] = tanh(sum);
}

extern "C" __global__ void conv_back_weight(int batch, int in, int out, int height, int width,
					    const double *x, const double *d, double *dw)
{
	int i = INDEX, pixels = height * width, t = i % 9, c = i / 9 % in, o = i / 9 / in;
	double sum = 0;

	if (i >= out * in * 9)
		return;
	for (int b = 0; b < batch; b++)
		for (int p = 0; p < pixels; p++) {
			int r = p / width + t / 3 - 1, s = p % width + t % 3 - 1;

			if (r >= 0 && r < height && s >= 0 && s < width)
				sum += d[(b * out + o) * pixels + p] *
				       x[(b * in + c) * pixels + r * width + s];
		}
	dw[i] = sum;
}

extern "C" __global__ void conv_back_bias(int batch, int out, int pixels, const double *d,
					  double *dbias)
{
	int o = INDEX;
	double sum = 0;

	if (o >= out)
		return;
	for (int b = 0; b < batch; b++)
		for (int p = 0; p < pixels; p++)
			sum += d[(b * out + o) * pixels + p];
	dbias[o] = sum;
}

extern "C" __global__ void conv_back_input(int n, int in, int out, int height, int width,
					   const double *w, const double *d, double *dx)
{
	int i = INDEX, pixels = height * width, c, row, col;
	double sum = 0;

	if (i >= n)
		return;
	c = i / pixels % in;
	row = i % pixels / width;
	col = i % width;
	d += i / pixels / in * out * pixels;
	for (int o = 0; o < out; o++)
		for (int t = 0; t < 9; t++) {
			int r = row - t / 3 + 1, s = col - t % 3 + 1;

			if (r >= 0 && r < height && s >= 0 && s < width)
				sum += w[(o * in + c) * 9 + t] * d[o * pixels + r * width + s];
		}
	dx[i] = sum;
}

/* --- batch norm; stat: means, then biased variances ------------------------------------------ */

extern "C" __global__ void bn_stats(int batch, int channels, int pixels, double momentum,
				    const double *x, double *stat, double *running_mean,
				    double *running_var)
{
	int c = INDEX, count = batch * pixels;
	double mean = 0, var = 0;

	if (c >= channels)
		return;
	for (int k = 0; k < count; k++)
		mean += x[(k / pixels * channels + c) * pixels + k % pixels];
	mean /= count;
	for (int k = 0; k < count; k++) {
		double v = x[(k / pixels * channels + c) * pixels + k % pixels] - mean;

		var += v * v;
	}
	stat[c] = mean;
	stat[channels + c] = var / count;
	running_mean[c] += momentum * (mean - running_mean[c]);
	running_var[c] += momentum * (var / (count - 1) - running_var[c]);
}

extern "C" __global__ void bn_apply(int n, int channels, int pixels, double eps, const double *x,
				    const double *stat, const double *gain, const double *shift,
				    double *xhat, double *y)
{
	int i = INDEX, c = i / pixels % channels;

	if (i >= n)
		return;
	xhat[i] = (x[i] - stat[c]) / sqrt(stat[channels + c] + eps);
	y[i] = gain[c] * xhat[i] + shift[c];
}

extern "C" __global__ void bn_back_sums(int batch, int channels, int pixels, const double *xhat,
					const double *dy, double *dgain, double *dshift)
{
	int c = INDEX;
	double gain = 0, shift = 0;

	if (c >= channels)
		return;
	for (int k = 0; k < batch * pixels; k++) {
		int at = (k / pixels * channels + c) * pixels + k % pixels;

		gain += dy[at] * xhat[at];
		shift += dy[at];
	}
	dgain[c] = gain;
	dshift[c] = shift;
}

extern "C" __global__ void bn_back_input(int n, int channels, int pixels, int count, double eps,
					 const double *stat, const double *gain, const double *xhat,
					 const double *dy, const double *dgain,
					 const double *dshift, double *dx)
{
	int i = INDEX, c = i / pixels % channels;

	if (i < n)
		dx[i] = gain[c] / sqrt(stat[channels + c] + eps) *
			(dy[i] - (dshift[c] + xhat[i] * dgain[c]) / count);
}

/* --- dropout: Philox 4x32-10, key and offset in device memory -------------------------------- */

static __device__ unsigned philox(unsigned long long key, unsigned long long offset, unsigned lane)
{
	unsigned c0 = (unsigned)offset, c1 = (unsigned)(offset >> 32), c2 = lane, c3 = 0;
	unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);

	for (int round = 0; round < 10; round++) {
		unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
		unsigned h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;

		c0 = h1 ^ c1 ^ k0;
		c1 = l1;
		c2 = h0 ^ c3 ^ k1;
		c3 = l0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return c0;
}

extern "C" __global__ void dropout(int n, double keep, const unsigned long long *counter,
				   const double *x, double *mask, double *y)
{
	int i = INDEX;

	if (i >= n)
		return;
	mask[i] = philox(counter[0], counter[1], i) * 0x1p-32 < keep ? 1 / keep : 0;
	y[i] = x[i] * mask[i];
}

extern "C" __global__ void dropout_advance(unsigned long long *counter)
{
	counter[1]++;
}

/* --- linear: y = tanh(x w + bias); the gradients serve every product with a matrix ------------ */

extern "C" __global__ void linear(int n, int in, int out, const double *x, const double *w,
				  const double *bias, double *y)
{
	int i = INDEX;
	double sum;

	if (i >= n)
		return;
	sum = bias[i % out];
	for (int k = 0; k < in; k++)
		sum += x[i / out * in + k] * w[k * out + i % out];
	y[i] = tanh(sum);
}

extern "C" __global__ void linear_back_weight(int batch, int in, int out, const double *x,
					      const double *d, double *dw)
{
	int i = INDEX;
	double sum = 0;

	if (i >= in * out)
		return;
	for (int b = 0; b < batch; b++)
		sum += x[b * in + i / out] * d[b * out + i % out];
	dw[i] = sum;
}

extern "C" __global__ void linear_back_bias(int batch, int out, const double *d, double *dbias)
{
	int o = INDEX;
	double sum = 0;

	if (o >= out)
		return;
	for (int b = 0; b < batch; b++)
		sum += d[b * out + o];
	dbias[o] = sum;
}

/* add: onto what is there. */
extern "C" __global__ void linear_back_input(int n, int in, int out, int add, const double *w,
					     const double *d, double *dx)
{
	int i = INDEX;
	double sum = 0;

	if (i >= n)
		return;
	for (int o = 0; o < out; o++)
		sum += w[i % in * out + o] * d[i / in * out + o];
	dx[i] = add ? dx[i] + sum : sum;
}

/* --- attention over a cache that the layer appends to ---------------------------------------- */

extern "C" __global__ void kv_append(int n, int width, const int *cursor, const double *x,
				     const double *wk, const double *wv, double *keys,
				     double *values)
{
	int i = INDEX, at = *cursor * width + i;
	double k = 0, v = 0;

	if (i >= n)
		return;
	for (int c = 0; c < width; c++) {
		k += x[i / width * width + c] * wk[c * width + i % width];
		v += x[i / width * width + c] * wv[c * width + i % width];
	}
	keys[at] = k;
	values[at] = v;
}

extern "C" __global__ void kv_advance(int batch, int *cursor, int *used)
{
	*cursor += batch;
	*used = *cursor;
}

/* A thread a row of the batch: y = softmax(q keys / 2) values over the rows in use. */
extern "C" __global__ void kv_attend(int batch, int width, int slots, const int *used,
				     const double *x, const double *wq, const double *keys,
				     const double *values, double *q, double *p, double *y)
{
	int b = INDEX;
	double top = -INFINITY, sum = 0;

	if (b >= batch)
		return;
	for (int c = 0; c < width; c++) {
		double v = 0;

		for (int k = 0; k < width; k++)
			v += x[b * width + k] * wq[k * width + c];
		q[b * width + c] = v;
		y[b * width + c] = 0;
	}
	for (int j = 0; j < slots; j++) {
		double s = 0;

		for (int c = 0; c < width; c++)
			s += q[b * width + c] * keys[j * width + c];
		p[b * slots + j] = s / 2;
		if (j < *used)
			top = fmax(top, s / 2);
	}
	for (int j = 0; j < slots; j++) {
		p[b * slots + j] = j < *used ? exp(p[b * slots + j] - top) : 0;
		sum += p[b * slots + j];
	}
	for (int j = 0; j < slots; j++) {
		p[b * slots + j] /= sum;
		for (int c = 0; c < width; c++)
			y[b * width + c] += p[b * slots + j] * values[j * width + c];
	}
}

extern "C" __global__ void kv_back_scores(int batch, int width, int slots, const double *p,
					  const double *keys, const double *values,
					  const double *dy, double *ds, double *dq)
{
	int b = INDEX;
	double mean = 0;

	if (b >= batch)
		return;
	for (int j = 0; j < slots; j++) {
		double v = 0;

		for (int c = 0; c < width; c++)
			v += dy[b * width + c] * values[j * width + c];
		ds[b * slots + j] = v;
		mean += p[b * slots + j] * v;
	}
	for (int c = 0; c < width; c++)
		dq[b * width + c] = 0;
	for (int j = 0; j < slots; j++) {
		ds[b * slots + j] = p[b * slots + j] * (ds[b * slots + j] - mean) / 2;
		for (int c = 0; c < width; c++)
			dq[b * width + c] += ds[b * slots + j] * keys[j * width + c];
	}
}

/* Rows of earlier steps are constants; only those just appended have a gradient. */
extern "C" __global__ void kv_back_rows(int n, int batch, int width, int slots, const int *used,
					const double *p, const double *q, const double *ds,
					const double *dy, double *dk, double *dv)
{
	int i = INDEX, row = *used - batch + i / width;
	double k = 0, v = 0;

	if (i >= n)
		return;
	for (int b = 0; b < batch; b++) {
		k += ds[b * slots + row] * q[b * width + i % width];
		v += p[b * slots + row] * dy[b * width + i % width];
	}
	dk[i] = k;
	dv[i] = v;
}

/* --- contrastive loss against a queue of old keys -------------------------------------------- */

/* A thread a row: p = softmax of z key and z negatives, over the temperature; loss = -log p[0]. */
extern "C" __global__ void contrast(int batch, int width, int slots, double temperature,
				    const double *z, const double *key, const double *negative,
				    double *p, double *loss)
{
	int b = INDEX;
	double top = -INFINITY, sum = 0;

	if (b >= batch)
		return;
	p += b * (slots + 1);
	for (int j = 0; j <= slots; j++) {
		double s = 0;

		for (int c = 0; c < width; c++)
			s += z[b * width + c] *
			     (j ? negative[(j - 1) * width + c] : key[b * width + c]);
		p[j] = s / temperature;
		top = fmax(top, p[j]);
	}
	for (int j = 0; j <= slots; j++) {
		p[j] = exp(p[j] - top);
		sum += p[j];
	}
	for (int j = 0; j <= slots; j++)
		p[j] /= sum;
	loss[b] = -log(p[0]);
}

extern "C" __global__ void contrast_enqueue(int n, int width, int slots, const int *head,
					    const double *key, double *queue)
{
	int i = INDEX;

	if (i < n)
		queue[(*head + i / width) % slots * width + i % width] = key[i];
}

extern "C" __global__ void contrast_advance(int batch, int slots, int *head)
{
	*head = (*head + batch) % slots;
}

/* Of the mean over the batch. */
extern "C" __global__ void contrast_back(int n, int batch, int width, int slots, double temperature,
					 const double *z, const double *key, const double *negative,
					 const double *p, double *dz, double *dkey)
{
	int i = INDEX, b = i / width, c = i % width;
	double pull, sum;

	if (i >= n)
		return;
	pull = p[b * (slots + 1)] - 1;
	sum = pull * key[i];
	for (int j = 0; j < slots; j++)
		sum += p[b * (slots + 1) + 1 + j] * negative[j * width + c];
	dz[i] = sum / (temperature * batch);
	dkey[i] = pull * z[i] / (temperature * batch);
}
