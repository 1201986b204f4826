/* SPDX-License-Identifier: MIT */
/*
 * Properties of sys.monitoring that this file works around:
 *
 * - free_tool_id() of 3.12 and 3.13.0 leaves events and callbacks behind: they are cleared first.
 * - Ids 0 to 2 and 5 have names (debugger, coverage, profiler, optimizer); others are taken first,
 *   so that remains of the agent's tools do not disturb a named tool.
 */
#include "tool.h"

struct tool_events tool_event;

static PyObject *module, *name; /* sys.monitoring; the name of the agent's tools */

/* The result of a call of it; false: it raised (cleared). */
static bool ask(PyObject *result)
{
	if (!result)
		PyErr_Clear();
	Py_DecRef(result);
	return result;
}

/* An event's bit, from the interpreter's own constants. */
static long event_of(const char *event)
{
	PyObject *events = PyObject_GetAttrString(module, "events"), *value;
	long bit;

	value = events ? PyObject_GetAttrString(events, event) : NULL;
	bit = value ? PyLong_AsLong(value) : 0;
	PyErr_Clear();
	Py_DecRef(value);
	Py_DecRef(events);
	return bit > 0 ? bit : 0;
}

bool tool_open(PyObject *monitoring)
{
	Py_IncRef(monitoring);
	module = monitoring;
	name = PyUnicode_FromString("sbinject");
	if (!name)
		PyErr_Clear();
	tool_event.unwind = event_of("PY_UNWIND");
	tool_event.throw = event_of("PY_THROW");
	return name && tool_event.unwind && tool_event.throw;
}

void tool_close(void)
{
	Py_DecRef(name);
	Py_DecRef(module);
	name = module = NULL;
}

bool tool_take(int id)
{
	return ask(PyObject_CallMethod(module, "use_tool_id", "iO", id, name));
}

int tool_take_below(int id)
{
	static const signed char order[] = { 3, 4, 5, 2, 1, 0 };

	for (size_t i = 0; i < sizeof(order); i++)
		if (order[i] < id && tool_take(order[i]))
			return order[i];
	return NO_TOOL;
}

bool tool_is_ours(int id)
{
	PyObject *now = id == NO_TOOL ? NULL : PyObject_CallMethod(module, "get_tool", "i", id);

	if (!now)
		PyErr_Clear();
	Py_DecRef(now);
	return now && now == name;
}

bool tool_is_alone(void)
{
	bool alone = true;

	for (int id = 0; id < TOOLS && alone; id++) {
		PyObject *now = PyObject_CallMethod(module, "get_tool", "i", id);

		if (!now)
			PyErr_Clear();
		alone = now && (now == Py_None || now == name);
		Py_DecRef(now);
	}
	return alone;
}

void tool_silence(int id)
{
	const long events[] = { EVENT_START, EVENT_RESUME,	EVENT_RETURN,
				EVENT_YIELD, tool_event.unwind, tool_event.throw };

	if (!tool_is_ours(id))
		return;
	tool_set(id, 0);
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		tool_call(id, events[i], Py_None);
}

void tool_drop(int id)
{
	if (!tool_is_ours(id))
		return;
	tool_silence(id);
	ask(PyObject_CallMethod(module, "free_tool_id", "i", id));
}

void tool_drop_others(int a, int b)
{
	for (int id = 0; id < TOOLS; id++)
		if (id != a && id != b)
			tool_drop(id);
}

bool tool_set(int id, long events)
{
	return ask(PyObject_CallMethod(module, "set_events", "il", id, events));
}

bool tool_set_local(int id, PyObject *code, long events)
{
	return ask(PyObject_CallMethod(module, "set_local_events", "iOl", id, code, events));
}

bool tool_call(int id, long event, PyObject *callback)
{
	return ask(PyObject_CallMethod(module, "register_callback", "ilO", id, event, callback));
}

bool tool_restart(void)
{
	return ask(PyObject_CallMethod(module, "restart_events", NULL));
}
