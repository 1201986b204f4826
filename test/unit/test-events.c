/* SPDX-License-Identifier: MIT */
/* beside others */
/* --events: the lines of waits, the rings that they come from, a reader that is slow or gone. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/now.h"
#include "evidence/rings.h"
#include "src/run/event-text.h"
#include "src/run/events.h"

static void a_wait_is_a_line(void **state)
{
	struct evidence_pause pause = { .t_ns = 1234000000056,
					.reason = EVIDENCE_FUTEX,
					.wait_ns = 77,
					.queue_ns = 8,
					.futex = 0x7fee00001234,
					.pid = 10,
					.tid = 11,
					.waker = 12,
					.cpu = 3,
					.name = "worker" };
	char text[EVENT_WAIT_SIZE];

	(void)state;
	event_wait_text(&pause, 1700000000000000001, text);
	assert_string_equal(
		text, "{\"event\":\"wait\",\"realtime_s\":1700001234.000000057,"
		      "\"monotonic_s\":1234.000000056,\"pid\":10,\"tid\":11,\"name\":\"worker\","
		      "\"cpu\":3,\"reason\":\"futex\",\"wait_ns\":77,\"run_queue_ns\":8,"
		      "\"futex\":\"0x7fee00001234\",\"woken_by\":12,\"whole\":true}");
	pause.futex = 0;
	pause.cut = true;
	pause.waker = 0;
	pause.name = "a\"\\\x01\xff\xc3\xa4"
		     "56789012"; /* as many bytes as a name may have */
	event_wait_text(&pause, 0, text);
	assert_non_null(strstr(text, "\"name\":\"a\\\"\\\\\\u0001\xee\xbf\xbf\xc3\xa4"
				     "56789012\","));
	assert_non_null(strstr(text, "\"futex\":null,\"woken_by\":null,\"whole\":false}"));
	pause.name = "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01";
	event_wait_text(&pause, 0, text);
	assert_non_null(strstr(text, "\\u0001\",\"cpu\""));
}

/* Whatever is missing on one side, by a ns or by one wait, is seen. */
static void a_wait_too_few_is_seen(void **state)
{
	struct evidence_values sum = { 0 };
	struct evidence_pauses recorded = { 0 }, unrecorded = { 0 };
	enum evidence_counter differs = EVIDENCE_REASONS;

	(void)state;
	sum.of[EVIDENCE_ON_CPU] = 5; /* no pause */
	sum.of[EVIDENCE_RUN_QUEUE] = 30;
	sum.of[EVIDENCE_FUTEX] = 100;
	sum.of[EVIDENCE_WAITS] = 3;
	recorded.ns[EVIDENCE_RUN_QUEUE] = 30;
	recorded.n[EVIDENCE_RUN_QUEUE] = 17; /* births and preemptions, which no counter has */
	recorded.ns[EVIDENCE_FUTEX] = 90;
	recorded.n[EVIDENCE_FUTEX] = 2;
	unrecorded.ns[EVIDENCE_FUTEX] = 10;
	unrecorded.n[EVIDENCE_FUTEX] = 1;
	assert_true(events_agree(&sum, &recorded, &unrecorded, &differs));
	unrecorded.ns[EVIDENCE_FUTEX]++;
	assert_false(events_agree(&sum, &recorded, &unrecorded, &differs));
	assert_int_equal(differs, EVIDENCE_FUTEX);
	unrecorded.ns[EVIDENCE_FUTEX]--;
	recorded.n[EVIDENCE_FUTEX]--;
	assert_false(events_agree(&sum, &recorded, &unrecorded, &differs));
	recorded.n[EVIDENCE_FUTEX]++;
	recorded.ns[EVIDENCE_RUN_QUEUE]--;
	assert_false(events_agree(&sum, &recorded, &unrecorded, &differs));
	assert_int_equal(differs, EVIDENCE_RUN_QUEUE);
}

/* ---- rings ---- */

enum { CPUS = 3, SIZE = 8 };

static struct evidence_ring ring[CPUS];
static struct evidence_event event[CPUS * SIZE];
static uint64_t head[CPUS], seen[64];
static size_t n_seen;

static void put(unsigned int cpu, uint64_t at)
{
	event[cpu * SIZE + ring[cpu].head++ % SIZE] =
		(struct evidence_event){ .at = at, .tid = cpu, .pause.state = EVIDENCE_STATE_IO };
}

static void see(void *ctx, const struct evidence_pause *pause)
{
	assert_ptr_equal(ctx, seen);
	assert_int_equal(pause->reason, EVIDENCE_IO);
	assert_int_equal(pause->cpu, pause->tid);
	seen[n_seen++] = pause->t_ns;
	if (pause->t_ns == 9) /* one that comes meanwhile: of the next call */
		put(0, 10);
}

/* The waits of several processors come in the order of their ends, each once, also where a ring
 * goes round. */
static void rings_are_merged_in_order(void **state)
{
	struct rings r = { ring, event, head, CPUS, SIZE };

	(void)state;
	ring[1].head = ring[1].tail = 8 * 1000 + 6;
	put(0, 1);
	put(0, 4);
	for (uint64_t at = 2; at <= 3; at++)
		put(1, at);
	for (uint64_t at = 5; at <= 8; at++)
		put(1, at);
	put(2, 9);
	put(2, 30);
	rings_take(&r, 20, 4, see, seen);
	assert_int_equal(n_seen, 4);
	rings_take(&r, 20, 100, see, seen);
	assert_int_equal(n_seen, 9);
	rings_take(&r, 20, 100, see, seen);
	assert_int_equal(n_seen, 10);
	for (size_t i = 0; i < n_seen; i++)
		assert_int_equal(seen[i], i + 1);
	rings_take(&r, UINT64_MAX, 100, see, seen);
	assert_int_equal(seen[10], 30);
	for (int i = 0; i < CPUS; i++)
		assert_int_equal(ring[i].tail, ring[i].head);
}

/* ---- readers ---- */

/* Lines come whole and in the order of their times; none is lost. */
static void lines_are_written(void **state)
{
	char got[64] = "";
	int ends[2];
	struct events *ev;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	ev = events_open(ends[1]);
	assert_non_null(ev);
	events_line(ev, 1, "{\"a\":1}");
	events_line(ev, 2, "{\"b\":2}");
	assert_int_equal(events_error(ev), 0);
	assert_int_equal(events_close(ev), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 16);
	assert_string_equal(got, "{\"a\":1}\n{\"b\":2}\n");
	close(ends[0]);
}

/* A pipe without a reader holds neither the session nor its end, and each lost line is counted. */
static void a_reader_that_sleeps_is_not_awaited(void **state)
{
	enum { LINES = 40000 };
	static char line[101], got[1 << 20];
	uint64_t written = 0, unwritten, begin;
	struct events *ev;
	int ends[2];
	ssize_t n;

	(void)state;
	memset(line, 'x', 100);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	ev = events_open(ends[1]);
	begin = evidence_now_ns();
	for (int i = 0; i < LINES; i++)
		events_line(ev, (uint64_t)i, line);
	assert_true(evidence_now_ns() - begin < 5000000000u);
	unwritten = events_close(ev);
	assert_true(evidence_now_ns() - begin < 10000000000u);
	assert_true(unwritten > LINES / 2);
	while ((n = read(ends[0], got, sizeof(got))) > 0)
		for (ssize_t i = 0; i < n; i++)
			written += got[i] == '\n';
	assert_int_equal(written + unwritten, LINES);
	close(ends[0]);
}

static void a_reader_that_is_gone_is_an_error(void **state)
{
	struct events *ev;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	ev = events_open(ends[1]);
	for (int i = 0; i < 500 && events_error(ev) == 0; i++) {
		events_line(ev, 1, "{}");
		usleep(1000);
	}
	assert_int_equal(events_error(ev), 0); /* it is reported once */
	assert_true(events_close(ev) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_a_line),
		cmocka_unit_test(a_wait_too_few_is_seen),
		cmocka_unit_test(rings_are_merged_in_order),
		cmocka_unit_test(lines_are_written),
		cmocka_unit_test(a_reader_that_sleeps_is_not_awaited),
		cmocka_unit_test(a_reader_that_is_gone_is_an_error),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
