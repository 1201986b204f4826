#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A result is written where its path led when the run began, whatever stands there at its end; and
# the programs refuse to run with rights that their user does not have.
. "$SRC/test/lib.sh"
need_root
need setpriv

mkdir -m 777 "$T/theirs"
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
start calls "$V/calls"

# swap FILE: its owner, who owns the directory, puts a link to a file of ours there
swap() {
	as_nobody rm -f "$T/theirs/$1"
	as_nobody ln -s "$T/precious" "$T/theirs/$1"
}
for option in json jsonl metrics-file report; do
	echo precious >"$T/precious"
	file=out.$option
	as_nobody touch "$T/theirs/$file" && chmod 666 "$T/theirs/$file"
	rm -f "$T/told"
	sb_start -p "$pid" :victim_work 0 "--$option" "$T/theirs/$file" --interval 50ms --status-fd 9 \
		9>"$T/told"
	wait_for 20 grep -q '^attached' "$T/told" || fail 'no attach'
	swap "$file"
	[ $option = json ] || [ $option = jsonl ] ||
		wait_for 10 test -f "$T/theirs/$file" -a ! -h "$T/theirs/$file" || fail "no $option"
	sb_stop
	same "what the link of --$option led to" "$(cat "$T/precious")" precious
	if [ $option = jsonl ]; then
		[ "$rc" -ne 0 ] || fail 'a link passed for a file'
	else
		ended 0
		[ -f "$T/theirs/$file" ] && [ ! -h "$T/theirs/$file" ] || fail "--$option was not written"
	fi
done
# A link that is there from the start is the user's own doing.
ln -s "$T/linked.json" "$T/link.json"
echo old >"$T/linked.json"
sb -p "$pid" :victim_work 0 --for 10ms --json "$T/link.json"
ended 0
[ -h "$T/link.json" ] && grep -q sbinject.run "$T/linked.json" || fail 'a link of the own was not followed'
sb -p "$pid" :victim_work 0 --for 10ms --json /dev/stdout
ended 0
grep -q sbinject.run "$T/sb.out" || fail 'not on the standard output'
finish calls "$pid"

# Rights of the file's.
cp "$SB" "$T/sbinject" && cp "$CTL" "$T/sbctl"
chmod 755 "$T"
gained() { # PATTERN
	for program in sbinject sbctl; do
		rc=0
		as_nobody "$T/$program" --help >"$T/sb.out" 2>"$T/sb.err" || rc=$?
		ended 1
		told "privileges that its user does not have ($1"
		[ ! -s "$T/sb.out" ] || fail "$program went on"
	done
}
chmod 4755 "$T/sbinject" "$T/sbctl"
gained 'its set-user-id'
chmod 2755 "$T/sbinject" "$T/sbctl"
gained 'its set-user-id'
chmod 755 "$T/sbinject" "$T/sbctl"
if command -v setcap >/dev/null && setcap cap_chown=ep "$T/sbinject" && setcap cap_chown=ep "$T/sbctl"; then
	gained 'its file capabilities'
	setcap -r "$T/sbinject"
fi
as_nobody "$T/sbinject" --version >"$T/sb.out" || fail 'an ordinary user is refused'
setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+sys_ptrace --ambient-caps=+sys_ptrace \
	"$T/sbinject" --version >"$T/sb.out" || fail 'capabilities that were handed down are refused'
