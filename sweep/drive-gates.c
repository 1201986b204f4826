/* SPDX-License-Identifier: MIT */
/* The gates of a result: equal arms, the positive control, the tool's own cost, the queue. */
#include <stdlib.h>
#include "drive-priv.h"
#include "queue.h"
#include "stat.h"
#include "src/base/must.h"

#define GATE_LEVEL    0.01   /* a valid run is marked unproven once in a hundred */
#define CONTROL_LEVEL 0.9995 /* and fails its control once in a thousand */
#define CONTROL_SLACK 0.05

/* The contrast of two columns over all gates of the sweep. */
static size_t gather(const struct drive *drive, int a, int b, enum record_unit unit, double **out)
{
	size_t n = 0, room = 0;
	double *v = NULL;

	for (int e = 0; e < drive->n_experiments; e++) {
		room = n + record_blocks(&drive->rec, e);
		v = must_realloc(v, room * sizeof(*v));
		n += record_contrast(&drive->rec, e, a, b, unit, v + n);
	}
	*out = v;
	return n;
}

/* A/A of a quantile, by the blocks of all experiments; fewer than two: too few responses. */
static size_t gather_quantile(const struct drive *drive, double **out)
{
	struct record_view view = { .mode = LANE_ALL, .role = -1 };
	size_t n = 0;

	*out = NULL;
	for (int e = 0; e < drive->n_experiments; e++) {
		/* the second A in the place of a dose */
		struct record_of of = { e, -1, (size_t)(COLUMN_SHAM2 - COLUMN_DOSE), 1 };
		struct judged judged;
		double level;

		judged_open(drive, &of, &view, &judged, NULL);
		level = infer_level(&judged.data, 0).t;
		*out = must_realloc(*out, (n + judged.data.n_blocks + 1) * sizeof(**out));
		for (size_t b = 0; b < judged.data.n_blocks; b++)
			(*out)[n++] = (judged.data.cell[2 * b + 1].t - judged.data.cell[2 * b].t) /
				      level;
		judged_close(&judged);
	}
	return n;
}

/* With too few responses for a quantile the means of equal arms are compared. */
static size_t gather_aa(const struct drive *drive, double **v)
{
	size_t n;

	if (drive->cfg.quantile > 0) {
		n = gather_quantile(drive, v);
		if (n >= 2)
			return n;
		free(*v);
	}
	return gather(drive, COLUMN_SHAM, COLUMN_SHAM2, RECORD_SHARE, v);
}

static void gate_aa(const struct drive *drive, struct sweep_gates *gates)
{
	double *v;
	size_t n = gather_aa(drive, &v);

	gates->aa = infer_mean(v, n, &gates->aa_p);
	gates->aa_known = n >= 2;
	gates->unproven = gates->aa_known && gates->aa_p < GATE_LEVEL;
	free(v);
	n = gather(drive, COLUMN_OFF, COLUMN_SHAM, RECORD_NS, &v);
	gates->sham_ns = infer_mean(v, n, NULL);
	free(v);
}

static void gate_queue(const struct drive *drive, struct sweep_gates *gates)
{
	gates->queue_grows = queue_growth(&drive->rec).grows;
}

static void gate_control(const struct drive *drive, struct rng *rng, struct sweep_gates *gates)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1, .throughput = true };
	struct record_of of = { drive->control_experiment, -1, 0, 1 };
	struct infer_kappa kappa;
	struct infer_data data;
	double allowed;

	gates->control_asked = drive->cfg.control != DRIVE_NONE && !drive->cfg.control_auto;
	if (drive->control_experiment < 0)
		return;
	if (drive->cfg.control_auto) /* items may be done side by side by threads */
		view.mode = LANE_THREAD;
	record_data(&drive->rec, &of, &view, &data, NULL);
	infer_kappa(&data, rng, &kappa);
	record_data_free(&data);
	gates->control = kappa.kappa;
	allowed = fmax(CONTROL_SLACK, stat_t_quantile(CONTROL_LEVEL, kappa.df) * kappa.se);
	gates->control_ok = fabs(kappa.kappa.est - 1) <= allowed;
}

void drive_gates(const struct drive *drive, struct rng *rng, struct sweep_gates *gates)
{
	gates->roles = drive->rec.n_roles;
	gates->lane_mode = lane_mode_name(drive->cfg.lane_mode);
	gate_aa(drive, gates);
	if (drive->cfg.response)
		gate_queue(drive, gates);
	gate_control(drive, rng, gates);
}
