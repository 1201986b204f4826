/* SPDX-License-Identifier: MIT */
#include "targets.h"

#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf/symbol.h"
#include "src/base/inroot.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/base/text.h"

/* The time between two looks whether the session's window has opened. */
#define LOOK_NS 1000000ull

void target_init(struct target *t, const struct spec *spec)
{
	if (spec->arguments && spec != t->own)
		t->own = spec_copy(spec);
	t->spec = t->own ? t->own : spec;
	t->delay_ns = spec->delay_ns == SPEC_DELAY_UNSET ? SPEC_DEFAULT_NS : spec->delay_ns;
	t->every = spec->every ? spec->every : 1;
}

void target_free(struct target *t)
{
	result_refused_free(t->refused, t->n_refused);
	result_refused_free(t->untimed, t->n_untimed);
	spec_copy_free(t->own);
	target_arguments_free(t);
}

void target_change(struct target *t, uint64_t delay_ns, uint64_t every)
{
	t->changed |= t->delay_ns != delay_ns;
	t->delay_ns = delay_ns;
	t->every = every ? every : 1;
}

/* ---- the list ---- */

static size_t index_of(const struct target *list, size_t n, const struct spec *spec)
{
	size_t i = 0;

	while (i < n &&
	       (list[i].spec->pid != spec->pid || strcmp(list[i].spec->text, spec->text) != 0))
		i++;
	return i;
}

int targets_place(const struct target *list, size_t n, size_t max, const struct spec *spec,
		  size_t *index, struct sb_err *err)
{
	size_t i = index_of(list, n, spec);

	if (i < n && !list[i].removed)
		return err_set(err, SB_EEXIST, "target '%s' is there already", spec->text);
	if (i >= max) {
		err_set(err, SB_ENOMEM, "this session can hold no more than %zu targets", max);
		err_hint(err, "name targets by a glob, or start a session of their own for them");
		return -SB_ENOMEM;
	}
	*index = i;
	return 0;
}

/* A target that is added again may have other keys: the old keys are dropped, the figures are
 * kept. */
void targets_enter(struct target *list, size_t *n, size_t index, const struct spec *spec)
{
	struct target *t = &list[index];
	struct spec *old = t->own;
	uint64_t delay_ns = t->delay_ns;

	t->again = index < *n;
	t->own = spec_copy(spec);
	target_arguments_free(t);
	target_init(t, t->own);
	spec_copy_free(old);
	t->changed |= t->again && t->delay_ns != delay_ns;
	t->removed = t->muted = false;
	*n += !t->again;
}

/* A target whose addition failed is not in the result. */
void targets_forget(struct target *list, size_t *n, size_t index)
{
	struct target *t = &list[index];

	t->removed = true;
	if (index != *n - 1 || !t->own || t->again)
		return;
	target_free(t);
	*t = (struct target){ 0 };
	--*n;
}

size_t targets_start_on(const struct target *list, size_t n, const char *text)
{
	for (size_t i = n; text && i-- > 0;)
		if (!strcmp(list[i].spec->text, text))
			return i;
	return SIZE_MAX;
}

/* ---- search ---- */

struct resolve_request target_request(const struct spec *spec)
{
	return (struct resolve_request){
		.kind = spec->kind == SPEC_LITERAL ? RESOLVE_LITERAL :
			spec->kind == SPEC_LINE	   ? RESOLVE_LINE :
						     RESOLVE_SYMBOL,
		.module = spec->module,
		.symbol = spec->symbol,
		.line = spec->line,
		.versions = spec->row != NULL,
		.inlined = spec->inlined,
	};
}

void target_refuse(struct target *t, const char *module, const char *symbol, uint64_t address,
		   const char *reason, pid_t pid)
{
	struct result_refused r = {
		.module = (char *)module,
		.symbol = (char *)symbol,
		.name = symbol_shown(symbol),
		.reason = (char *)reason,
		.address = address,
	};

	result_refuse(&t->refused, &t->n_refused, &r, pid);
	free(r.name);
}

/* Similar names, and what else the user probably meant. */
static void note_guess(struct target *t, pid_t pid, const struct maps *maps, const char *near)
{
	char hint[sizeof(t->why.hint)];

	t->guess = guess_target(t->spec, pid, maps, near, hint, sizeof(hint));
	err_hint(&t->why, "%s", hint);
}

static void note_why(struct target *t, int ret, const struct resolve_result *res, bool again,
		     const struct sb_err *why)
{
	t->module_seen |= res->modules || ret < 0;
	if (t->spec->listed && ret == -SB_ENOSYMBOL && !t->why.code)
		err_set(&t->why, SB_ENOSYMBOL, "the library has no such function");
	if (ret < 0 && why->code) {
		t->why = *why;
		return;
	}
	if (ret < 0 || res->count || (again && !res->ifunc_pending))
		return;
	t->why = (struct sb_err){ 0 };
	err_set(&t->why, SB_ENOMODULE, "%s",
		res->ifunc_pending ? "its implementation is not chosen yet" :
				     "no mapped module matches");
	if (res->ifunc_pending)
		err_hint(&t->why, "%s", why->hint);
}

int target_resolve(struct target *t, pid_t pid, const struct maps *maps,
		   const struct resolve_access *access, bool hints, struct resolve_result *res)
{
	struct resolve_request req = target_request(t->spec);
	bool again = t->why.code || !hints;
	struct sb_err why = { 0 };
	int ret = resolve_target(pid, maps, &req, access, res, again ? NULL : &why);

	if (again && hints && ret < 0 && ret != -(int)t->why.code)
		ret = resolve_target(pid, maps, &req, access, res, &why);
	note_why(t, ret, res, again, &why);
	if (ret == 0 && !res->modules && !res->count && !again)
		note_guess(t, pid, maps, why.hint);
	if (res->note[0] && !t->noted)
		log_note("target '%s': %s", t->spec->text, res->note);
	t->noted |= res->note[0] != '\0';
	return ret;
}

/* pid: the process in whose root to search; 0: ours. Returns 0, SB_EFILE or SB_ENOELF. */
static enum sb_code look_at_file(const char *module, pid_t pid)
{
	char root[32] = "", magic[4] = "";
	int fd;

	if (pid)
		snprintf(root, sizeof(root), "/proc/%d/root", maps_face(pid));
	fd = inroot_open(root, module);
	if (fd < 0 && errno == ENOEXEC)
		return SB_ENOELF;
	if (fd < 0) /* the file exists, without permission to read */
		return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? SB_EFILE :
										      SB_OK;
	if (read(fd, magic, 4) != 4 || memcmp(magic, ELFMAG, SELFMAG) != 0) {
		close(fd);
		return SB_ENOELF;
	}
	close(fd);
	return SB_OK;
}

int target_check_file(const struct target *t, const pid_t *pids, size_t n, struct sb_err *err)
{
	const char *module = t->spec->module;
	enum sb_code code;

	if (t->planted || t->module_seen || t->spec->kind == SPEC_PYTHON || module[0] != '/' ||
	    glob_is_pattern(module))
		return 0;
	code = look_at_file(module, n ? pids[0] : 0);
	for (size_t i = 1; i < n && code == SB_EFILE; i++)
		code = look_at_file(module, pids[i]);
	if (code == SB_OK)
		return 0;
	err_set(err, code, code == SB_EFILE ? "there is no file %s" : "%s is not an ELF file",
		module);
	if (code == SB_EFILE)
		err_hint(err, "a pattern names a file that does not exist yet, as '*/NAME:SYMBOL'");
	return -(int)code;
}

bool target_yields(struct target *t, const struct target *other)
{
	const struct preset_row *row = t->spec->row, *its = other->spec->row;

	if (!row || !its || row->preset != its->preset || t->spec->pid != other->spec->pid)
		return false;
	if (!t->why.code)
		err_set(&t->why, SB_EEXIST, "other rows of the preset have its functions");
	return true;
}

size_t target_list_end(const struct target *list, size_t n, size_t first)
{
	size_t end = first;

	if (first == n || !list[first].spec->listed || list[first].spec->follows)
		return first;
	for (end++; end < n && list[end].spec->listed && list[end].spec->follows;)
		end++;
	return end;
}

int target_list_lost(const struct target *first, const char *reason, struct sb_err *err)
{
	const struct preset *preset = first->spec->row->preset;

	err_set(err, *reason ? SB_EREFUSED : SB_ENOSYMBOL,
		"preset '%s': none of the functions can be hooked: %s", preset->name,
		*reason ? reason : "the library has none of them");
	err_hint(err, "sbinject list -p PID %s shows each with its reason", preset->name);
	return -(int)err->code;
}

bool target_find_doorbell(pid_t pid, const struct maps *maps, const struct resolve_access *access,
			  struct resolve_result *res)
{
	struct resolve_request req = { .kind = RESOLVE_LITERAL, .symbol = "_dl_debug_state" };
	struct sb_err ignored = { 0 };
	struct image *exe;
	bool found;

	if (image_of_exe(pid, &exe, &ignored) < 0)
		return false;
	/* A static program has neither; in `ld.so PROGRAM` the program is the dynamic linker
	 * itself: "". */
	req.module = image_interp(exe);
	found = (req.module[0] || symbol_is_defined(exe, req.symbol)) &&
		resolve_target(pid, maps, &req, access, res, NULL) == 0 && res->count;
	image_put(exe);
	return found;
}

/* ---- window ---- */

bool target_in_window(const struct target *t, uint64_t window_ns, uint64_t now)
{
	uint64_t from = window_ns + t->spec->start_ns;

	return window_ns && now >= from && (!t->spec->for_ns || now < from + t->spec->for_ns);
}

uint64_t target_until_change(const struct target *t, uint64_t window_ns, uint64_t now)
{
	uint64_t from = window_ns + t->spec->start_ns;

	if (!window_ns)
		return LOOK_NS;
	if (now < from)
		return from - now;
	if (t->spec->for_ns && now < from + t->spec->for_ns)
		return from + t->spec->for_ns - now;
	return UINT64_MAX;
}

void target_switch(struct target *t, bool open, uint64_t now)
{
	if (open)
		t->opened_at = now;
	else
		t->active_ns += now - t->opened_at;
	t->open = open;
}

/* ---- reports ---- */

void target_show(const struct target *t, struct session_target *out)
{
	*out = (struct session_target){
		.spec = t->spec,
		.delay_ns = t->delay_ns,
		.every = t->every,
		.removed = t->removed,
		.open = t->open,
		.pending = !t->planted && !(t->spec->kind == SPEC_PYTHON && t->module_seen),
		.seen = t->module_seen,
		.guess = t->guess,
		.untimed = t->n_untimed,
	};
	if (t->why.code == SB_ENOMODULE && !t->module_seen && t->spec->kind != SPEC_PYTHON)
		out->why = &t->why;
}

static const char *const at_names[] = { [SPEC_AT_EXIT] = "exit", [SPEC_AT_BOTH] = "both" };

void target_values(const struct spec *spec, struct result_times *times)
{
	times->n_values = spec->n_values;
	for (size_t i = 0; i < spec->n_values; i++) {
		const struct spec_value *v = &spec->value[i];
		struct result_value *to = &times->value[i];

		memcpy(to->name, v->name, sizeof(to->name));
		to->position = v->position == SPEC_CALLER ? 0 : v->position;
		to->offset = v->offset;
		to->memory = v->memory;
		to->type = v->type;
		to->summed = v->sum;
	}
}

void target_fill(const struct target *t, struct result_target *rt)
{
	rt->spec = text_dup(t->spec->text);
	rt->pid = t->spec->pid;
	rt->delay_ns = t->delay_ns;
	rt->every = t->every;
	rt->active_s = (double)t->active_ns / 1e9;
	rt->at = at_names[t->spec->at] ? text_dup(at_names[t->spec->at]) : NULL;
	rt->timed = t->spec->timed;
	target_values(t->spec, &rt->times);
	if (t->spec->row) {
		rt->preset = text_dup(t->spec->row->preset->name);
		rt->kind = text_dup(preset_kind_name(t->spec->row->kind));
	}
	if (t->spec->optional)
		rt->preset = text_dup(RESULT_DRIVER);
	rt->listed = t->spec->listed || t->spec->optional;
	for (size_t i = 0; i < t->n_refused; i++)
		result_refuse(&rt->refused, &rt->n_refused, &t->refused[i], 0);
	for (size_t i = 0; i < t->n_untimed; i++)
		result_refuse(&rt->untimed, &rt->n_untimed, &t->untimed[i], 0);
}

/* An interpreter is mapped, but its functions cannot be watched. */
static bool python_refused(const struct target *t)
{
	return t->spec->kind == SPEC_PYTHON && !t->module_seen &&
	       (t->why.code == SB_EREFUSED || t->why.code == SB_ETARGET);
}

/* Nothing of the target can be hooked, now or ever. */
static enum result_outcome missing(const struct target *t, const struct result_target *rt)
{
	if (rt->n_refused || python_refused(t) || t->barred.code)
		return OUTCOME_REFUSED;
	return t->module_seen && t->why.code != SB_ENOMODULE ? OUTCOME_NO_MATCH : OUTCOME_PENDING;
}

void target_outcome(const struct target *t, struct result_target *rt)
{
	rt->outcome = rt->counts.hits ? (rt->counts.delayed ? OUTCOME_DELAYED : OUTCOME_COUNTED) :
		      rt->n_sites     ? OUTCOME_NEVER_CALLED :
					missing(t, rt);
	rt->procs = result_processes(rt);
	result_reason(rt, t->barred.code && !rt->n_refused ? &t->barred : &t->why);
}

bool target_has_given(const struct target *t, struct result_target *rt)
{
	struct result_given *given = &rt->given;

	given->known = rt->counts.delayed && !t->changed;
	if (!given->known)
		snprintf(given->reason, sizeof(given->reason), "%s",
			 rt->counts.delayed ? "its delay was changed while it ran: see injected_ns "
					      "over delayed" :
					      "no hit was delayed");
	return given->known;
}

struct result_site *target_site(struct result_target *rt, const char *module, const char *build_id,
				const char *symbol, uint64_t address, uint64_t size,
				const char *mechanism)
{
	struct result_site *site;

	if ((rt->n_sites & (rt->n_sites - 1)) == 0)
		rt->site = must_realloc(rt->site,
					(rt->n_sites ? rt->n_sites * 2 : 1) * sizeof(*rt->site));
	site = &rt->site[rt->n_sites++];
	*site = (struct result_site){
		.module = text_dup(module),
		.build_id = text_dup(build_id),
		.symbol = text_dup(symbol),
		.name = must(symbol_shown(symbol)),
		.address = address,
		.size = size,
		.mechanism = text_dup(mechanism),
	};
	return site;
}

void target_list(const struct target *t, struct result_target *rt)
{
	target_fill(t, rt);
	rt->active_s = NAN;
	rt->outcome = rt->n_sites ? OUTCOME_MATCHED : missing(t, rt);
	if (rt->n_sites || rt->n_refused)
		rt->reason = text_dup(rt->n_sites ? "" : rt->refused[0].reason);
	else
		result_reason(rt, &t->why);
}
