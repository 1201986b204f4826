/* SPDX-License-Identifier: MIT */
/* bench [-b BUILD] [--quick] [--only GROUP] [--rounds N] [--json FILE]: see bench.h */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

struct bench bench = { .build = "build", .rounds = 5 };

static const struct group {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "cost", bench_cost },	      { "peers", bench_peers },	    { "delay", bench_delay },
	{ "session", bench_session }, { "stop", bench_stop },	    { "follow", bench_follow },
	{ "sites", bench_sites },     { "names", bench_names },	    { "hookable", bench_hookable },
	{ "sweep", bench_sweep },     { "backend", bench_backend }, { "evidence", bench_evidence },
};

static const struct option options[] = {
	{ "quick", no_argument, NULL, 'q' },
	{ "only", required_argument, NULL, 'o' },
	{ "json", required_argument, NULL, 'j' },
	{ "rounds", required_argument, NULL, 'r' },
	{ 0 },
};

static int usage(void)
{
	fprintf(stderr,
		"usage: bench [-b BUILD] [--quick] [--only GROUP] [--rounds N] [--json FILE]\n");
	return 2;
}

static int parse(int argc, char **argv, const char **json)
{
	int c;

	while ((c = getopt_long(argc, argv, "b:", options, NULL)) != -1) {
		if (c == 'b')
			bench.build = optarg;
		else if (c == 'q')
			bench.quick = true;
		else if (c == 'o')
			bench.only = optarg;
		else if (c == 'j')
			*json = optarg;
		else if (c == 'r')
			bench.rounds = atoi(optarg);
		else
			return -1;
	}
	return bench.rounds >= 1 && bench.rounds <= MAX_SAMPLES ? 0 : -1;
}

int main(int argc, char **argv)
{
	char path[256];
	const char *json = NULL;

	if (parse(argc, argv, &json))
		return usage();
	snprintf(bench.dir, sizeof(bench.dir), "/tmp/sbinject-bench.XXXXXX");
	if (!mkdtemp(bench.dir)) {
		perror("bench: mkdtemp");
		return 1;
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (bench.only && !strstr(groups[i].name, bench.only))
			continue;
		fprintf(stderr, "bench: %s\n", groups[i].name);
		groups[i].run();
	}
	rows_print(stdout);
	snprintf(path, sizeof(path), "%s/bench.json", bench.build);
	if (rows_write_json(json ? json : path))
		return 1;
	snprintf(path, sizeof(path), "rm -rf '%s'", bench.dir);
	return system(path) ? 1 : 0;
}
