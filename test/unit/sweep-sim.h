/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_SIM_H
#define SWEEP_SIM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "sweep/drive.h"
#include "sweep/rng.h"

/*
 * A program that is slowed, made of a few numbers whose effect is known. Time per item is
 *
 *	T(t) = T0 * (1 + drift * t / horizon + AR(1)(t)) + sum over targets of
 *	       low * min(x, slack) + kappa * max(0, x - slack)
 *
 * or, of a pipeline, what its slowest stage takes, or, of a batcher, what its batch takes a item;
 * advanced in small steps; items are finished at the rate 1/T, with a spread from item to item,
 * now and then a stall with a heavy tail, or at the rate of arrivals with a queue (open loop). A
 * counter that is published every `period` is what the sweep gets to see.
 */
#define SIM_TARGETS 24
#define SIM_LANES   8
#define SIM_STAGES  3
#define SIM_PIPE    1024

struct sim_target {
	double kappa, slack_ns, low; /* low: slope below the slack */
	double hits;		     /* an item */
	double own_ns, missed;	     /* of its calls, an item; share of them that is not timed */
	double every, count_ns;	     /* each Nth hit is delayed; to count costs each so much */
};

struct sim_cfg {
	double t0_ns;
	struct sim_target target[SIM_TARGETS];
	size_t n_targets;
	double drift, horizon_s;  /* share of T0 over the horizon */
	double ar_sd, ar_tau_s;	  /* share of T0; correlation time */
	double item_cv;		  /* of an item's time, independent */
	double mix_sd, mix_tau_s; /* of the items' size, share of T0; known by window.amount[0] */
	double stall_per_s, stall_s; /* Pareto, alpha 1.5, least length stall_s */
	double period_s;	     /* of the source's publication; 0: at once */
	bool at_changes;	     /* it is read at its changes, as a live sweep does */
	double lag_s;		     /* the pipeline: a change is felt after that, exponentially */
	double at_once;		     /* of kappa, that share without the lag */
	double depth_s;		     /* a change is not felt at all before that, and then in full */
	double arrivals_per_s;	     /* > 0: open loop */
	bool poisson;
	double items_each;   /* of a response: tokens of a request; 0: one */
	double overhead_s;   /* of a window: switching and reading */
	double dead_after_s; /* the source stops; 0 never */
	/* > 0: target 0 is in a stage of that length before the slowest one, with a buffer of so
	 * many items between them, which is full */
	double before_ns, buffer;
	double absorb;	/* hits an item fall by that share for a delay of T0 an item */
	double sham_ns; /* what a hook costs an item */
	/* > 0: target i is in stage first_stage + i of a pipeline, whose t0_ns is the slowest's */
	double stage_ns[SIM_STAGES];
	size_t first_stage;
	/* > 0: a step of that length has a fixed part, the target's one call in it, and as many
	 * items as there is time left for; t0_ns is step * each / (step - fixed) */
	double step_ns, fixed_ns, each_ns;
	int lanes, roles; /* replicas; different processes in one path */
	bool shared_work; /* an item passes one replica (workers), not all (ranks) */
	double given;	  /* of each delay asked; 0: all of it */
	bool never_timed; /* the interpreter does not come to it */
	double step_s;
};

struct sim {
	struct sim_cfg cfg;
	struct rng rng;
	double mix, amount; /* size of the items; sum of 10 (1 + mix) over them */
	double missing;	    /* of the buffer, items */
	double t, ar, done, felt, stalled, queue, shown, shown_at;
	uint64_t changes;
	bool at_change; /* a window ended right after one */
	double pipe[SIM_PIPE];
	size_t pipe_at;
	double hits[SIM_TARGETS], injected, response_sum, response_n;
	double delay[SIM_TARGETS]; /* in force, ns a hit */
	bool hooked;
};

static inline struct sim_cfg sim_defaults(void)
{
	return (struct sim_cfg){ .t0_ns = 100e3,
				 .n_targets = 1,
				 .target[0] = { .kappa = 1, .hits = 2 },
				 .horizon_s = 60,
				 .ar_sd = 0.01,
				 .ar_tau_s = 0.3,
				 .item_cv = 0.5,
				 .lanes = 1,
				 .roles = 1,
				 .step_s = 0.01 };
}

/* Three stages, the second sets the pace: the third has 15 % of slack, the first more than any dose
 * reaches. A change is felt when what lies between the stages is through. */
static inline void sim_pipeline(struct sim_cfg *cfg)
{
	const double stage_ns[SIM_STAGES] = { 50e3, 100e3, 85e3 };

	memcpy(cfg->stage_ns, stage_ns, sizeof(stage_ns));
	cfg->t0_ns = 100e3;
	cfg->lag_s = 0.002;
	for (size_t i = 0; i < SIM_STAGES; i++)
		cfg->target[i] = (struct sim_target){ .kappa = i == 1, .hits = 1 };
}

/* Steps of 4 ms, 0.8 ms of them fixed: a delay takes the place of items, and of their share of it.
 */
#define SIM_BATCHER_KAPPA 1.25
static inline void sim_batcher(struct sim_cfg *cfg)
{
	cfg->step_ns = 4e6;
	cfg->fixed_ns = 0.8e6;
	cfg->each_ns = 80e3;
	cfg->t0_ns = cfg->step_ns * cfg->each_ns / (cfg->step_ns - cfg->fixed_ns);
	cfg->target[0] = (struct sim_target){ .kappa = SIM_BATCHER_KAPPA, .hits = 1 };
}

/* The machine the tests start from: one minute, a program whose speed drifts by 3 %. */
static inline struct drive_cfg minute(void)
{
	struct drive_cfg cfg = drive_defaults();

	cfg.time_ns = 60000000000u;
	return cfg;
}

static inline struct sim_cfg drifting(double kappa)
{
	struct sim_cfg cfg = sim_defaults();

	cfg.target[0].kappa = kappa;
	cfg.drift = 0.03;
	return cfg;
}

static inline void sim_open(struct sim *sim, const struct sim_cfg *cfg, uint64_t seed)
{
	memset(sim, 0, sizeof(*sim));
	sim->cfg = *cfg;
	rng_seed(&sim->rng, seed * 2654435761u + 17);
	sim->ar = cfg->ar_sd * rng_normal(&sim->rng);
}

/* Hits an item of a target under its delay. */
static inline double sim_hits(const struct sim *sim, size_t i)
{
	const struct sim_cfg *cfg = &sim->cfg;
	double hits = cfg->target[i].hits, room = cfg->step_ns - cfg->fixed_ns - sim->delay[i];

	if (cfg->step_ns > 0)
		return hits > 0 ? cfg->each_ns / fmax(room, cfg->each_ns) : 0;
	return hits / (1 + cfg->absorb * hits * sim->delay[i] / cfg->t0_ns);
}

/* The slowest stage's time; x: injected into each target's. */
static inline double sim_pace(const struct sim_cfg *cfg, const double *x)
{
	double slowest = 0;

	for (size_t i = 0; i < SIM_STAGES; i++) {
		bool hit = i >= cfg->first_stage && i - cfg->first_stage < cfg->n_targets;

		slowest = fmax(slowest, cfg->stage_ns[i] + (hit ? x[i - cfg->first_stage] : 0));
	}
	return slowest;
}

/* What comes of x injected a item into one target alone. */
static inline double sim_felt(const struct sim_cfg *cfg, const struct sim_target *target, double x)
{
	double over = fmax(0, x - target->slack_ns);

	if (cfg->step_ns >
	    0) /* the batch has the less items, by as much as its call takes longer */
		return x * cfg->step_ns / (cfg->step_ns - cfg->fixed_ns);
	return target->low * fmin(x, target->slack_ns) + target->kappa * over;
}

/* Injected a item, as one lane feels it, and what comes of it. */
static inline double sim_effect(struct sim *sim, double *x_sum)
{
	const struct sim_cfg *cfg = &sim->cfg;
	double effect = sim->hooked ? cfg->sham_ns : 0, x[SIM_TARGETS] = { 0 };

	*x_sum = 0;
	for (size_t i = 0; sim->hooked && i < cfg->n_targets; i++) {
		x[i] = sim_hits(sim, i) * sim->delay[i] / fmax(1, cfg->target[i].every);
		if (sim->delay[i] > 0)
			effect += sim_hits(sim, i) * cfg->target[i].count_ns;
		*x_sum += x[i];
		effect += sim_felt(cfg, &cfg->target[i], x[i]);
	}
	if (cfg->stage_ns[0] > 0)
		return sim_pace(cfg, x) - cfg->t0_ns;
	return effect;
}

static inline double sim_poisson(struct rng *rng, double mean)
{
	double limit = exp(-mean), p = rng_uniform(rng), n = 0;

	if (mean > 50)
		return fmax(0, floor(mean + sqrt(mean) * rng_normal(rng) + 0.5));
	while (p > limit) {
		p *= rng_uniform(rng);
		n++;
	}
	return n;
}

static inline void sim_noise(struct sim *sim, double dt)
{
	const struct sim_cfg *cfg = &sim->cfg;

	if (cfg->ar_sd > 0) {
		double keep = exp(-dt / cfg->ar_tau_s);

		sim->ar = keep * sim->ar +
			  cfg->ar_sd * sqrt(1 - keep * keep) * rng_normal(&sim->rng);
	}
	if (cfg->mix_sd > 0) {
		double keep = exp(-dt / cfg->mix_tau_s);

		sim->mix = keep * sim->mix +
			   cfg->mix_sd * sqrt(1 - keep * keep) * rng_normal(&sim->rng);
	}
	if (cfg->stall_per_s > 0 && rng_uniform(&sim->rng) < cfg->stall_per_s * dt)
		sim->stalled += cfg->stall_s * pow(rng_uniform(&sim->rng), -1 / 1.5);
}

/* Items finished in dt when one takes t ns. */
static inline double sim_served(struct sim *sim, double dt, double t)
{
	const struct sim_cfg *cfg = &sim->cfg;
	double can = dt * 1e9 / t, got, arrived;

	if (sim->stalled > 0) {
		double lost = fmin(dt, sim->stalled);

		sim->stalled -= lost;
		can *= 1 - lost / dt;
	}
	can = fmax(0, can + cfg->item_cv * sqrt(can) * rng_normal(&sim->rng));
	if (!(cfg->arrivals_per_s > 0))
		return can;
	arrived = cfg->arrivals_per_s * dt;
	if (cfg->poisson)
		arrived = sim_poisson(&sim->rng, arrived);
	sim->queue += arrived;
	got = fmin(sim->queue, can);
	sim->queue -= got;
	sim->response_sum += got * (t + sim->queue * t);
	sim->response_n += got / fmax(1, cfg->items_each);
	return got;
}

static inline void sim_publish(struct sim *sim)
{
	double now = floor(sim->done), p = sim->cfg.period_s;

	if (sim->cfg.dead_after_s > 0 && sim->t > sim->cfg.dead_after_s)
		return;
	if (p > 0 && floor(sim->t / p + 1e-9) == floor(sim->shown_at / p + 1e-9))
		return;
	sim->shown_at = sim->t;
	sim->changes += sim->shown != now;
	sim->shown = now;
}

/* What went into a pipe of depth_s before; a place for each step. */
static inline double sim_piped(struct sim *sim, double effect, double dt)
{
	size_t places = (size_t)(sim->cfg.depth_s / sim->cfg.step_s + 0.5);

	(void)dt;
	places = places < 1 ? 1 : places > SIM_PIPE ? SIM_PIPE : places;
	sim->pipe[sim->pipe_at++ % places] = effect;
	return sim->pipe[sim->pipe_at % places];
}

/* The slowest stage waits for the one before it when the buffer between them is empty. */
static inline double sim_buffered(struct sim *sim, double x, double dt)
{
	const struct sim_cfg *cfg = &sim->cfg;
	double before = cfg->before_ns + x;
	bool empty = sim->missing >= cfg->buffer && before > cfg->t0_ns;

	sim->missing += dt * 1e9 * (1 / cfg->t0_ns - 1 / before);
	sim->missing = fmin(fmax(0, sim->missing), cfg->buffer);
	return empty ? before - cfg->t0_ns : 0;
}

static inline void sim_run(struct sim *sim, double seconds)
{
	const struct sim_cfg *cfg = &sim->cfg;

	while (seconds > 1e-12) {
		double dt = fmin(seconds, cfg->step_s), x, effect = sim_effect(sim, &x), t, items;
		double missing = sim->missing, calls; /* items' worth */

		sim_noise(sim, dt);
		if (cfg->buffer > 0)
			effect = sim_buffered(sim, x, dt);
		if (cfg->depth_s > 0)
			effect = sim_piped(sim, effect, dt);
		sim->felt = cfg->lag_s > 0 ? effect + (sim->felt - effect) * exp(-dt / cfg->lag_s) :
					     effect;
		t = cfg->t0_ns * (1 + cfg->drift * sim->t / cfg->horizon_s + sim->ar + sim->mix) +
		    cfg->at_once * effect + (1 - cfg->at_once) * sim->felt;
		t = fmax(t, cfg->t0_ns * 0.05);
		items = sim_served(sim, dt, t);
		calls = items - (sim->missing - missing);
		sim->done += items;
		sim->amount += items * 10 * (1 + sim->mix);
		sim->injected += calls * x;
		for (size_t i = 0; sim->hooked && i < cfg->n_targets; i++)
			sim->hits[i] += calls * sim_hits(sim, i);
		sim->t += dt;
		seconds -= dt;
		sim_publish(sim);
	}
}

/* A command that does 10000 items and ends. */
#define SIM_RUN_ITEMS 10000
static inline void sim_whole_run(struct sim *sim)
{
	double until = sim->done + SIM_RUN_ITEMS;

	while (sim->done < until)
		sim_run(sim, sim->cfg.step_s);
}

struct sim_lanes {
	struct lane_count count[SIM_LANES];
	uint64_t hits[SIM_TARGETS];
	struct drive_own own[SIM_TARGETS];
};

/* What is felt once is injected once in each of the ranks, or n times in all of the workers,
 * each of which does an nth of the items: both ways a lane's is the mean over lanes. */
static inline void sim_counts(const struct sim *sim, double hits, double injected,
			      struct sim_lanes *out)
{
	int n = sim->cfg.lanes, roles = sim->cfg.roles;

	for (int i = 0; i < n * roles; i++) {
		out->count[i].hits = (uint64_t)(hits / roles + 0.5);
		out->count[i].injected_ns = (uint64_t)(injected / roles + 0.5);
	}
}

/* Each lane's calls take what they take; from item to item as differently as the items. */
static inline void sim_own(struct sim *sim, double items, struct sim_lanes *out)
{
	const struct sim_cfg *cfg = &sim->cfg;

	for (size_t i = 0; i < cfg->n_targets; i++) {
		const struct sim_target *target = &cfg->target[i];
		double calls = items * target->hits * cfg->lanes;
		double spread = cfg->item_cv * sqrt(items) * rng_normal(&sim->rng);

		out->own[i] = (struct drive_own){
			.ns = fmax(0, items + spread) * target->own_ns * cfg->lanes *
			      (1 - target->missed),
			.calls = calls * (1 - target->missed),
			.missed = calls * target->missed,
		};
	}
}

/* A live sweep polls fifty times a period. */
static inline void sim_await_change(struct sim *sim)
{
	uint64_t was = sim->changes;

	if (!sim->cfg.at_changes)
		return;
	for (int i = 0; i < 200 && sim->changes == was; i++)
		sim_run(sim, sim->cfg.period_s / 50);
}

static inline void sim_window(struct sim *sim, const struct drive_step *step, const bool *treated,
			      struct drive_window *window, struct sim_lanes *lanes)
{
	struct sim before;
	double hits = 0;

	sim->hooked = step->hooked;
	for (size_t i = 0; i < sim->cfg.n_targets; i++)
		sim->delay[i] = step->hooked && step->delay_ns ? (double)step->delay_ns[i] : 0;
	sim_run(sim, (double)step->guard_ns / 1e9 + sim->cfg.overhead_s);
	if (step->guard_ns || !sim->at_change)
		sim_await_change(sim);
	before = *sim;
	if (step->window_ns) {
		sim_run(sim, (double)step->window_ns / 1e9);
		sim_await_change(sim);
		sim->at_change = sim->cfg.at_changes;
	} else {
		sim_whole_run(sim);
	}
	memset(lanes, 0, sizeof(*lanes));
	*window = (struct drive_window){ .hits = lanes->hits, .lane = lanes->count, .busy = NAN };
	window->now_ns = (uint64_t)(sim->t * 1e9 + 0.5);
	window->time_ns = (uint64_t)((sim->t - before.t) * 1e9 + 0.5);
	window->items = step->window_ns ? sim->shown - before.shown : 1;
	window->changes = sim->cfg.period_s > 0 ? sim->changes - before.changes : 0;
	window->amount[0] = fmax(0, sim->amount - before.amount);
	window->response_sum_ns = sim->response_sum - before.response_sum;
	window->response_count = sim->response_n - before.response_n;
	for (size_t i = 0; i < sim->cfg.n_targets; i++) {
		lanes->hits[i] = (uint64_t)(sim->hits[i] - before.hits[i] + 0.5);
		if (!treated || treated[i])
			hits += sim->hits[i] - before.hits[i];
	}
	if (step->timed && !sim->cfg.never_timed) {
		sim_own(sim, sim->done - before.done, lanes);
		window->own = lanes->own;
	}
	window->n_lanes = (size_t)(sim->cfg.lanes * sim->cfg.roles);
	sim_counts(sim, hits,
		   (sim->injected - before.injected) * (sim->cfg.given > 0 ? sim->cfg.given : 1),
		   lanes);
}

/* The whole sweep of a simulated program; free the result. */
static inline struct sweep_result *sim_sweep(const struct sim_cfg *sim_cfg,
					     const struct drive_cfg *drive_cfg, uint64_t seed)
{
	static const char *const names[SIM_TARGETS] = { "a", "b", "c", "d", "e", "f", "g", "h",
							"i", "j", "k", "l", "m", "n", "o", "p",
							"q", "r", "s", "t", "u", "v", "w", "x" };
	struct drive_cfg cfg = *drive_cfg;
	struct sweep_result *res;
	struct drive_step step;
	struct drive_window window;
	struct sim_lanes lanes;
	struct drive *drive;
	struct sim sim;

	cfg.seed = seed;
	cfg.aligned |= sim_cfg->at_changes;
	cfg.n_targets = sim_cfg->n_targets;
	cfg.spec = names;
	sim_open(&sim, sim_cfg, seed);
	if (drive_open(&cfg, &drive, NULL))
		return NULL;
	for (int i = 0; i < sim_cfg->lanes * sim_cfg->roles; i++)
		drive_lane(drive, i / sim_cfg->lanes ? "engine" : "server", 100 + i, 100 + i);
	for (;;) {
		drive_next(drive, &step);
		if (step.what == DRIVE_DONE)
			break;
		sim_window(&sim, &step, drive_treated(drive), &window, &lanes);
		drive_take(drive, &window, NULL);
	}
	res = drive_end(drive);
	drive_close(drive);
	return res;
}

#endif
