/* SPDX-License-Identifier: MIT */
#include "interpreter.h"

#include <stdio.h>
#include <string.h>
#include "module.h"

/* Two names where a function was renamed; the first one found is used. */
static const struct {
	const char *name, *before;
} api[INTERPRETER_FUNCTIONS] = {
	[INTERPRETER_DLOPEN] = { "dlopen", NULL },
	[INTERPRETER_DLSYM] = { "dlsym", NULL },
	[INTERPRETER_DLCLOSE] = { "dlclose", NULL },
	[INTERPRETER_DLERROR] = { "dlerror", NULL },
	[INTERPRETER_ADD_PENDING] = { "Py_AddPendingCall", NULL },
	[INTERPRETER_MAKE_PENDING] = { "Py_MakePendingCalls", NULL },
	[INTERPRETER_THIS_STATE] = { "PyGILState_GetThisThreadState", NULL },
	[INTERPRETER_CURRENT_STATE] = { "PyThreadState_GetUnchecked",
					"_PyThreadState_UncheckedGet" },
	[INTERPRETER_IS_INITIALIZED] = { "Py_IsInitialized", NULL },
	[INTERPRETER_ENSURE] = { "PyGILState_Ensure", NULL },
	[INTERPRETER_RELEASE] = { "PyGILState_Release", NULL },
	[INTERPRETER_ADD_ANY] = { "_PyEval_AddPendingCall", NULL },
	[INTERPRETER_MAIN] = { "PyInterpreterState_Main", NULL },
};

/*
 * Entered after the interpreter is ready and before the first line of the user's program, in every
 * way to start one: they run modules, run the script's code, and make __main__.
 */
const char *const interpreter_start_functions[] = {
	"PyEval_EvalCode",
	"Py_RunMain",
	"PyImport_ImportModule",
	"PyImport_AddModule",
	"PyImport_AddModuleRef",
	"PyImport_AddModuleObject",
	"PyRun_SimpleStringFlags",
	"PyRun_AnyFileExFlags",
	NULL,
};

struct value {
	uint64_t vaddr, size;
};

static bool take_value(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct value *v = ctx;

	(void)tab;
	(void)i;
	if (sym->st_shndx == SHN_UNDEF || !sym->st_value)
		return true;
	v->vaddr = sym->st_value;
	v->size = sym->st_size;
	return false;
}

/* An exact name of any type; the dynamic table first. */
static bool find_value(struct image *img, const char *name, struct value *v)
{
	static const enum image_table tables[] = { TABLE_DYNSYM, TABLE_SYMTAB };

	*v = (struct value){ 0 };
	for (size_t t = 0; t < 2 && !v->vaddr; t++) {
		const struct symtab *tab = image_table(img, tables[t]);
		struct strset set = { 0 };

		if (!tab)
			continue;
		if (strset_exact(&set, tab, name) == 0)
			symtab_scan(tab, &set, take_value, v);
		strset_free(&set);
	}
	return v->vaddr != 0;
}

static uint64_t address_of(const struct module *m, const char *name)
{
	struct value v;

	return name && find_value(m->img, name, &v) ? v.vaddr + m->bias : 0;
}

static void take_functions(struct interpreter *in, const struct module *m, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (in->function[i])
			continue;
		in->function[i] = address_of(m, api[i].name);
		if (!in->function[i])
			in->function[i] = address_of(m, api[i].before);
	}
}

/* The first module that matches the pattern and holds an interpreter. */
static bool find_in(const struct module_space *space, const char *pattern, struct interpreter *in,
		    struct sb_err *why)
{
	struct module_list list = { 0 };

	if (module_find(space, pattern, &list, why) < 0)
		return false;
	for (size_t i = 0; i < list.count && !in->img; i++) {
		struct module *m = &list.module[i];

		if (!address_of(m, api[INTERPRETER_ADD_PENDING].name))
			continue;
		take_functions(in, m, INTERPRETER_ADD_PENDING, INTERPRETER_FUNCTIONS);
		/* New in 3.12, as is the fourth argument of the other. */
		if (!in->function[INTERPRETER_MAIN] || !address_of(m, "PyErr_GetRaisedException"))
			in->function[INTERPRETER_ADD_ANY] = 0;
		in->img = image_ref(m->img);
		in->bias = m->bias;
	}
	module_list_free(&list);
	return in->img != NULL;
}

static void find_loader(const struct module_space *space, struct interpreter *in)
{
	static const char *const homes[] = { "libc.*", "libdl.*", "ld-musl-*", "libc-*" };

	for (size_t h = 0; h < sizeof(homes) / sizeof(*homes); h++) {
		struct module_list list = { 0 };

		if (in->function[INTERPRETER_DLERROR] ||
		    module_find(space, homes[h], &list, NULL) < 0)
			continue;
		for (size_t i = 0; i < list.count; i++)
			take_functions(in, &list.module[i], 0, INTERPRETER_ADD_PENDING);
		module_list_free(&list);
	}
}

bool interpreter_loader(pid_t pid, const struct maps *maps,
			uint64_t function[INTERPRETER_ADD_PENDING])
{
	struct module_space space = { .pid = pid, .maps = maps };
	struct interpreter in = { 0 };
	bool all = true;

	find_loader(&space, &in);
	for (size_t i = 0; i < INTERPRETER_ADD_PENDING; i++) {
		function[i] = in.function[i];
		all &= function[i] != 0;
	}
	return all;
}

static int check(const struct interpreter *in, pid_t pid, struct sb_err *err)
{
	const struct module m = { .img = in->img, .bias = in->bias };
	const char *name = image_name(in->img);

	/* A function that is new in 3.10. */
	if (!address_of(&m, "PyModule_AddObjectRef")) {
		err_set(err, SB_EREFUSED, "process %d: the interpreter in %s is older than 3.10",
			pid, name);
		err_hint(err, "Python targets need CPython 3.10 or later");
		return -SB_EREFUSED;
	}
	for (size_t i = 0; i < INTERPRETER_REQUIRED; i++) {
		if (in->function[i])
			continue;
		/* A program that was just started: its dynamic linker has not run yet. */
		if (i < INTERPRETER_ADD_PENDING && image_interp(in->img)[0])
			return err_set(err, SB_ENOMODULE, "no C library is mapped yet");
		err_set(err, SB_EREFUSED, "process %d: %s has no symbol %s", pid,
			i < INTERPRETER_ADD_PENDING ? "its C library" : name, api[i].name);
		err_hint(err,
			 i < INTERPRETER_ADD_PENDING ?
				 "the agent is a shared library: a static program cannot load it" :
				 "is it CPython? other interpreters are not supported");
		return -SB_EREFUSED;
	}
	return 0;
}

/*
 * A free-threaded build: extension modules have _Py_DecRefShared() from its Py_DECREF().
 * PyMutex_Lock() is new in 3.13. Where the function that runs Python is hidden, no pc is certain to
 * be in it.
 */
static void find_eval(struct interpreter *in)
{
	struct value v;

	in->eval = in->eval_size = 0;
	in->gil = !find_value(in->img, "_Py_DecRefShared", &v);
	if (in->gil && !find_value(in->img, "PyMutex_Lock", &v))
		return;
	in->eval = v.vaddr + in->bias;
	if (find_value(in->img, "_PyEval_EvalFrameDefault", &v)) {
		in->eval = v.vaddr + in->bias;
		in->eval_size = v.size;
	}
}

int interpreter_find(pid_t pid, const struct maps *maps, struct interpreter *out,
		     struct sb_err *err)
{
	struct module_space space = { .pid = pid, .maps = maps };
	struct sb_err why = { 0 };
	struct value v;
	int ret;

	memset(out, 0, sizeof(*out));
	/* Last: the program of a dynamic linker that was started as a program itself. */
	if (!find_in(&space, "libpython*", out, &why) && !find_in(&space, "", out, &why) &&
	    !find_in(&space, "python*", out, NULL))
		return err_set(err, SB_ENOMODULE, "no Python interpreter is mapped%s%.200s",
			       why.what[0] ? ": " : "", why.what);
	find_loader(&space, out);
	if (find_value(out->img, "_PyRuntime", &v)) {
		out->runtime = v.vaddr + out->bias;
		out->runtime_size = v.size;
	}
	find_eval(out);
	if (find_value(out->img, "Py_Version", &v))
		out->version_address = v.vaddr + out->bias;
	ret = check(out, pid, err);
	if (ret < 0)
		interpreter_free(out);
	return ret;
}

/* Py_Version is new in 3.11. */
static uint32_t version_of(const struct interpreter *in)
{
	const struct module m = { .img = in->img, .bias = in->bias };
	const uint8_t *at;
	uint32_t hex;
	struct value v;
	size_t n;

	if (!find_value(in->img, "Py_Version", &v))
		return address_of(&m, "PyModule_AddObjectRef") ? 0x030a : 0;
	at = image_bytes(in->img, v.vaddr, &n);
	if (!at || n < sizeof(hex))
		return 0;
	memcpy(&hex, at, sizeof(hex));
	return hex >> 16;
}

bool interpreter_types(pid_t pid, const struct maps *maps, struct interpreter_types *out)
{
	struct module_space space = { .pid = pid, .maps = maps };
	struct interpreter in = { 0 };
	struct sb_err why = { 0 };
	struct module m;
	struct value v;

	*out = (struct interpreter_types){ 0 };
	if (!find_in(&space, "libpython*", &in, &why) && !find_in(&space, "", &in, &why))
		return false;
	m = (struct module){ .img = in.img, .bias = in.bias };
	out->runtime = address_of(&m, "_PyRuntime");
	out->code = address_of(&m, "PyCode_Type");
	out->str = address_of(&m, "PyUnicode_Type");
	out->bytes = address_of(&m, "PyBytes_Type");
	if (!find_value(in.img, "_Py_DecRefShared", &v))
		out->version = version_of(&in);
	interpreter_free(&in);
	return out->version && out->runtime && out->code && out->str && out->bytes;
}

void interpreter_free(struct interpreter *in)
{
	if (in->img)
		image_put(in->img);
	in->img = NULL;
}
