#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The candidates of a Python program are its own functions, with the shares that the program's clock has,
# read from outside: nothing is mapped, and no thread is stopped. So are those in which a thread waits. Up to
# 3.10 they are the interpreter's.
# Also where the program has process numbers of its own.
# beside idle work
# limit: 120 s
. "$SRC/test/lib.sh"
need_python versions
need python3

cat >check.py <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
truth = {line.split()[1]: float(line.split()[2]) for line in open(sys.argv[2]) if line.startswith("share ")}
old = sys.argv[3] == "3.10"
own = {c["target"]: c for c in d["candidates"] if c["target"].startswith("py:")}
files = [c["target"] for c in d["candidates"] if not c["target"].startswith("py:")]
print(own, files, d["samples"], d["looks"], truth)
if old:
    assert not own and files and d["looks"] is None and d["waits"] is None, "no names of functions are known"
    sys.exit(0)
# A thread that waits for a processor counts as one that runs, wherever it had to leave it.
more = sum(c["share"] for name, c in own.items() if name[3:] not in truth)
assert set(own) - {"py:__main__:timed"} == {"py:" + name for name in truth} and more < 0.2, "just these"
assert not any("_PyEval" in name for name in files), "the interpreter's own functions are left out"
assert d["samples_in_interpreters"] > 0.3 * d["samples"] and d["samples_in_no_function"] < 0.2 * d["samples"], d
# What waits has no share of these: the thread that runs is all there is. Two wait within the standard
# library, for a module's own code and for nothing, one in waits(). Where others have the processors, the
# GIL is waited for, too.
waits = {w["target"]: w["share"] for w in d["waits"]}
assert waits["py:__main__:waits"] > (0.7 if more < 0.02 else 0.3), d["waits"]
assert not any("threading:" in name or "<module>" in name for name in waits), d["waits"]
near = 5 * (0.25 / d["looks"]) ** 0.5 + 0.03 + more
for name, share in truth.items():
    c = own["py:" + name]
    assert c["hookable"] and c["ci"][0] <= c["share"] <= c["ci"][1], c
    assert abs(c["share"] - share) < near, (c, share, near)
P

# watch PID: until there are enough looks; on a busy machine a thread runs for a part of the time
watch() {
	local time

	snapshot "$1"
	for time in 2s 5s 10s; do
		sb explain -p "$1" --time $time --json "$T/run.json"
		ended 0
		[ "$(j looks)" != null ] && [ "$(j looks)" -lt 150 ] || break
	done
	unchanged "$1"
}

# look VERSION NAME PID: of the victim's process tree, then its end
look() {
	watch "$3"
	[ "$(j candidates)" != null ] || { finish "$2" "$3"; skip "$(j candidates_reason)"; }
	finish "$2" "$3"
	python3 check.py run.json "$2.out" "$1" || fail "Python $1: $(cat sb.out)"
}

for p in "${python[@]}"; do
	version=$("$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	start shares "$p" "$SRC/test/victim/python/shares.py"
	look "$version" shares "$pid"
done
if [ "$version" != 3.10 ] && unshare --pid --fork true 2>/dev/null; then
	start inner unshare --pid --fork --kill-child=TERM "$p" "$SRC/test/victim/python/shares.py"
	inside=$(pgrep -P "$pid")
	watch "$inside"
	kill -TERM "$inside"
	wait "$pid"
	said inner '^self-check ok$' || fail "inner: $(cat inner.out inner.err)"
	python3 check.py run.json inner.out "$version" || fail "with numbers of its own: $(cat sb.out)"
fi

# find proposes one of them, and names it as its own commands take it.
start shares "$p" "$SRC/test/victim/python/shares.py"
sb find -p "$pid" --dry-run --json "$T/run.json"
ended 0
case $version in
3.10) ;;
*)
	[[ $(j commands.count) == *' py:__main__:Work.heavy 0 '* ]] || fail "find: $(cat sb.out)"
	python3 - run.json <<'P' || fail "find: $(cat sb.out)"
import json, sys
d = json.load(open(sys.argv[1]))
rates = {r["target"]: r["calls"] for r in d["rates"]}
assert abs(rates["py:__main__:Work.heavy"] - rates["py:__main__:light"]) <= 1, rates
assert rates["py:parts:packs"] > 10, rates
assert d["progress"] in (None, "py:__main__:Work.heavy"), d["progress"]
P
	;;
esac
finish shares "$pid"
exit 0
