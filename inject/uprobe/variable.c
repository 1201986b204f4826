/* SPDX-License-Identifier: MIT */
#include <bpf/btf.h>
#include <string.h>
#include "uprobe-priv.h"

static bool in_section(const struct btf *btf, const struct btf_type *section, const char *name,
		       uint32_t *offset)
{
	const struct btf_var_secinfo *var = btf_var_secinfos(section);

	for (int i = 0; i < btf_vlen(section); i++, var++) {
		const struct btf_type *v = btf__type_by_id(btf, var->type);

		if (strcmp(btf__name_by_offset(btf, v->name_off), name) != 0)
			continue;
		*offset = var->offset;
		return true;
	}
	return false;
}

bool uprobes_variable(const struct btf *btf, const char *name, const char **section,
		      uint32_t *offset)
{
	for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (!btf_is_datasec(t) || !in_section(btf, t, name, offset))
			continue;
		*section = btf__name_by_offset(btf, t->name_off);
		return true;
	}
	return false;
}
