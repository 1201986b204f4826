/* SPDX-License-Identifier: MIT */
#include "sweep-adjust.h"

#include <math.h>
#include <stdlib.h>
#include "grid.h"
#include "out.h"
#include "src/base/json.h"
#include "src/base/must.h"

static const char *text_of(const struct out_sweep_about *about, size_t i)
{
	return about->adjust[i] ? about->adjust[i] : "";
}

static size_t used(const struct sweep_result *res)
{
	size_t n = 0;

	for (size_t i = 0; i < res->n_adjust; i++)
		n += res->adjust[i].used;
	return n;
}

static const char *per(const struct sweep_result *res, const struct out_sweep_about *about,
		       size_t i)
{
	return res->adjust[i].rate ? "s" : about->response ? "response" : "item";
}

static const char *mover(const struct sweep_result *res, size_t i)
{
	int target = res->adjust[i].moved_target;

	if (target < 0 || (size_t)target >= res->n_targets)
		return "the progress function";
	return res->target[target].spec;
}

/* A slope is in ns of T for one of the covariate; its mean shows what that is worth. */
static void print_covariate(FILE *to, const struct sweep_result *res,
			    const struct out_sweep_about *about, size_t i)
{
	const struct sweep_adjust *a = &res->adjust[i];

	fputs(a->used ? "adjusted for " : "not adjusted for ", to);
	out_shown(to, text_of(about, i));
	if (a->used)
		fprintf(to, ": %.3g per %s on average, each %+.3g us [%+.3g, %+.3g] of it\n",
			a->mean, per(res, about, i), a->slope.est / 1e3, a->slope.lo / 1e3,
			a->slope.hi / 1e3);
	else if (a->moved) {
		fputs(": a delay of ", to);
		out_shown(to, mover(res, i));
		fprintf(to, " changes it by %+.3g %% (p %.2g), and with it a part of kappa\n",
			a->moved_share * 100, a->moved_p);
	} else
		fprintf(to, ": %s\n", a->reason);
}

static void print_target(FILE *to, const struct sweep_target *t)
{
	fputs("  ", to);
	out_shown(to, t->spec);
	fprintf(to,
		": kappa without adjusting %.2f [%.2f, %.2f]; the interval is %.0f %% as wide\n",
		t->unadjusted.est, t->unadjusted.lo, t->unadjusted.hi, t->adjusted_width * 100);
}

void out_sweep_adjust(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about,
		      size_t n)
{
	for (size_t i = 0; i < res->n_adjust; i++)
		print_covariate(to, res, about, i);
	if (!used(res))
		return;
	fprintf(to, "%.0f %% of the variance within blocks is explained by %s\n",
		res->adjust_explained * 100, used(res) == 1 ? "it" : "them");
	for (size_t i = 0; i < n; i++)
		if (isfinite(res->target[i].adjusted_width))
			print_target(to, &res->target[i]);
}

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *pair(double lo, double hi)
{
	json_t *out = json_must(json_array());

	json_add(out, real(lo));
	json_add(out, real(hi));
	return out;
}

static json_t *covariate_json(const struct sweep_result *res, const struct out_sweep_about *about,
			      size_t i)
{
	const struct sweep_adjust *a = &res->adjust[i];
	json_t *o = json_must(json_object());

	json_put(o, "source", json_name(text_of(about, i)));
	json_put(o, "per", json_string(per(res, about, i)));
	json_put(o, "used", json_boolean(a->used));
	json_put(o, "used_reason", a->used ? json_null() : json_name(a->reason));
	json_put(o, "mean", real(a->mean));
	json_put(o, "slope_ns", real(a->slope.est));
	json_put(o, "slope_ns_ci", pair(a->slope.lo, a->slope.hi));
	json_put(o, "moved_by", a->moved ? json_name(mover(res, i)) : json_null());
	json_put(o, "moved_share", real(a->moved_share));
	json_put(o, "moved_p", real(a->moved_p));
	return o;
}

json_t *out_sweep_adjust_json(const struct sweep_result *res, const struct out_sweep_about *about)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < res->n_adjust; i++)
		json_add(list, covariate_json(res, about, i));
	return list;
}
