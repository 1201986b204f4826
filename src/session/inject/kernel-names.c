/* SPDX-License-Identifier: MIT */
#include "kernel-names.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

/* Handles and names are what the target has written: these bound what nonsense can make of them. */
enum {
	NAMES_MOST = 1 << 16,
	NAME_SLOTS = 2 * NAMES_MOST,
	HANDLES_MOST = 1 << 20,
	SLOTS_LEAST = 256
};

void kernel_names_free(struct kernel_names *k)
{
	for (size_t i = 0; i < k->n_names; i++)
		free(k->name[i]);
	free(k->name);
	free(k->name_slot);
	free(k->handle);
	free(k->slot);
	*k = (struct kernel_names){ 0 };
}

static bool is_name(const char *known, const char *name, size_t len)
{
	return strlen(known) == len && memcmp(known, name, len) == 0;
}

/* The slot of a name, or the free one for it. */
static uint32_t *name_slot(struct kernel_names *k, const char *name, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
	uint32_t i;

	if (!k->name_slot)
		k->name_slot = must_calloc(NAME_SLOTS, sizeof(*k->name_slot));
	for (size_t at = 0; at < len; at++)
		hash = (hash ^ (unsigned char)name[at]) * 0x100000001b3ull;
	i = (uint32_t)(hash ^ hash >> 32) % NAME_SLOTS;
	while (k->name_slot[i] && !is_name(k->name[k->name_slot[i] - 1], name, len))
		i = (i + 1) % NAME_SLOTS;
	return &k->name_slot[i];
}

uint32_t kernel_name_number(struct kernel_names *k)
{
	if (k->n_names == NAMES_MOST)
		return 0;
	k->name = must_realloc(k->name, (k->n_names + 1) * sizeof(*k->name));
	k->name[k->n_names++] = NULL;
	return (uint32_t)k->n_names;
}

uint32_t kernel_name(struct kernel_names *k, const char *name, size_t len, bool *fresh)
{
	uint32_t *slot = name_slot(k, name, len);

	*fresh = false;
	if (*slot || k->n_names == NAMES_MOST)
		return *slot;
	k->name = must_realloc(k->name, (k->n_names + 1) * sizeof(*k->name));
	k->name[k->n_names++] = must(strndup(name, len));
	*fresh = true;
	return *slot = (uint32_t)k->n_names;
}

static size_t slot_of(const struct kernel_names *k, pid_t pid, uint64_t handle)
{
	uint64_t hash = (handle ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15ull;

	return (hash ^ hash >> 32) & (k->slots - 1);
}

static void insert(struct kernel_names *k, size_t i)
{
	size_t at = slot_of(k, k->handle[i].pid, k->handle[i].handle);

	while (k->slot[at])
		at = (at + 1) & (k->slots - 1);
	k->slot[at] = (uint32_t)i + 1;
}

static struct kernel_handle *look_up(const struct kernel_names *k, pid_t pid, uint64_t handle)
{
	size_t at = k->slots ? slot_of(k, pid, handle) : 0;

	for (; k->slots && k->slot[at]; at = (at + 1) & (k->slots - 1)) {
		struct kernel_handle *h = &k->handle[k->slot[at] - 1];

		if (h->pid == pid && h->handle == handle)
			return h;
	}
	return NULL;
}

/* At most half of the slots are taken. */
static void make_space(struct kernel_names *k)
{
	if (k->n * 2 < k->slots)
		return;
	k->slots = k->slots ? k->slots * 2 : SLOTS_LEAST;
	k->handle = must_realloc(k->handle, k->slots / 2 * sizeof(*k->handle));
	free(k->slot);
	k->slot = must_calloc(k->slots, sizeof(*k->slot));
	for (size_t i = 0; i < k->n; i++)
		insert(k, i);
}

void kernel_names_set(struct kernel_names *k, const struct kernel_handle *handle)
{
	struct kernel_handle *h = look_up(k, handle->pid, handle->handle);

	if (h) {
		bool earlier = (int64_t)(handle->from - h->from) < 0;

		/* Threads are read one after the other, so what comes later may be older. */
		if (h->name == handle->name && h->module == handle->module)
			h->from = earlier ? handle->from : h->from;
		else if (!earlier)
			*h = *handle;
		return;
	}
	if (k->n == HANDLES_MOST)
		return;
	make_space(k);
	k->handle[k->n++] = *handle;
	insert(k, k->n - 1);
}

const struct kernel_handle *kernel_names_find(const struct kernel_names *k, pid_t pid,
					      uint64_t handle, uint64_t ticks)
{
	const struct kernel_handle *h = look_up(k, pid, handle);

	return h && h->name && !h->change && (int64_t)(ticks - h->from) >= 0 ? h : NULL;
}

struct kernel_handle *kernel_names_address(const struct kernel_names *k, pid_t pid,
					   uint64_t address)
{
	return look_up(k, pid, address);
}

void kernel_names_unload(struct kernel_names *k, pid_t pid, uint64_t module)
{
	for (size_t i = 0; i < k->n; i++) {
		struct kernel_handle *h = &k->handle[i];

		if (h->pid != pid || (module && (h->change || h->module != module)))
			continue;
		/* The number of an address remains its. */
		h->name = h->change ? h->name : 0;
		h->change = h->change ? UINT64_MAX : 0;
	}
}
