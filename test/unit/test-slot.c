/* SPDX-License-Identifier: MIT */
/*
 * A slot's arithmetic, with the real stub: what happens while a hit spins (a change of the delay up
 * or down, an interruption, a cut) and whatever the slot held before, the hits that follow are
 * given what is asked.
 */
#include <signal.h>
#include <time.h>
#include "hooked.h"
#include "inject/clock.h"

enum { HITS = 9, BATCHES = 200, SHORT_US = 20, LONG_US = 400 };

static struct hooked hooked;
static struct clock clk;

/* What the signal handler does to the hit that it interrupts. */
static struct {
	uint64_t delay; /* the new one, ticks; 0: none */
	uint64_t busy_ns;
	bool kick; /* the generation changes: the hit is cut */
	volatile sig_atomic_t came;
} event;

static void on_alarm(int sig)
{
	uint64_t until = clock_ns() + event.busy_ns;

	(void)sig;
	if (event.delay)
		hooked.cell->delay_ticks = event.delay;
	if (event.kick)
		hooked.hdr->generation++;
	while (clock_ns() < until)
		;
	event.came = 1;
}

static uint64_t ticks(double us)
{
	return clock_ticks(&clk, us * 1000);
}

static uint64_t hit(void)
{
	long (*volatile fn)(long) = (long (*)(long))(uintptr_t)hooked.text;
	uint64_t start = arch->clock_read();

	assert_int_equal(fn(41), 42);
	return arch->clock_read() - start;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median of some hits, so that what the machine does to one of them does not matter. */
static uint64_t median_hit(void)
{
	uint64_t took[HITS];

	for (int i = 0; i < HITS; i++)
		took[i] = hit();
	qsort(took, HITS, sizeof(*took), by_size);
	return took[HITS / 2];
}

static struct sb_page_slot *slot(void)
{
	for (uint32_t i = 0; i < hooked.hdr->slots + SB_PAGE_SHARED_SLOTS; i++)
		if (hooked.counts->slot[i].hits)
			return &hooked.counts->slot[i];
	fail_msg("no slot was hit");
	return NULL;
}

static void set_delay(double us)
{
	hooked.cell->delay_ticks = ticks(us);
	hooked.cell->residual_max = hooked.cell->delay_ticks / 2 + 40;
}

/* On a machine where others wait for the processor most hits of a batch may be preempted; a slot
 * that cannot get out of a wrong state gives none that is right. */
static void given(double us)
{
	double got = 0;

	for (int batch = 0; batch < BATCHES; batch++) {
		got = clock_to_ns(&clk, (double)median_hit()) / 1000;
		if (got >= us * 0.97 - 0.1 && got <= us * 1.03 + 0.5)
			return;
	}
	fail_msg("asked %.1f us, given %.1f", us, got);
}

static int setup(void **state)
{
	struct variant v = { .own = arch->thread_pointer_readable(),
			     .state = SB_STATE_SLOW,
			     .cell_flags = SB_CELL_DELAY };

	(void)state;
	clock_open(&clk);
	make_page(&hooked, &v);
	make_hook(&hooked, &v);
	hooked.cell->overrun_limit = ticks(0.2);
	hooked.cell->pause_above = ticks(1);
	signal(SIGALRM, on_alarm);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free_hook(&hooked);
	return 0;
}

/* One hit that the event comes upon; false: it came too late. */
static bool disturbed(double delay_us)
{
	struct sigevent to = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec at = { .it_value = { .tv_nsec = 100000 } };
	timer_t timer;
	bool within;

	set_delay(delay_us);
	event.came = 0;
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &to, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &at, NULL), 0);
	hit();
	within = event.came;
	while (!event.came)
		;
	timer_delete(timer);
	return within;
}

static void after_event(double during_us, double after_us)
{
	for (int tries = 0; !disturbed(during_us); tries++)
		assert_true(tries < 50);
	set_delay(after_us);
	given(after_us);
}

/* Each kind of event, with each change of the delay, in each order. */
static void test_events(void **state)
{
	const double delay[] = { 1, SHORT_US, LONG_US, 50, 200, 5 };
	const uint64_t busy[] = { 0, 1000000 };

	(void)state;
	for (size_t from = 0; from < 6; from++) {
		for (int kind = 0; kind < 4; kind++) {
			event.busy_ns = busy[kind & 1];
			event.kick = kind & 2;
			for (size_t to = 0; to < 6; to++) {
				event.delay = ticks(delay[to]);
				after_event(LONG_US, delay[to]);
				set_delay(delay[from]);
				given(delay[from]);
			}
		}
	}
	assert_true(hooked.counts->cuts > 0);
}

/* No residual is one that a slot cannot leave, whatever left it there. */
static void test_residuals(void **state)
{
	const double delay[] = { 1, 50, 200 };

	(void)state;
	hit();
	for (size_t i = 0; i < 3; i++) {
		set_delay(delay[i]);
		for (int part = -4; part <= 4; part++) {
			slot()->residual_ticks = (int64_t)hooked.cell->delay_ticks * part / 4;
			hit();
			given(delay[i]);
		}
	}
}

/* An interruption is overrun, the hit counts as asked, and no later hit is shorter for it. */
static void test_interruption(void **state)
{
	struct sb_page_slot before, *now;
	uint64_t asked = ticks(LONG_US);

	(void)state;
	event.delay = 0;
	event.kick = false;
	event.busy_ns = 3000000;
	set_delay(LONG_US);
	hit();
	now = slot();
	do {
		now->residual_ticks = 0;
		before = *now;
	} while (!disturbed(LONG_US));
	assert_true(now->overrun_ticks - before.overrun_ticks > ticks(2500));
	assert_true(now->injected_ticks - before.injected_ticks == asked);
	assert_true(now->residual_ticks == 0);
	given(LONG_US);
}

/* The injected time is hits times delay, when nothing changes. */
static void test_sum(void **state)
{
	struct sb_page_slot before, *now;
	double asked = (double)ticks(2), each;

	(void)state;
	set_delay(2);
	hit();
	now = slot();
	before = *now;
	for (int i = 0; i < 20000; i++)
		hit();
	each = (double)(now->injected_ticks - before.injected_ticks) /
	       (double)(now->hits - before.hits);
	assert_true(each > asked * 0.999 && each < asked * 1.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_residuals),
		cmocka_unit_test(test_interruption),
		cmocka_unit_test(test_sum),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
