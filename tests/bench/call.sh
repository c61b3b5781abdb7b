#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Nanoseconds per intercepted call: direct, and under the library in each mode, in one run. The driver does
# nothing (tests/shim/null_driver.c), so a mode's excess over direct is the library's own time. Every
# figure is the best of ROUNDS processes, taken in turn. From make bench: RS_BUILD.
set -eu
cd "$(dirname "$0")/../.."
: "${RS_BUILD:=$PWD/build}" "${ROUNDS:=5}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"${CC:-gcc}" -w -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.1" tests/shim/null_driver.c
"${CC:-gcc}" -w -O2 -o "$dir/client" tests/shim/call_client.c -ldl

one() { # mode live
	case $1 in
	direct) LD_LIBRARY_PATH=$dir "$dir/client" "$2" ;;
	*) LD_LIBRARY_PATH=$dir LD_PRELOAD=$RS_BUILD/libreplayshim.so REPLAYSHIM_MODE=$1 REPLAYSHIM_QUIET=1 \
		REPLAYSHIM_OUT=$dir/out.%p "$dir/client" "$2" ;;
	esac | sed "s/^/$1 /"
}

for live in 1000 100000; do
	: >"$dir/lines"
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		for mode in direct off nop audit preserve; do one "$mode" "$live" >>"$dir/lines"; done
		round=$((round + 1))
	done
	echo "ns a call, $live live allocations"
	awk '
		{ key = $2 " " $1; if (!(key in best) || $3 < best[key]) best[key] = $3
		  if (!($2 in seen)) { seen[$2] = 1; order[++n] = $2 } }
		END {
			printf "  %-16s %8s %8s %8s %8s %9s %16s\n", "", "direct", "off", "nop", "audit", "preserve", "audit - direct"
			for (i = 1; i <= n; i++) {
				c = order[i]; d = best[c " direct"]
				printf "  %-16s %8.1f %8.1f %8.1f %8.1f %9.1f %16.1f\n", c, d, best[c " off"], best[c " nop"],
					best[c " audit"], best[c " preserve"], best[c " audit"] - d
			}
		}' "$dir/lines"
done
