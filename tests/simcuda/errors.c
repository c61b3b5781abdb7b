/* SPDX-License-Identifier: MIT */
/*
 * Names and texts of result codes. Both work without cuInit.
 */
#include "tests/simcuda/sim.h"

static const struct {
	CUresult code;
	const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text},
#include "tests/simcuda/errors.def"
#undef ERROR
};

static int find(CUresult code)
{
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code)
			return (int)i;
	return -1;
}

SIM_API(cuGetErrorName, SIM_ANY, P(CUresult code, const char **ret), P(code, ret))
{
	int i = find(code);

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = i < 0 ? NULL : errors[i].name;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIM_API(cuGetErrorString, SIM_ANY, P(CUresult code, const char **ret), P(code, ret))
{
	int i = find(code);

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = i < 0 ? NULL : errors[i].text;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
