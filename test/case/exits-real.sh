#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 180 s
# at=exit on thousands of functions of a real program: calls and returns agree for every function
# of the interpreter; attach, detach and SIGKILL of both at any moment, beside signals and
# exceptions, leave the program right.
# beside others, as idle work
. "$SRC/test/lib.sh"
need_python
for p in "${python[@]}"; do
	"$p" -c 'import sysconfig, sys; sys.exit(not sysconfig.get_config_var("Py_ENABLE_SHARED"))' &&
		shared=$p && break
done
[ -n "${shared:-}" ] || skip 'there is no CPython with a shared library'

cat >"$T/once.py" <<'END'
import json, re, threading
def work(n):
    for i in range(n):
        try:
            if i % 7 == 0:
                raise ValueError(i)
            assert json.loads(json.dumps({"a": [i] * 5}))["a"][0] == i
        except ValueError:
            assert re.sub(r"\d", "x", str(i))[0] == "x"
threads = [threading.Thread(target=work, args=(300,)) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
print("self-check ok")
END
cat >"$T/loop.py" <<'END'
import itertools, json, re, signal, threading, time
stop = False
def end(*_):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work():
    for n in itertools.count():
        if stop:
            return
        if n % 10 == 0: # some ms of one processor are enough
            time.sleep(0.005)
        assert json.loads(json.dumps({"a": [1, 2.5, "x"]}))["a"][1] == 2.5
        assert re.sub("a+", "b", "caat") == "cbt"
        try:
            raise ValueError(3)
        except ValueError as e:
            assert e.args == (3,)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
print("ready", flush=True)
while not stop:
    time.sleep(0.01)
signal.setitimer(signal.ITIMER_REAL, 0)
[t.join() for t in threads]
print("self-check ok")
END

# A function that begins as often as it returns: all but a few, which no call or no exit leaves.
sb 'libpython3*:*' 0 'libpython3*:[!~]*' 0 at=exit --hits-by-function --json "$T/run.json" \
	-- "$shared" "$T/once.py"
ended 0
grep -q '^self-check ok$' "$T/sb.out" || fail "$(cat "$T/sb.out" "$T/sb.err")"
"$shared" - "$T/run.json" <<'END' >"$T/compared" || fail "$(cat "$T/compared")"
import json, sys
calls, returns = ({}, {})
for target, into in zip(json.load(open(sys.argv[1]))["targets"], (calls, returns)):
    for site in target["sites"]:
        into.setdefault(site["symbol"], {}).setdefault(site.get("function", site["address"]), []).append(
            site.get("hits", 0))
same, different = 0, []
for name, functions in calls.items():
    for entry, (hits,) in functions.items():
        if hits and entry in returns.get(name, {}):
            back = sum(returns[name][entry])
            same += back == hits
            if back != hits:
                different.append((name, hits, back))
print(same, "equal;", different)
sys.exit(same < 500 or len(different) > 0)
END

start loop "$shared" "$T/loop.py"
target=$pid
for ((i = 0; i < $(rounds 2 4); i++)); do
	sb -p "$target" 'libpython3*:*' 50ns at=exit 'libc.so.6:*' 0 at=exit --for 200ms \
		--json "$T/run.json"
	ended 0 cycle
	more 'hits in a cycle' "$(j targets.0.hits)" 1000
	let_go "$target"
done
for pause in 0.1 0.3 0.5; do
	attach "$target" 'libpython3*:*' 50ns at=exit
	sleep $pause
	tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$target/status")
	[ "$tracer" -gt 0 ] || fail 'no tracer'
	kill -STOP "$sb_pid" # so that it cannot restore between the two
	kill -KILL "$tracer" "$sb_pid"
	wait "$sb_pid" 2>/dev/null
	"$SB" recover -p "$target" >"$T/recover" 2>&1 || fail "recover: $(cat "$T/recover")"
	let_go "$target"
done
finish loop "$target"
