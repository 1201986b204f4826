/* SPDX-License-Identifier: MIT */
#include "trace-locks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "role.h"
#include "src/base/json.h"
#include "src/base/must.h"
#include "src/out/report-locks.h"

/* Its user waits for the summary: a larger trace is left to the report. */
#define SIZE_MOST (256ull << 20)

struct trace_locks {
	struct sum *sum;    /* NULL: it could not be read */
	const char *reason; /* ... for this reason */
	struct sb_err err;
};

static bool is_of_locks(const struct spec *spec)
{
	return spec->row && spec->row->kind >= PRESET_LOCK && spec->row->kind <= PRESET_LOCKINIT;
}

static bool records_locks(const struct options *opt)
{
	bool any = false;

	for (size_t i = 0; i < opt->session.targets.count; i++)
		any |= is_of_locks(&opt->session.targets.spec[i]);
	return any && opt->trace_path;
}

/* Before it is opened: a device may do something then. */
static const char *cannot_read(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return "the trace cannot be read again";
	if (!S_ISREG(st.st_mode))
		return "the trace went to a pipe or a device";
	if ((uint64_t)st.st_size > SIZE_MOST)
		return "the trace has more than 256 MiB: sbinject report has them";
	return NULL;
}

static void read_trace(struct trace_locks *locks, const char *path)
{
	const struct sum_options options = { .lock = role_lock };
	int fd;

	locks->reason = cannot_read(path);
	if (locks->reason)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		locks->reason = "the trace cannot be read again";
		return;
	}
	locks->sum = sum_new(&options);
	if (sum_read(locks->sum, fd, path, &locks->err) < 0)
		locks->reason = locks->err.what;
	else if (!locks->sum->lockorder)
		locks->reason = "no call of a lock was recorded";
	close(fd);
}

struct trace_locks *trace_locks_read(const struct options *opt, struct result *res)
{
	struct trace_locks *locks;

	if (!records_locks(opt) || !res->trace.file)
		return NULL;
	locks = must_calloc(1, sizeof(*locks));
	read_trace(locks, opt->trace_path);
	json_decref(res->lock_order);
	res->lock_order = json_must(json_object());
	if (locks->reason) {
		json_put(res->lock_order, "lock_order", json_must(json_null()));
		json_put(res->lock_order, "lock_order_reason", json_name(locks->reason));
	} else {
		out_report_locks_json(res->lock_order, locks->sum);
	}
	return locks;
}

void trace_locks_print(FILE *to, const struct trace_locks *locks)
{
	if (locks && locks->reason)
		fprintf(to, "\nthe orders of locks are not known: %s\n", locks->reason);
	else if (locks)
		out_report_locks(to, locks->sum);
}

void trace_locks_free(struct trace_locks *locks)
{
	if (!locks)
		return;
	if (locks->sum)
		sum_free(locks->sum);
	free(locks);
}
