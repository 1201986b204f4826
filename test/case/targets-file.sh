#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Targets from a file: quotes, comments, CRLF; together with those on the line.
# quick
# beside others
. "$SRC/test/lib.sh"

cat >"$T/targets" <<'END'
# a comment
:victim_work 0   # and one behind

':victim_other'	"2us" every=2
END
printf ':victim_idle 1ms\r\n' >>"$T/targets"
sb --targets "$T/targets" victim-lib.so:lib_fn 0 --json "$T/run.json" \
	-- "$V/calls" -n 5000 -l "$V/victim-lib.so"
ended 0
same targets "$(j targets.#)" 4
for ((i = 0; i < 4; i++)); do
	hits=$(j "targets.$i.hits")
	case $(j "targets.$i.spec") in
	:victim_work) same hits "$hits" 5000 ;;
	:victim_other)
		same delay_ns "$(j "targets.$i.delay_ns")" 2000
		same every "$(j "targets.$i.every")" 2
		more hits "$hits" 1
		;;
	:victim_idle) same outcome "$(j "targets.$i.outcome")" never_called ;;
	victim-lib.so:lib_fn) same hits "$hits" 5010 ;;
	*) fail "a target that was not named: $(j "targets.$i.spec")" ;;
	esac
done
