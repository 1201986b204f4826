/* SPDX-License-Identifier: MIT */
/*
 * prove [-a] [-v] [-e N] [-s STATES] [-r FILE] [-w run|read] [-m] [-i] [-d N] LIBRARY...
 *
 * Plans every function of each library, proves every window (prove.h) and prints how many are
 * hooked by which mechanism, and why not the others.
 *
 *	-a	also functions that only .eh_frame knows
 *	-e N	proves each Nth window only (all are planned)
 *	-s N	N random states a window (default 3)
 *	-r FILE	appends every refused function with its reason
 *	-v	the same, on stdout
 *	-m	sites in the middle of functions; -i: entries by int3
 *	-w WAY	proves in one of the two ways only
 *	-d N	damages what is emitted (byte and bit by N): the proof must fail
 *
 * LIBRARY: a path, a name that is looked for in the usual places, or "largest". Exit status 1 when
 * a window was not proven, 77 when there is none of the libraries.
 */
#include <err.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "prove.h"
#include "inject/landing.h"

enum { NAMES_SHOWN = 5, WRONG_SHOWN = 20 };

static struct {
	bool all, verbose;
	enum prove_site site;
	unsigned int each, states;
	const char *report, *way;
} opt = { .each = 1, .states = 3 };

struct totals {
	size_t functions, hooked, shape[4], proven, run, wrong;
};

/* What a sandbox that dies was doing, for the parent. */
static volatile size_t *at_work;

static const char *name_of(const struct function *f)
{
	return f->name ? f->name : "(no symbol)";
}

static const char *listed(const struct plan *plan)
{
	static const int64_t distances[] = { -0x30000000, 0x7a000000 };
	const char *why = NULL;

	for (size_t i = 0; i < 2 && !why; i++) {
		uint64_t at = PROVE_BASE + (uint64_t)distances[i];
		struct plan_pc pcs[PLAN_MAX_INSNS + 1];
		uint8_t buf[PLAN_MAX_DISPLACED];
		enum plan_refusal refused;
		size_t n, len = plan_emit(plan, at, buf, sizeof(buf), pcs, &n, &refused);

		if (len && sandbox_damage)
			buf[sandbox_damage % len] ^= 1u << sandbox_damage % 8;
		if (len)
			why = listing_differs(plan, at, buf, len, pcs, n);
		else if (refused != PLAN_OUT_OF_REACH)
			why = plan_refusal_text(refused);
	}
	return why;
}

static void wrong(struct totals *t, const struct function *f, const char *way, const char *why)
{
	if (t->wrong++ < WRONG_SHOWN)
		printf("  WRONG: %llx %s: %s: %s\n", (unsigned long long)(f->start - PROVE_BASE),
		       name_of(f), way, why);
}

static bool way(const char *name)
{
	return !opt.way || !strcmp(opt.way, name);
}

static void prove_one(struct totals *t, struct function *f, const struct plan *plan)
{
	const char *why = way("read") ? listed(plan) : NULL;
	bool ran = false;

	t->proven++;
	if (why) {
		wrong(t, f, "read", why);
		return;
	}
	if (!way("run") || !sandbox_can_run(plan))
		return;
	why = sandbox_differs(plan, opt.states, &ran);
	t->run += ran;
	if (why)
		wrong(t, f, "run", why);
}

/* "from 0x2001c00a2d56": as in the file. */
static void file_address(char *detail, size_t size)
{
	char *hex = strstr(detail, "0x");

	if (hex)
		snprintf(hex, size - (size_t)(hex - detail), "0x%llx",
			 strtoull(hex, NULL, 16) - PROVE_BASE);
}

static void prove_all(struct library *lib, struct totals *t)
{
	struct landing_set *set = library_scan(lib);

	for (size_t i = 0; i < lib->count; i++) {
		struct function *f = &lib->func[i];
		struct plan_request req;
		struct plan plan;

		if (!f->chosen)
			continue;
		*at_work = i;
		t->functions++;
		library_request(lib, i, &req);
		f->why = plan_make(&req, set, &plan, f->detail, sizeof(f->detail));
		file_address(f->detail, sizeof(f->detail));
		if (f->why != PLAN_OK)
			continue;
		t->hooked++;
		t->shape[plan.shape]++;
		if (i % opt.each == 0)
			prove_one(t, f, &plan);
	}
	landing_free(set);
}

/* One line, which bench reads, and the refused. */
static void summary(const struct totals *t)
{
	printf("  %zu functions, %.3f %% by %s (body %zu, tail %zu, pre %zu), %zu windows proven: "
	       "%zu run, %zu read, %zu wrong\n",
	       t->functions, t->functions ? 100.0 * (double)t->hooked / (double)t->functions : 0.0,
	       opt.site == SITE_INT3 ? "int3" : "jump", t->shape[PLAN_BODY], t->shape[PLAN_TAIL],
	       t->shape[PLAN_PRE], t->proven, t->run, t->proven - t->run, t->wrong);
}

static void refused(const struct library *lib, FILE *report)
{
	for (int why = 1; why < PLAN_REFUSAL_COUNT; why++) {
		size_t n = 0;

		for (size_t i = 0; i < lib->count; i++) {
			const struct function *f = &lib->func[i];

			if ((int)f->why != why || !f->chosen)
				continue;
			if (!n++)
				printf("  refused: %s\n", plan_refusal_text(f->why));
			if (n <= NAMES_SHOWN || opt.verbose)
				printf("    %llx %s (%s)\n",
				       (unsigned long long)(f->start - PROVE_BASE), name_of(f),
				       f->detail);
			if (report)
				fprintf(report, "%s\t%llx\t%s\t%s\t%s\n", lib->path,
					(unsigned long long)(f->start - PROVE_BASE), name_of(f),
					plan_refusal_text(f->why), f->detail);
		}
		if (n)
			printf("    %zu in all\n", n);
	}
}

/* In a process of its own: code of the library runs here. */
static int prove_library(const char *path)
{
	FILE *report = opt.report ? fopen(opt.report, "ae") : NULL;
	struct totals t = { 0 };
	struct library lib;

	printf("%s\n", path);
	fflush(stdout);
	if (library_open(&lib, path, opt.all, opt.site) || sandbox_open(&lib))
		return 1;
	prove_all(&lib, &t);
	summary(&t);
	refused(&lib, report);
	if (report)
		fclose(report);
	library_close(&lib);
	fflush(stdout);
	return t.wrong != 0;
}

static int prove_apart(const char *path)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(prove_library(path));
	if (child < 0 || waitpid(child, &status, 0) < 0)
		err(1, "fork");
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	printf("  WRONG: the sandbox was killed by signal %d at function %zu\n", WTERMSIG(status),
	       *at_work);
	return 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: prove [-a] [-v] [-e N] [-s STATES] [-r FILE] [-w run|read] [-m] "
			"[-i] [-d N] "
			"LIBRARY...\n");
	return 2;
}

int main(int argc, char **argv)
{
	int c, status = 0, found = 0;
	char path[4096];

	while ((c = getopt(argc, argv, "avmie:s:r:w:d:")) != -1) {
		opt.all |= c == 'a';
		opt.verbose |= c == 'v';
		if (c == 'm' || c == 'i')
			opt.site = c == 'm' ? SITE_MIDDLE : SITE_INT3;
		if (c == 'e')
			opt.each = (unsigned int)strtoul(optarg, NULL, 10);
		if (c == 's')
			opt.states = (unsigned int)strtoul(optarg, NULL, 10);
		if (c == 'r')
			opt.report = optarg;
		if (c == 'w')
			opt.way = optarg;
		if (c == 'd')
			sandbox_damage = (unsigned int)strtoul(optarg, NULL, 10);
		if (c == '?' || !opt.each || (opt.way && !way("run") && !way("read")))
			return usage();
	}
	at_work = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at_work == MAP_FAILED)
		err(1, "mmap");
	for (int i = optind; i < argc; i++) {
		if (!library_find(argv[i], path, sizeof(path))) {
			printf("%s\n  not on this machine\n", argv[i]);
			continue;
		}
		found++;
		status |= prove_apart(path);
	}
	return found ? status : 77;
}
