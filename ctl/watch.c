/* SPDX-License-Identifier: MIT */
/*
 * A live table: what each target does per second now, and how that went over the last while. It
 * draws on the terminal's other screen, looks at its size each time, and leaves everything as it
 * was.
 */
#include "ctl.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { HISTORY = 120, NAME_MAX_COLS = 48 };

struct row {
	char *name;
	double hits, injected_ns, delayed; /* as they were last seen */
	double rate[HISTORY];		   /* newest last */
	size_t n;
	double given_ns;
	char state[16];
	double asked_ns;
};

struct watch {
	struct ctl_peer *peer;
	struct row *row;
	size_t n;
	double seen_at;
	bool utf8, terminal;
	struct termios before;
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double number(const json_t *o, const char *key)
{
	return (double)json_integer_value(json_object_get(o, key));
}

static struct row *row_of(struct watch *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->row[i].name, name))
			return &w->row[i];
	w->row = realloc(w->row, (w->n + 1) * sizeof(*w->row));
	if (!w->row)
		abort();
	w->row[w->n] = (struct row){ .name = strdup(name), .given_ns = -1 };
	return &w->row[w->n++];
}

static void push(struct row *r, double rate)
{
	if (r->n == HISTORY)
		memmove(r->rate, r->rate + 1, (HISTORY - 1) * sizeof(*r->rate));
	else
		r->n++;
	r->rate[r->n - 1] = rate;
}

static void take(struct watch *w, const json_t *t, double dt)
{
	const char *name = json_string_value(json_object_get(t, "target"));
	struct row *r = row_of(w, name ? name : "?");
	double hits = number(t, "hits"), injected = number(t, "injected_ns");
	double delayed = number(t, "delayed");

	if (dt > 0)
		push(r, (hits - r->hits) / dt);
	r->given_ns = delayed > r->delayed ? (injected - r->injected_ns) / (delayed - r->delayed) :
					     -1;
	r->hits = hits;
	r->injected_ns = injected;
	r->delayed = delayed;
	r->asked_ns = number(t, "delay_ns");
	snprintf(r->state, sizeof(r->state), "%s",
		 json_string_value(json_object_get(t, "state")) ?: "");
}

static bool look(struct watch *w, struct sb_err *err)
{
	char error[16];
	json_t *answer = ctl_ask(w->peer, json_pack("{s:s}", "op", "list"), err, error), *t;
	double now = now_s(), dt = w->seen_at ? now - w->seen_at : 0;
	size_t i;

	if (!answer)
		return false;
	json_array_foreach(json_object_get(answer, "targets"), i, t) take(w, t, dt);
	w->seen_at = now;
	json_decref(answer);
	return true;
}

/* ---- drawing ---- */

static char *time_text(double ns, char *buf, size_t size)
{
	static const struct {
		double from;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 0, "ns" } };
	int i = 0;

	if (ns < 0) {
		snprintf(buf, size, "-");
		return buf;
	}
	while (ns < units[i].from && units[i].from > 0)
		i++;
	snprintf(buf, size, "%.3g%s", ns / (units[i].from > 0 ? units[i].from : 1), units[i].unit);
	return buf;
}

static void sparkline(const struct watch *w, const struct row *r, int cols)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ".", ":", ":", "-", "=", "#", "#" };
	size_t n = r->n < (size_t)cols ? r->n : (size_t)cols;
	double most = 0;

	for (size_t i = r->n - n; i < r->n; i++)
		most = r->rate[i] > most ? r->rate[i] : most;
	for (size_t i = r->n - n; i < r->n; i++) {
		int level = most > 0 && r->rate[i] > 0 ? 1 + (int)(r->rate[i] / most * 7) : 0;

		fputs((w->utf8 ? blocks : ascii)[level], stdout);
	}
}

static void draw_row(const struct watch *w, const struct row *r, int name_cols, int spark_cols)
{
	char given[24], asked[24];

	printf("%-*.*s %-7s %12.0f %12.0f %9s %9s ", name_cols, name_cols, r->name, r->state,
	       r->hits, r->n ? r->rate[r->n - 1] : 0.0,
	       time_text(r->asked_ns, asked, sizeof(asked)),
	       time_text(r->given_ns, given, sizeof(given)));
	if (spark_cols > 0)
		sparkline(w, r, spark_cols);
	fputs(w->terminal ? "\033[K\n" : "\n", stdout);
}

static void draw(const struct watch *w)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int name_cols = 6, spark_cols, lines;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	for (size_t i = 0; i < w->n; i++)
		if ((int)strlen(w->row[i].name) > name_cols)
			name_cols = (int)strlen(w->row[i].name);
	if (name_cols > NAME_MAX_COLS)
		name_cols = NAME_MAX_COLS;
	spark_cols = (int)size.ws_col - name_cols - 55;
	if (w->terminal)
		fputs("\033[H", stdout);
	printf("%-*s %-7s %12s %12s %9s %9s%s", name_cols, "target", "state", "hits", "hits/s",
	       "asked", "given", w->terminal ? "\033[K\n" : "\n");
	lines = (int)size.ws_row - 3;
	for (size_t i = 0; i < w->n && (!w->terminal || (int)i < lines); i++)
		draw_row(w, &w->row[i], name_cols, spark_cols > HISTORY ? HISTORY : spark_cols);
	if (w->terminal)
		fputs("\033[Jq ends", stdout);
	fflush(stdout);
}

/* ---- the terminal ---- */

static void enter(struct watch *w)
{
	struct termios raw;

	w->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	w->terminal = isatty(STDOUT_FILENO);
	if (!w->terminal)
		return;
	fputs("\033[?1049h\033[?25l\033[2J", stdout);
	if (tcgetattr(STDIN_FILENO, &w->before) < 0)
		return;
	raw = w->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void leave(const struct watch *w)
{
	if (!w->terminal)
		return;
	tcsetattr(STDIN_FILENO, TCSANOW, &w->before);
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
}

static int signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until the next look; a changed size is drawn at once. True: the user wants to go. */
static bool wait_until(const struct watch *w, int sig, double until)
{
	struct pollfd fds[] = { { .fd = sig, .events = POLLIN },
				{ .fd = w->terminal ? STDIN_FILENO : -1, .events = POLLIN } };
	struct signalfd_siginfo si;
	char key;

	for (double left; (left = until - now_s()) > 0;) {
		poll(fds, 2, (int)(left * 1000) + 1);
		while (read(sig, &si, sizeof(si)) == sizeof(si)) {
			if (si.ssi_signo != SIGWINCH)
				return true;
			draw(w);
		}
		if ((fds[1].revents & POLLIN) && read(STDIN_FILENO, &key, 1) == 1 &&
		    (key == 'q' || key == 'Q' || key == 4))
			return true;
		if (fds[1].revents & (POLLHUP | POLLERR))
			return true;
	}
	return false;
}

int ctl_watch(struct ctl_peer *peer, uint64_t interval_ns)
{
	struct watch w = { .peer = peer };
	struct sb_err err = { 0 };
	double interval = (double)interval_ns / 1e9, next;
	int sig = signals();
	bool alive;

	if (interval < 0.05)
		interval = 0.05;
	enter(&w);
	alive = look(&w, &err);
	next = now_s() + (interval < 0.3 ? interval : 0.3); /* rates soon */
	while (alive && !wait_until(&w, sig, next)) {
		alive = look(&w, &err);
		draw(&w);
		next = now_s() + interval;
	}
	leave(&w);
	close(sig);
	for (size_t i = 0; i < w.n; i++)
		free(w.row[i].name);
	free(w.row);
	if (!alive)
		puts("sbctl: the session has ended");
	return 0;
}
