/* SPDX-License-Identifier: MIT */
#include "py.h"

#include <dlfcn.h>
#include <string.h>
#include <pythread.h>

#include "inject/page-abi.h"

struct py py;
static PyObject *interruption; /* an exception's type */

static const char *const names[PY_N_NAMES] = {
	[PY_NAME] = "__name__",		  [PY_QUALNAME] = "__qualname__",
	[PY_CO_NAME] = "co_name",	  [PY_CO_QUALNAME] = "co_qualname",
	[PY_CO_FILENAME] = "co_filename", [PY_CO_FIRSTLINENO] = "co_firstlineno",
	[PY_CO_CONSTS] = "co_consts",	  [PY_CO_FLAGS] = "co_flags",
	[PY_WRAPPED] = "__wrapped__",
};

void *py_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/* The offset of an object's type: after the reference count, which differs between builds. */
static bool find_type_offset(void)
{
	PyObject *type = PyObject_Type(Py_None);

	for (size_t off = 0; off < 64; off += sizeof(void *)) {
		if (*(PyObject **)((char *)Py_None + off) != type)
			continue;
		py.type_off = off;
		Py_DecRef(type);
		return true;
	}
	Py_DecRef(type);
	return false;
}

static uint32_t hex_version(void)
{
	PyObject *hex = PySys_GetObject("hexversion"); /* borrowed */
	long value = hex ? PyLong_AsLong(hex) : 0;

	PyErr_Clear();
	return value > 0 ? (uint32_t)value : 0;
}

static bool free_threaded(void)
{
	PyObject *flags = PySys_GetObject("abiflags"); /* borrowed */
	const char *text = py_text(flags);

	return text && strchr(text, 't');
}

/*
 * From sys.modules if it is there, which leaves no trace; else imported, and removed again. By the
 * interpreter's own import: PyImport_ImportModule() uses the builtins of the code that is under
 * way, which may have none.
 */
static PyObject *builtin_module(const char *name)
{
	PyObject *modules = PySys_GetObject("modules"), *module; /* borrowed */

	module = modules ? PyMapping_GetItemString(modules, name) : NULL;
	if (module)
		return module;
	PyErr_Clear();
	module = PyImport_ImportModuleLevel(name, NULL, NULL, NULL, 0);
	if (module && modules)
		PyObject_DelItemString(modules, name);
	PyErr_Clear();
	return module;
}

static PyObject *class_dict(void)
{
	PyObject *space = PyObject_GetAttrString((PyObject *)&PyType_Type, "__dict__"), *own;

	own = space ? PyMapping_GetItemString(space, "__dict__") : NULL;
	PyErr_Clear();
	Py_DecRef(space);
	return own;
}

/* Before 3.13 dlsym() would look for them in all libraries in vain. */
static void find_new(void)
{
	py.weakref_get = (int (*)(PyObject *, PyObject **))py_symbol("PyWeakref_GetRef");
	py.dict_get = (int (*)(PyObject *, PyObject *, PyObject **))py_symbol("PyDict_GetItemRef");
	py.finalizing = (int (*)(void))py_symbol("Py_IsFinalizing");
}

int py_open(void)
{
	if (py.open)
		return 0;
	memset(&py, 0, sizeof(py));
	py.hex = hex_version();
	py.code_type = py_symbol("PyCode_Type");
	py.function_type = py_symbol("PyFunction_Type");
	py.module_type = py_symbol("PyModule_Type");
	py.static_method_type = py_symbol("PyStaticMethod_Type");
	py.class_method_type = py_symbol("PyClassMethod_Type");
	py.property_type = py_symbol("PyProperty_Type");
	py.method_type = py_symbol("PyMethod_Type");
	py.weakref_object = (PyObject * (*)(PyObject *)) py_symbol("PyWeakref_GetObject");
	py.function_code = (PyObject * (*)(PyObject *)) py_symbol("PyFunction_GetCode");
	py.function_globals = (PyObject * (*)(PyObject *)) py_symbol("PyFunction_GetGlobals");
	py.function_closure = (PyObject * (*)(PyObject *)) py_symbol("PyFunction_GetClosure");
	py.cell_get = (PyObject * (*)(PyObject *)) py_symbol("PyCell_Get");
	py.dict_of = (PyObject * *(*)(PyObject *)) py_symbol("_PyObject_GetDictPtr");
	py.gc_disable = (int (*)(void))py_symbol("PyGC_Disable");
	py.gc_enable = (int (*)(void))py_symbol("PyGC_Enable");
	if (py.hex >= 0x030d0000)
		find_new();
	if (!py.gc_disable || !py.gc_enable || !py.function_code || !py.function_globals)
		return SB_AGENT_UNSUPPORTED;
	if (py.hex < 0x030a0000 || !py.code_type || !py.function_type ||
	    (!py.weakref_get && !py.weakref_object) || !find_type_offset())
		return SB_AGENT_UNSUPPORTED;
	py.threads = free_threaded();
	if (py.threads && (!py.weakref_get || !py.dict_get || !py.finalizing))
		return SB_AGENT_UNSUPPORTED;
	py.open = true;
	for (int i = 0; i < PY_N_NAMES; i++) {
		py.name[i] = PyUnicode_InternFromString(names[i]);
		if (!py.name[i]) {
			py_close();
			return SB_AGENT_PYTHON;
		}
	}
	py.gc = builtin_module("gc");
	py.class_dict = class_dict();
	if (py.gc && py.class_dict)
		return 0;
	py_close();
	return SB_AGENT_PYTHON;
}

void py_close(void)
{
	for (int i = 0; i < PY_N_NAMES; i++)
		Py_DecRef(py.name[i]);
	Py_DecRef(py.gc);
	Py_DecRef(py.class_dict);
	py.gc = py.class_dict = NULL;
	py.open = false;
	memset(py.name, 0, sizeof(py.name));
}

PyObject *py_attr(PyObject *o, enum py_name name)
{
	PyObject *value = PyObject_GetAttr(o, py.name[name]);

	if (!value)
		PyErr_Clear();
	return value;
}

long py_attr_long(PyObject *o, enum py_name name, long otherwise)
{
	PyObject *value = py_attr(o, name);
	long n = value ? PyLong_AsLong(value) : otherwise;

	if (PyErr_Occurred()) {
		PyErr_Clear();
		n = otherwise;
	}
	Py_DecRef(value);
	return n;
}

const char *py_text(PyObject *str)
{
	const char *text = str ? PyUnicode_AsUTF8AndSize(str, NULL) : NULL;

	if (!text) /* not a str, or one with surrogates */
		PyErr_Clear();
	return text;
}

const char *py_module_name(PyObject *globals, PyObject **held)
{
	PyObject *name = NULL;
	const char *text;

	if (globals && py.dict_get) {
		if (py.dict_get(globals, py.name[PY_NAME], &name) < 0)
			PyErr_Clear();
	} else if (globals) {
		name = PyDict_GetItemWithError(globals, py.name[PY_NAME]);
		if (!name)
			PyErr_Clear();
		Py_IncRef(name);
	}
	*held = name;
	text = py_text(name);
	return text ? text : "";
}

PyObject *py_ref_new(PyObject *object)
{
	PyObject *ref = PyWeakref_NewRef(object, NULL);

	if (ref)
		PyObject_GC_UnTrack(ref);
	return ref;
}

/*
 * Borrowed for an instant. Another thread may give the function another code meanwhile; where that
 * can be, the counts of codes are deferred: only a collection frees one, and that waits until this
 * thread reaches a point where it may be stopped.
 */
PyObject *py_function_code(PyObject *function)
{
	PyObject *code = py.function_code(function);

	Py_IncRef(code);
	return code;
}

PyObject *py_function_globals(PyObject *function)
{
	PyObject *globals = py.function_globals(function);

	Py_IncRef(globals);
	return globals;
}

bool py_ref_alive(PyObject *ref, PyObject *object)
{
	PyObject *now = NULL;

	if (!py.weakref_get)
		return py.weakref_object(ref) == object;
	if (py.weakref_get(ref, &now) < 0)
		PyErr_Clear();
	Py_DecRef(now);
	return now == object;
}

PyObject *py_callable(PyObject *(*call)(PyObject *, PyObject *const *, Py_ssize_t))
{
	static const char name[] = "sbinject";
	PyObject *held = PyBytes_FromStringAndSize(NULL, sizeof(PyMethodDef) + sizeof(name)), *f;
	PyMethodDef *def = held ? (PyMethodDef *)(void *)PyBytes_AsString(held) : NULL;

	if (!def)
		return NULL;
	*def = (PyMethodDef){ (char *)(def + 1), (PyCFunction)(void (*)(void))call, METH_FASTCALL,
			      NULL };
	memcpy(def + 1, name, sizeof(name));
	f = PyCFunction_NewEx(def, held, NULL);
	Py_DecRef(held);
	return f;
}

long py_references(PyObject *object)
{
	PyObject *count = PySys_GetObject("getrefcount"), *n; /* borrowed */
	long refs;

	n = count ? PyObject_CallFunctionObjArgs(count, object, NULL) : NULL;
	refs = n ? PyLong_AsLong(n) : -1;
	PyErr_Clear();
	Py_DecRef(n);
	return refs;
}

PyObject *py_objects(long generation)
{
	PyObject *objects;

	if (generation < 0)
		objects = PyObject_CallMethod(py.gc, "get_objects", NULL);
	else
		objects = PyObject_CallMethod(py.gc, "get_objects", "l", generation);
	if (!objects)
		PyErr_Clear();
	return objects;
}

PyObject *py_run(const char *text)
{
	PyObject *globals = PyDict_New(), *name = PyUnicode_FromString("sbinject");
	PyObject *code = Py_CompileString(text, "<sbinject>", 257 /* Py_file_input */),
		 *done = NULL;

	if (globals && name && code && !PyDict_SetItem(globals, py.name[PY_NAME], name))
		done = PyEval_EvalCode(code, globals, globals);
	Py_DecRef(done);
	Py_DecRef(code);
	Py_DecRef(name);
	if (done)
		return globals;
	Py_DecRef(globals);
	return NULL;
}

void py_run_end(PyObject *globals)
{
	if (globals)
		PyDict_Clear(globals);
	Py_DecRef(globals);
}

bool py_interrupted(void)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	Py_DecRef(traceback);
	Py_DecRef(value);
	if (!type)
		return false;
	if (interruption)
		Py_DecRef(type);
	else
		interruption = type;
	return true;
}

void py_pass_on(void)
{
	py_interrupted();
	if (interruption)
		PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), interruption);
	Py_DecRef(interruption);
	interruption = NULL;
}

bool py_gil(void)
{
	PyObject *ask = PySys_GetObject("_is_gil_enabled"), *answer; /* borrowed; 3.13 and later */
	bool without;

	answer = ask ? PyObject_CallObject(ask, NULL) : NULL;
	without = answer == Py_False;
	PyErr_Clear();
	Py_DecRef(answer);
	return !without;
}

static bool sys_has(const char *function)
{
	PyObject *get = PySys_GetObject(function), *value; /* borrowed */

	value = get ? PyObject_CallObject(get, NULL) : NULL;
	if (!value)
		PyErr_Clear();
	Py_DecRef(value);
	return value && value != Py_None;
}

/* A tool id of the agent's own, by its name. */
static bool is_ours(PyObject *monitoring, int tool)
{
	PyObject *name = PyObject_CallMethod(monitoring, "get_tool", "i", tool);
	const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) :
							   NULL;
	bool ours = text && !strncmp(text, "sbinject", 8);

	PyErr_Clear();
	Py_DecRef(name);
	return ours;
}

bool py_observed(void)
{
	PyObject *monitoring = PySys_GetObject("monitoring"), *events; /* borrowed */
	bool observed = sys_has("gettrace") || sys_has("getprofile");
	long set;

	for (int tool = 0; monitoring && tool < 6; tool++) {
		if (is_ours(monitoring, tool))
			continue;
		events = PyObject_CallMethod(monitoring, "get_events", "i", tool);
		set = events ? PyLong_AsLong(events) : 0; /* an id without an owner raises */
		PyErr_Clear();
		Py_DecRef(events);
		observed |= set != 0;
	}
	return observed;
}
