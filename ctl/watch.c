/* SPDX-License-Identifier: MIT */
/*
 * A live table: what each target does per second now, and the recent history of that. It draws on
 * the terminal's alternate screen, reads its size each time, and restores everything at the end.
 */
#include "ctl.h"
#include "src/base/text.h"
#include "watch-evidence.h"

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

enum { HISTORY = 120, NAME_MAX_COLS = 48, LINE_MAX_BYTES = 1024 };

struct row {
	char *name;
	json_int_t pid;			   /* its limit, pid=; two targets may have one name */
	bool seen, known;		   /* in the last answer; in an earlier one */
	double hits, injected_ns, delayed; /* as last read */
	double rate[HISTORY];		   /* newest last */
	size_t n;
	double given_ns;
	bool timed;		/* how long its calls take is measured */
	double calls, calls_ns; /* as last read */
	double took_ns;		/* mean of the calls that returned since then, < 0: none */
	char state[16];
	double asked_ns;
};

struct watch {
	struct ctl_peer *peer;
	struct row *row;
	size_t n;
	double seen_at;
	bool utf8;
	bool screen; /* draws on the alternate screen; else prints one table after the other */
	bool keys;   /* keys are read */
	struct evidence_page *evidence;
	bool on_evidence; /* that page is shown */
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

static struct row *row_of(struct watch *w, const char *name, json_int_t pid)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->row[i].name, name) && w->row[i].pid == pid)
			return &w->row[i];
	w->row = realloc(w->row, (w->n + 1) * sizeof(*w->row));
	if (!w->row)
		abort();
	w->row[w->n] = (struct row){ .name = strdup(name), .pid = pid, .given_ns = -1 };
	return &w->row[w->n++];
}

/* Drops the rows of removed targets. */
static void forget_unseen(struct watch *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (w->row[i].seen)
			w->row[kept++] = w->row[i];
		else
			free(w->row[i].name);
	}
	w->n = kept;
}

static void push(struct row *r, double rate)
{
	if (r->n == HISTORY)
		memmove(r->rate, r->rate + 1, (HISTORY - 1) * sizeof(*r->rate));
	else
		r->n++;
	r->rate[r->n - 1] = rate;
}

static void take_times(struct row *r, const json_t *spans)
{
	double calls = number(spans, "calls"), ns = number(spans, "inclusive_ns");

	r->took_ns = r->known && calls > r->calls ? (ns - r->calls_ns) / (calls - r->calls) : -1;
	r->timed = spans;
	r->calls = calls;
	r->calls_ns = ns;
}

static void take(struct watch *w, const json_t *t, double dt)
{
	/* The peer may belong to another user. */
	char *name = ctl_shown(t, "target");
	char *state = ctl_shown(t, "state");
	struct row *r = row_of(w, name, json_integer_value(json_object_get(t, "pid")));
	double hits = number(t, "hits"), injected = number(t, "injected_ns");
	double delayed = number(t, "delayed");

	/* The first answer about a target gives no rate; the module's counters begin at 0 when a
	 * target returns. */
	if (dt > 0 && r->known && hits >= r->hits)
		push(r, (hits - r->hits) / dt);
	r->given_ns = delayed > r->delayed ? (injected - r->injected_ns) / (delayed - r->delayed) :
					     -1;
	take_times(r, json_object_get(t, "spans"));
	r->hits = hits;
	r->injected_ns = injected;
	r->delayed = delayed;
	r->asked_ns = number(t, "delay_ns");
	snprintf(r->state, sizeof(r->state), "%s", strcmp(state, "-") ? state : "");
	free(name);
	free(state);
	r->known = r->seen = true;
}

static bool look(struct watch *w, struct sb_err *err)
{
	char error[16];
	json_t *answer = ctl_ask(w->peer, json_pack("{s:s}", "op", "list"), err, error), *t;
	double now = now_s(), dt = w->seen_at ? now - w->seen_at : 0;
	size_t i;

	if (!answer)
		return false;
	for (i = 0; i < w->n; i++)
		w->row[i].seen = false;
	json_array_foreach(json_object_get(answer, "targets"), i, t) take(w, t, dt);
	forget_unseen(w);
	w->seen_at = now;
	json_decref(answer);
	if (w->on_evidence)
		evidence_page_look(w->evidence, w->peer);
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

static void sparkline(FILE *to, const struct watch *w, const struct row *r, int cols)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ".", ":", ":", "-", "=", "#", "#" };
	size_t n = r->n < (size_t)cols ? r->n : (size_t)cols;
	double most = 0;

	for (size_t i = r->n - n; i < r->n; i++)
		most = r->rate[i] > most ? r->rate[i] : most;
	for (size_t i = r->n - n; i < r->n; i++) {
		int level = most > 0 && r->rate[i] > 0 ? 1 + (int)(r->rate[i] / most * 7) : 0;

		fputs((w->utf8 ? blocks : ascii)[level], to);
	}
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The number of columns, where each character takes one. */
static int cols_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += !continues(*text);
	return n;
}

/* Exactly so many columns; a control character is shown as '?'. */
static void put_cols(FILE *to, const char *text, int cols)
{
	for (; *text && (cols > 0 || continues(*text)); text++) {
		cols -= !continues(*text);
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
	}
	for (; cols > 0; cols--)
		fputc(' ', to);
}

/* A line no wider than the screen: a wrapped line would shift all lines below it. */
static void put_line(const struct watch *w, const char *line, int cols)
{
	if (!w->screen) {
		puts(line);
		return;
	}
	for (; *line && (cols > 0 || continues(*line)); line++) {
		cols -= !continues(*line);
		putchar(*line);
	}
	fputs("\033[K\n", stdout);
}

static bool any_timed(const struct watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->row[i].timed)
			return true;
	return false;
}

static void draw_row(const struct watch *w, const struct row *r, int name_cols, int cols)
{
	char line[LINE_MAX_BYTES] = "", given[24], asked[24], whose[24] = "";
	bool timed = any_timed(w);
	int spark_cols = cols - name_cols - (timed ? 65 : 55), own = cols_of(r->name), room;
	FILE *to = fmemopen(line, sizeof(line) - 1, "w");

	if (!to)
		abort();
	if (r->pid)
		snprintf(whose, sizeof(whose), " pid=%lld", (long long)r->pid);
	room = name_cols - (int)strlen(whose);
	own = own < room ? own : room;
	put_cols(to, r->name, own);
	fprintf(to, "%-*s %-7s %12.0f %12.0f %9s %9s ", name_cols - own, whose, r->state, r->hits,
		r->n ? r->rate[r->n - 1] : 0.0, time_text(r->asked_ns, asked, sizeof(asked)),
		time_text(r->given_ns, given, sizeof(given)));
	if (timed)
		fprintf(to, "%9s ", time_text(r->timed ? r->took_ns : -1, given, sizeof(given)));
	if (spark_cols > 0)
		sparkline(to, w, r, spark_cols > HISTORY ? HISTORY : spark_cols);
	fclose(to);
	put_line(w, line, cols);
}

/* The width of the longest name, within bounds; two targets of one name are distinguished. */
static int name_width(const struct watch *w)
{
	int cols = 6;

	for (size_t i = 0; i < w->n; i++) {
		int own = cols_of(w->row[i].name) + (w->row[i].pid ? 12 : 0);

		cols = own > cols ? own : cols;
	}
	return cols < NAME_MAX_COLS ? cols : NAME_MAX_COLS;
}

static size_t draw_evidence(const struct watch *w, int rows, int cols)
{
	char *text = NULL, *line, *rest;
	size_t size, left = 0;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		abort();
	evidence_page_write(w->evidence, to);
	if (fclose(to) || !text)
		abort();
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line)
		if (!w->screen || rows-- > 1)
			put_line(w, line, cols);
		else
			left++;
	free(text);
	return left;
}

/* Returns how many rows found no place. */
static size_t draw_targets(const struct watch *w, int rows, int cols)
{
	int name_cols = name_width(w);
	char line[LINE_MAX_BYTES];
	size_t shown = w->n;

	if (w->screen && (int)shown > rows - 2)
		shown = rows > 2 ? (size_t)rows - 2 : 0;
	snprintf(line, sizeof(line), "%-*s %-7s %12s %12s %9s %9s%s", name_cols, "target", "state",
		 "hits", "hits/s", "asked", "given", any_timed(w) ? "      took" : "");
	if (rows > 1 || !w->screen)
		put_line(w, line, cols);
	for (size_t i = 0; i < shown; i++)
		draw_row(w, &w->row[i], name_cols, cols);
	return w->n - shown;
}

static void draw(const struct watch *w)
{
	struct winsize size = { 0 };
	char line[LINE_MAX_BYTES];
	int rows, cols;
	size_t left;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	rows = size.ws_row ? size.ws_row : 24; /* a terminal without a known size reports 0 */
	cols = size.ws_col ? size.ws_col : 80;
	if (w->screen)
		fputs("\033[H", stdout);
	left = (w->on_evidence ? draw_evidence : draw_targets)(w, rows, cols);
	if (w->screen) {
		fputs("\033[J", stdout);
		snprintf(line, sizeof(line), left ? "q ends   e %s   %zu more" : "q ends   e %s",
			 w->on_evidence ? "targets" : "evidence", left);
		printf("%.*s", cols - 1, line);
	}
	fflush(stdout);
}

/* ---- the terminal ---- */

/* Does the terminal understand cursor movement? */
static bool has_screen(void)
{
	const char *term = secure_getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static void enter(struct watch *w)
{
	struct termios raw;

	if (w->screen) {
		fputs("\033[?1049h\033[?25l\033[2J", stdout);
		fflush(stdout);
	}
	if (!w->keys)
		return;
	raw = w->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void leave(const struct watch *w)
{
	if (w->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &w->before);
	if (w->screen)
		fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
}

static int signals(void)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Ctrl-Z: gives the terminal to the shell meanwhile. */
static void pause_for_shell(struct watch *w)
{
	leave(w);
	raise(SIGSTOP);
	enter(w);
	if (w->screen)
		draw(w);
}

/* True: the user has ended it. */
static bool read_signals(struct watch *w, int sig)
{
	struct signalfd_siginfo si;

	while (read(sig, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGTSTP)
			pause_for_shell(w);
		else if (si.ssi_signo != SIGWINCH)
			return true;
		else if (w->screen)
			draw(w);
	}
	return false;
}

/* True: the user has ended it. *turn: has turned the page. */
static bool read_key(struct watch *w, bool *turn)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 4)
		return true;
	*turn = key == 'e' || key == 'E';
	w->on_evidence ^= *turn;
	return false;
}

/* Waits for the next look, which is at once when the page is turned; redraws when the size changes.
 * True: the user has ended it. */
static bool wait_until(struct watch *w, int sig, double until)
{
	struct pollfd fds[] = { { .fd = sig, .events = POLLIN },
				{ .fd = w->keys ? STDIN_FILENO : -1, .events = POLLIN } };
	bool turn = false;

	for (double left; !turn && (left = until - now_s()) > 0;) {
		poll(fds, 2, (int)(left * 1000) + 1);
		if (read_signals(w, sig))
			return true;
		if ((fds[1].revents & POLLIN) && read_key(w, &turn))
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
	w.evidence = evidence_page_new();
	w.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	w.screen = has_screen();
	w.keys = isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &w.before) == 0;
	enter(&w);
	alive = look(&w, &err);
	next = now_s() + (interval < 0.3 ? interval : 0.3); /* the first rates appear early */
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
	evidence_page_free(w.evidence);
	if (!alive)
		puts("sbctl: the session has ended");
	return 0;
}
