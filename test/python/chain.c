/* SPDX-License-Identifier: MIT */
/* Another user of PEP 523, as a compiler of Python code is one: counts frames, hands them on. */
#include <stddef.h>

typedef void *eval_fn(void *tstate, void *frame, int throwing);

void *PyInterpreterState_Get(void);
eval_fn *_PyInterpreterState_GetEvalFrameFunc(void *interp);
void _PyInterpreterState_SetEvalFrameFunc(void *interp, eval_fn *fn);

static eval_fn *next;
long chain_seen;

static void *on_frame(void *tstate, void *frame, int throwing)
{
	chain_seen++;
	return next(tstate, frame, throwing);
}

void chain_in(void)
{
	next = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
	_PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), on_frame);
}

void chain_out(void)
{
	_PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), next);
}
