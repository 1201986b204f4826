/* SPDX-License-Identifier: MIT */
#ifndef SB_SPEC_H
#define SB_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "preset.h"
#include "src/base/value.h"

/*
 * The grammar of targets, delays and keys. No I/O except in spec_read_file() and spec_read_bytes(),
 * and for presets (preset.h): text in, structs out. Fuzzed.
 *
 *	TARGET	:= MODULE ":" SYMBOL | MODULE ":=" SYMBOL | MODULE ":@" FILE ":" LINE
 *		 | "py:" MODULE_GLOB ":" QUALNAME_GLOB
 *		 | "kernel:" FUNCTION_GLOB | "tracepoint:" SUBSYSTEM_GLOB ":" NAME_GLOB
 *		 | "ioctl:" DEVICE | "interrupt:" HANDLER | "offcpu:" THREAD
 *	DELAY	:= "0" | NUMBER UNIT		UNIT := ns us µs ms s	(<= 10 s; 2.5us too)
 *	KEY	:= NAME "=" VALUE | "ret"	by the table of keys: spec_key()
 *	GROUP	:= (TARGET | PRESET) [DELAY] [KEY=VALUE]...	PRESET: a WORD of preset.h
 *
 * MODULE may be empty (the main executable) and may not hold a ':'. SYMBOL may hold any (C++ names:
 * ns::f(int)). The separator is the first ':' of the word. A word is a target if it holds a ':'
 * (outside of KEY=VALUE), a delay if it starts with a digit or '.', '-' or '+', a key if a name
 * from the table of keys stands before '='. Any other word is an error that names the word. A delay
 * or key belongs to the target before it; targets share nothing. A SYMBOL does not start with ':'
 * (ns::f without its MODULE would read as module "ns").
 *
 * A word is a PRESET where there is a preset of the name before its ':' (behind which '=' and '@'
 * still mean a module), or of that name alone. It stands for several targets: each has the delay
 * and the keys behind it. Of a list, targets that the words before have are left out.
 */
enum spec_kind {
	SPEC_SYMBOL,
	SPEC_LITERAL,
	SPEC_LINE,
	SPEC_PYTHON,
	SPEC_KERNEL,	 /* a function of the kernel; module is "kernel" */
	SPEC_TRACEPOINT, /* module: its subsystem */
	/* symbol: a name, or the begin of one and "*" */
	SPEC_IOCTL,	/* calls of ioctl() on a device of that name */
	SPEC_INTERRUPT, /* runs of the interrupt handlers of that name */
	SPEC_OFFCPU,	/* times without a processor of the threads of that name */
};

/* Both: half of the delay at each. Hits are counted at the entry, but for SPEC_AT_EXIT. */
enum spec_at { SPEC_AT_ENTRY, SPEC_AT_EXIT, SPEC_AT_BOTH };

#define SPEC_DELAY_MAX_NS 10000000000ull
#define SPEC_DELAY_UNSET  UINT64_MAX
#define SPEC_DEFAULT_NS	  1000ull

/* A value of a call: arg=NAME:N[+4|@BYTES|@exit][:TYPE], ret, ret=TYPE, ret=NAME[:TYPE]; sum=NAME.
 */
struct spec_value {
	char name[VALUE_NAME_SIZE];
	/*
	 * Of an argument, from 1, in words of 8 bytes as integers are passed: six registers, then
	 * the stack; at most SPEC_ARGUMENTS. 0: ret. SPEC_CALLER: no argument, but the address
	 * that the call returns to, of type code.
	 */
	uint8_t position;
	uint8_t offset; /* bytes, from the begin of the word, or of the memory that it points to */
	bool memory;
	bool result; /* memory that the function has written: only known where it returns 0 */
	enum value_type type;
	bool sum;
	bool text;  /* N@exit: a string that the function has written, on its thread's stack */
	bool typed; /* the type was given */
};

/* The arguments that can be recorded, and the bytes of memory that one of them points to. */
enum { SPEC_DEVICE_MAX = 14 /* letters of a name of SPEC_IOCTL and the two behind it */ };
enum { SPEC_REGISTERS = 6, SPEC_ARGUMENTS = 11, SPEC_MEMORY = 40, SPEC_CALLER = 255 };

struct spec {
	char *text; /* the TARGET as typed */
	size_t text_len;
	enum spec_kind kind;
	char *module;
	char *symbol; /* or FILE */
	unsigned int line;
	uint64_t delay_ns; /* SPEC_DELAY_UNSET: not given */
	uint64_t every;	   /* 0: not given, 1: each hit */
	uint64_t start_ns; /* 0: at once */
	uint64_t for_ns;   /* 0: not given, no end */
	pid_t pid;	   /* 0: not given */
	char *thread;	   /* glob, or TID as text; NULL: not given */
	bool resume;	   /* Python: resumptions of generators and coroutines also count */
	bool inlined;	   /* native: also the places where the compiler inlined it */
	enum spec_at at;   /* native: where it is delayed */
	bool timed;	   /* how long its calls take, from entry to return */
	bool time_given;   /* time= was typed */
	/* Native: what is recorded of each call. With any, it is timed. */
	struct spec_value value[VALUE_MAX];
	size_t n_values;
	bool kthreads;	/* in the kernel: also the calls of its own threads, which are of no process
			 */
	bool optional;	/* in the kernel: where that lacks it, the session goes on without */
	bool arguments; /* args=yes: the session takes further ones from debug information */
	uint8_t text_argument; /* of a row with such a result: the argument that points to a text */
	size_t n_row_values;   /* of `value`, by a preset, if it is timed: spec_take_row() */
	const struct preset_row *row; /* of a preset's row: symbol means all versions; or NULL */
	bool listed;		      /* of a word for many targets, of which a program has some */
	bool follows;		      /* it stands for the same word as the target before it */
	bool rest; /* Python: except functions that an earlier target matches (patterns of a file)
		    */
};

/* A key as the user sees it: "every", "N", and one line of help. */
struct spec_key {
	const char *name, *arg, *help;
};

/* Row i of the table of keys; NULL: past the end. */
const struct spec_key *spec_key(size_t i);

/* Is the word a key, with its value or one that needs none? */
bool spec_is_key(const char *word);

/* A target of a preset's row that is timed gets the values of the row, unless it has its own. */
void spec_take_row(struct spec *spec);

struct spec_list {
	struct spec *spec;
	size_t count;
};

/*
 * Parses words of a command line (or of a line in a targets file) into targets. Appends. The same
 * target twice (same text and pid) is SB_ESPEC, and so is anything malformed. The error's text
 * names the word; its hint shows a correct form. On error nothing is appended.
 */
int spec_parse_words(char *const *words, size_t count, struct spec_list *out, struct sb_err *err);

/* A targets file: one GROUP a line, shell quotes, `#` comments at the start of a line or after a
 * blank; CRLF is accepted. Errors carry "FILE:LINE: ". An empty file is SB_ESPEC. */
int spec_read_file(const char *path, struct spec_list *out, struct sb_err *err);
int spec_parse_text(const char *text, size_t len, const char *name, struct spec_list *out,
		    struct sb_err *err);

/* The whole of a file, at most 16 MiB. The caller frees *text, also on failure. from: the option or
 * variable that gave the path, for the hint. Errors: SB_EFILE, SB_ENOMEM. */
int spec_read_bytes(const char *path, const char *from, char **text, size_t *len,
		    struct sb_err *err);

void spec_list_free(struct spec_list *list);

/* Of the kinds whose symbol is a name or the begin of one? */
static inline bool spec_is_begun(const struct spec *spec)
{
	return spec->kind == SPEC_IOCTL || spec->kind == SPEC_INTERRUPT ||
	       spec->kind == SPEC_OFFCPU;
}

/* Is it a place in the kernel? Those are never delayed. */
static inline bool spec_in_kernel(const struct spec *spec)
{
	return spec->kind == SPEC_KERNEL || spec->kind == SPEC_TRACEPOINT || spec_is_begun(spec);
}

/* A copy with texts of its own. spec_copy_free() frees both (NULL is harmless). */
struct spec *spec_copy(const struct spec *from);
void spec_copy_free(struct spec *spec);
void spec_list_cut(struct spec_list *list, size_t count); /* frees all from number `count` on */

/* "5us" -> 5000. A delay needs a unit unless it is 0, and is at most SPEC_DELAY_MAX_NS. */
int spec_delay(const char *text, uint64_t *ns, struct sb_err *err);

/* A span of time (--for, --interval, start=): the same units and m, h; the limit of 10 s does not
 * apply. */
int spec_duration(const char *text, uint64_t *ns, struct sb_err *err);

/* "5us", "2.5us", "1.2ms": the shortest form with a whole part that reads back to the same number
 * of ns ("0" for 0). 32 bytes hold any result. Returns buf. */
char *spec_format_ns(uint64_t ns, char *buf, size_t size);

/* A list of pids: "12,13 14\n15". An empty list, zero, negative numbers and anything else are
 * SB_EUSAGE and append nothing. Appends each pid once. */
int spec_pids(const char *text, pid_t **pids, size_t *count, struct sb_err *err);

#endif
