#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Nanoseconds for an NVTX push and its pop (tests/shim/range_bench.c): without the library (no injection: NVTX returns at
# once), and under it, with the built-in rules only and with a file of twenty rules. Every figure is the best of ROUNDS
# processes, taken in turn. new-text has other digits each time, so that nothing is remembered of it (and the client
# makes the text); window opens and closes a forward. From make bench: RS_BUILD.
set -eu
cd "$(dirname "$0")/../.."
: "${RS_BUILD:=$PWD/build}" "${ROUNDS:=5}" "${LIBRARY:=$RS_BUILD/libreplayshim.so}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nvtx=
for i in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include build/cuda/include "$RS_BUILD/cuda/include"; do
	[ -f "$i/nvtx3/nvToolsExt.h" ] && nvtx=$i && break
done
[ -n "$nvtx" ] || { echo "no NVTX headers"; exit 0; }

"${CC:-gcc}" -w -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.1" tests/shim/null_driver.c
"${CC:-gcc}" -w -O2 -isystem "$nvtx" -o "$dir/client" tests/shim/range_bench.c -L"$dir" -lcuda -ldl
i=0
while [ $i -lt 19 ]; do
	printf 'forward "layer%d [a-z]+([0-9]+)" name "l%d" number "\\1"\n' $i $i
	i=$((i + 1))
done >"$dir/rules"
echo 'domain "model" ignore "skip ([0-9]+)"' >>"$dir/rules"

one() { # column mode rules
	case $1 in
	none) LD_LIBRARY_PATH=$dir "$dir/client" ;;
	*) LD_LIBRARY_PATH=$dir LD_PRELOAD=$LIBRARY REPLAYSHIM_MODE=$2 REPLAYSHIM_MARKERS=$3 REPLAYSHIM_QUIET=1 \
		REPLAYSHIM_OUT=$dir/out.%p "$dir/client" ;;
	esac | sed "s/^/$1 /"
	rm -rf "$dir"/out.*
}

round=0
while [ "$round" -lt "$ROUNDS" ]; do
	one none "" ""
	one preserve preserve ""
	one rules preserve "$dir/rules"
	one audit audit ""
	round=$((round + 1))
done >"$dir/lines"
awk '{ k = $1 " " $2; if (!(k in best) || $3 < best[k]) best[k] = $3; if (!($2 in seen)) { seen[$2] = ++n; name[n] = $2 } }
END {
	printf "%-14s %10s %10s %10s %10s   ns for push and pop\n", "", "none", "preserve", "20 rules", "audit"
	for (i = 1; i <= n; i++)
		printf "%-14s %10.1f %10.1f %10.1f %10.1f\n", name[i], best["none " name[i]], best["preserve " name[i]],
			best["rules " name[i]], best["audit " name[i]]
}' "$dir/lines"
