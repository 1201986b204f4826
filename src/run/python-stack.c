/* SPDX-License-Identifier: MIT */
#include "python-stack.h"

#include <stdio.h>
#include <string.h>

/* The texts of a frame. */
struct texts {
	const char *name, *file;
	size_t name_size, file_size;
};

struct frames {
	const char *data;
	size_t size;
};

static bool read_head(const struct frames *f, size_t at, struct sb_page_frame *head)
{
	if (at > f->size || f->size - at < sizeof(*head))
		return false;
	memcpy(head, f->data + at, sizeof(*head));
	return !head->at;
}

/* The file of another frame, which has it itself. */
static bool other_file(const struct frames *f, uint16_t file, struct texts *t)
{
	size_t at = (size_t)(file & ~SB_FRAME_SAME) * 8;
	struct sb_page_frame head;

	if (!read_head(f, at, &head) || head.file & SB_FRAME_SAME ||
	    f->size - at - sizeof(head) < (size_t)head.name + head.file)
		return false;
	t->file = f->data + at + sizeof(head) + head.name;
	t->file_size = head.file;
	return true;
}

/* The frame at *at, which then is behind it. */
static bool read_frame(const struct frames *f, size_t *at, uint32_t *line, struct texts *t)
{
	size_t own = 0, from = *at + sizeof(struct sb_page_frame);
	struct sb_page_frame head;

	if (!read_head(f, *at, &head))
		return false;
	own = head.file & SB_FRAME_SAME ? 0 : head.file;
	if (f->size - from < head.name + own)
		return false;
	*t = (struct texts){ f->data + from, f->data + from + head.name, head.name, own };
	if (head.file & SB_FRAME_SAME && !other_file(f, head.file, t))
		return false;
	*line = head.line;
	*at = from + ((head.name + own + 7) & ~(size_t)7);
	return true;
}

static bool add(struct python_stack *s, const struct texts *t, uint32_t line)
{
	size_t room = sizeof(s->text) - s->used;
	char number[16] = "?";
	int n;

	if (line)
		snprintf(number, sizeof(number), "%u", line);
	n = snprintf(s->text + s->used, room, "py:%.*s (%.*s:%s)", (int)t->name_size, t->name,
		     (int)t->file_size, t->file, number);
	if (n < 0 || (size_t)n >= room || s->n == TRACE_FRAMES_MAX)
		return false;
	s->frame[s->n++] = s->text + s->used;
	s->used += (size_t)n + 1;
	return true;
}

static void end_group(struct python_stack *s, uint32_t from, uint64_t at)
{
	for (uint32_t i = from; i < s->n; i++)
		s->at[i] = at;
}

void python_stack_read(struct python_stack *s, const char *data, size_t size, uint32_t end)
{
	struct frames f = { data, size };
	uint32_t group = 0, line = 0;
	struct texts t;
	uint64_t word;
	size_t at = 0;

	s->n = s->next = 0;
	s->used = 0;
	s->end = end <= SB_FRAMES_FAULT ? end : SB_FRAMES_ODD;
	while (size - at >= sizeof(word)) {
		memcpy(&word, data + at, sizeof(word));
		if (word) {
			end_group(s, group, word);
			group = s->n;
			at += sizeof(word);
			continue;
		}
		if (!read_frame(&f, &at, &line, &t) || at > size) {
			s->end = SB_FRAMES_ODD;
			break;
		}
		if (!add(s, &t, line)) {
			s->end = SB_FRAMES_FULL;
			break;
		}
	}
	end_group(s, group, 0);
}

uint64_t python_stack_at(const struct python_stack *s)
{
	return s->next < s->n ? s->at[s->next] : 0;
}

const char *python_stack_why(const struct python_stack *s)
{
	static const char *const why[] = {
		[SB_FRAMES_FULL] = "there are more Python frames than are copied",
		[SB_FRAMES_ENDING] = "Python frames are not known: the interpreter is ending",
		[SB_FRAMES_ODD] = "further Python frames are not known: they are not as expected",
		[SB_FRAMES_FAULT] = "Python frames are not known: they could not be read",
	};

	return s->end < sizeof(why) / sizeof(*why) ? why[s->end] : NULL;
}
