/* SPDX-License-Identifier: MIT */
#include "role.h"

#include <string.h>
#include "elf/symbol.h"
#include "src/spec/preset.h"
#include "src/spec/results.h"
#include "trace/sum.h"

static const enum launch_role roles[PRESET_KINDS] = {
	[PRESET_LAUNCH] = LAUNCH_CALL,
	[PRESET_SYNC] = LAUNCH_WAIT,
};

/* A trace has a module's path. */
static bool is_module(const char *pattern, const char *module)
{
	const char *name = strrchr(module, '/');

	return glob_match(pattern, module) || (name && glob_match(pattern, name + 1));
}

static const char *const names[SUM_APIS] = { "cuda", "cudart" };

/* The first row that matches has the function, as where it is hooked. */
static const struct preset_row *row_in(const struct preset *preset, const struct trace_function *f)
{
	for (size_t i = 0; preset && i < preset->n_rows; i++)
		if (symbol_is_version(preset->row[i].function, f->name) &&
		    is_module(preset->row[i].module, f->module))
			return &preset->row[i];
	return NULL;
}

struct sum_role role_of(const struct trace_function *f)
{
	for (unsigned int i = 0; i < SUM_APIS && f->name && f->module && f->code == TRACE_NATIVE;
	     i++) {
		const struct preset *preset = NULL;
		const struct preset_row *row;

		if (preset_get(names[i], strlen(names[i]), &preset, NULL) < 0)
			continue;
		row = row_in(preset, f);
		if (row)
			return (struct sum_role){ roles[row->kind], i, true };
	}
	return (struct sum_role){ LAUNCH_NONE, 0, false };
}

static const enum lock_op lock_ops[PRESET_KINDS] = {
	[PRESET_LOCK] = LOCK_TAKE,	 [PRESET_RDLOCK] = LOCK_SHARE,
	[PRESET_TRYLOCK] = LOCK_TRY,	 [PRESET_TRYRDLOCK] = LOCK_TRY_SHARE,
	[PRESET_UNLOCK] = LOCK_RELEASE,	 [PRESET_CONDWAIT] = LOCK_WAIT,
	[PRESET_LOCKINIT] = LOCK_FORGET,
};

enum lock_op role_lock(const struct trace_function *f)
{
	const struct preset *preset = NULL;
	const struct preset_row *row;

	if (!f->name || !f->module || f->code == TRACE_PYTHON || f->code == TRACE_DEVICE ||
	    preset_get("locks", 5, &preset, NULL) < 0)
		return LOCK_NONE;
	row = row_in(preset, f);
	return row ? lock_ops[row->kind] : LOCK_NONE;
}

uint32_t role_launcher(const struct trace_function *f)
{
	struct sum_role role = role_of(f);

	return role.role == LAUNCH_CALL ? role.api + 1 : 0;
}

const char *role_api(unsigned int api)
{
	return names[api];
}

const char *role_result_name(unsigned int api, int64_t code)
{
	return results_name(names[api], code);
}
