/* SPDX-License-Identifier: MIT */
/* `sbinject doctor`: what this machine and this target permit, each 'no' with its remedy. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "options.h"
#include "evidence/check.h"
#include "src/base/json.h"
#include "src/base/text.h"
#include "src/out/out.h"
#include "src/run/backends.h"
#include "src/session/check.h"
#include "src/session/device-find.h"
#include "src/session/foreign.h"

/* Prints a row, and adds it to the JSON. */
static void say_row(const char *name, bool yes, const struct sb_err *err, bool quiet, json_t *rows)
{
	const char *remedy = err_remedy(err);

	if (!quiet && yes)
		printf("  %-28s yes\n", name);
	else if (!quiet)
		printf("  %-28s no: %s%s%s\n", name, err->what, remedy[0] ? "; " : "", remedy);
	json_add(rows, json_pack("{s:s, s:b, s:o, s:o}", "check", name, "ok", (int)yes, "reason",
				 json_name(yes ? NULL : err->what), "remedy",
				 json_name(yes || !remedy[0] ? NULL : remedy)));
}

/* False: the check failed. */
static bool say(const struct check *check, const struct check_on *on, bool quiet, json_t *rows)
{
	struct sb_err err = { 0 };
	bool yes = check_look(check, on, &err) >= 0;

	say_row(check->name, yes, &err, quiet, rows);
	return yes;
}

/* No obstacle to anything else: without BPF the evidence is what /proc has. */
static void look_at_evidence(bool quiet, json_t *rows)
{
	for (size_t i = 0; i < evidence_check_count; i++) {
		struct sb_err err = { 0 };
		bool yes = evidence_checks[i].look(&err) >= 0;

		say_row(evidence_checks[i].name, yes, &err, quiet, rows);
	}
}

/* All rows of the machine. look_at_process() ends at a failed row that the others depend on. */
static int look_at_machine(bool quiet, json_t *rows)
{
	int failed = 0;

	for (size_t i = 0; i < check_machine_count; i++)
		failed += !say(&check_machine_rows[i], NULL, quiet, rows);
	return failed;
}

static int look_at_process(pid_t pid, bool quiet, json_t *rows)
{
	struct check_on on = { pid, 1 };
	int failed = 0;

	for (size_t i = 0; i < check_process_count; i++) {
		if (say(&check_process_rows[i], &on, quiet, rows))
			continue;
		failed++;
		if (check_process_rows[i].first)
			break;
	}
	return failed;
}

/* No obstacle to anything else, and only of a program that uses CUDA. */
static json_t *look_at_device(pid_t pid, bool quiet)
{
	json_t *rows = json_array();
	struct sb_err err = { 0 };
	int ret = device_check(pid, &err);

	if (ret <= 0)
		say_row("device times", ret == 0, &err, quiet, rows);
	return rows;
}

/* These are no obstacle by themselves: a uprobe on a function is found when that function is
 * hooked. */
static json_t *say_uprobes(pid_t pid, const struct foreign *foreign, bool quiet)
{
	json_t *list = json_array();

	for (size_t i = 0; i < foreign->n; i++) {
		const struct foreign_probe *p = &foreign->probe[i];
		char text[256];

		if (!foreign_is_mapped(p, pid))
			continue;
		foreign_text(p, text, sizeof(text));
		if (!quiet)
			printf("  %-28s %s\n", "uprobes of another tool", text);
		json_add(list, json_pack("{s:o, s:i, s:o, s:i}", "path", json_name(p->path), "pid",
					 (int)p->pid, "name", json_name(p->name), "places",
					 (int)p->places));
	}
	return list;
}

/* Each backend, and whether it works here; --backend auto chooses one that does. */
static void look_at_backends(bool quiet, json_t *rows)
{
	for (size_t i = 0; backends[i]; i++) {
		struct sb_err err = { 0 };
		bool yes = backends[i]->probe(&err) >= 0;
		const char *remedy = err_remedy(&err);

		if (!quiet && yes)
			printf("  %-28s yes: %s\n", backends[i]->name, backends[i]->summary);
		else if (!quiet)
			printf("  %-28s no: %s%s%s\n", backends[i]->name, err.what,
			       remedy[0] ? "; " : "", remedy);
		json_add(rows, json_pack("{s:s, s:b, s:o, s:o}", "backend", backends[i]->name, "ok",
					 (int)yes, "reason", json_name(yes ? NULL : err.what),
					 "remedy", json_name(yes || !remedy[0] ? NULL : remedy)));
	}
}

static int write_json(const char *path, json_t *doc, struct sb_err *err)
{
	char *text = json_document(doc, true);
	int ret = out_document(path, text, err);

	free(text);
	return ret;
}

/* Returns the number of failed rows. */
static int examine(const struct options *opt, json_t *doc)
{
	bool quiet = opt->quiet || (opt->json && !strcmp(opt->json, "-"));
	json_t *machine = json_array(), *processes = json_array(), *ways = json_array();
	json_t *evidence = json_array();
	struct foreign foreign;
	int failed;

	if (!quiet)
		printf("this machine\n");
	failed = look_at_machine(quiet, machine);
	if (!quiet)
		printf("backends\n");
	look_at_backends(quiet, ways);
	if (!quiet)
		printf("evidence\n");
	look_at_evidence(quiet, evidence);
	foreign_read(&foreign);
	for (size_t i = 0; i < opt->session.n_pids; i++) {
		pid_t pid = opt->session.pids[i];
		json_t *rows = json_array();

		if (!quiet)
			printf("process %d\n", pid);
		failed += look_at_process(pid, quiet, rows);
		json_array_append_new(processes,
				      json_pack("{s:i, s:o, s:o, s:o}", "pid", (int)pid, "checks",
						rows, "uprobes", say_uprobes(pid, &foreign, quiet),
						"device", look_at_device(pid, quiet)));
	}
	foreign_free(&foreign);
	json_object_set_new(doc, "machine", machine);
	json_object_set_new(doc, "backends", ways);
	json_object_set_new(doc, "evidence", evidence);
	json_object_set_new(doc, "processes", processes);
	return failed;
}

static int doctor(const struct options *opt, struct sb_err *err)
{
	json_t *doc = json_pack("{s:s, s:s}", "schema", "sbinject.doctor/1", "version", SB_VERSION);
	int status;

	if (!doc)
		abort();
	status = examine(opt, doc) ? 1 : 0;
	if (opt->json && write_json(opt->json, doc, err) < 0)
		status = err_exit_status(err->code);
	json_decref(doc);
	return status;
}

static void doctor_help(FILE *to)
{
	fputs("\n", to);
	options_help(to, VERB_DOCTOR);
}

static int doctor_main(const struct command *cmd, int argc, char **argv)
{
	struct sb_err err = { 0 };
	struct options opt;
	int status = 0;

	if (options_parse(argc, argv, VERB_DOCTOR, &opt, &err) < 0)
		status = err_exit_status(err.code);
	else if (opt.help)
		command_print_usage(stdout, cmd);
	else
		status = doctor(&opt, &err);
	if (err.code)
		command_print_error(&err);
	options_free(&opt);
	return status;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "what this machine and a process allow, each 'no' with its remedy",
	.usage = "doctor [OPTIONS] [-p PID[,PID...]]",
	.run = doctor_main,
	.help = doctor_help,
};
