/* SPDX-License-Identifier: MIT */
#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1ull << (capability))
/* CAP_DAC_OVERRIDE: /proc/PID/mem and its like belong to the target's user, mode 0600. */
#define USED (BIT(CAPS_DAC_OVERRIDE) | BIT(CAPS_SYS_PTRACE) | BIT(CAPS_CHECKPOINT_RESTORE))

static uint64_t spared; /* what is raised around a call; 0: nothing ever is */

struct sets {
	uint64_t effective, permitted;
};

static bool get(struct sets *s)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct cap[2] = { 0 };

	if (syscall(SYS_capget, &header, cap) < 0)
		return false;
	s->effective = cap[0].effective | (uint64_t)cap[1].effective << 32;
	s->permitted = cap[0].permitted | (uint64_t)cap[1].permitted << 32;
	return true;
}

/* Nothing is inheritable: what is executed gets none of it. */
static bool set(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct cap[2] = {
		{ .effective = (uint32_t)effective, .permitted = (uint32_t)permitted },
		{ .effective = (uint32_t)(effective >> 32),
		  .permitted = (uint32_t)(permitted >> 32) },
	};

	return syscall(SYS_capset, &header, cap) == 0;
}

bool caps_has(int capability)
{
	struct sets s;

	return get(&s) && ((s.effective | spared) & BIT(capability));
}

/* Those that the user has neither as root nor by inheritance (ambient ones). */
static uint64_t of_the_file(const struct sets *s)
{
	uint64_t gained = 0;

	for (unsigned int i = 0; getuid() != 0 && i < 64; i++)
		if ((s->permitted & BIT(i)) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) != 1)
			gained |= BIT(i);
	return gained;
}

static int refuse(const char *what, struct sb_err *err)
{
	err_set(err, SB_EPERM,
		"refused: this program has privileges that its user does not have (%s)", what);
	err_hint(err, "it reads and writes files that its user names: run it as root (sudo), or "
		      "remove these privileges (chmod ug-s, setcap -r); SECURITY.md has a set-up "
		      "without root");
	return -SB_EPERM;
}

int caps_spare(struct sb_err *err)
{
	struct sets s;
	uint64_t gained;

	if (getuid() != geteuid() || getgid() != getegid())
		return refuse("its set-user-id or set-group-id bit", err);
	gained = get(&s) ? of_the_file(&s) : 0;
	if (!gained)
		return 0;
	if (gained & ~USED)
		return refuse("its file capabilities, others than cap_sys_ptrace, "
			      "cap_dac_override and cap_checkpoint_restore",
			      err);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (!set(0, gained))
		return refuse("its file capabilities, which it cannot lower", err);
	spared = gained;
	return 0;
}

bool caps_raise(void)
{
	struct sets s;
	int saved = errno;
	bool raised = spared && get(&s) && !s.effective && s.permitted && set(spared, s.permitted);

	errno = saved;
	return raised;
}

void caps_lower(bool raised)
{
	struct sets s;
	int saved = errno;

	if (raised && (!get(&s) || !set(0, s.permitted)))
		abort();
	errno = saved;
}

void caps_forsake(void)
{
	set(0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

const char *caps_env(const char *name)
{
	return spared ? getenv(name) : secure_getenv(name);
}
