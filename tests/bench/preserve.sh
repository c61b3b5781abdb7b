#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What it costs to preserve and to restore, for each option, beside plain copies of the same bytes that the program makes
# by itself, in one run (tests/clients/preserve_cost.c): as virtual time of the simulated device, and as time of the host
# with a driver that does nothing (tests/shim/null_driver.c). Then a step of the demo's network with and without the tool
# (demo_step.py). Remapping is by the host, which waits for the device; its table is a mapping (--mapped), and where rows are
# overwritten it does not apply: they are copied. From make bench: RS_BUILD.
set -eu
cd "$(dirname "$0")/../.."
: "${RS_BUILD:=$PWD/build}" "${CASES:=big sparse rows}" "${STEPS:=6}"
client=$RS_BUILD/clients/preserve_cost
[ -x "$client" ] || { echo "no $client" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export SIMCUDA_SCHED=lazy SIMCUDA_PROFILE=h100 REPLAYSHIM_QUIET=1 REPLAYSHIM_SAMPLE=0
"${CC:-gcc}" -w -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libcuda.so.1 "-DUNIT=(1ull << 25)" \
	-o "$dir/libcuda.so.1" tests/shim/null_driver.c

both() { # label arguments...: lines "label phase virtual" and "label phase . host"
	label=$1
	shift
	LD_LIBRARY_PATH=$RS_BUILD/simcuda "$client" "$@" "--steps=$STEPS" |
		while read -r phase virtual _; do echo "$label $phase $virtual"; done
	# the tool's data of the first run is looked at, not that of the second one
	REPLAYSHIM_OUT=$dir/out.null LD_LIBRARY_PATH=$dir "$client" "$@" "--steps=$((STEPS * 3))" |
		while read -r phase _ host; do echo "$label $phase . $host"; done
}

run() { # label verify arguments...
	label=$1
	REPLAYSHIM_OUT=$dir/out REPLAYSHIM_VERIFY=$2 REPLAYSHIM_MODE=preserve
	shift 2
	export REPLAYSHIM_OUT REPLAYSHIM_VERIFY REPLAYSHIM_MODE
	LD_PRELOAD=$RS_BUILD/libreplayshim.so both "$label" "$@"
	sed -n 's/.*"snapshot_bytes_peak":\([0-9]*\).*/\1/p' "$dir/out/events.jsonl" | tail -1 | sed "s/^/$label kept /"
	if [ "$REPLAYSHIM_VERIFY" = 1 ] && grep -qv '"outcome":"match"' "$dir/out/records.jsonl"; then
		echo "$label: not every replay is a match" >&2
	fi
	# of the large buffer all is overwritten, so that it can be done; of rows it cannot
	case $label-${2:-} in
	*remap*--mapped)
		if [ "$1" = big ] && ! grep -q '"remaps":[1-9]' "$dir/out/events.jsonl"; then
			echo "$label: nothing was remapped" >&2
		fi
		;;
	esac
	rm -rf "$dir/out" "$dir/out.null"
}

for case in $CASES; do
	both none "$case" >"$dir/lines"
	both plain-copies "$case" --plain >>"$dir/lines"
	for mapped in "" --mapped; do
		LD_LIBRARY_PATH=$RS_BUILD/simcuda "$RS_BUILD/replayctl" audit --out "$dir/learn" \
			-o "$dir/learned$mapped.json" -- "$client" "$case" --steps=3 $mapped >/dev/null 2>&1
	done
	for option in undo whole regions pages; do
		for restore in copy swap remap; do
			mapped=
			[ $restore = remap ] && mapped=--mapped
			sed -e 's/"option": "[a-z]*"/"option": "'$option'"/' \
				-e 's/"restore": "[a-z]*"/"restore": "'$restore'"/' "$dir/learned$mapped.json" >"$dir/contract.json"
			export REPLAYSHIM_CONTRACT="$dir/contract.json"
			run "$option-$restore" 0 "$case" $mapped >>"$dir/lines"
			run "$option-$restore-verified" 1 "$case" $mapped >>"$dir/lines"
			unset REPLAYSHIM_CONTRACT
		done
	done
	rm -rf "$dir/learn" "$dir"/learned*.json
	case $case in
	big) echo "16 MiB, overwritten by one fill" ;;
	sparse) echo "16 MiB, 64 rows overwritten by a kernel that may write anything" ;;
	rows) echo "2048 rows of 4 KiB, every other one of 16 MiB, each overwritten by a fill of its own" ;;
	esac
	awk '
		{ if (NF == 3) v[$1, $2] = $3; else h[$1, $2] = $4; if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 } }
		function row(name, label,   pv, rv, ph, rh) {
			pv = v[name, "forward"] + v[name, "write"] - v["none", "forward"] - v["none", "write"]
			rv = v[name, "replay"] - v["none", "replay"]
			ph = h[name, "forward"] + h[name, "write"] - h["none", "forward"] - h["none", "write"]
			rh = h[name, "replay"] - h["none", "replay"]
			if (name == "plain-copies") { cpv = pv; crv = rv }
			printf "  %-24s %9.1f %7.2f %9.1f %7.2f | %9.1f %9.1f | %8.2f\n", name, pv / 1e3, pv / cpv,
				rv / 1e3, rv / crv, ph / 1e3, rh / 1e3, v[name, "kept"] / 1048576
		}
		END {
			printf "  %-24s %35s | %19s |\n", "", "microseconds, simulated h100", "host, microseconds"
			printf "  %-24s %9s %7s %9s %7s | %9s %9s | %8s\n", "", "preserve", "/copies", "restore", "/copies",
				"preserve", "restore", "MiB kept"
			for (i = 2; i <= n; i++) row(order[i])
		}' "$dir/lines"
done

python=build/venv/bin/python
if [ -x "$python" ]; then
	RS_BUILD=$RS_BUILD "$python" tests/bench/demo_step.py
else
	echo "a step of the demo: not measured, make deps installs what it needs"
fi
