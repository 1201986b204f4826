/* SPDX-License-Identifier: MIT */
#include "soname.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096 }; /* a newer file takes the place of an older one */

struct known {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified, changed;
	char *soname; /* NULL: free */
};

static struct known known[SLOTS];

static struct known *slot_of(const struct stat *st)
{
	uint64_t key = (uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 32;

	return &known[key * 0x9e3779b97f4a7c15ull >> 52];
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void soname_keep(const struct stat *st, const char *soname)
{
	struct known *k = slot_of(st);

	free(k->soname);
	*k = (struct known){ .dev = st->st_dev,
			     .ino = st->st_ino,
			     .size = st->st_size,
			     .modified = st->st_mtim,
			     .changed = st->st_ctim,
			     .soname = strdup(soname) };
}

const char *soname_known(const struct stat *st)
{
	const struct known *k = slot_of(st);

	if (!k->soname || k->dev != st->st_dev || k->ino != st->st_ino || k->size != st->st_size ||
	    !same_time(k->modified, st->st_mtim) || !same_time(k->changed, st->st_ctim))
		return NULL;
	return k->soname;
}
