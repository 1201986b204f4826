/* SPDX-License-Identifier: MIT */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The exit statuses that sbinject(1) documents for scripts; everything else is 1. */
enum { EXIT_OTHER = 1, EXIT_USAGE = 2, EXIT_TARGET = 3, EXIT_PERMISSION = 4, EXIT_PROCESS = 5 };

static const struct err_kind {
	const char *name;
	const char *remedy;
	int exit_status;
	const char *errno_name; /* NULL: EIO */
} kinds[SB_CODE_COUNT] = {
	[SB_OK] = { "no error", "", 0 },
	[SB_EUSAGE] = { "usage", "see sbinject --help", EXIT_USAGE, "EINVAL" },
	[SB_ESPEC] = { "malformed target", "see sbinject-targets(5)", EXIT_USAGE, "EINVAL" },
	[SB_ERANGE] = { "out of range", "see sbinject-targets(5)", EXIT_USAGE, "ERANGE" },
	[SB_ETOOLONG] = { "too long", "", EXIT_USAGE, "ENAMETOOLONG" },
	[SB_EEXIST] = { "a target already", "", EXIT_USAGE, "EEXIST" },
	[SB_ENOTARGET] = { "no such target", "sbctl list shows what there is", EXIT_TARGET,
			   "ENOENT" },
	[SB_EFILE] = { "file error", "", EXIT_OTHER, "ENOENT" },
	[SB_ENOELF] = { "not an ELF file of this machine", "", EXIT_OTHER, "ENOEXEC" },
	[SB_ENOMODULE] = { "no such module",
			   "sbinject list -p PID '*:SYMBOL' shows the modules that have a symbol",
			   EXIT_TARGET, "ENOENT" },
	[SB_ENOSYMBOL] = { "no such function", "sbinject list shows what a pattern matches",
			   EXIT_TARGET, "ENOENT" },
	[SB_EAMBIGUOUS] = { "ambiguous name", "name one of them by its address, MODULE:0xADDR",
			    EXIT_TARGET, "EINVAL" },
	[SB_ENOTFUNC] = { "not a function", "only functions can be hooked", EXIT_TARGET, "EINVAL" },
	[SB_EREFUSED] = { "cannot be hooked", "", EXIT_TARGET, "EINVAL" },
	[SB_ENOPROC] = { "no such process", "", EXIT_PROCESS, "ESRCH" },
	[SB_EPERM] = { "not permitted",
		       "run as the target's user with ptrace allowed, or as root; "
		       "sbinject doctor -p PID says what is missing",
		       EXIT_PERMISSION, "EPERM" },
	[SB_ETRACED] = { "traced by another process", "detach the debugger or tracer that holds it",
			 EXIT_PERMISSION },
	[SB_EBADPROC] = { "not a process that can be hooked", "", EXIT_PROCESS },
	[SB_EHOOKED] = { "hooked already",
			 "end the other session; sbinject recover -p PID restores what one left",
			 EXIT_OTHER },
	[SB_ECONFINED] = { "confined", "sbinject doctor -p PID says by what", EXIT_PERMISSION,
			   "EPERM" },
	[SB_ETARGET] = { "the target changed meanwhile", "", EXIT_OTHER },
	[SB_ECLOCK] = { "no usable clock", "a delay of 0 (counting) works without it", EXIT_OTHER,
			"ENODEV" },
	[SB_ENOMEM] = { "out of memory", "", EXIT_OTHER, "ENOSPC" },
	[SB_ESYS] = { "system call failed", "", EXIT_OTHER },
	[SB_ENOEXEC] = { "command not executable", "", EXIT_OTHER },
	[SB_ENOCMD] = { "command not found", "", EXIT_OTHER },
	[SB_EINTERRUPTED] = { "interrupted", "", EXIT_OTHER },
	[SB_EINTERNAL] = { "internal error", "please report it with the output of -v", EXIT_OTHER },
};

static const struct err_kind *kind_of(enum sb_code code)
{
	/* A code from a newer caller must not read past the table. */
	if ((int)code < 0 || code >= SB_CODE_COUNT)
		code = SB_EINTERNAL;
	return &kinds[code];
}

/*
 * Names come from the target's files: control characters must not reach a terminal or split a line.
 * The upper ones are the two bytes c2 80 to c2 9f, or a single byte outside of a character.
 */
static void make_one_line(char *s)
{
	for (unsigned char *c = (unsigned char *)s; *c; c++) {
		bool alone = c == (unsigned char *)s || c[-1] < 0x80;

		if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			*c = c[1] = ' ';
		if (*c < ' ' || *c == 0x7f || (alone && *c >= 0x80 && *c < 0xa0))
			*c = ' ';
	}
}

static bool is_recorded(const struct sb_err *err)
{
	return err->code != SB_OK;
}

int err_set(struct sb_err *err, enum sb_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err || is_recorded(err))
		return -(int)code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	make_one_line(err->what);
	return -(int)code;
}

int err_sys(struct sb_err *err, enum sb_code code, const char *fmt, ...)
{
	int saved = errno;
	char text[sizeof(((struct sb_err){ 0 }).what)];
	va_list ap;

	if (!err || is_recorded(err))
		return -(int)code;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err->sys_errno = saved;
	err_set(err, code, "%s: %s", text, strerror(saved));
	errno = saved;
	return -(int)code;
}

void err_hint(struct sb_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	make_one_line(err->hint);
}

void err_prefix(struct sb_err *err, const char *fmt, ...)
{
	char old[sizeof(err->what)];
	va_list ap;
	size_t used;

	if (!err)
		return;
	memcpy(old, err->what, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	used = strlen(err->what);
	snprintf(err->what + used, sizeof(err->what) - used, ": %s", old);
	make_one_line(err->what);
}

const char *err_remedy(const struct sb_err *err)
{
	return err->hint[0] ? err->hint : kind_of(err->code)->remedy;
}

int err_exit_status(enum sb_code code)
{
	return kind_of(code)->exit_status;
}

const char *err_name(enum sb_code code)
{
	return kind_of(code)->name;
}

const char *err_errno_name(enum sb_code code)
{
	const char *name = kind_of(code)->errno_name;

	return name ? name : "EIO";
}
