/* SPDX-License-Identifier: MIT */
#include "steady.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"
#include "src/base/text.h"

struct shown {
	char *counter;
	double value;
};

struct steady {
	pthread_mutex_t lock;
	void *tree; /* of struct shown */
};

static int by_counter(const void *a, const void *b)
{
	return strcmp(((const struct shown *)a)->counter, ((const struct shown *)b)->counter);
}

struct steady *steady_new(void)
{
	struct steady *s = must_calloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void free_shown(void *node)
{
	struct shown *shown = node;

	free(shown->counter);
	free(shown);
}

void steady_free(struct steady *s)
{
	if (!s)
		return;
	tdestroy(s->tree, free_shown);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

double steady_value(struct steady *s, const char *counter, double value, double reset)
{
	struct shown key = { .counter = (char *)counter }, *shown, **at;

	pthread_mutex_lock(&s->lock);
	at = tfind(&key, &s->tree, by_counter);
	shown = at ? *at : NULL;
	if (!shown) {
		shown = must_calloc(1, sizeof(*shown));
		shown->counter = text_dup(counter);
		must(tsearch(shown, &s->tree, by_counter));
	}
	if (value > shown->value || value < shown->value * reset)
		shown->value = value;
	value = shown->value;
	pthread_mutex_unlock(&s->lock);
	return value;
}
