/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_H
#define SB_AGENT_H

#include "cpu.h"
#include "hit.h"
#include "py.h"

/*
 * The agent: code that sbinject loads into a CPython interpreter so that Python functions can be
 * counted and delayed. It is a shared object with one function, sb_agent(), which reads its command
 * from the mailbox (page-abi.h), and carries it out in a thread that may run Python: with the GIL,
 * or, where there is none, attached to the interpreter. It has no thread, no file, no constructor,
 * names no library, and calls nothing of the C library but memory and strings, so that it loads
 * into any process that holds an interpreter.
 *
 *	agent.c		the commands
 *	state.c		the state that all files share
 *	judge.c		which targets a code object matches
 *	table.c		code object -> watch
 *	walk.c		the functions that exist
 *	function.c	their code and their names
 *	monitor.c	how calls are seen on 3.12 and later, by tools of sys.monitoring (tool.c)
 *	frame.c		how they are seen on 3.10 and 3.11
 *	hit.c, page*.c	what happens at a call
 *	span.c		how long calls take, while that is measured
 *	cost.c		what this costs
 *	turn.c		which thread may change what, where there is no GIL
 *	memory.c	what it keeps of functions, beside the program's own allocator
 *
 * A code object is never held: its entry has a weak reference, which shows whether the object at
 * that address is still the one that was judged. So functions made and freed by the million neither
 * leak nor leave a stale judgement behind.
 *
 * In a free-threaded interpreter several threads make calls at once, also during a command. They
 * take turns to change shared data; data that they only read is published at once: turn.h.
 */

struct target {
	uint32_t cell, flags;
	bool found;  /* at least one function matches */
	bool likely; /* at least one module does */
	const char *module, *name;
	const char *last; /* a matching name's last part must end with this */
	bool last_whole;
};

struct list {
	uint32_t version;
	size_t n;
	struct target *targets;
	char *texts;
};

struct watch_cell {
	uint32_t index; /* CELL_NONE after the last */
	bool resume;
	bool by_each;	/* SB_TARGET_EACH */
	uint64_t *each; /* the function's own counter; NULL: it has none */
	uint64_t *note; /* the same, where only the note itself is wanted */
};

#define CELL_NONE UINT32_MAX

/* A code object that matches. */
struct watch {
	struct watch *next, **link;
	PyObject *code, *ref; /* ref: weak, owned */
	bool on;	      /* the interpreter reports its calls */
	bool was_on;	      /* ... or did once */
	bool changed;	      /* the wanted state differs from the interpreter's */
	bool getitem;	      /* 3.11: see frame.c */
	bool resume;	      /* one of its cells counts resumptions */
	bool spans;	      /* its calls are timed: for at least one of its cells */
	uint32_t n, line;
	struct watch_cell *cells; /* n; the hot paths may still see the earlier array */
	char *texts;		  /* module NUL qualified name NUL file NUL */
	const char *module, *qualname, *file;
};

struct entry {
	PyObject *code; /* NULL: free */
	PyObject *ref;	/* weak; owned, or the watch's; NULL: void */
	struct watch *watch;
};

/* What is to be watched before a new list is in force. */
enum existing {
	EXISTING_NOTED,	   /* nothing: the first call of all code is reported; notes are enough */
	EXISTING_NAMED,	   /* what names lead to; the first call of other code is reported */
	EXISTING_SEARCHED, /* what the collector knows: first calls may be unreported */
};

/* How calls are seen. All return 0 or an enum sb_agent_error after agent_fail(). */
struct backend {
	int (*start)(void);
	/* What the next relist() does for code that exists. NULL: EXISTING_NAMED. */
	enum existing (*existing)(void);
	/* There is a new list of targets. In pieces: SB_AGENT_AGAIN before the last. */
	int (*relist)(bool first);
	int (*set)(struct watch *, bool on); /* switches reports of this code's calls on or off */
	int (*settle)(bool any);	     /* after a round of set(); any: some target counts */
	/*
	 * Before all watches are removed one by one: switches off reports of new code, and as many
	 * others as possible. Before stop().
	 */
	void (*quiet)(void);
	void (*let_go)(struct watch *);
	int (*stop)(void);	      /* 0, or SB_AGENT_BUSY */
	void (*ended)(void);	      /* the interpreter ends: drop everything */
	void (*once)(struct watch *); /* a hit, as the interpreter would make it */
	void (*spans)(bool any);      /* calls of some code are timed, or of none any more */
	void (*span)(struct watch *); /* as once, for both ends of a timed call */
	void (*function)(PyObject *function, struct watch *w); /* a function that exists; or NULL */
	uint32_t extra_ns; /* the interpreter's own addition to that */
};

struct agent {
	bool started;
	bool costed;	/* and its cost is measured */
	bool listed;	/* and a list of targets has been taken over */
	bool ready;	/* also watch what is off now: SB_AGENT_READY */
	bool lingers;	/* not started, but something may still refer to it */
	bool leaving;	/* the agent itself removes the token */
	bool at_work;	/* carries out a command */
	bool times;	/* calls of some code are timed */
	bool guest;	/* another tool watches all code: run no function of the agent */
	uint32_t flags; /* enum sb_mailbox_flags */
	struct page page;
	struct list list;
	const struct backend *backend;
	void *interp;
	PyObject *token; /* in the interpreter's dict: see token_hang() */
	struct sb_mailbox *mailbox;
	uint64_t slice_end; /* clock: work beyond it is left for later; 0: no limit */
	uint64_t cost;	    /* ticks that a delayed call costs beside its spin */
	uint64_t cost_counted;
	/* The cost of a timed call, and the part of it within the call's own time. */
	uint64_t cost_span, cost_within;
	char *reason; /* in the mailbox, 256 bytes */
};

extern struct agent agent;
extern const struct backend monitor_backend, frame_backend;

/* The piece of a command has taken its time; the program must run on. */
static inline bool slice_over(void)
{
	return agent.slice_end && (int64_t)(cpu_ticks() - agent.slice_end) >= 0;
}

/* Writes the reason and returns the error. */
int agent_fail(int error, const char *reason);

/* table.c */
struct entry *table_find(PyObject *code); /* by address only; NULL: none */
int table_put(PyObject *code, struct watch *watch);
void table_drop(struct watch *watch); /* removes and frees */
/* In pieces, from table_rewind() on; SB_AGENT_AGAIN before the last. */
int table_forget(void); /* the judgements of codes that do not match */
int table_empty(void);	/* all entries */
void table_clear(void); /* the rest of that, at once, and the table itself */
struct watch *table_watches(void);
/*
 * One watch after another, while the program runs in between: table_step() NULL: all that existed
 * at table_rewind() have been returned.
 */
void table_rewind(void);
struct watch *table_step(void);

static inline bool entry_valid(const struct entry *e)
{
	return e->ref && py_ref_alive(e->ref, e->code);
}

static inline const struct watch_cell *watch_cells(const struct watch *w)
{
	return __atomic_load_n(&w->cells, __ATOMIC_ACQUIRE);
}

/* table.c */
extern struct watch_cell no_cells; /* of code that no target matches */
void cells_retire(struct watch_cell *cells);

/* judge.c */
int list_load(struct list *list, const struct sb_mailbox *mailbox);
void list_free(struct list *list);

/*
 * Judges a code object by its targets: a new watch, in the table and noted, or NULL. qualname NULL:
 * it is determined here. generator: the object that runs the frame, where known.
 */
struct watch *judge(PyObject *code, PyObject *globals, const char *qualname, PyObject *generator);
int judge_again(void);		   /* watches, by the new list, from table_rewind() on; in pieces */
int judge_list(struct list *list); /* notes what matches now, watches nothing */
/*
 * Notes for functions that exist and match, and the watches that `how` demands. In pieces:
 * SB_AGENT_AGAIN before the last.
 */
int judge_existing(enum existing how);
void judge_forget(void); /* the notes taken so far */

/* function.c: the qualified name of a code object on 3.10, which does not contain it. A new str. */
PyObject *names_find(PyObject *code, const char *co_name, PyObject *generator);

/*
 * walk.c: every function that exists, and the code nested in it; qualname NULL: unknown. wanted is
 * called for a module first; code NULL: may any function of this module match? more: what to visit
 * besides objects that names lead to; NULL: everything.
 */
enum walk_more {
	WALK_NO_MORE,
	WALK_CLASSES, /* every class, even without a name */
	WALK_ALL,     /* what the collector knows, in one piece: the program waits that long */
};

struct walk {
	enum walk_more (*more)(struct walk *);
	bool (*enough)(const struct walk *); /* the rest need not be visited; may be NULL */
	bool by_file;			     /* a match also depends on the code's file */
	bool (*wanted)(struct walk *, PyObject *globals, PyObject *code);
	void (*found)(struct walk *, PyObject *code, PyObject *globals, const char *qualname);
	/* Each function object itself, after its code; may be NULL, and so may found. */
	void (*function)(struct walk *, PyObject *function, PyObject *code);
};
int walk_piece(struct walk *walk); /* SB_AGENT_AGAIN: not finished */
int walk_leave(void);		   /* without the rest of it; in pieces, as walk_piece() */
void walk_drop(void);		   /* ... at once, which may take long */
void walk_lose(void);		   /* forgets it without freeing anything */

/* cost.c */
int cost_piece(bool spans); /* ... those of timed calls as well. As walk_piece(). */
void cost_drop(void);
void cost_lose(void);

/* Whether any target counts: a cell of the watch is not OFF in this process. */
static inline bool watch_wanted(const struct watch *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const struct sb_page_cell *cell = page_cell(&agent.page, w->cells[i].index);

		if (cell && (agent.ready || page_state(cell) != SB_STATE_OFF))
			return true;
	}
	return false;
}

/* Whether calls of the watch are to be timed. */
static inline bool watch_spans(const struct watch *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const struct sb_page_cell *cell = page_cell(&agent.page, w->cells[i].index);

		if (cell && page_spans(cell))
			return true;
	}
	return false;
}

/*
 * A call of a watched code, or a resumption; the hot path. Where there is no GIL, the watch may be
 * gone when this returns.
 */
static inline void watch_hit(const struct watch *w, bool resume)
{
	struct hit hit = { .page = &agent.page, .cost = agent.cost };
	const struct watch_cell *c = watch_cells(w);

	hit.last = c->index == CELL_NONE;
	while (!hit.last) {
		const struct sb_page_cell *cell = page_cell(&agent.page, c->index);
		bool counts = cell && (!resume || c->resume);

		hit.each = c->each;
		c++;
		hit.last = c->index == CELL_NONE; /* read first: the hit may free the watch */
		if (counts)
			hit_cell(&hit, cell);
	}
}

#endif
