#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPEED_BUMP_*: used where a command has no target, and said; what is wrong in them is named.
# beside others
. "$SRC/test/lib.sh"
python3=$(command -v python3) || skip 'python3 is not installed'

cat >"$T/prog.py" <<'EOF'
import os
def f(): pass
def g(): pass
for i in range(100):
    f(); g(); g()
print(os.environ.get("SPEED_BUMP_TARGETS"), os.environ["SPEED_BUMP_DELAY_NS"])
EOF
printf '# patterns\n __main__ : f \n__main__:[fg]\n' >"$T/targets"

export SPEED_BUMP_TARGETS=$T/targets SPEED_BUMP_DELAY_NS=2000 SPEED_BUMP_FREQUENCY=2
sb --json "$T/run.json" -- "$python3" "$T/prog.py"
ended 0
case $(cat "$T/sb.err") in *'without Python support'*) skip 'built without Python' ;; esac
told 'SPEED_BUMP_TARGETS: 2 targets .*delay 2us, every 2, start 0, for ever'
same 'what the command sees' "$(cat "$T/sb.out")" 'None 2000'
same 'targets' "$(j targets.0.spec) $(j targets.1.spec)" 'py:__main__:f py:__main__:[fg]'
same 'hits' "$(j targets.0.hits) $(j targets.1.hits)" '100 200'
same 'delayed, each second one' "$(j targets.0.delayed) $(j targets.1.delayed)" '50 100'
same 'delay' "$(j targets.0.delay_ns)" 2000

# options are stronger than the environment; a target on the line leaves it alone
sb --json "$T/run.json" --delay 1us --every 1 -- "$python3" "$T/prog.py"
same 'options' "$(j targets.0.delay_ns) $(j targets.0.delayed)" '1000 100'
sb --json "$T/run.json" py:__main__:g 0 -- "$python3" "$T/prog.py"
same 'a target on the line' "$(j targets.0.spec) $(j targets.0.hits)" 'py:__main__:g 200'
same 'what the command sees' "$(cat "$T/sb.out")" "$T/targets 2000"

# a window that never opens, and one that has closed when the calls come
SPEED_BUMP_START_MS=50000 sb --json "$T/run.json" -- "$python3" "$T/prog.py"
same 'hits before the start' "$(j targets.0.hits)" null
told 'its window never opened'
SPEED_BUMP_DURATION_MS=1 sb --json "$T/run.json" -- \
	"$python3" -c "import time; time.sleep(0.5); exec(open('$T/prog.py').read())"
ended 0
same 'hits after the duration' "$(j targets.0.hits)" null

# nothing is asked for
SPEED_BUMP_TARGETS='' sb -- echo plain
ended 0
[ ! -s "$T/sb.err" ] || fail "an empty SPEED_BUMP_TARGETS: $(cat "$T/sb.err")"
echo '# none' >"$T/none"
SPEED_BUMP_TARGETS=$T/none sb -- echo plain
ended 0
told 'no pattern in'

# what is wrong
SPEED_BUMP_TARGETS=$T/missing refuses 125 'missing: No such file' -- true
printf 'a:b\n\nnope\n' >"$T/bad"
SPEED_BUMP_TARGETS=$T/bad refuses 125 "bad:3: 'nope' has no" -- true
SPEED_BUMP_FREQUENCY=0 refuses 125 "SPEED_BUMP_FREQUENCY '0'" -- true
SPEED_BUMP_DELAY_NS=1us refuses 125 "SPEED_BUMP_DELAY_NS '1us'" -- true
# attached, they are asked for by name only
refuses 2 'no target' -p $$
