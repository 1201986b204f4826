/* SPDX-License-Identifier: MIT */
/*
 * --perf-map: names of stubs for profilers. A region is never changed, so its names are written
 * once in each process that has it, between two steps of the session: a process that ends before
 * has no file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "mapfile.h"
#include "mapfiles.h"
#include "priv.h"
#include "elf/symbol.h"
#include "src/base/must.h"
#include "src/base/text.h"

/* Two for each process. */
static void more_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void perfmap_open(struct inject_session *s)
{
	if ((!s->cfg->perf_map && !s->cfg->perf_map_keep) || s->cfg->look_only || s->cfg->preview)
		return;
	more_descriptors();
	s->mapfiles = mapfiles_open();
	if (!s->mapfiles)
		session_warn(s, "--perf-map: no thread could be started");
}

static void put(FILE *f, uint64_t at, uint64_t size, const char *name)
{
	fprintf(f, "%" PRIx64 " %" PRIx64 " " MAPFILE_PREFIX "%s\n", at, size, name);
}

/* Names come from files of the target: without control characters they cannot make lines. */
static void put_site(FILE *f, const struct inject_session *s, const struct region *r,
		     const struct journal_site *js)
{
	const struct site_record *site = js->cookie < s->n_sites ? &s->site[js->cookie] : NULL;
	char *name = NULL, *shown = NULL;

	if (site && site->symbol && !site->doorbell) {
		name = must(symbol_shown(site->symbol));
		shown = text_show(name);
	}
	put(f, r->addr + js->stub, js->stub_size, shown ? shown : "doorbell");
	free(shown);
	free(name);
}

static void put_region(FILE *f, const struct inject_session *s, const struct region *r)
{
	struct arch_part part[ARCH_PARTS];
	size_t n = arch->common_parts(part);

	for (size_t i = 0; i < n; i++)
		put(f, r->addr + r->journal->common_off + part[i].off, part[i].size, part[i].name);
	for (uint32_t i = 0; i < r->journal->n_sites; i++)
		put_site(f, s, r, &r->sites[i]);
}

static char *lines_of(const struct inject_session *s, struct record *rec, size_t *len)
{
	char *lines = NULL;
	FILE *f = must(open_memstream(&lines, len));

	for (; rec->n_mapped < rec->space->n_regions; rec->n_mapped++)
		put_region(f, s, rec->space->regions[rec->n_mapped]);
	if (fclose(f))
		abort();
	return lines;
}

static void write_one(struct inject_session *s, struct record *rec)
{
	struct sb_err err = { 0 };
	char *lines;
	size_t len;

	if (!rec->mapfile)
		rec->mapfile = mapfiles_add(s->mapfiles, rec->pid, &err);
	lines = lines_of(s, rec, &len);
	/* The number of a process that has ended may be another one's by now. */
	if (!rec->mapfile || memory_gone(&rec->space->mem)) {
		if (err.code && err.code != SB_ENOPROC)
			session_warn(s, "%s", err.what);
		free(lines);
		return;
	}
	if (!mapfiles_write(s->mapfiles, rec->mapfile, lines, len))
		session_warn(s,
			     "--perf-map: there are more names than %u MiB, and the rest is "
			     "left out",
			     MAPFILES_MOST >> 20);
}

void perfmap_step(struct inject_session *s)
{
	struct sb_err err = { 0 };

	if (!s->mapfiles)
		return;
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->space && rec->n_mapped < rec->space->n_regions)
			write_one(s, rec);
	if (mapfiles_failed(s->mapfiles, &err))
		session_warn(s, "%s", err.what);
}

void perfmap_end(struct inject_session *s, struct record *rec)
{
	if (rec->mapfile && s->mapfiles)
		mapfiles_drop(s->mapfiles, rec->mapfile, s->cfg->perf_map_keep);
	rec->mapfile = NULL;
}

void perfmap_close(struct inject_session *s)
{
	struct sb_err err = { 0 };

	for (struct record *rec = s->records; rec; rec = rec->next)
		perfmap_end(s, rec);
	if (s->mapfiles && mapfiles_close(s->mapfiles, &err))
		session_warn(s, "%s", err.what);
	s->mapfiles = NULL;
}
