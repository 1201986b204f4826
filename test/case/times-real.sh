#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# time=yes on real programs: thousands of functions of an interpreter, beside exceptions and threads;
# and of a server under load, whose clients see nothing of it.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need_python
for p in "${python[@]}"; do
	"$p" -c 'import sysconfig, sys; sys.exit(not sysconfig.get_config_var("Py_ENABLE_SHARED"))' &&
		shared=$p && break
done

interpreter() {
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
	sb 'libpython3*:*' 0 time=yes --hits-by-function --json "$T/run.json" -- "$shared" "$T/once.py"
	ended 0 interpreter
	grep -q '^self-check ok$' "$T/sb.out" || fail "$(cat "$T/sb.out" "$T/sb.err")"
	"$shared" - "$T/run.json" <<'END' >"$T/compared" || fail "$(cat "$T/compared")"
import json, sys
run = json.load(open(sys.argv[1]))
target = run["targets"][0]
spans, untimed = target["spans"], {s["address"] for s in target.get("sites_untimed", [])}
timed = sum(s.get("hits", 0) for s in target["sites"] if s["address"] not in untimed)
threads, elapsed = 3, run["wall_s"] * 1e9
print(target["hits"], "hits,", timed, "of timed functions;", spans["calls"], "calls,", spans["missed"], "missed;",
      len(untimed), "functions untimed; own", spans["exclusive_ns"], "of", elapsed)
bad = target["hits"] != spans["calls"] + spans["missed"]  # untimed functions' calls are missed
bad |= not 0 <= timed - spans["calls"] <= timed / 100
bad |= spans["calls"] < 100000 or spans["exclusive_ns"] is None
sys.exit(bad or spans["exclusive_ns"] > elapsed * threads)
END
}
[ -z "${shared:-}" ] || interpreter

need redis-server redis-benchmark redis-cli
port=$(free_port)
redis-server --port "$port" --save '' --appendonly no --daemonize no >"$T/redis.out" 2>&1 &
server=$!
pids+=("$server")
wait_for 10 redis-cli -p "$port" ping || skip 'redis does not start here'
program=$(readlink "/proc/$server/exe")
program=${program##*/}
"$SB" list "$program:processCommand" -- redis-server --version | grep -q processCommand ||
	skip 'redis has no symbols'
attach "$server" "$program:processCommand" 0 time=yes "$program:call" 0 time=yes libc.so.6:epoll_wait 0 time=yes
redis-benchmark -p "$port" -n 20000 -c 20 -t set,get --csv >"$T/bench.csv" 2>"$T/bench.err" ||
	fail "the clients saw an error: $(cat "$T/bench.err")"
sb_stop INT
ended 0 server
more 'commands' "$(j targets.0.spans.calls)" 39999
same 'commands timed' "$(j targets.0.spans.calls)" "$(j targets.0.hits)"
same 'commands missed' "$(j targets.0.spans.missed)" 0
less 'their own time' "$(j targets.0.spans.exclusive_ns)" "$(j targets.0.spans.inclusive_ns)"
less 'commands called' "$(j targets.1.spans.calls)" "$(($(j targets.0.spans.calls) + 1))"
more 'commands called' "$(j targets.1.spans.calls)" 39999
less 'call within processCommand' "$(j targets.1.spans.inclusive_ns)" "$(j targets.0.spans.inclusive_ns)"
less 'the rest of the time' "$(($(j targets.0.spans.inclusive_ns) - $(j targets.1.spans.inclusive_ns)))" \
	"$(($(j targets.0.spans.exclusive_ns) + 4))"
let_go "$server"
same ping "$(redis-cli -p "$port" ping)" PONG
redis-cli -p "$port" shutdown nosave >/dev/null 2>&1
wait "$server" || fail "redis ended with status $?"
