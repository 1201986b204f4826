/* SPDX-License-Identifier: MIT */
#include "device.h"
#include "device-leave.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/agent/image.h"
#include "elf/interpreter.h"
#include "inject/clock.h"
#include "inject/fault.h"
#include "inject/mailbox.h"
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/session/device-find.h"

#define MS 1000000ull

enum {
	LOOK_MS = 50,	    /* at first, ... */
	LOOK_MOST_MS = 500, /* ... and in the end */
	LOOK_PART = 20,
	LOAD_MS = 10000,
	BEGIN_MS = 10000,
	STOP_MS = 10000,
	PAGE = 4096,
	RING_BYTES = 4 << 20,
};

enum device_stage {
	DEVICE_LOOKS, /* for the library and the device */
	DEVICE_LOADS,
	DEVICE_BEGINS,
	DEVICE_WORKS,
	DEVICE_OVER, /* it was refused, or has ended */
};

struct device {
	enum device_stage stage;
	uint64_t looked_ns, since_ns;
	struct mailbox *mailbox;
	struct device_room *room;
	uint64_t at;  /* of the struct sb_device */
	bool started; /* the agent's thread was */
};

/* ---- why not ---- */

__attribute__((format(printf, 3, 4))) static void refuse(struct inject_session *s,
							 struct record *rec, const char *fmt, ...)
{
	char *why;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&why, fmt, ap) < 0)
		abort();
	va_end(ap);
	rec->device->stage = DEVICE_OVER;
	session_warn(s, "process %d: without device times: %s", rec->pid, why);
	if (s->device_why)
		free(why);
	else
		s->device_why = why;
}

static void refuse_subscribe(struct inject_session *s, struct record *rec, int code)
{
	if (code == 39)
		refuse(s, rec,
		       "another profiler has subscribed to CUPTI, and it serves one only (a run of "
		       "torch.profiler earlier in this process, nsys, ncu); end that, or start the "
		       "program anew");
	else if (code == 15)
		refuse(s, rec,
		       "CUPTI cannot be initialized here: there is no device, or a driver that "
		       "does not fit its version");
	else
		refuse(s, rec, "CUPTI's cuptiSubscribe() returned %d", code);
}

/* The agent's refusal, in words. */
static void refused(struct inject_session *s, struct record *rec, struct sb_device *d)
{
	d->reason[sizeof(d->reason) - 1] = '\0';
	switch (d->step) {
	case SB_DEVICE_OPEN:
		refuse(s, rec, "CUPTI's library does not open: %s", d->reason);
		break;
	case SB_DEVICE_FUNCTION:
		refuse(s, rec, "CUPTI's library has no function %s", d->reason);
		break;
	case SB_DEVICE_VERSION:
		refuse(s, rec,
		       "the layout of the records of CUPTI's API version %u is not known (known "
		       "are 12 to 28 and 130000 to 130001: CUDA 10.0 to 12.9 and 13.0)",
		       d->cupti_version);
		break;
	case SB_DEVICE_SUBSCRIBE:
		refuse_subscribe(s, rec, d->code);
		break;
	case SB_DEVICE_TAKEN:
		refuse(s, rec,
		       "another user of CUPTI has registered its buffers already "
		       "(cuptiActivityFlushAll() returned %d); end that, or start the program anew",
		       d->code);
		break;
	case SB_DEVICE_ENABLE:
		refuse(s, rec, "CUPTI's cuptiActivityEnable() returned %d", d->code);
		break;
	case SB_DEVICE_AGAIN:
		refuse(s, rec,
		       "the agent of an earlier session is still at work; try again in "
		       "some seconds");
		break;
	default:
		refuse(s, rec, "the agent did not start (step %u, %d)", d->step, d->code);
		break;
	}
}

/* ---- entering ---- */

struct search {
	pid_t pid;
	struct device_found found;
	struct mailbox_setup setup;
	bool loader;
};

static void search(void *arg)
{
	struct search *look = arg;
	struct maps maps;

	if (maps_read(look->pid, &maps, NULL) < 0)
		return;
	device_find(look->pid, &maps, &look->found);
	if (look->found.cuda && look->found.cupti[0])
		look->loader = interpreter_loader(look->pid, &maps, look->setup.function);
	maps_free(&maps);
}

static size_t image_size(void)
{
	return (size_t)((uintptr_t)device_image_end - (uintptr_t)device_image);
}

/*
 * The agent of an earlier session stays loaded. It is the same if its file begins in the same way:
 * there are its id and its program headers.
 */
static bool find_loaded(struct record *rec, struct search *look, bool *other)
{
	uint64_t entry;
	unsigned char head[1024];

	*other = false;
	if (!look->found.loaded)
		return false;
	memcpy(&entry, device_image + 24 /* e_entry */, sizeof(entry));
	*other = memory_peek(&rec->space->mem, look->found.loaded, head, sizeof(head)) !=
			 sizeof(head) ||
		 memcmp(head, device_image, sizeof(head)) != 0;
	look->setup.loaded = *other ? 0 : look->found.loaded + entry;
	return !*other;
}

static int write_device(struct device *dev, const struct search *look, struct sb_err *err)
{
	const struct mailbox *m = dev->mailbox;
	struct sb_device d = {
		.magic = SB_DEVICE_MAGIC,
		.room = m->code,
		.room_size = m->size + PAGE,
		.ring = m->addr + m->size - RING_BYTES,
		.ring_size = RING_BYTES,
		.alive_ns = device_now_ns(),
	};

	snprintf(d.cupti, sizeof(d.cupti), "%s", look->found.cupti);
	dev->at = m->addr + SB_DEVICE_OFF;
	return memory_write(&m->space->mem, dev->at, &d, sizeof(d), err);
}

static int enter(struct inject_session *s, struct record *rec, struct search *look,
		 struct sb_err *err)
{
	struct device *dev = rec->device;
	struct space *space = space_get(rec->space);
	struct memory mem;
	int ret;

	look->setup.agent = device_image;
	look->setup.agent_size = image_size();
	look->setup.plain = true;
	look->setup.extra = RING_BYTES;
	look->setup.gil = true;
	ret = space->control ? 0 : session_setup(s, space, rec->pid, err);
	if (ret == 0)
		ret = mailbox_open(&dev->mailbox, space, &s->tree, rec->pid, &look->setup, err);
	if (ret == 0)
		ret = write_device(dev, look, err);
	if (ret == 0 && fault_point("device-room", rec->pid))
		ret = err_set(err, SB_ETARGET, "fault: device-room");
	if (ret == 0)
		ret = memory_open(&mem, rec->pid, err);
	if (ret == 0) {
		dev->room = device_room_open(s->device_reader, rec->pid, &mem, dev->at);
		mailbox_ask(dev->mailbox, SB_AGENT_APPLY);
		dev->stage = DEVICE_LOADS;
		dev->since_ns = clock_ns();
	}
	space_put(space);
	return ret;
}

/* What makes it impossible from the start. */
static bool possible(struct inject_session *s, struct record *rec, const struct search *look,
		     bool other)
{
	const char *why = device_obstacle(rec->pid, &look->found);

	if (!image_size())
		why = "this sbinject has no device agent for this machine";
	else if (!why && !look->loader)
		why = "its C library cannot load libraries (a static program, musl)";
	else if (!why && other)
		why = "the agent of another build of sbinject is loaded in it, and cannot go; "
		      "start "
		      "the program anew";
	if (why)
		refuse(s, rec, "%s", why);
	return !why;
}

static void look_for(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct device *dev = rec->device;
	struct search look = { .pid = rec->pid };
	struct sb_err err = { 0 };
	bool other;

	uint64_t pause = (now - rec->since_ns) / LOOK_PART;

	pause = pause > LOOK_MOST_MS * MS ? LOOK_MOST_MS * MS : pause;
	if (now - dev->looked_ns < LOOK_MS * MS || now - dev->looked_ns < pause)
		return;
	dev->looked_ns = now;
	if (!device_opened(rec->pid))
		return;
	if (device_inherited(rec->pid)) {
		dev->stage = DEVICE_OVER; /* its parent has them */
		log_debug("process %d: it has inherited the device: no device times", rec->pid);
		return;
	}
	aside_run(s, search, &look);
	if (rec->ended || !look.found.cuda)
		return;
	find_loaded(rec, &look, &other);
	if (!possible(s, rec, &look, other))
		return;
	if (enter(s, rec, &look, &err) < 0 && !rec->ended)
		refuse(s, rec, "%s", err.what);
}

static void load(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct device *dev = rec->device;
	struct mailbox_answer answer;

	if (!mailbox_step(dev->mailbox, &s->tree, now, 0)) {
		if (now - dev->since_ns > LOAD_MS * MS && !mailbox_busy(dev->mailbox))
			refuse(s, rec, "no thread of it could load the agent within %d s: %s",
			       LOAD_MS / 1000,
			       dev->mailbox->waits_for ? dev->mailbox->waits_for : "it is busy");
		return;
	}
	mailbox_answer(dev->mailbox, &answer);
	dev->since_ns = now;
	dev->stage = DEVICE_BEGINS;
	dev->started = answer.status == SB_AGENT_OK;
	if (!dev->started)
		refuse(s, rec, "the agent could not be loaded: %s", answer.reason);
}

/*
 * Unmaps a room, once its last events were read, the agent's thread is out of it or never was in
 * it, and no lent thread is: true; nothing of ours is left to do. An agent that unmaps it itself
 * says so after `taken` was set.
 */
static bool leave_room(struct inject_session *s, struct record *rec)
{
	struct device *dev = rec->device;
	struct sb_err err = { 0 };

	switch (device_room_end(dev->mailbox, dev->started, true)) {
	case DEVICE_ROOM_USED:
		return false;
	case DEVICE_ROOM_GONE:
		dev->mailbox->space->room_size = 0;
		return true;
	case DEVICE_ROOM_OURS:
		break;
	}
	if (mailbox_unmap(dev->mailbox, &s->tree, &err) < 0 && err.code != SB_ENOPROC)
		session_warn(s, "process %d: the device agent's memory stays mapped: %s", rec->pid,
			     err.what);
	return true;
}

/*
 * It is to be recorded from when the windows open, or it is found, whichever is later. That is on
 * another clock than the agent's times.
 */
static bool close_room(struct inject_session *s, const struct record *rec)
{
	uint64_t since = rec->since_ns > s->window_ns ? rec->since_ns : s->window_ns;

	return device_room_close(s->device_reader, rec->device->room,
				 device_now_ns() - (clock_ns() - since), &s->device_sums);
}

/* Of a process that is without device times. */
static void leave_early(struct inject_session *s, struct record *rec)
{
	struct device *dev = rec->device;

	if (!leave_room(s, rec) || rec->ended)
		return;
	if (dev->room)
		close_room(s, rec);
	mailbox_free(dev->mailbox);
	dev->room = NULL;
	dev->mailbox = NULL;
}

static void begin(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct device *dev = rec->device;
	struct sb_device d;

	if (!device_room_look(s->device_reader, dev->room, &d))
		return;
	if (d.state == SB_DEVICE_REFUSED)
		refused(s, rec, &d);
	else if (d.state != SB_DEVICE_STARTING)
		dev->stage = DEVICE_WORKS;
	else if (now - dev->since_ns > BEGIN_MS * MS)
		refuse(s, rec, "CUPTI did not answer within %d s", BEGIN_MS / 1000);
	if (dev->stage == DEVICE_OVER)
		device_room_stop(dev->mailbox);
	if (dev->stage == DEVICE_WORKS)
		log_debug("process %d: device agent at work, CUPTI API version %u", rec->pid,
			  d.cupti_version);
}

static bool step_one(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct device *dev = rec->device;

	if (!dev)
		dev = rec->device = must_calloc(1, sizeof(*dev));
	if (dev->stage == DEVICE_LOOKS)
		look_for(s, rec, now);
	else if (dev->stage == DEVICE_LOADS)
		load(s, rec, now);
	else if (dev->stage == DEVICE_BEGINS)
		begin(s, rec, now);
	else if (dev->stage == DEVICE_OVER && dev->mailbox)
		leave_early(s, rec);
	return dev->stage == DEVICE_LOADS || dev->stage == DEVICE_BEGINS;
}

bool device_step(struct inject_session *s, uint64_t now)
{
	bool busy = false;

	if (!s->cfg->device_times || !s->tracing)
		return false;
	if (!s->device_reader)
		s->device_reader = device_reader_open(s->tracing);
	for (struct record *rec = s->records; rec && s->device_reader; rec = rec->next) {
		struct proc *proc = rec->ended ? NULL : tree_proc(&s->tree, rec->pid);

		if (proc && proc->session == rec && proc->traced && rec->space)
			busy |= step_one(s, rec, now);
	}
	return busy;
}

/* ---- the end ---- */

static bool stop_one(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct device *dev = rec->device;
	struct proc *proc = tree_proc(&s->tree, rec->pid);

	if (!proc || rec->ended || memory_gone(&rec->space->mem))
		return true;
	if (dev->mailbox->remote.async && dev->stage == DEVICE_LOADS)
		load(s, rec, now);
	else if (dev->mailbox->remote.async)
		mailbox_step(dev->mailbox, &s->tree, now, 0);
	return leave_room(s, rec);
}

/* It ended, or the run did, before there was anything to add up. */
static void note_unbegun(struct inject_session *s, const struct device *dev)
{
	const char *why = dev->stage == DEVICE_LOADS ? dev->mailbox->waits_for : NULL;

	if (dev->stage == DEVICE_OVER || s->device_why)
		return;
	if (asprintf(&s->device_why, "%s%s",
		     why ? "no thread of a process could load the agent: " :
			   "CUPTI had not answered when a process, or the run, ended",
		     why ? why : "") < 0)
		abort();
}

static void forget(struct inject_session *s, struct record *rec)
{
	struct device *dev = rec->device;

	if (!dev)
		return;
	if (dev->room && !close_room(s, rec))
		note_unbegun(s, dev);
	rec->device = NULL;
	mailbox_free(dev->mailbox);
	free(dev);
}

void device_reap(struct inject_session *s)
{
	for (struct record *rec = s->records; rec && s->device_reader; rec = rec->next)
		if (rec->ended)
			forget(s, rec);
}

/*
 * A thread that was lent returns into the room, and what that uses must stay. The agent's own
 * thread ends by itself, and unmaps the room.
 */
static void left_behind(struct inject_session *s, struct record *rec)
{
	struct space *space = rec->space;

	if (mailbox_entered(rec->device->mailbox)) {
		space->agent_stays = rec->device_stays = true;
		session_warn(
			s,
			"process %d: the thread that loads the device agent waits in the dynamic "
			"linker, so the agent's memory stays; sbinject recover -p %d removes it "
			"later",
			rec->pid, rec->pid);
		return;
	}
	space->room_size = 0;
	session_warn(
		s,
		"process %d: CUPTI did not answer, so the device agent stays; it ends by itself "
		"when that does",
		rec->pid);
}

void device_stop(struct inject_session *s)
{
	uint64_t until = clock_ns() + STOP_MS * MS, now;
	bool all;

	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->device && rec->device->mailbox)
			device_room_stop(rec->device->mailbox);
	do {
		all = true;
		now = clock_ns();
		for (struct record *rec = s->records; rec; rec = rec->next) {
			if (rec->ended || !rec->device || !rec->device->mailbox)
				continue;
			if (stop_one(s, rec, now))
				forget(s, rec);
			else
				all = false;
		}
		if (!all) {
			session_alive(s);
			session_wait(s);
		}
	} while (!all && now < until);
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->device && rec->device->mailbox)
			left_behind(s, rec);
}

void device_close(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		forget(s, rec);
	device_reader_close(s->device_reader);
	s->device_reader = NULL;
}
