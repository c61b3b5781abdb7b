#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What it costs to move, exchange, compare and digest bytes for the engine (shim/devops.h, tests/shim/devops_cost.c):
# on the simulated device, in its virtual time, beside plain copies of the same rows, one call each; and on the host, by
# a driver that does nothing (tests/shim/null_driver.c), which copies no parameters either. From make bench: RS_BUILD.
set -eu
cd "$(dirname "$0")/../.."
: "${RS_BUILD:=$PWD/build}"
[ -f "$RS_BUILD/simcuda/libcuda.so.1" ] || { echo "no $RS_BUILD/simcuda/libcuda.so.1" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"${CC:-gcc}" -w -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.1" tests/shim/null_driver.c
"${CC:-gcc}" -w -O2 -std=gnu11 -D_GNU_SOURCE -fvisibility=hidden -I. ${CUDA_HOME:+-isystem "$CUDA_HOME/include"} \
	-isystem build/cuda/include -o "$dir/cost" tests/shim/devops_cost.c -ldl -lpthread

for profile in h100 h200; do
	echo "microseconds of virtual time, simulated $profile, not a prediction of hardware; right: ratio to the copies"
	SIMCUDA_PROFILE=$profile LD_LIBRARY_PATH=$RS_BUILD/simcuda "$dir/cost" device
done
echo "ns of the host a call, driver does nothing, best of 300 short loops"
LD_LIBRARY_PATH=$dir "$dir/cost" host
