/* SPDX-License-Identifier: MIT */
#ifndef SB_ERR_H
#define SB_ERR_H

#include <sys/types.h>

/*
 * Errors. Every module uses this one form.
 *
 * A function that can fail returns 0 or a negative enum sb_code. If it takes a struct sb_err, it
 * fills it. Lower modules never print and never exit. The command line prints the text of the
 * struct (command_print_error()) and exits with err_exit_status().
 *
 * A struct sb_err owns nothing; initialise it with { 0 }. The first failure wins: err_set() on a
 * struct that already carries a code keeps the older, more exact cause.
 */
enum sb_code {
	SB_OK = 0,
	SB_EUSAGE,	 /* the command line is wrong */
	SB_ESPEC,	 /* a target, delay or key is malformed */
	SB_ERANGE,	 /* a delay or time is too long */
	SB_ETOOLONG,	 /* a word or path is too long */
	SB_EEXIST,	 /* the target, or one of its functions, is already a target */
	SB_ENOTARGET,	 /* the session has no such target */
	SB_EFILE,	 /* a file cannot be read or written */
	SB_ENOELF,	 /* not an ELF file of this machine */
	SB_ENOMODULE,	 /* no mapped module matches */
	SB_ENOSYMBOL,	 /* the module has no such function */
	SB_EAMBIGUOUS,	 /* the name means several different functions */
	SB_ENOTFUNC,	 /* the symbol is data */
	SB_EREFUSED,	 /* the site cannot be hooked; the text gives the reason */
	SB_ENOPROC,	 /* no such process, or it has ended */
	SB_EPERM,	 /* the kernel does not permit it */
	SB_ETRACED,	 /* another tracer holds the process */
	SB_EBADPROC,	 /* kernel thread, zombie, 32-bit, or sbinject itself */
	SB_EHOOKED,	 /* the target is hooked already, or was left hooked */
	SB_ECONFINED,	 /* seccomp or a namespace prevents it */
	SB_ETARGET,	 /* the step cannot continue after what the target did */
	SB_ECLOCK,	 /* the TSC cannot be used for delays */
	SB_ENOMEM,	 /* memory, here or in the target */
	SB_ESYS,	 /* a system call failed; see sys_errno */
	SB_ENOEXEC,	 /* the command to launch is not executable */
	SB_ENOCMD,	 /* the command to launch was not found */
	SB_EINTERRUPTED, /* the user ended the run before anything was done */
	SB_EINTERNAL,	 /* a bug in sbinject */
	SB_CODE_COUNT
};

struct sb_err {
	enum sb_code code;
	int sys_errno;	/* errno if a system call failed, else 0 */
	pid_t pid;	/* the process concerned, 0 if none */
	char what[512]; /* "target 'x:y': ...": one line, no newline */
	char hint[320]; /* the remedy; empty: the table's remedy for this code */
};

/* Fills err (if not NULL) unless it already holds a failure. Returns -code in both cases. */
int err_set(struct sb_err *err, enum sb_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As err_set(), and appends ": strerror(errno)". Call it before anything can change errno. */
int err_sys(struct sb_err *err, enum sb_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the remedy of a recorded failure. */
void err_hint(struct sb_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the recorded text. */
void err_prefix(struct sb_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The remedy to show: the recorded one, else the table's for the code, else "". */
const char *err_remedy(const struct sb_err *err);

/* Exit status of `sbinject -p` for this code (sbinject(1), EXIT STATUS). A launch maps it to 125,
 * 126 or 127. */
int err_exit_status(enum sb_code code);

/* The code's short name ("no such process"), for logs and tests. */
const char *err_name(enum sb_code code);

/* The errno name that scripts use ("ESRCH"). sbctl prints it, and it is "error" in the control
 * protocol. */
const char *err_errno_name(enum sb_code code);

#endif
