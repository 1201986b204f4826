#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The wheel has both programs: where they are not built yet pip builds them, and where that fails it
# refuses with the command that helps.
# beside others
. "$SRC/test/lib.sh"

need make
pip=''
for p in $(pythons); do
	"$p" -c 'import ensurepip, pip' 2>/dev/null && pip=$p && break
done
[ -n "$pip" ] || skip 'no Python from 3.10 on with pip'

# A tree whose make takes a moment.
tree=$T/tree
mkdir -p "$tree/python"
cp "$SRC/pyproject.toml" "$SRC/README.md" "$SRC/LICENSE" "$tree/"
cp -r "$SRC/share" "$tree/"
cp -r "$SRC/python/wheel.py" "$SRC/python/sbinject.pth" "$SRC/python/sbinject" "$tree/python/"
pip_wheel() {
	rc=0
	PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 BUILD=elsewhere SAN=1 timeout 50 \
		"$pip" -m pip wheel --no-deps -w "$T/out" "$tree" >"$T/pip" 2>&1 || rc=$?
}

printf 'all:\n\t@echo no capstone here; exit 1\n' >"$tree/Makefile"
pip_wheel
[ $rc -ne 0 ] || fail 'a package without its program was made'
grep -qE 'make -C [^ ]* deps && make -C' "$T/pip" || fail "no command: $(cat "$T/pip")"
grep -q 'no capstone here' "$T/pip" || fail "not what make says: $(cat "$T/pip")"
[ -z "$(ls "$T/out" 2>/dev/null)" ] || fail 'a wheel was made'

cat >"$tree/Makefile" <<EOF
all:
	@[ "\$(BUILD)\$(SAN)" = build ]
	@mkdir -p build
	@ln "$SB" build/sbinject 2>/dev/null || cp "$SB" build/sbinject
	@ln "$CTL" build/sbctl 2>/dev/null || cp "$CTL" build/sbctl
EOF
pip_wheel
ended 0 "$(cat "$T/pip")"
"$pip" -m zipfile -l "$T"/out/sbinject-*.whl | sed -n 's,.*data/scripts/\([a-z]*\) .*,\1,p' | sort >"$T/has"
same 'programs in the wheel' "$(tr '\n' ' ' <"$T/has")" 'sbctl sbinject '

# They are run from where pip puts them.
"$pip" -m venv --without-pip "$T/venv" || fail 'no venv'
PIP_NO_INDEX=1 "$pip" -m pip -q --python "$T/venv/bin/python" install "$T"/out/sbinject-*.whl >"$T/pip" 2>&1 ||
	fail "pip install: $(cat "$T/pip")"
for program in sbinject sbctl; do
	"$T/venv/bin/$program" --version >/dev/null || fail "$program does not run"
done
XDG_CONFIG_HOME=$T/none "$T/venv/bin/sbinject" list -p $$ cuda:launch >"$T/list" 2>&1
grep -q '^cuda:cuLaunchKernel ' "$T/list" || fail "the wheel has no presets: $(cat "$T/list")"
