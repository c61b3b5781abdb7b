/* SPDX-License-Identifier: MIT */
/*
 * The end of a test of instruction forms: included once, after the table ALL(X) is defined. Each row
 * X(opcode, operand signature, extra, reference expression of a, b, c, d) becomes a form and the case of its reference; main
 * runs them all. No include guard: it defines main.
 */
static const struct kit_form forms[] = {
#define X(op, sig, extra, ...) {op, sig, extra},
	ALL(X)
#undef X
};

/* Rows are numbered by a second counter, in the order of the table. */
enum { FIRST_ROW = __COUNTER__ + 1 };

static uint64_t reference(unsigned row, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	(void)d;
	switch (row) {
#define X(op, sig, extra, ...)                                                                     \
	case __COUNTER__ - FIRST_ROW:                                                              \
		return (uint64_t)(__VA_ARGS__);
		ALL(X)
#undef X
	default:
		return 0;
	}
}

int main(void)
{
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
		kit_form(&forms[i], reference, i);
	return tap_done();
}
