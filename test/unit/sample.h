/* SPDX-License-Identifier: MIT */
#ifndef TEST_SAMPLE_H
#define TEST_SAMPLE_H

/* Results for the tests of the writers and of the JSON; made of the public structs alone. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"
#include "src/result/result.h"

static char *sample_copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static void sample_site(struct result_target *target, const char *symbol, uint64_t address,
			const char *mechanism, size_t n_pids)
{
	struct result_site *site;

	target->site = realloc(target->site, (target->n_sites + 1) * sizeof(*site));
	site = &target->site[target->n_sites++];
	*site = (struct result_site){
		.module = sample_copy("/usr/lib/x86_64-linux-gnu/libc.so.6"),
		.build_id = sample_copy(mechanism ? "c047672cae7964324658491e7dee26748ae5d2f8" :
						    NULL),
		.symbol = sample_copy(symbol),
		.name = sample_copy(symbol),
		.address = address,
		.size = mechanism ? 27 : 0,
		.mechanism = sample_copy(mechanism),
		.n_pids = n_pids,
		.pids = n_pids ? calloc(n_pids, sizeof(pid_t)) : NULL,
	};
	for (size_t i = 0; i < n_pids; i++)
		site->pids[i] = (pid_t)(4711 + i);
}

static void sample_refuse(struct result_target *target, const char *symbol, uint64_t address,
			  const char *reason)
{
	struct result_refused *refused;

	target->refused = realloc(target->refused, (target->n_refused + 1) * sizeof(*refused));
	refused = &target->refused[target->n_refused++];
	*refused = (struct result_refused){
		.module = sample_copy("libc.so.6"),
		.symbol = sample_copy(symbol),
		.name = sample_copy(symbol),
		.reason = sample_copy(reason),
		.address = address,
	};
}

static void sample_target(struct result *res, size_t i, const char *spec, uint64_t delay_ns,
			  enum result_outcome outcome, const char *reason)
{
	struct result_target *target = &res->target[i];

	target->spec = sample_copy(spec);
	target->delay_ns = delay_ns;
	target->every = 1;
	target->outcome = outcome;
	target->reason = sample_copy(reason);
	snprintf(target->given.reason, sizeof(target->given.reason), "no delayed hit");
}

static void sample_process(struct result *res, pid_t pid, const char *comm, uint64_t hits)
{
	struct result_process *process;

	res->process = realloc(res->process, (res->n_processes + 1) * sizeof(*process));
	process = &res->process[res->n_processes++];
	*process = (struct result_process){
		.pid = pid,
		.generation = pid ? 1 : 0,
		.comm = sample_copy(comm),
		.exe = sample_copy(pid ? "/usr/bin/python3.11" : NULL),
		.counts = calloc(res->n_targets, sizeof(*process->counts)),
	};
	process->counts[0] = (struct result_counts){ hits, hits, hits * 5000, hits / 100 };
}

/* The run of the man page: one target, and nothing to remark. */
static struct result *sample_plain(void)
{
	struct result *res = result_new(1);
	struct result_target *target = res->target;

	res->version = sample_copy("0.1.0");
	res->host = sample_copy("gpu-01");
	res->backend = sample_copy("inject");
	res->exit = 0;
	res->exit_reason = sample_copy("for");
	res->wall_s = 3.25;
	res->started = (struct timespec_ns){ 1767322245, 123456789 };
	res->ended = (struct timespec_ns){ 1767322248, 373456789 };
	sample_target(res, 0, "libc.so.6:getpid", 5000, OUTCOME_DELAYED, "");
	sample_site(target, "getpid", 0x7f0011223340, "jump", 3);
	target->procs = 3;
	target->active_s = 3.0;
	target->counts = (struct result_counts){ 120034, 120034, 600200000, 0 };
	target->given = (struct result_given){ true, 5000.2, 5000, 5120, 7310, 0.5, "" };
	return res;
}

static void sample_full_targets(struct result *res)
{
	struct result_target *target = res->target;

	sample_target(res, 1, "libcuda.so*:cuLaunchKernel*", 10000, OUTCOME_NEVER_CALLED, "");
	sample_site(&target[1], "cuLaunchKernel", 0x7f0011225550, "jump", 1);
	sample_site(&target[1], "cuLaunchKernelEx", 0x7f0011226660, "int3", 1);
	target[1].active_s = 3.0;
	target[1].procs = 1;
	sample_target(res, 2, "libfoo.so:bar", 1000, OUTCOME_PENDING, "");
	sample_target(res, 3, "libc.so.6:nope", 1000, OUTCOME_NO_MATCH,
		      "libc.so.6 has no function 'nope'");
	sample_target(res, 4, "lib\x1b[31m\xff.so:\xc3\xa9t\xc3\xa9", 2500, OUTCOME_REFUSED,
		      "every site was refused");
	for (uint64_t i = 0; i < 12; i++) {
		char symbol[32];

		snprintf(symbol, sizeof(symbol), "memcpy_%" PRIu64, i);
		sample_refuse(&target[4], symbol, i ? 0x7f0011000000 + 64 * i : 0,
			      "a branch lands on byte 3 of it");
	}
	sample_target(res, 5, ":main", 0, OUTCOME_COUNTED, "");
	sample_site(&target[5], "main", 0x555555554000, "jump", 1);
	sample_site(&target[5], "_ZN2ns1fEi+0x4", 0, NULL, 0);
	free(target[5].site[1].name);
	target[5].site[1].name = sample_copy("ns::f(int)+0x4");
	target[5].counts.hits = 1;
	target[5].active_s = 3.0;
	target[5].procs = 1;
}

/* One target of each outcome, odd names, refused sites, processes, each unknown figure once. */
static struct result *sample_full(void)
{
	static const char *const argv[] = { "sbinject", "-p", "4711", "a \"b\"\n",
					    "\xee\xbe\x80\xfe" };
	struct result *plain = sample_plain(), *res = result_new(6);

	free(res->target);
	res->target = calloc(6, sizeof(*res->target));
	res->target[0] = plain->target[0];
	plain->n_targets = 0;
	result_free(plain);
	res->n_argv = sizeof(argv) / sizeof(argv[0]);
	res->argv = calloc(res->n_argv, sizeof(*res->argv));
	for (size_t i = 0; i < res->n_argv; i++)
		res->argv[i] = sample_copy(argv[i]);
	res->tag = calloc(2, sizeof(*res->tag));
	res->n_tags = 2;
	res->tag[0] = (struct result_tag){ sample_copy("zone"), sample_copy("a=b") };
	res->tag[1] = (struct result_tag){ sample_copy("arm"), sample_copy("") };
	res->version = sample_copy("0.1.0");
	res->started = (struct timespec_ns){ 1767322245, 5 };
	res->wall_s = 0.1;
	res->exit_reason = sample_copy("error: x");
	res->target[0].counts.overrun_ns = 1234567;
	sample_full_targets(res);
	sample_process(res, 4711, "python3", 120000);
	sample_process(res, 4712, "w\n1", 0);
	sample_process(res, 0, NULL, 34);
	free(res->process[1].counts);
	res->process[1].counts = NULL;
	res->lease_lapsed_hits = 17;
	res->doorbells_lost = 3;
	res->stalled_s = 2.5;
	res->stop_known = true;
	res->stop_attach_us = 840;
	res->stop_detach_us = 1234;
	res->gil = text_dup("held");
	res->gil_known = true;
	res->gil_attach_us = 975;
	res->gil_detach_us = 210;
	result_warn(res, "the clock %s", "moved");
	return res;
}

static void sample_untime(struct result_target *target, const char *symbol, const char *reason)
{
	struct result_refused *list;

	target->untimed = realloc(target->untimed, (target->n_untimed + 1) * sizeof(*list));
	list = target->untimed;
	list[target->n_untimed++] = (struct result_refused){
		.module = sample_copy("/usr/lib/x86_64-linux-gnu/libc.so.6"),
		.symbol = sample_copy(symbol),
		.name = sample_copy(symbol),
		.reason = sample_copy(reason),
		.address = 0x7f0011000000 + target->n_untimed * 64,
	};
}

static void sample_times(struct result_target *target, struct result_times times)
{
	target->timed = times.known = true;
	times.bucket = calloc(2, sizeof(*times.bucket));
	times.bucket[0] = (struct result_bucket){ 19840, 20480, times.calls - times.calls / 9 };
	times.bucket[1] = (struct result_bucket){ 5320000, 5440000, times.calls / 9 };
	times.n_buckets = 2;
	target->times = times;
	target->active_s = 3.0;
	target->counts.hits = times.calls + times.missed;
	target->procs = 1;
}

/* Timed targets: one with all figures; one of Python, with calls that did not return; one of which
 * some functions are not timed; one of which none is; one that was never found. */
static struct result *sample_timed(void)
{
	struct result *res = result_new(6);
	struct result_target *t = res->target;

	res->stop_known = true;
	res->wall_s = 3;
	sample_target(res, 0, ":parse", 0, OUTCOME_COUNTED, "");
	sample_site(&t[0], "parse", 0x555555554000, "jump", 1);
	sample_times(&t[0], (struct result_times){ .own_known = true,
						   .calls = 20000,
						   .inclusive_ns = 590129072,
						   .exclusive_ns = 401000000,
						   .min_ns = 20140,
						   .p50_ns = 20316,
						   .p90_ns = 20477,
						   .p99_ns = 25835,
						   .max_ns = 5435938 });
	sample_target(res, 1, "py:app:handle", 0, OUTCOME_COUNTED, "");
	sample_site(&t[1], "handle", 0, "python", 1);
	sample_times(&t[1], (struct result_times){ .calls = 9,
						   .missed = 2,
						   .inclusive_ns = 90000000000,
						   .min_ns = 9000000000,
						   .p50_ns = 10000000000,
						   .p90_ns = 10500000000,
						   .p99_ns = 11000000000,
						   .max_ns = 11000000000 });
	sample_target(res, 2, "libc.so.6:mem*", 0, OUTCOME_COUNTED, "");
	sample_site(&t[2], "memfrob", 0x7f0011225550, "jump", 1);
	sample_times(&t[2], (struct result_times){ .own_known = true });
	for (int i = 0; i < 7; i++) {
		char symbol[32], reason[64];

		snprintf(symbol, sizeof(symbol), "mem_%d", i);
		snprintf(reason, sizeof(reason), i < 3 ? "no space: at 0x%x" : "reason %d", i);
		sample_site(&t[2], symbol, 0x7f0011226660 + 64ull * (unsigned int)i, "jump", 1);
		sample_untime(&t[2], symbol, reason);
	}
	sample_target(res, 3, "libc.so.6:abort", 0, OUTCOME_NEVER_CALLED, "");
	sample_site(&t[3], "abort", 0x7f0011227770, "jump", 1);
	sample_times(&t[3], (struct result_times){ .own_known = true });
	sample_untime(&t[3], "abort", "the function has no exit: it never returns");
	sample_target(res, 4, "libfoo.so:bar", 0, OUTCOME_PENDING, "");
	sample_times(&t[4], (struct result_times){ .own_known = true });
	t[4].procs = 0;
	sample_target(res, 5, ":main", 0, OUTCOME_COUNTED, "");
	sample_site(&t[5], "main", 0x555555554100, "jump", 1);
	t[5].counts.hits = t[5].procs = 1;
	return res;
}

#endif
