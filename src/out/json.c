/* SPDX-License-Identifier: MIT */
/*
 * --json and --jsonl. A document replaces its file in one step: a reader sees the old one or the
 * new one, never half of either. A line is appended by one write(): lines of runs that end together
 * do not mix.
 */
#include "out.h"
#include "place.h"

#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/base/text.h"

static int fail(const char *path, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	int rc = err_sys(err, SB_EFILE, "cannot write the result to %s",
			 text_quote(path, shown, sizeof(shown)));

	err_hint(err, "check that the directory exists, may be written to and has room");
	return rc;
}

static int write_stdout(const char *text)
{
	errno = 0;
	if (fputs(text, stdout) < 0 || fflush(stdout))
		return -1;
	return 0;
}

int out_document(const char *path, const char *json, struct sb_err *err)
{
	char *text;
	int rc;

	if (asprintf(&text, "%s\n", json) < 0)
		abort();
	rc = !strcmp(path, "-") ? write_stdout(text) : out_place_replace(path, text, strlen(text));
	if (rc)
		rc = fail(path, err);
	free(text);
	return rc;
}

int out_json(const char *path, const struct result *res, bool lines, struct sb_err *err)
{
	char *json = result_to_json(res, !lines), *text;
	int rc;

	if (!lines || !strcmp(path, "-")) {
		rc = out_document(path, json, err);
		free(json);
		return rc;
	}
	if (asprintf(&text, "%s\n", json) < 0)
		abort();
	rc = out_place_append(path, text, strlen(text)) ? fail(path, err) : 0;
	free(text);
	free(json);
	return rc;
}

static bool is_standard(const char *path)
{
	return path && !strcmp(path, "-");
}

int out_check_standard(bool command, const char *json, const char *jsonl, const char *events,
		       struct sb_err *err)
{
	const char *name = is_standard(json) ? "json" : "events";
	int rc;

	if (command && (is_standard(json) || is_standard(events))) {
		rc = err_set(err, SB_EUSAGE, "--%s -: standard output belongs to the command",
			     name);
		err_hint(err, "write to a file: --%s FILE", name);
		return rc;
	}
	if (!is_standard(events) || (!is_standard(json) && !is_standard(jsonl)))
		return 0;
	rc = err_set(err, SB_EUSAGE, "--events - and --json%s -: both take standard output",
		     is_standard(json) ? "" : "l");
	err_hint(err, "write one of them to a file");
	return rc;
}

int out_check(const char *path, struct sb_err *err)
{
	const char *slash;
	char dir[4096];

	if (!path || !strcmp(path, "-"))
		return 0;
	if (access(path, W_OK) == 0)
		return out_place_hold(path) == 0 ?
			       0 :
			       err_sys(err, SB_EFILE, "the result cannot be written to %s", path);
	if (errno == ENOENT) {
		slash = strrchr(path, '/');
		snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1,
			 slash ? path : ".");
		if (access(dir, W_OK | X_OK) == 0 && out_place_hold(path) == 0)
			return 0;
	}
	return err_sys(err, SB_EFILE, "the result cannot be written to %s", path);
}
