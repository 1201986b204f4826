#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A producer that is faster than its consumer fills a queue ahead of it, and the queue outlasts the
# sweep: items do not feel a delay of the producer yet, and its calls fall behind. That is not called
# hidden, nor felt in part, and the reason has the slack that the two stages have (less on a busy
# machine, where the producer takes longer).
# limit: 120 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
[ "$(nproc)" -ge 2 ] || skip 'two stages need two processors'

make=1600 take=2000
start queue "$V/sweep-shapes" queue make=$make take=$take room=500 rest=2
snapshot "$pid"
for try in 1 2 3; do
	sweep "$pid" :produce --progress :item --time 12s --seed "$try"
	[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc"
	same verdict "$(verdict)" INCONCLUSIVE
	reason=$(sj targets.0.reason)
	# By noise one of some ten seems to be felt in the long windows, which is as open and goes before it.
	[[ $reason != 'its calls fall behind the items ('* ]] || break
	[ "$(sj targets.0.calls_ahead)" = true ] || quiet_enough 'the calls were not seen to fall behind'
done
[ "$(sj targets.0.calls_ahead)" = true ] || skip 'too noisy a machine: the calls were not seen to fall behind'
unchanged "$pid"
finish queue "$pid"

[[ $reason == 'its calls fall behind the items ('* ]] || fail "the reason: $reason"
beyond=${reason#*beyond about } beyond=${beyond%%us*}
awk -v b="$beyond" -v s=$((take - make)) 'BEGIN { exit !(b > 0.1 * s && b < 1.5 * s) }' ||
	fail "felt beyond $beyond us, and the stages have a slack of $((take - make)) us"
awk -v e="$(sj targets.0.hits_change)" 'BEGIN { exit !(e < 0) }' || fail 'no fewer calls an item'
! grep -q 'waiting absorbs it' sb.out sb.err || fail 'the calls are explained twice'
