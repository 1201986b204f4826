#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Words of presets: what they stand for, errors that name what was probably meant, a user's own
# presets, and files that are not to be trusted.
# beside others
# quick
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/config"
own=$T/config/sbinject/presets
mkdir -p "$own"

start calls "$V/calls"
snapshot "$pid" -t
refuses 2 "no kind and no function 'lauch'.*" -p "$pid" cuda:lauch 1us
told "did you mean 'launch'"
refuses 2 "'cuLaunchKernl'" -p "$pid" cuda:cuLaunchKernl 1us
told "did you mean 'cuLaunchKernel'"
refuses 2 "the word 'cudda'" -p "$pid" cudda
told 'presets are .*cuda, cudart.*opencl'
for i in {1..253}; do echo "other many_$i calls"; done >"$own/many.preset"
chmod 644 "$own/many.preset"
refuses 2 'at most 252 can be' trace -p "$pid" many
told 'name kinds of a preset'
refuses 2 'stands for [0-9]* functions' -p "$pid" :victim_work --start-on cuda:launch
refuses 2 'stands for several functions' sweep -p "$pid" :victim_work --progress cuda:launch

# A preset of the user's own, also in place of ours; its functions exist in this program.
printf 'launch victim_work calls\nother victim_* calls\n' >"$own/mine.preset"
chmod 644 "$own/mine.preset"
sb list -p "$pid" mine
ended 0
grep -qE '^mine:victim_work +.* victim_work +.*jump$' "$T/sb.out" || fail "list: $(cat "$T/sb.out")"
grep -qE '^mine:victim_\* +.* victim_other +.*jump$' "$T/sb.out" || fail "list: $(cat "$T/sb.out")"
! grep -q 'already a site' "$T/sb.out" || fail "rows of one preset clash: $(cat "$T/sb.out")"
cp "$own/mine.preset" "$own/cuda.preset"
sb list -p "$pid" cuda:launch
ended 0
grep -q '^cuda:victim_work ' "$T/sb.out" || fail 'the own file does not come first'
# A name for a module, not for a preset.
cp "$own/mine.preset" "$own/calls.preset"
sb list -p "$pid" calls:launch 'calls:=victim_work'
ended 0
grep -q '^calls:=victim_work .*already a site' "$T/sb.out" || fail "the module: $(cat "$T/sb.out")"

for mode in 664 646; do
	chmod $mode "$own/mine.preset"
	refuses 1 'mine.preset is not read: .* can write it' -p "$pid" mine 1us
done
ln -sf "$own/calls.preset" "$own/link.preset"
refuses 1 'it is a link' -p "$pid" link
echo 'lanch f calls' >"$own/wrong.preset"
refuses 2 "wrong.preset:1: 'lanch' is not a kind" -p "$pid" wrong
if [ "$(id -u)" -eq 0 ]; then
	chmod 644 "$own/mine.preset"
	chown 12345 "$own/mine.preset"
	refuses 1 'neither to you nor to root' -p "$pid" mine 1us
fi
unchanged "$pid" -t

# None of a library's functions is there: an error; the library itself is not: pending.
printf 'launch nosuch calls\nsync nothing* calls\n' >"$own/none.preset"
refuses 3 "preset 'none': none of the functions can be hooked" -p "$pid" none
sb -p "$pid" opencl:launch 1us --for 10ms
ended 3
told "preset 'opencl' is pending"
unchanged "$pid" -t
finish calls "$pid"
