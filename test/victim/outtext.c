/* SPDX-License-Identifier: MIT */
/*
 * Functions that write a C string where an argument points to: on the stack of their caller and
 * elsewhere, with success and without, ended and not. Each call has a number; what it has written,
 * if a recorder may know it, is printed: "text NUMBER TEXT". Ends by itself.
 */
#include "victim.h"

VICTIM_HOOKED int out_zero(int id, char *to, const char *text, int ret);
VICTIM_HOOKED long out_length(int id, char *to, const char *text, long ret);
VICTIM_HOOKED char *out_pointer(int id, char *to, const char *text, int fail);

int out_zero(int id, char *to, const char *text, int ret)
{
	VICTIM_OPAQUE(id);
	if (to && text)
		strcpy(to, text);
	return ret;
}

long out_length(int id, char *to, const char *text, long ret)
{
	VICTIM_OPAQUE(id);
	strcpy(to, text);
	return ret;
}

char *out_pointer(int id, char *to, const char *text, int fail)
{
	VICTIM_OPAQUE(id);
	strcpy(to, text);
	return fail ? NULL : to;
}

static void known(int id, const char *text)
{
	printf("text %d %s\n", id, text);
}

static void on_this_stack(int base)
{
	char buf[4096], *heap = malloc(64);

	for (int i = 0; i < 40; i++) {
		char text[64];

		snprintf(text, sizeof(text), "%.*s", i,
			 "/proc/self/fd/0123456789/abcdefghijklmnopq");
		out_zero(base + i, buf + i, text, 0);
		known(base + i, text);
	}
	out_zero(base + 40, buf, "failed", 5);
	out_zero(base + 41, heap, "heap", 0);
	out_zero(base + 42, NULL, "null", 0);
	out_zero(base + 43, (char *)8, NULL, 0); /* no memory */
	out_zero(base + 44, (char *)-16l, NULL, 0);
	out_length(base + 50, buf, "seven", 7);
	known(base + 50, "seven");
	out_length(base + 51, buf, "not", -1);
	out_pointer(base + 60, buf, "gr\303\266\303\237e", 0);
	known(base + 60, "gr\303\266\303\237e");
	out_pointer(base + 61, buf, "not", 1);
	memset(buf, 'x', sizeof(buf) - 1);
	buf[sizeof(buf) - 1] = '\0';
	out_zero(base + 45, buf, NULL, 0); /* longer than what is kept */
	buf[1008] = '\0';
	known(base + 45, buf);
	free(heap);
}

static void *thread(void *arg)
{
	on_this_stack((int)(intptr_t)arg);
	return NULL;
}

/* A text that does not end within the stack: nothing is behind that. */
static void unended(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to, end = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			end = to;
	if (maps)
		fclose(maps);
	if (!end)
		exit(2);
	memcpy((char *)end - 2, "xy", 2); /* a NULL of the kernel, which nothing reads */
	out_zero(900, (char *)end - 2, NULL, 0);
}

int main(void)
{
	pthread_t t;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	on_this_stack(0);
	pthread_create(&t, NULL, thread, (void *)100);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, thread, (void *)200);
	pthread_join(t, NULL);
	unended();
	puts("self-check ok");
	return 0;
}
