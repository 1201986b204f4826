/* SPDX-License-Identifier: MIT */
/* What cppcheck has to know of other projects' macros; given to it before every file. On its command
 * line a macro cannot hold a semicolon. */
#define LIBBPF_OPTS(type, name, ...) struct type name = { __VA_ARGS__ }
#define json_object_foreach(object, key, value) \
	for ((key) = "", (value) = (object); (value);)
#define json_array_foreach(array, i, value) \
	for (i = 0; (value = json_array_get(array, i)); i++)
