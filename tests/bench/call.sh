#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Nanoseconds per intercepted call: direct, and under the library in each mode, in one run, beside the budget. The
# driver does nothing (tests/shim/null_driver.c), so a mode's excess over direct is the library's own time. Every
# figure is the best of ROUNDS processes, taken in turn. States (tests/shim/call_client.c): nothing pending; a forward
# pending whose memory the calls do not touch, no window open; inside of an open forward. -new: with addresses that no call
# before had, else the call is equal to the one before. Then launches a second by several threads at once. From make bench: RS_BUILD.
set -eu
cd "$(dirname "$0")/../.."
: "${RS_BUILD:=$PWD/build}" "${ROUNDS:=5}" "${LIVE:=10 1000 100000}" "${THREADS:=1 2 4 8}"
[ -f "$RS_BUILD/libreplayshim.so" ] || { echo "no $RS_BUILD/libreplayshim.so" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"${CC:-gcc}" -w -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.1" tests/shim/null_driver.c
"${CC:-gcc}" -w -O2 -I. -o "$dir/client" tests/shim/call_client.c -ldl -lpthread

one() { # mode live state [threads]: lines `mode.state name figure`
	column=$1.$3
	mode=$1
	shift
	case $mode in
	direct) LD_LIBRARY_PATH=$dir "$dir/client" "$@" ;;
	*) LD_LIBRARY_PATH=$dir LD_PRELOAD=$RS_BUILD/libreplayshim.so REPLAYSHIM_MODE=$mode REPLAYSHIM_QUIET=1 \
		REPLAYSHIM_OUT=$dir/out.%p "$dir/client" "$@" ;;
	esac | sed "s/^/$column /"
	rm -rf "$dir"/out.*
}

for live in $LIVE; do
	: >"$dir/lines"
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		for column in direct.idle off.idle nop.idle audit.idle preserve.idle audit.pending preserve.pending \
			audit.window; do
			one "${column%.*}" "$live" "${column#*.}" >>"$dir/lines"
		done
		round=$((round + 1))
	done
	echo "ns a call, $live live allocations, best of $ROUNDS; over: audit - direct; x: audit / direct"
	awk '
		BEGIN {
			n = split("passed-through 3 copy 10 fill 10 launch-8 45 launch-64 150 launch-8-ptx 45 " \
				"copy-new 10 launch-8-new 45 launch-64-new 150 launch-8-ptx-new 45 alloc-free 250 " \
				"sub-alloc-free 250", b)
			for (i = 1; i < n; i += 2) budget[b[i]] = b[i + 1]
		}
		{ key = $2 " " $1; if (!(key in best) || $3 < best[key]) best[key] = $3
		  if (!($2 in seen)) { seen[$2] = 1; order[++calls] = $2 } }
		function audit(call, state, preserve,   a, d) {
			a = best[call " audit." state]; d = best[call " direct.idle"]
			printf " |%8.1f", a
			if (preserve) printf " %8.1f", best[call " preserve." state]
			printf " %7.1f %5.1f", a - d, a / d
		}
		END {
			printf "  %-16s %20s | %-30s | %-30s | %-21s |\n", "", "", "nothing pending", "forward pending",
				"inside of a forward"
			printf "  %-16s %6s %6s %6s", "", "direct", "off", "nop"
			for (i = 0; i < 2; i++) printf " |%8s %8s %7s %5s", "audit", "preserve", "over", "x"
			printf " |%8s %7s %5s | %6s\n", "audit", "over", "x", "budget"
			for (i = 1; i <= calls; i++) {
				c = order[i]
				printf "  %-16s %6.1f %6.1f %6.1f", c, best[c " direct.idle"], best[c " off.idle"], best[c " nop.idle"]
				audit(c, "idle", 1); audit(c, "pending", 1); audit(c, "window", 0)
				printf " | %6d\n", budget[c]
			}
		}' "$dir/lines"
done

: >"$dir/lines"
round=0
while [ "$round" -lt "$ROUNDS" ]; do
	for threads in $THREADS; do
		for column in direct.idle audit.idle audit.pending; do
			one "${column%.*}" 1000 "${column#*.}" "$threads" >>"$dir/lines"
		done
	done
	round=$((round + 1))
done
echo "million launches of 8 words a second by several threads at once, in all, on $(nproc) processors, best of $ROUNDS"
awk '
	{ sub("threads-", "", $2); key = $2 " " $1; if ($3 / 1e6 > figure[key]) figure[key] = $3 / 1e6
	  if (!($2 in seen)) { seen[$2] = 1; order[++n] = $2 } }
	END {
		printf "  %7s %8s %17s %17s\n", "threads", "direct", "nothing pending", "forward pending"
		for (i = 1; i <= n; i++)
			printf "  %7d %8.1f %17.1f %17.1f\n", order[i], figure[order[i] " direct.idle"],
				figure[order[i] " audit.idle"], figure[order[i] " audit.pending"]
	}' "$dir/lines"
