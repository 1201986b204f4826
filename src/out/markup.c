/* SPDX-License-Identifier: MIT */
#include "markup.h"

void out_markup(FILE *to, const char *text)
{
	for (const char *s = text; *s; s++) {
		if (*s == '<')
			fputs("&lt;", to);
		else if (*s == '>')
			fputs("&gt;", to);
		else if (*s == '&')
			fputs("&amp;", to);
		else if (*s == '"')
			fputs("&quot;", to);
		else if (*s == '\'')
			fputs("&#39;", to);
		else
			fputc(*s, to);
	}
}
