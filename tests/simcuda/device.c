/* SPDX-License-Identifier: MIT */
/*
 * Devices: how many, what they say they are. They say that they are simulated.
 */
#include "tests/simcuda/sim.h"
#include "tests/simcuda/limits.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult check(CUdevice dev)
{
	return dev < 0 || dev >= (int)sim_options.devices ? CUDA_ERROR_INVALID_DEVICE
							  : CUDA_SUCCESS;
}

SIM_API(cuDeviceGet, SIM_INIT, P(CUdevice *ret, int ordinal), P(ret, ordinal))
{
	CUresult r = ret ? check(ordinal) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = ordinal;
	return r;
}

SIM_API(cuDeviceGetCount, SIM_INIT, P(int *ret), P(ret))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (int)sim_options.devices;
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName, SIM_INIT, P(char *name, int len, CUdevice dev), P(name, len, dev))
{
	CUresult r = name && len > 0 ? check(dev) : CUDA_ERROR_INVALID_VALUE;
	char upper[16];
	size_t i;

	if (r)
		return r;
	for (i = 0; sim_options.profile->name[i] && i < sizeof(upper) - 1; i++)
		upper[i] = (char)toupper((unsigned char)sim_options.profile->name[i]);
	upper[i] = 0;
	snprintf(name, (size_t)len, "Simulated device (%s profile)", upper);
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceComputeCapability, SIM_INIT, P(int *major, int *minor, CUdevice dev),
	P(major, minor, dev))
{
	CUresult r = major && minor ? check(dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*major = sim_options.cc / 10;
	*minor = sim_options.cc % 10;
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceTotalMem_v2, SIM_INIT, P(size_t *ret, CUdevice dev), P(ret, dev))
{
	CUresult r = ret ? check(dev) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = sim_options.memory;
	return r;
}

SIM_API(cuDeviceGetAttribute, SIM_INIT, P(int *ret, CUdevice_attribute attr, CUdevice dev),
	P(ret, attr, dev))
{
	CUresult r = ret ? check(dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	switch (attr) {
#define ATTR(name, value)                                                                          \
	case CU_DEVICE_ATTRIBUTE_##name:                                                           \
		*ret = (value);                                                                    \
		return CUDA_SUCCESS;
#include "tests/simcuda/attrs.def"
#undef ATTR
	default:
		if ((int)attr < 1 || attr >= CU_DEVICE_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*ret = 0;
		return CUDA_SUCCESS;
	}
}

static CUresult uuid(CUuuid *ret, CUdevice dev)
{
	CUresult r = ret ? check(dev) : CUDA_ERROR_INVALID_VALUE;

	if (!r) {
		memcpy(ret->bytes, "simulated-dev-00", 16);
		ret->bytes[14] = (char)('0' + dev / 10);
		ret->bytes[15] = (char)('0' + dev % 10);
	}
	return r;
}

SIM_API(cuDeviceGetUuid, SIM_INIT, P(CUuuid *ret, CUdevice dev), P(ret, dev))
{
	return uuid(ret, dev);
}

SIM_API(cuDeviceGetUuid_v2, SIM_INIT, P(CUuuid *ret, CUdevice dev), P(ret, dev))
{
	return uuid(ret, dev);
}

SIM_API(cuDeviceGetPCIBusId, SIM_INIT, P(char *ret, int len, CUdevice dev), P(ret, len, dev))
{
	CUresult r = ret && len > 12 ? check(dev) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		snprintf(ret, (size_t)len, "0000:%02x:00.0", dev + 1);
	return r;
}

SIM_API(cuDeviceGetByPCIBusId, SIM_INIT, P(CUdevice *ret, const char *id), P(ret, id))
{
	unsigned domain, bus, device, function = 0;

	if (!ret || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
		domain = 0;
		if (sscanf(id, "%x:%x.%x", &bus, &device, &function) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (domain || device || function || check((int)bus - 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = (int)bus - 1;
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceCanAccessPeer, SIM_INIT, P(int *ret, CUdevice dev, CUdevice peer),
	P(ret, dev, peer))
{
	CUresult r = ret ? check(dev) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		r = check(peer);
	if (!r)
		*ret = dev != peer;
	return r;
}

SIM_API(cuDeviceGetP2PAttribute, SIM_INIT,
	P(int *ret, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst), P(ret, attr, src, dst))
{
	CUresult r = ret && src != dst ? check(src) : CUDA_ERROR_INVALID_DEVICE;

	if (!r)
		r = check(dst);
	if (!r)
		*ret = attr == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
	return r;
}
