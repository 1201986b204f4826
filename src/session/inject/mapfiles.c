/* SPDX-License-Identifier: MIT */
#include "mapfiles.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "mapfile.h"
#include "src/base/must.h"

enum { PATIENCE_S = 2 };

struct task {
	struct mapfile *m;
	char *lines; /* to add; NULL: the map is dropped */
	size_t len;
	bool keep;
	struct task *next;
};

struct file {		  /* what a struct mapfile is here */
	struct mapfile m; /* first */
	size_t bytes;
};

struct mapfiles {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct task *first, **last;
	bool stop, ended;
	struct sb_err err;
	bool reported; /* of err */
	size_t bytes;  /* of all lines; the session's thread only, as is the next */
	bool full;
};

static void work(struct task *t, struct sb_err *err)
{
	if (t->lines)
		mapfile_append(t->m, t->lines, t->len, err);
	else if (!t->keep)
		mapfile_clean(t->m, err);
	if (!t->lines) {
		mapfile_close(t->m);
		free(t->m);
	}
	free(t->lines);
	free(t);
}

static void *main_loop(void *arg)
{
	struct mapfiles *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct sb_err err = { 0 };
		struct task *t = w->first;

		if (!t && w->stop)
			break;
		if (!t) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		w->first = t->next;
		if (!w->first)
			w->last = &w->first;
		pthread_mutex_unlock(&w->lock);
		work(t, &err);
		pthread_mutex_lock(&w->lock);
		if (err.code && !w->err.code)
			w->err = err;
	}
	w->ended = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct mapfiles *mapfiles_open(void)
{
	struct mapfiles *w = must_calloc(1, sizeof(*w));
	pthread_condattr_t clock;
	sigset_t all, old;
	int ret;

	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); /* they are for the session's thread */
	ret = pthread_create(&w->thread, NULL, main_loop, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret == 0)
		return w;
	free(w);
	return NULL;
}

static void ask(struct mapfiles *w, struct mapfile *m, char *lines, size_t len, bool keep)
{
	struct task *t = must_calloc(1, sizeof(*t));

	*t = (struct task){ .m = m, .lines = lines, .len = len, .keep = keep };
	pthread_mutex_lock(&w->lock);
	*w->last = t;
	w->last = &t->next;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

struct mapfile *mapfiles_add(struct mapfiles *w, pid_t pid, struct sb_err *err)
{
	struct file *f = must_calloc(1, sizeof(*f));

	(void)w;
	if (mapfile_open(&f->m, pid, err) == 0)
		return &f->m;
	free(f);
	return NULL;
}

bool mapfiles_write(struct mapfiles *w, struct mapfile *m, char *lines, size_t len)
{
	w->full |= len > MAPFILES_MOST - w->bytes;
	if (w->full) {
		free(lines);
		return false;
	}
	w->bytes += len;
	((struct file *)m)->bytes += len;
	ask(w, m, lines, len, false);
	return true;
}

void mapfiles_drop(struct mapfiles *w, struct mapfile *m, bool keep)
{
	if (!keep)
		w->bytes -= ((struct file *)m)->bytes;
	ask(w, m, NULL, 0, keep);
}

/* The lock is held. */
static bool take_failure(struct mapfiles *w, struct sb_err *err)
{
	bool failed = w->err.code && !w->reported;

	w->reported |= failed;
	if (failed)
		*err = w->err;
	return failed;
}

bool mapfiles_failed(struct mapfiles *w, struct sb_err *err)
{
	bool failed;

	pthread_mutex_lock(&w->lock);
	failed = take_failure(w, err);
	pthread_mutex_unlock(&w->lock);
	return failed;
}

/* False: the time is over. */
static bool await_end(struct mapfiles *w)
{
	struct timespec until;
	int late = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	w->stop = true;
	pthread_cond_broadcast(&w->wake);
	while (!w->ended && !late)
		late = pthread_cond_timedwait(&w->wake, &w->lock, &until);
	return w->ended;
}

bool mapfiles_close(struct mapfiles *w, struct sb_err *err)
{
	bool ended, failed;

	pthread_mutex_lock(&w->lock);
	ended = await_end(w);
	failed = take_failure(w, err);
	pthread_mutex_unlock(&w->lock);
	if (!ended) {
		pthread_detach(w->thread); /* it uses *w */
		err_set(err, SB_EFILE, "a target's /tmp does not answer: perf maps may stay there");
		return true;
	}
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return failed;
}

void mapfiles_tidy(const pid_t *pids, size_t n)
{
	struct mapfiles *w = n ? mapfiles_open() : NULL;
	struct sb_err ignored = { 0 };

	for (size_t i = 0; w && i < n; i++) {
		struct mapfile *m = mapfiles_add(w, pids[i], &ignored);

		if (m)
			mapfiles_drop(w, m, false);
	}
	if (w)
		mapfiles_close(w, &ignored);
}
