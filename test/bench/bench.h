/* SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * The bench: one program, one table. Every figure is the median of `bench.rounds` rounds in
 * which all variants that are compared take turns, so that a slow minute of the machine hits
 * them alike. A figure that cannot be taken here is a row with its reason.
 */
struct bench {
	const char *build; /* folder of sbinject and the subjects */
	const char *only;  /* run only groups whose name holds this; NULL: all */
	int rounds;
	bool quick;
	char dir[64]; /* for scratch files */
};
extern struct bench bench;

enum { MAX_SAMPLES = 64 };

struct samples {
	double v[MAX_SAMPLES];
	size_t n;
};
void samples_add(struct samples *s, double value);
double samples_median(const struct samples *s); /* NAN of none */

/* ---- rows (bench-table.c) ---- */

/* goal: as printed; met: 1, 0, or -1 where there is nothing to meet. */
void row_add(const char *group, const char *what, double value, const char *unit, const char *goal,
	     int met);
void row_missing(const char *group, const char *what, const char *goal, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void rows_print(FILE *to);
int rows_write_json(const char *path);
int met_below(double value, double limit); /* 1 or 0, -1 for NAN */

/* ---- subjects and sbinject (bench-run.c) ---- */

struct subject {
	pid_t pid;
	uint64_t fn; /* address of bench_fn */
	FILE *in, *out;
};
/* Starts build/test/bench/NAME with at most two arguments (NULL: none). */
int subject_start(struct subject *s, const char *name, const char *mode, const char *n);
void subject_stop(struct subject *s);
/* Sends one line, reads the answer's numbers; how many there were. */
int subject_ask(struct subject *s, double *answer, int cap, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The median time of a call in ns, of N calls on each of T threads; NAN when it went wrong. */
double subject_call(struct subject *s, int threads, uint64_t calls);
bool subject_hooked(
	const struct subject *s); /* the first bytes of its function are not the file's */

struct attached {
	pid_t pid; /* the command line's */
	char json[96], log[96];
	double planted_ms; /* from its start until the first byte of the function changed */
	long rss_kb;	   /* of both processes at most, while attached */
};
/* sbinject -p SUBJECT WORDS... in the background; 0 once the hook is in. WORDS end in NULL. */
int sb_attach(struct attached *a, const struct subject *s, const char *const *words);
/* SIGINT and wait; 0 if it ended well. The JSON can then be asked. */
int sb_detach(struct attached *a);
double sb_json(const struct attached *a, const char *path); /* "stop_us.attach"; NAN if none */
bool sb_runs(void);
const char *sb_why(const struct attached *a); /* the last line that it said */

pid_t run_start(char *const *argv, const char *log);
int run_stop(pid_t pid, int sig, int timeout_ms);
double now_ms(void);
bool have_program(const char *name);

/* ---- the control: a tracer that does nothing but what each tracer must (bench-bare.c) ---- */

/*
 * The shortest of a few stops of all threads, ms: from the first interrupt to the last
 * continuation. A thread that runs on another processor stops when that one is interrupted, which
 * takes a virtual machine up to a tick of its clock at times.
 */
double bare_hold(pid_t pid);

/* Follows the process and the threads that it starts until bare_end(). -1: it cannot. */
pid_t bare_follow(pid_t pid);
void bare_end(pid_t tracer);

/* ---- groups ---- */
void bench_cost(void);	  /* bench-cost.c */
void bench_peers(void);	  /* bench-peers.c */
void bench_delay(void);	  /* bench-delay.c */
void bench_session(void); /* bench-delay.c */
void bench_stop(void);	  /* bench-stop.c */
void bench_follow(void);  /* bench-stop.c */
void bench_sites(void);	  /* bench-stop.c */
void bench_names(void);	  /* bench-elf.c */
void bench_hookable(void);
void bench_backend(void); /* bench-backend.c */
void bench_evidence(void);
void bench_sweep(void); /* bench-sweep.c */

/* A counting BPF program on a uprobe of the subject, or a pair that times its calls
 * (bench-uprobe.c). */
struct uprobe;
struct uprobe *uprobe_open(const struct subject *s, bool pair, const char **why);
uint64_t uprobe_close(struct uprobe *u); /* the hits it counted */

/* Kept for the ratios between groups: ns a hit of sbinject's jump at delay 0. */
extern double cost_of_jump;

#endif
