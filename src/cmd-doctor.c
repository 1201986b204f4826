/* SPDX-License-Identifier: MIT */
/* `sbinject doctor`: what this machine and this target allow, each 'no' with its remedy. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "backend.h"
#include "command.h"
#include "options.h"
#include "../inject/arch/arch.h"
#include "../inject/tree-task.h"

/* One look: 0 yes, negative no (err says why), positive yes with a remark in err->what. */
struct check {
	const char *name;
	int (*look)(pid_t pid, struct sb_err *err);
};

static int look_inject(pid_t pid, struct sb_err *err)
{
	(void)pid;
	return backend_inject.probe(err);
}

static int look_clock(pid_t pid, struct sb_err *err)
{
	char why[160];

	(void)pid;
	if (arch->clock_trusted(why, sizeof(why)))
		return 0;
	err_set(err, SB_ECLOCK, "%s", why);
	err_hint(err, "counting (delay 0) works; a machine with a stable TSC is needed for delays");
	return -1;
}

static int look_thread_pointer(pid_t pid, struct sb_err *err)
{
	(void)pid;
	if (arch->thread_pointer_readable())
		return 0;
	err_set(err, SB_ESYS, "programs may not read their FS base");
	err_hint(err, "Linux 5.9 or later allows it; until then thread= is refused and counting "
		      "takes a few ns more");
	return -1;
}

static int look_any_process(pid_t pid, struct sb_err *err)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	(void)pid;
	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	if (geteuid() == 0 || scope == 0)
		return 0;
	err_set(err, SB_EPERM, "kernel.yama.ptrace_scope is %d", scope);
	err_hint(err, "run as root, or launch the program by sbinject");
	return -1;
}

static int look_target(pid_t pid, struct sb_err *err)
{
	return session_check_pid(pid, err);
}

static int look_seccomp(pid_t pid, struct sb_err *err)
{
	if (!task_seccomp(pid))
		return 0;
	if (geteuid() == 0)
		return 0; /* it is suspended for the few calls that are borrowed */
	err_set(err, SB_ECONFINED, "the process is confined by seccomp");
	err_hint(err, "run sbinject with CAP_SYS_ADMIN");
	return -1;
}

static const struct check machine_checks[] = {
	{ "backend inject (ptrace)", look_inject },
	{ "processes of the same user", look_any_process },
	{ "delays (TSC)", look_clock },
	{ "thread= (FS base)", look_thread_pointer },
};

static const struct check target_checks[] = {
	{ "can be traced", look_target },
	{ "seccomp", look_seccomp },
};

static int run_checks(const struct check *check, size_t n, pid_t pid)
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		struct sb_err err = { 0 };
		int ret = check[i].look(pid, &err);

		printf("  %-28s %s", check[i].name, ret < 0 ? "no: " : "yes");
		if (ret < 0)
			printf("%s; %s", err.what, err_remedy(&err));
		printf("\n");
		failed += ret < 0;
	}
	return failed;
}

static void doctor_help(FILE *to)
{
	fputs("\n", to);
	options_help(to, VERB_RECOVER);
}

static int doctor_main(const struct command *cmd, int argc, char **argv)
{
	struct sb_err err = { 0 };
	struct options opt;
	int failed = 0;

	if (options_parse(argc, argv, VERB_RECOVER, &opt, &err) < 0) {
		command_print_error(&err);
		options_free(&opt);
		return err_exit_status(err.code);
	}
	if (opt.help) {
		command_print_usage(stdout, cmd);
		options_free(&opt);
		return 0;
	}
	printf("this machine\n");
	failed += run_checks(machine_checks, sizeof(machine_checks) / sizeof(*machine_checks), 0);
	for (size_t i = 0; i < opt.session.n_pids; i++) {
		printf("process %d\n", opt.session.pids[i]);
		failed += run_checks(target_checks, sizeof(target_checks) / sizeof(*target_checks),
				     opt.session.pids[i]);
	}
	options_free(&opt);
	return failed ? 1 : 0;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "what this machine and a process allow, each 'no' with its remedy",
	.usage = "doctor [-p PID[,PID...]]",
	.run = doctor_main,
	.help = doctor_help,
};
