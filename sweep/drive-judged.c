/* SPDX-License-Identifier: MIT */
/* What is judged: the time per item, the mean response, or a quantile of the responses. */
#include "drive-priv.h"

void judged_open(const struct drive *drive, const struct record_of *of,
		 const struct record_view *view, struct judged *out, double *lanes)
{
	*out = (struct judged){ .quantile = drive->cfg.quantile > 0 && !view->throughput };
	record_data(&drive->rec, of, view, &out->mean, lanes);
	out->data = out->mean;
	if (!out->quantile)
		return;
	quantile_of(&drive->rec, of, &out->mean, drive->cfg.quantile, &out->of);
	out->data = out->of.data;
}

void judged_infer(const struct judged *judged, struct rng *rng, struct infer_kappa *kappa)
{
	infer_kappa(&judged->data, rng, kappa);
	judged_widen(judged, &kappa->kappa);
}

void judged_widen(const struct judged *judged, struct sweep_estimate *kappa)
{
	if (judged->quantile && !isnan(kappa->est))
		quantile_widen_kappa(&judged->of, kappa);
}

void judged_close(struct judged *judged)
{
	record_data_free(&judged->mean);
	if (judged->quantile)
		quantile_of_free(&judged->of);
}
