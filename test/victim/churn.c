/* SPDX-License-Identifier: MIT */
/*
 * churn FILE: threads that allocate, check and free; one that starts and joins short threads; one
 * that forks children which allocate and end. All call churn_work(). What goes wrong in a child is
 * a line in FILE.
 *
 * SIGUSR1: everyone stands still, all is freed, "quiet N" is printed; SIGUSR1 again: "busy N".
 * So that memory can be compared: one arena, no mmap for blocks, one short thread at a time.
 */
#include <malloc.h>
#include <sys/wait.h>
#include "victim.h"

enum { WORKERS = 3, BLOCKS = 64, BLOCK_MOST = 8192 };

uint64_t churn_work(uint64_t x);

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER; /* held for reading while at work */
static uint64_t errors;
static volatile sig_atomic_t toggled;
static const char *trouble;

VICTIM_HOOKED uint64_t churn_work(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 13 + 1;
	VICTIM_OPAQUE(x);
	return x;
}

static void wrong(void)
{
	__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
}

struct blocks {
	unsigned char *at[BLOCKS];
	size_t len[BLOCKS];
	unsigned int seed;
};

static void replace(struct blocks *b)
{
	size_t i = (size_t)rand_r(&b->seed) % BLOCKS;

	for (size_t k = 0; b->at[i] && k < b->len[i]; k += 61)
		if (b->at[i][k] != (unsigned char)(i + k))
			wrong();
	free(b->at[i]);
	b->len[i] = 1 + (size_t)rand_r(&b->seed) % BLOCK_MOST;
	b->at[i] = malloc(b->len[i]);
	for (size_t k = 0; b->at[i] && k < b->len[i]; k++)
		b->at[i][k] = (unsigned char)(i + k);
	if (!b->at[i] || churn_work(i) != i * 13 + 1)
		wrong();
}

static void give_back(struct blocks *b)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		free(b->at[i]);
		b->at[i] = NULL;
	}
}

static void *worker(void *arg)
{
	struct blocks b = { .seed = (unsigned int)(uintptr_t)arg };

	while (!victim_stop) {
		pthread_rwlock_rdlock(&gate);
		for (int i = 0; i < 200; i++)
			replace(&b);
		give_back(&b);
		pthread_rwlock_unlock(&gate);
		victim_sleep_ns(200000);
	}
	return NULL;
}

static void *shortlived(void *arg)
{
	struct blocks b = { .seed = 7 };

	for (int i = 0; i < 20; i++)
		replace(&b);
	give_back(&b);
	return arg;
}

static void *threads(void *arg)
{
	pthread_t t;

	while (!victim_stop) {
		pthread_rwlock_rdlock(&gate);
		if (pthread_create(&t, NULL, shortlived, NULL) || pthread_join(t, NULL))
			wrong();
		pthread_rwlock_unlock(&gate);
		victim_sleep_ns(500000);
	}
	return arg;
}

static void child(void)
{
	struct blocks b = { .seed = 11 };

	for (int i = 0; i < 50; i++)
		replace(&b);
	_exit(errors ? 1 : 0);
}

static void fork_one(void)
{
	int status = 0;
	pid_t pid = fork();
	FILE *f;

	if (pid == 0)
		child();
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return;
	wrong();
	f = fopen(trouble, "ae");
	if (f) {
		fprintf(f, "fork %d, status 0x%x\n", (int)pid, status);
		fclose(f);
	}
}

static void *forks(void *arg)
{
	while (!victim_stop) {
		pthread_rwlock_rdlock(&gate);
		fork_one();
		pthread_rwlock_unlock(&gate);
		victim_sleep_ns(3000000);
	}
	return arg;
}

static void on_usr1(int sig)
{
	(void)sig;
	toggled = 1;
}

static void toggle(void)
{
	static unsigned int turn;

	toggled = 0;
	if (turn++ % 2) {
		pthread_rwlock_unlock(&gate);
		printf("busy %u\n", turn / 2);
		return;
	}
	pthread_rwlock_wrlock(&gate);
	malloc_trim(0);
	printf("quiet %u\n", turn / 2 + 1);
}

int main(int argc, char **argv)
{
	static void *(*const roles[])(void *) = { worker, worker, worker, threads, forks };
	enum { ROLES = sizeof(roles) / sizeof(roles[0]) };
	struct sigaction sa = { .sa_handler = on_usr1 };
	pthread_rwlockattr_t fair;
	pthread_t t[ROLES];

	if (argc != 2)
		return 2;
	trouble = argv[1];
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	pthread_rwlockattr_init(&fair);
	pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&gate, &fair);
	victim_catch_term();
	sigaction(SIGUSR1, &sa, NULL);
	for (uintptr_t i = 0; i < ROLES; i++)
		pthread_create(&t[i], NULL, roles[i], (void *)(i + 1));
	victim_ready();
	while (!victim_stop) {
		if (toggled)
			toggle();
		victim_sleep_ns(2000000);
	}
	for (int i = 0; i < ROLES; i++)
		pthread_join(t[i], NULL);
	return victim_done(errors == 0);
}
