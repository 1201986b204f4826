/* SPDX-License-Identifier: MIT */
#ifndef SB_PYTHON_FRAMES_H
#define SB_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/maps.h"

/*
 * The Python frames of the threads of a process: CPython 3.11 and later that
 * inject/pyframes-layout.h knows. Its structures are read from outside (process_vm_readv()) while
 * they change: what is not what it should be is not there. sbinject stops and writes to no process.
 * It needs the permission to trace the process. Of several interpreters the main one is read.
 */
struct python_process;

/* NULL: it has no such interpreter (yet). *runtime: an address in the interpreter. */
struct python_process *python_process_open(pid_t pid, const struct maps *maps, uint64_t *runtime);
void python_process_close(struct python_process *p); /* NULL is harmless */

/* Reads anew which threads have run Python: call it now and then. */
void python_process_threads(struct python_process *p);
size_t python_process_count(const struct python_process *p);
pid_t python_process_tid(const struct python_process *p, size_t i);
/* For python_frame_first(); 0: the thread has not run Python. */
uint64_t python_process_state(const struct python_process *p, pid_t tid);

/* Does a thread run, or wait for a processor? */
bool python_thread_runs(pid_t pid, pid_t tid);

struct python_frame {
	uint64_t word[9]; /* what is looked at, in every version */
};

/* The innermost frame, and the one that it was called from. False: there is none. */
bool python_frame_first(const struct python_process *p, uint64_t state, struct python_frame *frame);
bool python_frame_next(const struct python_process *p, struct python_frame *frame);

/* A code object, and its texts: another one may be made in its place. */
struct python_code {
	uint64_t at, name, file, globals;
};
bool python_frame_code(const struct python_process *p, const struct python_frame *frame,
		       struct python_code *code);

/* "py:MODULE:QUALNAME"; by the file, where the module is not known. The caller frees. NULL: a name
 * has other characters than those of ASCII that stand for themselves in a target. */
char *python_code_target(const struct python_process *p, const struct python_code *code);

#endif
