/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_RECORD_H
#define SWEEP_RECORD_H

#include "infer.h"
#include "lane.h"
#include "result.h"

/*
 * All windows as they were reported, and cells made of them. Windows of one experiment, block and
 * column are pooled. Owned by the module that keeps it; record_free() empties it.
 */
enum record_column {
	COLUMN_NONE = -1, /* of no block */
	COLUMN_OFF,
	COLUMN_SHAM,  /* also the first A of an A/A block */
	COLUMN_SHAM2, /* its other A */
	COLUMN_DOSE   /* the first dose; the others follow */
};

/* What was seen of one target in a window that several share: SHAM, in blocks with doses of each.
 */
struct record_part {
	int target;
	uint64_t hits;
	struct lane_count *lane;
	size_t n_lanes;
	struct lane_scan *scan;
	size_t n_scans;
	double *counter;
};

struct record_row {
	struct sweep_window win;
	int column, length; /* length: windows of the row's column in a whole block */
	double busy;
	double since;		 /* completed since the end of the row before; 0: unknown */
	struct lane_count *lane; /* a lane beyond them was not there */
	size_t n_lanes;
	struct lane_scan *scan; /* by role */
	size_t n_scans;
	double *counter; /* of both sides, n_counters of the record each; NULL: not read */
	struct sweep_bucket *bucket; /* of the responses, rising; those without one may be absent */
	size_t n_buckets;	     /* 0: no histogram, or no response */
	struct record_part
		*part; /* of the targets that share it, each alone; the above: together */
	size_t n_parts;
};

/* Whose windows: those of an experiment in which a target is delayed, and what they are compared
 * with. */
struct record_of {
	int experiment;	       /* -1: of all */
	int target;	       /* -1: of whatever is treated */
	size_t first, n_doses; /* its doses: columns from COLUMN_DOSE + first on */
};

/*
 * What T is adjusted for (adjust.h): in cells, in contrasts and in the course of windows it is T
 * less slope x (covariate - mean) for each of these covariates.
 */
struct record_adjust {
	size_t n;			/* 0: nothing */
	size_t which[INFER_COVARIATES]; /* of the record's covariates */
	double slope[INFER_COVARIATES], mean[INFER_COVARIATES];
	double explained; /* share of the variance within blocks */
	struct infer_adjust cost;
};

struct record {
	struct record_row *row;
	size_t n;
	struct lane *lane; /* the place of a counter */
	char **role;	   /* names; lane[].role is an index */
	size_t n_lanes, n_roles, n_counters;
	bool response; /* T is response_sum / response_count */
	size_t n_covariates;
	bool rate[INFER_COVARIATES]; /* an amount is per second; else per item, or response, as T */
	struct record_adjust adjust;
};

void record_add(struct record *rec, const struct record_row *row); /* copies its arrays */
void record_free(struct record *rec);

/* Is it a window of that experiment, and of that target? */
bool record_has(const struct record *rec, size_t row, const struct record_of *of);

/* How injected time becomes one number. */
struct record_view {
	enum lane_mode mode;
	int role;	  /* -1: all */
	bool throughput;  /* T is time / items even where there is a response source */
	size_t counter;	  /* 0: T is of the time; else: of this number less 1 of row.counter */
	size_t covariate; /* 0; else: T is that covariate, of this number less 1 */
	bool raw;	  /* T is not adjusted */
};

/* Of each lane's injected time in x. *lanes (may be NULL): how many are side by side. The caller
 * frees. */
double *record_weights(const struct record *rec, const struct record_of *of,
		       const struct record_view *view, double *lanes);

/* Of the target's hits in windows with hooks, the share that one lane feels; NAN: it has none. */
double record_share(const struct record *rec, const struct record_of *of,
		    const struct record_view *view);

/*
 * Cells of SHAM and the target's doses of all whole blocks that have them; lanes: as above. Free
 * with record_data_free(). n_doses >= 1.
 */
void record_data(const struct record *rec, const struct record_of *of,
		 const struct record_view *view, struct infer_data *data, double *lanes);
void record_data_free(struct infer_data *data);

/*
 * T of column b less T of column a, in every whole block that has both; v must hold record_blocks()
 * values. Returns how many.
 */
enum record_unit {
	RECORD_NS,
	RECORD_SHARE,	  /* of T in a */
	RECORD_THROUGHPUT /* ns per item, even where there is a response source */
};
size_t record_contrast(const struct record *rec, int experiment, int a, int b,
		       enum record_unit unit, double *v);
size_t record_blocks(const struct record *rec, int experiment);

/*
 * Does a delay take time to be felt, or to be felt no more? Of the whole course of windows and
 *guards it is known which delay was in force. If a change is felt as 1 - exp(-t / tau), T of a
 *window is
 *
 *	block + total * delay + late * (felt meanwhile - delay)
 *
 * where total is what a ns of delay adds in the end. This is fitted for some tau, from a part of a
 * window to twice a block, and the one that explains the most is taken. Its error is the larger of
 * the one of independent residuals and the one of independent blocks. Where several targets share
 * blocks, a delay counts by what its target's delays add to T. Experiments from `first` on.
 */
struct carry {
	double t;      /* of late: above 0 what was felt was late; 0: unknown */
	double tau_ns; /* 0: unknown */
	bool pass;     /* nothing is felt before tau, and all after it */
	double df;
	/* Of the target's delay in experiment `first`, a ns of it, with its 95 % interval over all
	 * tau that explain as much; NAN: unknown. */
	double total, lo, hi;
	double alone; /* what it seems to add without `late` */
	double soon;  /* what more it would add by the best tau of less than a window and its guard,
		       * seen or not */
};
struct carry record_carry(const struct record *rec, int first, int target);
/* Of each of n targets, whose experiment is the same: at the cost of one. */
void record_carries(const struct record *rec, int first, const int *target, size_t n,
		    struct carry *out);
bool carry_seen(const struct carry *carry); /* more than chance: with few blocks, by far */

/* Every arm of a block with a delay, its windows pooled; T is not adjusted. Free *out. */
struct record_cell {
	int block, column;
	double t, x;		    /* x: injected into all lanes */
	double c[INFER_COVARIATES]; /* of all the record's covariates */
};
size_t record_cells(const struct record *rec, int experiment, struct record_cell **out);

/* T of one window, adjusted; NAN: no items. */
double record_window_t(const struct record *rec, const struct record_row *row);

/* T, x and hits over all windows of a column pooled. */
struct infer_cell record_level(const struct record *rec, const struct record_of *of, int column,
			       const struct record_view *view);

/*
 * The time that hits under a dose received over the set dose, hits times delay, interruptions left
 * out; each every-th of the target's hits is delayed (0: each). 1 where delays are exact; NAN where
 * there were too few hits.
 */
double record_given(const struct record *rec, const struct record_of *of, uint64_t every);

/* Fills in x_total_ns, x_ns of every window, with lane weights per experiment. */
void record_finish(struct record *rec, enum lane_mode mode);

#endif
