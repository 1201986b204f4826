/* SPDX-License-Identifier: MIT */
/*
 * jget FILE PATH: prints one value of a JSON document. PATH: keys and array indexes between
 * dots ("targets.0.hits"); `#` as the last part is how many elements there are. With -l the
 * file holds a document a line and the first part is the line's number. null prints "null".
 * Status 1: no such value; 2: no such file or not JSON.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *step(json_t *at, const char *part)
{
	char *end;
	size_t index = strtoul(part, &end, 10);

	if (json_is_array(at))
		return *end ? NULL : json_array_get(at, index);
	return json_object_get(at, part);
}

static void print(json_t *value)
{
	char *text;

	if (json_is_string(value)) {
		puts(json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
	puts(text ? text : "");
	free(text);
}

static json_t *load_lines(const char *path)
{
	json_t *lines = json_array();
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0)
		json_array_append_new(lines, json_loads(line, 0, NULL));
	free(line);
	if (!f)
		return NULL;
	fclose(f);
	return lines;
}

int main(int argc, char **argv)
{
	int lines = argc == 4 && strcmp(argv[1], "-l") == 0;
	json_t *at, *root;
	json_error_t err;

	if (argc != 3 + lines)
		return 2;
	argv += lines;
	root = lines ? load_lines(argv[1]) : json_load_file(argv[1], 0, &err);
	if (!root) {
		fprintf(stderr, "jget: %s: not a JSON document\n", argv[1]);
		return 2;
	}
	at = root;
	for (char *part = strtok(argv[2], "."); part && at; part = strtok(NULL, ".")) {
		if (strcmp(part, "#") == 0) {
			printf("%zu\n",
			       json_is_array(at) ? json_array_size(at) : json_object_size(at));
			return 0;
		}
		at = step(at, part);
	}
	if (!at)
		return 1;
	print(at);
	json_decref(root);
	return 0;
}
