/* SPDX-License-Identifier: MIT */
/* One line for each window, in the format of RFC 4180; an unknown figure is an empty field. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "place.h"
#include "sweep-changes.h"

static void number(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, "%.12g", v);
	fputc(',', f);
}

static void quoted(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', f);
		fputc(*s, f);
	}
	fputs("\",", f);
}

static void window(FILE *f, const struct sweep_result *res, const struct sweep_window *w)
{
	fprintf(f, "%s,%s,", sweep_stage_name(w->stage), sweep_arm_name(w->arm));
	quoted(f, w->target >= 0 && (size_t)w->target < res->n_targets ?
			  res->target[w->target].spec :
			  "");
	fprintf(f, "%d,%d,%d,%" PRIu64 ",", w->experiment, w->block, w->dose, w->delay_ns);
	number(f, (double)w->end_ns / 1e9);
	number(f, (double)w->time_ns / 1e9);
	number(f, w->items);
	fprintf(f, "%" PRIu64 ",", w->hits);
	number(f, w->t_ns);
	number(f, w->x_ns);
	number(f, w->hits_per_item);
	number(f, w->response_sum_ns);
	if (isfinite(w->response_count))
		fprintf(f, "%.12g", w->response_count);
	for (size_t i = 0; i < res->n_adjust; i++)
		fprintf(f, ",%.12g", w->amount[i]);
	for (size_t i = 0; i < SIDE_COUNT * res->n_counters; i++) {
		fputc(',', f);
		if (w->counter && isfinite(w->counter[i]))
			fprintf(f, "%.12g", w->counter[i]);
	}
	fputs("\r\n", f);
}

static void head(FILE *f, const struct sweep_result *res)
{
	fputs("stage,arm,target,experiment,block,dose,delay_ns,end_s,time_s,items,hits,t_ns,x_ns,"
	      "hits_per_item,response_sum_ns,response_count",
	      f);
	for (size_t i = 0; i < res->n_adjust; i++)
		fprintf(f, ",adjust_%zu", i + 1);
	for (size_t i = 0; i < SIDE_COUNT * res->n_counters; i++)
		fprintf(f, ",%s_%s", out_sweep_side((enum sweep_side)(i / res->n_counters)),
			sides_name(i % res->n_counters));
	fputs("\r\n", f);
}

int out_sweep_csv(const char *path, const struct sweep_result *res,
		  const struct out_sweep_about *about, struct sb_err *err)
{
	FILE *f = out_place_stream(path);

	(void)about;
	if (!f)
		return err_sys(err, SB_EFILE, "cannot write %s", path);
	head(f, res);
	for (size_t i = 0; i < res->n_windows; i++)
		window(f, res, &res->window[i]);
	return fclose(f) ? err_sys(err, SB_EFILE, "cannot write %s", path) : 0;
}
