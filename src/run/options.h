/* SPDX-License-Identifier: MIT */
#ifndef SB_RUN_OPTIONS_H
#define SB_RUN_OPTIONS_H

#include "src/result/result.h"
#include "src/session/session.h"
#include "trace/event.h"

/* The options of a run, from a command line (src/cli/options.h). It owns its texts and lists. */
struct options {
	struct session_config session;
	char *backend;
	bool require_hits, by_process, quiet, verbose, help, version;
	uint64_t default_ns; /* delay of targets without one */
	bool from_env;	     /* --from-env */
	bool kernel;	     /* --kernel */
	bool trace;	     /* the verb trace: the times of calls come first */
	bool background;
	int status_fd;	/* output for programs; 0: none */
	int ready_pipe; /* set by --daemon: one byte ends the wait of the starting process; 0: none
			 */
	uint64_t interval_ns;
	char *metrics, *metrics_file, *events; /* --metrics, --metrics-file, --events */
	char *report;			       /* --report */
	bool metrics_by_pid;
	char *trace_path, *trace_format; /* of single calls: trace -o; NULL: none */
	uint64_t trace_size;		 /* of the buffer for them, bytes of each page */
	/* As in struct trace_file_config. */
	uint32_t (*launcher)(const struct trace_function *function);
	char *progress;	  /* of explain; NULL: none */
	bool no_sweep;	  /* of find */
	bool follow;	  /* of sweep and find: trace, to hook processes that begin later */
	uint64_t time_ns; /* ... how long; 0: the default */
	char *json, *jsonl;
	struct result_tag *tag;
	size_t n_tags;
	char **command; /* NULL: none; NULL-terminated */
	char *typed;	/* the whole command line, as one text */
};

#endif
