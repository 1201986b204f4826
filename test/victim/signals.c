/* SPDX-License-Identifier: MIT */
/*
 * signals: what a tracer may break that nothing else would.
 *
 * A timer of 1 kHz interrupts one thread, whose handler and whose main line both call
 * signal_fn(). Every other thread has all signals blocked and sits in one blocking system call
 * after the other: nothing may interrupt or shorten them. Each of them counts the rounds, the
 * EINTRs and the waits that were shorter than asked for:
 *
 *	wait NAME rounds N eintr N short N other N shortest N us
 *
 * The kernel ends a socket's time-out by its tick, which is late by as much as the host takes the
 * processor away (4 to 16 ms): read by the clock of that tick, or it would look too short.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/time.h>
#include "victim.h"

uint64_t signal_fn(uint64_t x);

enum { WAIT_MS = 30, WAIT_NS = WAIT_MS * 1000000 };

static uint64_t in_handler, in_main, errors;

VICTIM_HOOKED uint64_t signal_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 9 + 4;
	VICTIM_OPAQUE(x);
	return x;
}

static void on_timer(int sig)
{
	int saved = errno;

	(void)sig;
	if (signal_fn(in_handler) != in_handler * 9 + 4)
		errors++;
	in_handler++;
	errno = saved;
}

static const struct timespec wait_ts = { 0, WAIT_NS };

static int wait_nanosleep(int fd)
{
	(void)fd;
	return nanosleep(&wait_ts, NULL);
}

static int wait_clock_abs(int fd)
{
	struct timespec ts;

	(void)fd;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += WAIT_NS;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	return errno ? -1 : 0;
}

static int wait_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, WAIT_MS);
}

static int wait_ppoll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return ppoll(&p, 1, &wait_ts, NULL);
}

static int wait_select(int fd)
{
	struct timeval tv = { 0, WAIT_MS * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &tv);
}

static int wait_epoll(int fd)
{
	static __thread int epoll_fd;
	struct epoll_event ev = { .events = EPOLLIN };

	if (!epoll_fd) {
		epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
	}
	return epoll_wait(epoll_fd, &ev, 1, WAIT_MS);
}

static int wait_futex(int fd)
{
	static uint32_t word;
	long rc = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_ts, NULL, 0);

	(void)fd;
	return rc == -1 && errno == ETIMEDOUT ? 0 : (int)rc;
}

static int wait_sigtimedwait(int fd)
{
	sigset_t set;
	int rc;

	(void)fd;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	rc = sigtimedwait(&set, NULL, &wait_ts);
	return rc == -1 && errno == EAGAIN ? 0 : rc;
}

static int wait_semtimedop(int fd)
{
	static __thread int id = -1;
	struct sembuf op = { 0, -1, 0 };
	int rc;

	(void)fd;
	if (id < 0) {
		id = semget(IPC_PRIVATE, 1, 0600);
		if (id < 0)
			return wait_nanosleep(fd);
	}
	rc = semtimedop(id, &op, 1, &wait_ts);
	rc = rc == -1 && errno == EAGAIN ? 0 : rc;
	if (victim_stop) {
		semctl(id, 0, IPC_RMID);
		id = -1;
	}
	return rc;
}

static int wait_cond(int fd)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec ts;
	uint64_t begin = victim_now_ns();

	(void)fd;
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += WAIT_NS;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	pthread_mutex_lock(&lock);
	while (victim_now_ns() - begin < WAIT_NS &&
	       pthread_cond_timedwait(&cond, &lock, &ts) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* A writer feeds this pipe every WAIT_MS; read() blocks until then. */
static int pipe_fds[2];

static int wait_read(int fd)
{
	char byte;

	(void)fd;
	return read(pipe_fds[0], &byte, 1) == 1 ? 0 : -1;
}

static void *feed_pipe(void *arg)
{
	(void)arg;
	while (!victim_stop) {
		victim_sleep_ns(WAIT_NS);
		if (write(pipe_fds[1], "x", 1) != 1)
			errors++;
	}
	return NULL;
}

/* A socket with a timeout: where it was interrupted it says EINTR. */
static int quiet_socket(int type, int option)
{
	struct timeval tv = { 0, WAIT_MS * 1000 };
	int fds[2];

	if (socketpair(AF_UNIX, type, 0, fds) != 0 ||
	    setsockopt(fds[0], SOL_SOCKET, option, &tv, sizeof(tv)) != 0)
		exit(2);
	return fds[0]; /* its other end stays open */
}

static int wait_recv(int fd)
{
	static __thread int sock;
	char byte;
	ssize_t n;

	(void)fd;
	if (!sock)
		sock = quiet_socket(SOCK_STREAM, SO_RCVTIMEO);
	n = recv(sock, &byte, 1, 0);
	return n == -1 && errno == EAGAIN ? 0 : -1;
}

static int wait_read_socket(int fd)
{
	static __thread int sock;
	char byte;
	ssize_t n;

	(void)fd;
	if (!sock)
		sock = quiet_socket(SOCK_STREAM, SO_RCVTIMEO);
	n = read(sock, &byte, 1);
	return n == -1 && errno == EAGAIN ? 0 : -1;
}

static int wait_splice(int fd)
{
	static __thread int sock, out[2];
	ssize_t n;

	(void)fd;
	if (!sock) {
		sock = quiet_socket(SOCK_STREAM, SO_RCVTIMEO);
		if (pipe(out) != 0)
			exit(2);
	}
	n = splice(sock, NULL, out[1], NULL, 1, 0);
	return n == -1 && errno == EAGAIN ? 0 : -1;
}

static int wait_send(int fd)
{
	static __thread int sock;
	static const char much[4096];
	ssize_t n;

	(void)fd;
	if (!sock) {
		sock = quiet_socket(SOCK_DGRAM, SO_SNDTIMEO);
		while (send(sock, much, sizeof(much), MSG_DONTWAIT) > 0)
			;
	}
	n = send(sock, much, sizeof(much), 0);
	return n == -1 && errno == EAGAIN ? 0 : -1;
}

static int wait_accept(int fd)
{
	static __thread int sock;
	struct timeval tv = { 0, WAIT_MS * 1000 };
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int got;

	(void)fd;
	if (!sock) {
		sock = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(sock, (struct sockaddr *)&any, sizeof(sa_family_t)) || listen(sock, 1) ||
		    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
			exit(2);
	}
	got = accept(sock, NULL, NULL);
	return got == -1 && errno == EAGAIN ? 0 : -1;
}

/*
 * Long waits, stopped many times: each goes on with the time that remained. Were it begun anew
 * at every stop it would last until the stops end.
 */
enum { LONG_MS = 20 * WAIT_MS };
static const struct timespec long_ts = { LONG_MS / 1000, LONG_MS % 1000 * 1000000L };

static int in_time(uint64_t begin, int rc)
{
	uint64_t took = victim_now_ns() - begin;

	if (rc == 0 && !victim_stop && took > 2 * LONG_MS * 1000000ull)
		errno = ETIME, rc = -1;
	return rc;
}

static int wait_long_sleep(int fd)
{
	uint64_t begin = victim_now_ns();

	(void)fd;
	return in_time(begin, nanosleep(&long_ts, NULL));
}

static int wait_long_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t begin = victim_now_ns();

	return in_time(begin, poll(&p, 1, LONG_MS));
}

static int wait_long_select(int fd)
{
	struct timeval tv = { 0, LONG_MS * 1000 };
	uint64_t begin = victim_now_ns();
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return in_time(begin, select(fd + 1, &set, NULL, NULL, &tv));
}

static int wait_long_futex(int fd)
{
	static uint32_t word;
	uint64_t begin = victim_now_ns();
	long rc = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &long_ts, NULL, 0);

	(void)fd;
	return in_time(begin, rc == -1 && errno == ETIMEDOUT ? 0 : -1);
}

static struct wait {
	const char *name;
	int (*fn)(int fd);
	bool timed;
	bool by_tick; /* its end is one of the kernel's tick, not of a timer of high resolution */
	uint64_t rounds, eintr, others, too_short;
	uint64_t shortest; /* ns, of the timed waits that ended well */
	pthread_t thread;
} waits[] = {
	{ .name = "nanosleep", .fn = wait_nanosleep, .timed = true },
	{ .name = "clock_nanosleep", .fn = wait_clock_abs, .timed = true },
	{ .name = "poll", .fn = wait_poll, .timed = true },
	{ .name = "ppoll", .fn = wait_ppoll, .timed = true },
	{ .name = "select", .fn = wait_select, .timed = true },
	{ .name = "epoll_wait", .fn = wait_epoll, .timed = true },
	{ .name = "futex", .fn = wait_futex, .timed = true },
	{ .name = "sigtimedwait", .fn = wait_sigtimedwait, .timed = true },
	{ .name = "semtimedop", .fn = wait_semtimedop, .timed = true },
	{ .name = "cond_timedwait", .fn = wait_cond, .timed = true },
	{ .name = "read", .fn = wait_read, .timed = false },
	{ .name = "recv", .fn = wait_recv, .timed = true, .by_tick = true },
	{ .name = "read_socket", .fn = wait_read_socket, .timed = true, .by_tick = true },
	{ .name = "splice", .fn = wait_splice, .timed = true, .by_tick = true },
	{ .name = "send", .fn = wait_send, .timed = true, .by_tick = true },
	{ .name = "accept", .fn = wait_accept, .timed = true, .by_tick = true },
	{ .name = "long_sleep", .fn = wait_long_sleep, .timed = true },
	{ .name = "long_poll", .fn = wait_long_poll, .timed = true },
	{ .name = "long_select", .fn = wait_long_select, .timed = true },
	{ .name = "long_futex", .fn = wait_long_futex, .timed = true },
};
enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static uint64_t now_of(const struct wait *w)
{
	struct timespec ts;

	clock_gettime(w->by_tick ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void took(struct wait *w, uint64_t ns)
{
	w->too_short += ns < WAIT_NS - (w->by_tick ? 4000000 : 1000000);
	if (!w->shortest || ns < w->shortest)
		w->shortest = ns;
}

static void *waiter(void *arg)
{
	struct wait *w = arg;
	int fds[2];

	if (pipe(fds) != 0)
		return NULL;
	while (!victim_stop) {
		uint64_t begin = now_of(w);
		int rc = w->fn(fds[0]);

		if (rc == -1 && errno == EINTR)
			w->eintr++;
		else if (rc != 0)
			w->others++;
		else if (w->timed)
			took(w, now_of(w) - begin);
		w->rounds++;
	}
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

static bool start_waiters(void)
{
	static pthread_t feeder;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* the waiters inherit it */
	if (pipe(pipe_fds) || pthread_create(&feeder, NULL, feed_pipe, NULL))
		return false;
	for (size_t i = 0; i < WAITS; i++)
		if (pthread_create(&waits[i].thread, NULL, waiter, &waits[i]))
			return false;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return true;
}

static bool undisturbed(const struct wait *w)
{
	return w->eintr == 0 && w->too_short == 0 && w->others == 0;
}

static void report_those(bool good)
{
	for (size_t i = 0; i < WAITS; i++) {
		const struct wait *w = &waits[i];

		if (undisturbed(w) == good)
			printf("wait %s rounds %llu eintr %llu short %llu other %llu"
			       " shortest %llu us\n",
			       w->name, (unsigned long long)w->rounds, (unsigned long long)w->eintr,
			       (unsigned long long)w->too_short, (unsigned long long)w->others,
			       (unsigned long long)w->shortest / 1000);
	}
}

/* The disturbed ones come last, where a test that shows the end of the output shows them. */
static bool report(void)
{
	bool ok = errors == 0;

	for (size_t i = 0; i < WAITS; i++) {
		pthread_join(waits[i].thread, NULL);
		ok = ok && undisturbed(&waits[i]);
	}
	report_those(true);
	report_those(false);
	if (errors)
		printf("errors %llu\n", (unsigned long long)errors);
	return ok;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct itimerval ms = { { 0, 1000 }, { 0, 1000 } }, off = { 0 };

	victim_catch_term();
	if (!start_waiters())
		return 2;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &ms, NULL);
	victim_ready();
	while (!victim_stop) {
		if (signal_fn(in_main) != in_main * 9 + 4)
			errors++;
		in_main++;
		usleep(50);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	victim_calls("in_handler", in_handler);
	victim_calls("in_main", in_main);
	victim_calls("signal_fn", in_handler + in_main);
	return victim_done(report() && in_handler > 0);
}
