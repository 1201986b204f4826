#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 300 s
# However an interpreter is started, its functions are counted from the first line on, exactly.
. "$SRC/test/lib.sh"
need_python
PY=$SRC/test/victim/python

# exact MODULE N COMMAND...: in the interpreter that the command leads to
exact() {
	local module=$1 n=$2
	shift 2
	sb "py:$module:step" 2us --json "$T/run.json" -- "$@"
	ended 0 "$*"
	grep -q "^calls [0-9]* $n\$" "$T/sb.out" || fail "$*: it did not do its work"
	same "hits of $*" "$(j targets.0.hits)" "$n"
	same "delayed of $*" "$(j targets.0.delayed)" "$n"
}

# Where modules must be found without a folder of the script's own.
scripts() { # PYTHON
	mkdir -p "$T/env/app"
	cp "$PY/app.py" "$T/env/app/__main__.py"
	cp "$PY/app.py" "$T/env/app/app.py"
	(cd "$T/env/app" && "$1" -m zipapp . -o "$T/env/app.pyz")
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >"$T/env/wrapped"
	printf '#!%s\nimport sys\nsys.path.insert(0, "%s")\nfrom app import main\nsys.exit(main())\n' \
		"$1" "$PY" >"$T/env/console"
	chmod +x "$T/env/wrapped" "$T/env/console"
}

loader=/lib64/ld-linux-x86-64.so.2 # bundles start their programs by it
for p in "${python[@]}"; do
	rm -rf "$T/env"
	scripts "$p"
	exact __main__ 1000 "$p" "$PY/app.py" 1000
	exact __main__ 1001 "$p" -I -S -E "$PY/app.py" 1001
	exact __main__ 1002 "$p" -c "$(cat "$PY/app.py")" 1002
	exact __main__ 1003 env PYTHONPATH="$PY" "$p" -m app 1003
	exact __main__ 1004 "$p" "$T/env/app" 1004
	exact __main__ 1005 "$p" "$T/env/app.pyz" 1005
	exact __main__ 1006 sh -c "exec '$p' - 1006 <'$PY/app.py'"
	exact __main__ 1007 "$T/env/wrapped" "$PY/app.py" 1007
	exact app 1008 "$T/env/console" 1008
	exact __main__ 1009 env "PATH=${p%/*}:$PATH" env python3 "$PY/app.py" 1009
	exact __main__ 1010 "$p" -O -B -X faulthandler -W ignore "$PY/app.py" 1010
	exact __main__ 1011 env PYTHONMALLOC=debug PYTHONDEVMODE=1 "$p" "$PY/app.py" 1011
	[ ! -x "$loader" ] || exact __main__ 1014 "$loader" "$p" "$PY/app.py" 1014
	"$p" -m venv --without-pip "$T/env/venv" 2>/dev/null || continue
	exact __main__ 1012 "$T/env/venv/bin/python" "$PY/app.py" 1012
done
if command -v pyenv >/dev/null && [ -x "${PYENV_ROOT:-$HOME/.pyenv}/shims/python3" ]; then
	exact __main__ 1013 "${PYENV_ROOT:-$HOME/.pyenv}/shims/python3" "$PY/app.py" 1013
fi
