/* SPDX-License-Identifier: MIT */
/*
 * A page builder, to practise on: for each page layout() and fonts() run side by side, and paint()
 * follows when both are done. fonts() takes a third of the processor time, and has time to spare:
 * layout() sets the pace.
 *
 *	cc -O2 -g -pthread -o hidden docs/example/hidden.c && ./hidden [SECONDS]
 *
 * -DLAYOUT=N, -DFONTS=N, -DPAINT=N: other amounts of work. At its end it prints the pages per
 *second.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef LAYOUT
#define LAYOUT 600000
#endif
#ifndef FONTS
#define FONTS 350000
#endif
#ifndef PAINT
#define PAINT 100000
#endif

#define FUNCTION __attribute__((noinline))

static pthread_barrier_t begin, end;
static volatile int over;

void layout(void), fonts(void), paint(void), page(void);

static void work(unsigned int rounds)
{
	uint64_t x = rounds;

	for (unsigned int i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	__asm__ volatile("" : : "r"(x));
}

FUNCTION void layout(void)
{
	work(LAYOUT);
}

FUNCTION void fonts(void)
{
	work(FONTS);
}

FUNCTION void paint(void)
{
	work(PAINT);
}

/* One page is done. */
FUNCTION void page(void)
{
	__asm__ volatile("");
}

static void *keep_fonts(void *arg)
{
	prctl(PR_SET_NAME, "fonts");
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return arg;
		fonts();
		pthread_barrier_wait(&end);
	}
}

int main(int argc, char **argv)
{
	time_t start = time(NULL), until = argc > 1 ? start + atoi(argv[1]) : 0;
	unsigned long pages = 0;
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	if (pthread_create(&thread, NULL, keep_fonts, NULL))
		return 1;
	printf("pid %d\n", getpid());
	fflush(stdout);
	while (!until || time(NULL) < until) {
		pthread_barrier_wait(&begin);
		layout();
		pthread_barrier_wait(&end);
		paint();
		page();
		pages++;
	}
	printf("%lu pages a second\n", pages / (unsigned long)(until - start));
	over = 1;
	pthread_barrier_wait(&begin);
	return pthread_join(thread, NULL) ? 1 : 0;
}
