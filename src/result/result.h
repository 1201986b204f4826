/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_H
#define SB_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "evidence/cgroup.h"
#include "evidence/evidence.h"
#include "evidence/machine.h"
#include "evidence/memory.h"
#include <jansson.h>
#include "hardware.h"
#include "rows.h"
#include "src/base/err.h"
#include "src/base/value.h"

/*
 * The result of a run, as plain data. The session fills it, whatever the backend; the writers
 * (src/out) read it. The tracer sends it to the command line as JSON (result_to_json,
 * result_from_json), the same document that --json writes: schema "sbinject.run/1".
 *
 * Unknown figures are `known = false` with a reason. They become null in JSON, never 0. The caller
 * of result_new() owns the result; result_free() frees everything below it.
 */
enum result_outcome {
	OUTCOME_DELAYED,
	OUTCOME_COUNTED,      /* hit, and it has no delay */
	OUTCOME_NEVER_CALLED, /* hooked, no hit */
	OUTCOME_PENDING,      /* its module never appeared */
	OUTCOME_NO_MATCH,     /* the module is there and has no such function */
	OUTCOME_REFUSED,      /* matched, but no site could be hooked */
	OUTCOME_MATCHED,      /* of `list`: could be hooked, but was not */
};

struct result_given { /* delay of a delayed hit, the hook's own cost included, ns */
	bool known;
	double mean;
	uint64_t p50, p99, max;
	double uncertainty; /* of the mean: from the uncertain cost of the hook itself; NAN */
	char reason[96];    /* why it is unknown */
};

/* Calls that took from_ns up to, not including, to_ns. */
struct result_bucket {
	uint64_t from_ns, to_ns, calls;
};

/* An argument, or what is returned, that is recorded of each call (arg=, ret). */
struct result_value {
	char name[VALUE_NAME_SIZE];
	uint8_t position; /* of an argument, from 1; 0: what is returned, or (VALUE_CODE) the caller
			   */
	enum value_type type;
	bool summed;	    /* sum=: only then the rest is known */
	bool sum_known;	    /* false: larger than 64 bits hold */
	uint64_t sum;	    /* of the values that are not negative */
	uint64_t sum_calls; /* the number of those */
	uint8_t offset;	    /* as in struct spec_value */
	bool memory;
};

/*
 * How long calls took, of a target with time=yes: from entry to return, without the delays that the
 * calls were given themselves and without the measurement. Quantiles are exact within 3 %.
 */
struct result_times {
	bool known;	 /* the target was timed; only then does JSON have it */
	bool own_known;	 /* exclusive_ns is: false for calls of Python functions, for example */
	uint64_t calls;	 /* that returned; all that follows is of these */
	uint64_t missed; /* that began and were not seen to return: exceptions, threads that ended,
			    calls in progress, functions that are not timed */
	uint64_t inclusive_ns;
	uint64_t exclusive_ns; /* without the timed functions that they called */
	uint64_t min_ns, max_ns, p50_ns, p90_ns, p99_ns; /* of calls > 0 */
	struct result_bucket *bucket;			 /* those with calls, in order */
	size_t n_buckets;
	struct result_value value[VALUE_MAX]; /* not of single functions */
	size_t n_values;
};

struct result_site {
	char *module, *build_id, *symbol;
	char *name;	   /* the demangled symbol */
	uint64_t address;  /* run-time address in pids[0] */
	uint64_t size;	   /* of the function, bytes; 0: unknown (list) */
	uint64_t function; /* of an exit: the function's entry; 0: the address is no exit */
	char *mechanism;   /* "jump", "int3", "python" */
	char *file;	   /* source file of a Python function; NULL: native */
	uint64_t line;	   /* its first line; 0: unknown */
	pid_t *pids;
	size_t n_pids;
	char *untimed; /* of `list` with time=yes: why its calls cannot be timed; NULL: they can */
	bool each;     /* it has its own counter; only then does JSON show its hits */
	uint64_t hits; /* of this function alone, in all processes that have it at that address */
	struct result_times times; /* of this function alone; quantiles exact within 19 % */
};

struct result_refused {
	char *module, *symbol, *name, *reason;
	uint64_t address; /* in pids[0] */
	uint64_t hash;	  /* hash of its texts; see result_refuse() */
	pid_t *pids;
	size_t n_pids;
};

struct result_counts {
	uint64_t hits;
	uint64_t delayed;
	uint64_t injected_ns; /* measured delay of all delayed hits, without overrun */
	uint64_t overrun_ns;  /* time in which delays were interrupted (preemption) */
};

struct result_spans { /* how long calls took, of a timed target; JSON has it only then */
	uint64_t ns, calls, missed; /* missed: calls that were not timed */
};

#define RESULT_DRIVER "nvidia.kernel" /* the file with the targets of --kernel */

struct result_target {
	char *spec; /* as typed */
	pid_t pid;  /* pid=; 0: not given */
	uint64_t delay_ns;
	uint64_t every;
	char *at;   /* "exit", "both": delayed where it returns, half at each; NULL: at its entry */
	bool timed; /* time=yes */
	/* Of a preset's row: "cuda", "launch"; of a target of --kernel RESULT_DRIVER and NULL; else
	 * NULL. */
	char *preset, *kind;
	bool listed; /* ... of a word that stands for several rows */
	enum result_outcome outcome;
	char *reason;	 /* for pending, no_match, refused; "" otherwise */
	double active_s; /* how long it was hooked, enabled and inside its window */
	struct result_counts counts;
	struct result_given given;
	struct result_spans spans;
	struct result_times times;
	struct result_refused
		*untimed; /* functions that are hooked and not timed, with the reason */
	size_t n_untimed;
	struct result_site *site;
	size_t n_sites;
	struct result_refused *refused;
	size_t n_refused;
	size_t procs; /* processes in which it was hooked */
};

struct result_process {
	pid_t pid;		 /* 0: children that were not followed */
	unsigned int generation; /* execs seen */
	/* Since the first process was hooked: when this one was first seen, and when it was gone
	 * (or when the result was made). Both 0: not known. */
	uint64_t began_ns, ended_ns;
	char *comm, *exe;
	struct result_counts *counts; /* n_targets of them */
};

/* The waits that were written to --events. */
struct result_stream {
	bool asked;
	uint64_t waits, lost; /* lost: for want of room */
	uint64_t unwritten;   /* lines of any kind, for want of a reader */
	bool agrees;	      /* with the counters: what is lost or left out is known, too */
	const char *differs;  /* the reason by which it does not, a constant; NULL */
};

/* What the kernel did with the threads while they were hooked (--evidence). */
struct result_evidence {
	char *source;	      /* "bpf", "proc"; NULL: it was not asked for */
	char *limit, *remedy; /* why not by BPF; NULL: it was */
	double time_s;
	uint64_t lost;	     /* threads that could not be watched */
	unsigned int sample; /* one of so many frequent events was counted, as so many */
	struct result_stream stream;
	struct evidence_values sum; /* of all threads, those that ended included */
	bool unknown[EVIDENCE_COUNTERS];
	struct result_rows machine; /* machine_names; of all processes, from the begin to the end */
	struct result_cgroup {	    /* of the root process, and all that is in its control group */
		char *path;	    /* its directory; NULL: it is not known */
		struct result_rows rows; /* cgroup_names */
	} cgroup;
	struct result_hardware hardware;
	struct result_rows memory[2]; /* memory_names; at the begin, at the end */
	struct result_evidence_thread {
		pid_t pid, tid;
		char *name;
		struct evidence_values values;
		bool hardware; /* its counters of the processor are known */
	} * thread;	       /* those that lived at the end */
	size_t n_threads;
};

/*
 * A figure that is added up over several targets: known only if each of them was wholly hooked. In
 * a list of figures, "launch.calls" is `calls` of the part "launch".
 */
struct result_figure {
	char *name;
	bool known, real; /* real: x is the figure, not n */
	uint64_t n;
	double x;
	char *reason; /* why it is not known */
};

/* Launches in the recorded calls, by the name of what they launch (cuda.h). */
struct result_launches {
	bool known;
	char *reason; /* why they are not known; NULL: they are, or there is nothing to know */
	struct result_launched {
		char *preset, *name; /* name NULL: of kernels without a known one */
		uint64_t launches, total_ns, handles;
	} * row; /* the most launched first */
	size_t n;
};

/*
 * --device-times: what devices ran. The sums hold where it is `known`; else `reason` says why not.
 * The counts are of records of CUPTI: records = written + dropped + unknown.
 */
struct result_device {
	bool asked, known, counted;
	char *reason;
	uint64_t kernels, kernel_ns, copies, copy_ns, copied_bytes, memsets, memset_ns;
	uint64_t left_out; /* kernels that have no row */
	uint64_t processes, records, written, dropped, unknown, cupti_dropped, clock_error_ns;
	uint64_t late_ns; /* from when a process was entered to its first record, at most */
	struct result_busy {
		int32_t pid;
		uint64_t device;
		bool known;
		uint64_t busy_ns;
	} * busy; /* of each device of each process */
	size_t n_busy;
	struct result_device_kernel {
		char *name;
		uint64_t n, total_ns, min_ns, max_ns;
	} * row; /* the longest total first */
	size_t n_rows;
};

struct result_tag {
	char *key, *value;
};

struct result {
	char *version, *host;
	char **argv;
	size_t n_argv;
	struct result_tag *tag;
	size_t n_tags;
	struct timespec_ns {
		int64_t s;
		uint32_t ns;
	} started, ended; /* CLOCK_REALTIME */
	double wall_s;
	char *backend;
	int exit;	   /* sbinject's exit status; -1: not yet known */
	char *exit_reason; /* "for", "signal", "target ended", "error: ..." */
	struct result_target *target;
	size_t n_targets;
	struct result_process *process;
	size_t n_processes;
	char *gil; /* "held": delayed Python calls held the GIL; NULL: none did */
	uint64_t lease_lapsed_hits;
	uint64_t doorbells_lost; /* libraries that a program used before they could be hooked */
	double stalled_s;	 /* time for which sbinject had no processor, or was stopped */
	uint64_t left_behind;	 /* processes in which something of sbinject had to stay */
	bool stop_known;
	uint64_t stop_attach_us, stop_detach_us; /* longest time any thread was held */
	bool gil_known;				 /* an interpreter that has a GIL was watched */
	uint64_t gil_attach_us, gil_detach_us;	 /* longest time that an agent held a GIL */
	struct result_trace {
		char *file; /* in which single calls were recorded; NULL: they were not */
		uint64_t calls, delays; /* recorded */
		uint64_t lost;	 /* calls and delays without a record, since the buffer was full */
		uint64_t unseen; /* ... since sbinject did not follow their process */
		uint64_t stacks; /* calls recorded with their stacks ... */
		uint64_t stacks_lost; /* ... and without, where they were asked for */
		uint64_t filtered;    /* ... as the user asked: too short, or between each Nth */
	} trace;
	struct result_evidence evidence;
	struct result_figure *cuda; /* what the targets of preset `cuda` add up to (cuda.h) */
	size_t n_cuda;
	struct result_launches launches;
	json_t *lock_order; /* in the recorded calls of locks (locks.h); NULL: there are none */
	struct result_device device;
	char **warning;
	size_t n_warnings;
};

/*
 * Adds the times of other calls; of `to`, all zero, it makes a copy. Quantiles are computed from
 * the buckets then. The caller frees to->bucket.
 */
void result_times_add(struct result_times *to, const struct result_times *from);

struct result *result_new(size_t n_targets); /* these functions abort when memory runs out */
/* A result with the members that every session fills; the times are CLOCK_REALTIME, ns. */
struct result *result_of_session(size_t n_targets, const char *backend, uint64_t started,
				 uint64_t ended, double wall_s);
void result_free(struct result *res);
void result_device_free(struct result_device *d); /* what it holds */
void result_warn(struct result *res, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends a refusal, or adds the process to an equal one (same module, symbol and reason). */
void result_refuse(struct result_refused **list, size_t *n, const struct result_refused *refused,
		   pid_t pid);
void result_site_free(struct result_site *site); /* its texts and its list, not itself */
void result_refused_free(struct result_refused *list, size_t n);
/* Adds a pid unless the list has it. */
void result_add_pid(pid_t **pids, size_t *n, pid_t pid);
/* The number of distinct processes in which a target has a site. */
size_t result_processes(const struct result_target *rt);
/* Records why a target is not (wholly) hooked; why: the error of the last attempt to find it. */
void result_reason(struct result_target *rt, const struct sb_err *why);
/* Did something go uncounted or undelayed because sbinject was held up? */
bool result_incomplete(const struct result *res);
const char *result_outcome_name(enum result_outcome outcome); /* "delayed", "never_called" */

/*
 * JSON, one document without a newline at the end; the caller frees. Reading it back gives the same
 * result, including names that are not UTF-8 (src/base/json.h). These are lost: an infinite double
 * comes back as NaN; of tags with one key the last is kept; an unknown `given` without a reason
 * gets one. A damaged document is SB_EFILE, with the path to the field, and leaves *out unchanged.
 */
char *result_to_json(const struct result *res, bool indent);
int result_from_json(const char *text, struct result **out, struct sb_err *err);

#endif
