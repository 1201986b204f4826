/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include "preset-file.h"
#include "priv.h"
#include "src/base/must.h"

static bool has(const struct spec_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->spec[i].text, text))
			return true;
	return false;
}

static int check(const struct spec_list *list, const char *path, struct sb_err *err)
{
	for (size_t i = 0; i < list->count; i++) {
		if (spec_in_kernel(&list->spec[i]))
			continue;
		err_set(err, SB_ESPEC, "%s: target '%s' is not in the kernel", path,
			list->spec[i].text);
		err_hint(err, "name it on the command line, beside --kernel");
		return -SB_ESPEC;
	}
	return 0;
}

/* Those that `list` lacks become its own. */
static void join(struct spec_list *list, struct spec_list *more)
{
	size_t kept = 0;

	for (size_t i = 0; i < more->count; i++) {
		struct spec *spec = &more->spec[i];

		spec->optional = true;
		if (has(list, spec->text))
			spec_clear(spec);
		else
			more->spec[kept++] = *spec;
	}
	more->count = kept;
	spec_list_join(list, more);
}

int driver_targets(struct spec_list *list, struct sb_err *err)
{
	struct preset_text text;
	struct spec_list more = { 0 };
	int rc = preset_read(DRIVER_TARGETS, &text, err);

	if (!rc && !text.text) {
		err_set(err, SB_EFILE, "there is no file %s beside the presets", DRIVER_TARGETS);
		err_hint(err, "sbinject-presets(5), FILES, says where it belongs");
		return -SB_EFILE;
	}
	if (!rc)
		rc = spec_parse_text(text.text, text.len, text.path, &more, err);
	if (!rc)
		rc = check(&more, text.path, err);
	if (!rc)
		join(list, &more);
	spec_list_free(&more);
	free(text.text);
	return rc;
}
