/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include "sweep/slack.h"
#include "sweep/stat.h"

/* Against values that SciPy computed by other ways: golden/sweep-reference.py says how. */
#define MAX_VALUES 512

static double v[MAX_VALUES];
static size_t n_v;

static void close_to(double got, double want, double share)
{
	double room = share * fmax(fabs(want), 1e-12) + 1e-15;

	if (!(fabs(got - want) <= room))
		fail_msg("%.17g, and %.17g is expected", got, want);
}

static void check_t_cdf(void)
{
	close_to(stat_t_cdf(v[0], v[1]), v[2], 1e-9);
}

static void check_t_quantile(void)
{
	close_to(stat_t_quantile(v[0], v[1]), v[2], 1e-9);
}

static void check_f_quantile(void)
{
	close_to(stat_f_quantile(v[0], v[1], v[2]), v[3], 1e-9);
}

static void check_beta_inc(void)
{
	close_to(stat_beta_inc(v[0], v[1], v[2]), v[3], 1e-9);
}

static void check_normal_quantile(void)
{
	close_to(stat_normal_quantile(v[0]), v[1], 1e-9);
}

static void check_hodges_lehmann(void)
{
	size_t n = (size_t)v[0];
	double lo, hi, est = stat_hodges_lehmann(v + 1, n, 0.95, &lo, &hi);

	close_to(est, v[1 + n], 1e-12);
	close_to(lo, v[2 + n], 1e-12);
	close_to(hi, v[3 + n], 1e-12);
}

static void check_theil_sen(void)
{
	size_t n = (size_t)v[0];

	close_to(stat_theil_sen(v + 1, n), v[1 + n], 1e-9);
}

/* The cells of a line; *rest: what is expected of them. */
static struct infer_data cells(struct infer_cell *cell, const double **rest)
{
	size_t blocks = (size_t)v[0], arms = (size_t)v[1], n = blocks * arms;

	for (size_t i = 0; i < n; i++)
		cell[i] = (struct infer_cell){ .t = v[2 + i], .x = v[2 + n + i], .h = 1 };
	*rest = v + 2 + 2 * n;
	return (struct infer_data){ .n_blocks = blocks, .n_arms = arms, .cell = cell };
}

static void check_kappa(void)
{
	struct infer_cell cell[MAX_VALUES];
	struct infer_kappa k;
	const double *want;
	struct infer_data data = cells(cell, &want);

	infer_kappa(&data, NULL, &k);
	close_to(k.kappa.est, want[0], 1e-9);
	close_to(k.kappa.lo, want[1], 1e-6);
	close_to(k.kappa.hi, want[2], 1e-6);
	close_to(k.se, want[3], 1e-9);
	close_to(k.p_t, stat_t_p2(want[0] / want[3], v[0] - 1), 1e-6);
}

static void check_hinge(void)
{
	struct infer_cell cell[MAX_VALUES];
	struct infer_kappa k;
	struct slack_fit fit;
	const double *want;
	struct infer_data data = cells(cell, &want);

	infer_kappa(&data, NULL, &k);
	slack_fit(&data, &k, 0.1, NULL, &fit);
	assert_int_equal(fit.kind, SLACK_FOUND);
	close_to(fit.slack_ns.est, want[0], 1e-6);
	close_to(fit.slack_ns.lo, want[1], 1e-6);
	close_to(fit.slack_ns.hi, want[2], 1e-6);
	close_to(fit.beyond.est, want[3], 1e-6);
	close_to(fit.delta_aicc, want[4], 1e-6);
}

static const struct {
	const char *kind;
	void (*check)(void);
	int least; /* cases there must be */
} checks[] = {
	{ "t_cdf", check_t_cdf, 50 },
	{ "t_quantile", check_t_quantile, 50 },
	{ "f_quantile", check_f_quantile, 20 },
	{ "beta_inc", check_beta_inc, 20 },
	{ "normal_quantile", check_normal_quantile, 5 },
	{ "hodges_lehmann", check_hodges_lehmann, 4 },
	{ "theil_sen", check_theil_sen, 4 },
	{ "kappa", check_kappa, 4 },
	{ "hinge", check_hinge, 2 },
};
#define N_CHECKS (sizeof(checks) / sizeof(*checks))

static void read_values(char *text)
{
	char *end;

	for (n_v = 0; n_v < MAX_VALUES; n_v++) {
		v[n_v] = strtod(text, &end);
		if (end == text)
			return;
		text = end;
	}
	fail_msg("too many values");
}

static void test_reference(void **state)
{
	const char *src = getenv("SRC");
	int seen[N_CHECKS] = { 0 };
	char path[4096], *line = NULL;
	size_t size = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/test/unit/golden/sweep-reference.txt", src ? src : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		size_t word = strcspn(line, " ");

		read_values(line + word);
		for (size_t i = 0; i < N_CHECKS; i++) {
			if (strlen(checks[i].kind) != word || strncmp(line, checks[i].kind, word))
				continue;
			checks[i].check();
			seen[i]++;
		}
	}
	for (size_t i = 0; i < N_CHECKS; i++)
		assert_true(seen[i] >= checks[i].least);
	free(line);
	fclose(f);
}

static void test_out_of_range_is_unknown(void **state)
{
	double lo, hi, one = 1;

	(void)state;
	assert_true(isnan(stat_t_quantile(0, 5)) && isnan(stat_t_quantile(0.5, 0)));
	assert_true(isnan(stat_t_cdf(NAN, 5)) && isnan(stat_f_quantile(0.5, 0, 1)));
	assert_true(isnan(stat_beta_inc(1, 1, 2)) && isnan(stat_normal_quantile(1)));
	assert_true(isnan(stat_mean(NULL, 0)) && isnan(stat_var(&one, 1)));
	assert_true(isnan(stat_median(NULL, 0)) && isnan(stat_theil_sen(&one, 1)));
	assert_true(stat_hodges_lehmann(&one, 1, 0.95, &lo, &hi) == 1);
	assert_true(lo == -INFINITY && hi == INFINITY);
	assert_true(isnan(stat_hodges_lehmann(NULL, 0, 0.95, &lo, &hi)));
	assert_true(stat_t_cdf(INFINITY, 5) == 1 && stat_t_cdf(-INFINITY, 5) == 0);
}

/* With df = 1 and 2 the quantiles have closed forms. */
static void test_closed_forms(void **state)
{
	(void)state;
	close_to(stat_t_quantile(0.975, 1), tan(0.475 * M_PI), 1e-9);
	close_to(stat_t_quantile(0.9, 2), 0.8 / sqrt(2 * 0.9 * 0.1), 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_out_of_range_is_unknown),
		cmocka_unit_test(test_closed_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
