/* SPDX-License-Identifier: MIT */
#include "demangle.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
/* libiberty.h, which it includes, declares basename() and asprintf() its own way. */
#define HAVE_DECL_BASENAME  1
#define HAVE_DECL_ASPRINTF  1
#define HAVE_DECL_VASPRINTF 1
#include <libiberty/demangle.h>

#define NAME_MAX_LEN 16384
/*
 * Of the demangled form: a hostile name of a hundred bytes can stand for one that is too long for
 * any machine, since each part may refer twice to the one before.
 */
#define SHOWN_MAX_LEN 65536

bool demangle_is_mangled(const char *name)
{
	/* _Z: C++ and old Rust; _R: Rust. */
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

struct shown {
	char *text;
	size_t len, cap;
	jmp_buf too_long;
};

/* The demangler has no way to stop early. It holds no memory but its stack when it calls this. */
static void take(const char *text, size_t len, void *ctx)
{
	struct shown *s = ctx;

	if (s->cap - s->len <= len) {
		size_t cap = 2 * (s->len + len) + 256;
		char *more = s->len + len < SHOWN_MAX_LEN ? realloc(s->text, cap) : NULL;

		if (!more)
			longjmp(s->too_long, 1);
		s->text = more;
		s->cap = cap;
	}
	memcpy(s->text + s->len, text, len);
	s->len += len;
	s->text[s->len] = '\0';
}

static bool demangle_into(struct shown *s, const char *mangled, int options)
{
	if (setjmp(s->too_long))
		return false;
	if (rust_demangle_callback(mangled, options, take, s))
		return true;
	s->len = 0;
	return cplus_demangle_v3_callback(mangled, options, take, s);
}

/* As cplus_demangle() does, with a limit. */
static char *demangle(const char *mangled, int options)
{
	struct shown s = { 0 };

	if (demangle_into(&s, mangled, options))
		return s.text;
	free(s.text);
	return NULL;
}

char *demangle_name(const char *name, enum demangle_form form)
{
	int options = DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI;
	size_t len;
	char *plain, *out;

	if (!demangle_is_mangled(name))
		return NULL;
	len = strcspn(name, "@");
	if (len > NAME_MAX_LEN)
		return NULL;
	if (form == DEMANGLE_NO_RETURN)
		options |= DMGL_RET_DROP;
	if (!name[len])
		return demangle(name, options);
	plain = strndup(name, len);
	out = plain ? demangle(plain, options) : NULL;
	free(plain);
	return out;
}

static bool ends_with(const char *s, size_t len, const char *tail, size_t *cut)
{
	size_t n = strlen(tail);

	if (len < n || memcmp(s + len - n, tail, n) != 0)
		return false;
	*cut = len - n;
	return true;
}

/* Steps back over " [clone .isra.0]", " const", " &&" and so on behind the parameters. */
static size_t cut_qualifiers(const char *s, size_t len)
{
	static const char *const words[] = { " const", " volatile", " &", " &&", " noexcept" };
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			again |= ends_with(s, len, words[i], &len);
		if (len && s[len - 1] == ']') {
			const char *open = memrchr(s, '[', len);

			if (open && open > s && strncmp(open, "[clone ", 7) == 0) {
				len = (size_t)(open - s) - 1;
				again = true;
			}
		}
	}
	return len;
}

void demangle_cut_parameters(char *demangled)
{
	size_t len = cut_qualifiers(demangled, strlen(demangled)), at = len;
	int depth = 0;

	if (!len || demangled[len - 1] != ')')
		return;
	while (at > 0) {
		at--;
		if (demangled[at] == ')')
			depth++;
		else if (demangled[at] == '(' && --depth == 0)
			break;
	}
	/* "(anonymous namespace)" alone is no parameter list, nor is the () of operator(). */
	if (depth || at == 0 || (at >= 8 && !memcmp(demangled + at - 8, "operator", 8)))
		return;
	demangled[at] = '\0';
}

/* ---- required text of a mangled name ---- */

/* One word a line would hide the file behind its lists. */
/* clang-format off */

/* Words that a demangled name may show while the mangled one has a code for them. */
static const char *const coded_words[] = {
	"std", "string", "basic_string", "allocator", "char_traits", "basic_istream",
	"basic_ostream", "basic_iostream", "istream", "ostream", "iostream", "operator", "new",
	"delete", "co_await", "void", "wchar_t", "bool", "char", "signed", "unsigned", "short",
	"int", "long", "__int128", "float", "double", "__float128", "char8_t", "char16_t",
	"char32_t", "auto", "decltype", "nullptr_t", "decimal32", "decimal64", "decimal128",
	"half", "_Float16", "_Float32", "_Float64", "_Float128", "const", "volatile", "restrict",
	"noexcept", "throw", "static_cast", "const_cast", "dynamic_cast", "reinterpret_cast",
	"sizeof", "alignof", "typeid", "true", "false", "anonymous", "namespace", "lambda",
	"unnamed", "abi", "clone", "_Complex", "_Imaginary", "enable_if", "requires",
	/* Rust */
	"as", "impl", "dyn", "mut", "fn", "unsafe", "extern", "closure", "shim", "for", "str",
	"usize", "isize", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128",
	"f32", "f64",
};

/* Words of descriptions ("non-virtual thunk to f()"), which always contain a blank. */
static const char *const phrase_words[] = {
	"type", "parameter", "object", "this", "vtable", "typeinfo", "name", "guard", "variable",
	"virtual", "thunk", "covariant", "return", "non", "to", "construction", "in", "TLS", "init",
	"function", "wrapper", "reference", "temporary", "transaction", "default", "arg", "global",
	"constructors", "destructors", "keyed", "initializers", "transactional", "template",
	"complex", "imaginary", "static", "local", "pack",
};

/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The words that a demangled name without its return type can start with, blanks aside. */
static const char *const first_words[] = { "std", "operator" };

/* How much of the word in the name is certain to be in the pattern. */
enum extent {
	WHOLE, /* all of it */
	START, /* its beginning, which also is the name's beginning */
	PIECE, /* any part: it touches a wildcard */
};

static bool is_in_list(const char *const *list, size_t count, const char *word, enum extent extent)
{
	for (size_t i = 0; i < count; i++) {
		if (extent == WHOLE ? strcmp(list[i], word) == 0 :
		    extent == START ? strncmp(list[i], word, strlen(word)) == 0 :
				      strstr(list[i], word) != NULL)
			return true;
	}
	return false;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool is_number(const char *word)
{
	/* 5ul is written as Lm5E: neither the suffix nor a hexadecimal form can be relied on. */
	return word[0] >= '0' && word[0] <= '9';
}

struct demand {
	struct glob_literal *best;
	bool glob;
	bool phrases;  /* a blank: the pattern is a description, or has a return type */
	bool at_start; /* the next run is the beginning of the pattern */
};

/* True if a demangled name can show the word where the mangled one does not contain it. */
static bool is_optional(const struct demand *d, const char *word, enum extent extent)
{
	if (is_number(word))
		return true;
	if (extent == START && !d->phrases)
		return is_in_list(first_words, COUNT(first_words), word, extent);
	/* "*init*" means functions of that name, and not "TLS init function for x". */
	return is_in_list(coded_words, COUNT(coded_words), word, extent) ||
	       (d->phrases && is_in_list(phrase_words, COUNT(phrase_words), word, extent));
}

static void offer_word(struct demand *d, const char *word, size_t len, enum extent extent)
{
	char copy[sizeof(d->best->text)];

	if (len <= d->best->len || len >= sizeof(copy))
		return;
	memcpy(copy, word, len);
	copy[len] = '\0';
	if (is_optional(d, copy, extent))
		return;
	memcpy(d->best->text, copy, len + 1);
	d->best->len = len;
}

/* Keeps the longest word of a run of literal characters that cannot be coded otherwise. */
static void demand_words(void *ctx, const char *run)
{
	struct demand *d = ctx;
	size_t at = 0;

	while (run[at]) {
		enum extent extent = PIECE;
		size_t len = 0;

		while (is_word_char(run[at + len]))
			len++;
		if (!d->glob || (at && run[at + len]))
			extent = WHOLE;
		else if (!at && d->at_start)
			extent = START;
		offer_word(d, run + at, len, extent);
		at += len ? len : 1;
	}
	d->at_start = false;
}

void demangle_required(const char *pattern, bool glob, struct glob_literal *required)
{
	struct demand d = { .best = required,
			    .glob = glob,
			    .phrases = strchr(pattern, ' '),
			    .at_start = !strchr("*?[", pattern[0]) };

	required->len = 0;
	required->text[0] = '\0';
	if (glob)
		glob_each_literal(pattern, demand_words, &d);
	else
		demand_words(&d, pattern);
}

bool demangle_may_be_name(const char *pattern)
{
	return !strchr(pattern, '?') &&
	       (strpbrk(pattern, "(<") || strstr(pattern, "operator") || strstr(pattern, "[abi:"));
}
