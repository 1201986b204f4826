/* SPDX-License-Identifier: MIT */
/*
 * Targets files: a GROUP a line. Words are split as in a shell, without expansion: '..' keeps
 * everything, ".." knows only \" \\ \$ \`, a backslash outside of quotes keeps the next byte.
 */
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/base/text.h"

/* People and small scripts write lists of targets; a larger file is a wrong one, or /dev/zero. */
#define FILE_MAX (16u << 20)

/* The words of one line. `bytes` has room for the line and lives as long as the words do. */
struct line {
	char *bytes, *to;
	char **word;
	size_t count, room;
	const char *why; /* the error in the line */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *copy_single(struct line *line, const char *s, const char *end)
{
	for (; s < end && *s != '\''; s++)
		*line->to++ = *s;
	if (s == end)
		line->why = "a ' is not closed before the line's end";
	return s + (s < end);
}

static const char *copy_double(struct line *line, const char *s, const char *end)
{
	for (; s < end && *s != '"'; s++) {
		if (*s == '\\' && s + 1 < end && strchr("\"\\$`", s[1]))
			s++;
		*line->to++ = *s;
	}
	if (s == end)
		line->why = "a \" is not closed before the line's end";
	return s + (s < end);
}

static const char *copy_escaped(struct line *line, const char *s, const char *end)
{
	if (s == end)
		line->why = "a \\ is the line's last character";
	else
		*line->to++ = *s;
	return s + (s < end);
}

/* Copies one word without its quotes; returns its end. */
static const char *copy_word(struct line *line, const char *s, const char *end)
{
	while (s < end && !line->why && !is_blank(*s)) {
		char c = *s++;

		if (c == '\'')
			s = copy_single(line, s, end);
		else if (c == '"')
			s = copy_double(line, s, end);
		else if (c == '\\')
			s = copy_escaped(line, s, end);
		else
			*line->to++ = c;
	}
	*line->to++ = '\0';
	return s;
}

static bool line_add_word(struct line *line)
{
	if (line->count == line->room) {
		size_t room = line->room ? line->room * 2 : 16;
		char **grown = reallocarray(line->word, room, sizeof(*grown));

		if (!grown)
			return false;
		line->word = grown;
		line->room = room;
	}
	line->word[line->count++] = line->to;
	return true;
}

/* The words between s and end; false: no memory. */
static bool line_split(struct line *line, const char *s, const char *end)
{
	line->count = 0;
	line->to = line->bytes;
	line->why = memchr(s, '\0', (size_t)(end - s)) ? "a NUL byte: this is not a text file" :
							 NULL;
	while (!line->why) {
		while (s < end && is_blank(*s))
			s++;
		if (s == end || *s == '#')
			break;
		if (!line_add_word(line))
			return false;
		s = copy_word(line, s, end);
	}
	return true;
}

/* Parses a split line into one more target at most. */
static int line_parse(struct line *line, struct spec_list *out, struct sb_err *err)
{
	size_t before = out->count, words = 0;
	int rc;

	if (line->why) {
		rc = err_set(err, SB_ESPEC, "%s", line->why);
		err_hint(err, "a line is TARGET [DELAY] [KEY=VALUE]..., quoted as in a shell");
		return rc;
	}
	rc = spec_parse_words(line->word, line->count, out, err);
	for (size_t i = before; i < out->count; i++)
		words += !out->spec[i].follows;
	if (rc || words <= 1)
		return rc;
	rc = err_set(err, SB_ESPEC, "more than one target on the line");
	err_hint(err, "write one target a line; a name with blanks needs quotes");
	return rc;
}

static int line_read(struct line *line, const char *s, const char *end, struct spec_list *out,
		     struct sb_err *err)
{
	if (end > s && end[-1] == '\r')
		end--;
	if (!line_split(line, s, end))
		return err_set(err, SB_ENOMEM, "no memory for a line of the targets file");
	return line_parse(line, out, err);
}

/* All lines of the text; on failure *number is the line of the error. */
static int lines_read(struct line *line, const char *text, const char *end, struct spec_list *out,
		      unsigned int *number, struct sb_err *err)
{
	const char *stop;
	int rc;

	for (*number = 1; text < end; (*number)++) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			stop = end;
		rc = line_read(line, text, stop, out, err);
		if (rc)
			return rc;
		text = stop + (stop < end);
	}
	return 0;
}

static int refuse_empty(const char *name, struct sb_err *err)
{
	int rc = err_set(err, SB_ESPEC, "%s: no target in it", name);

	err_hint(err, "write a target a line, as libc.so.6:getpid 5us; '#' starts a comment");
	return rc;
}

int spec_parse_text(const char *text, size_t len, const char *name, struct spec_list *out,
		    struct sb_err *err)
{
	static const char bom[] = "\xef\xbb\xbf"; /* Windows editors write it first */
	size_t skip = len >= 3 && !memcmp(text, bom, 3) ? 3 : 0;
	size_t before = out->count;
	struct line line = { .bytes = malloc(len * 2 + 1) }; /* each word gets its NUL */
	char shown[TEXT_QUOTE_SIZE];
	unsigned int number;
	int rc;

	if (!line.bytes)
		return err_set(err, SB_ENOMEM, "no memory to read the targets");
	rc = lines_read(&line, text + skip, text + len, out, &number, err);
	text_quote(name, shown, sizeof(shown));
	if (rc)
		err_prefix(err, "%s:%u", shown, number);
	else if (out->count == before)
		rc = refuse_empty(shown, err);
	if (rc)
		spec_list_cut(out, before);
	free(line.word);
	free(line.bytes);
	return rc;
}

/* Reads fd to its end into *text (grown as needed, for pipes); returns 0 or -SB_EFILE. */
static int read_all(int fd, const char *shown, char **text, size_t *len, struct sb_err *err)
{
	size_t room = 0;
	ssize_t got = 1;

	while (got) {
		if (*len == room) {
			char *grown = realloc(*text, room = room ? room * 2 : 4096);

			if (!grown)
				return err_set(err, SB_ENOMEM, "no memory to read %s", shown);
			*text = grown;
		}
		got = read(fd, *text + *len, room - *len);
		if (got < 0 && errno != EINTR)
			return err_sys(err, SB_EFILE, "cannot read the targets file %s", shown);
		*len += got > 0 ? (size_t)got : 0;
		if (*len > FILE_MAX)
			return err_set(err, SB_EFILE, "%s is above 16 MiB: no targets file", shown);
	}
	return 0;
}

static int open_text(const char *path, const char *shown, const char *from, struct sb_err *err)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 || fstat(fd, &st)) {
		err_sys(err, SB_EFILE, "cannot open the targets file %s", shown);
		err_hint(err, "check %s: the file must exist and be readable by you", from);
	} else if (S_ISDIR(st.st_mode)) {
		err_set(err, SB_EFILE, "%s is a directory, not a targets file", shown);
		err_hint(err, "name a file in it");
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -SB_EFILE;
}

int spec_read_bytes(const char *path, const char *from, char **text, size_t *len,
		    struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	int fd, rc;

	*text = NULL;
	*len = 0;
	text_quote(path, shown, sizeof(shown));
	fd = open_text(path, shown, from, err);
	if (fd < 0)
		return fd;
	rc = read_all(fd, shown, text, len, err);
	close(fd);
	return rc;
}

int spec_read_file(const char *path, struct spec_list *out, struct sb_err *err)
{
	char *text;
	size_t len;
	int rc = spec_read_bytes(path, "--targets", &text, &len, err);

	if (!rc)
		rc = spec_parse_text(text ? text : "", len, path, out, err);
	free(text);
	return rc;
}
