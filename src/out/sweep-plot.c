/* SPDX-License-Identifier: MIT */
/*
 * Pictures, by gnuplot: for each target time per item against injected time per item with the fit,
 * the windows over time by arm, and all kappas with their intervals. One script that holds its
 * data.
 */
#include <inttypes.h>
#include <math.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "place.h"
#include "src/base/confine.h"
#include "sweep-gain.h"
#include "sweep-plot.h"

enum { TARGETS_MAX = 12, PLOT_S = 60, PLOT_MEMORY = 1 << 30 };

bool out_sweep_can_plot(void)
{
	return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

/* A text from outside, between single quotes: between double quotes gnuplot runs text in backquotes
 * as a command. */
static void put_text(FILE *f, const char *s)
{
	fputc('\'', f);
	for (; *s; s++) {
		if (*s == '\'')
			fputc('\'', f);
		fputc(*s == '\n' ? ' ' : *s, f);
	}
	fputc('\'', f);
}

/* us of time an item keep the axes readable from ns to s. */
static double us(double ns)
{
	return ns / 1e3;
}

static void dose_data(FILE *f, const struct sweep_target *t, size_t i)
{
	fprintf(f, "$dose%zu << EOD\n", i);
	for (size_t d = 0; d < t->n_doses; d++)
		if (isfinite(t->dose[d].t_ns.est))
			fprintf(f, "%.9g %.9g %.9g %.9g\n", us(t->dose[d].x_ns),
				us(t->dose[d].t_ns.est),
				us(isfinite(t->dose[d].t_ns.lo) ? t->dose[d].t_ns.lo :
								  t->dose[d].t_ns.est),
				us(isfinite(t->dose[d].t_ns.hi) ? t->dose[d].t_ns.hi :
								  t->dose[d].t_ns.est));
	/* gnuplot stops at data blocks without a point. */
	fputs("NaN NaN NaN NaN\nEOD\n", f);
}

static void window_data(FILE *f, const struct sweep_result *res)
{
	for (int arm = 0; arm < ARM_COUNT; arm++) {
		fprintf(f, "$arm%d << EOD\n", arm);
		for (size_t i = 0; i < res->n_windows; i++)
			if ((int)res->window[i].arm == arm && isfinite(res->window[i].t_ns))
				fprintf(f, "%.9g %.9g\n", (double)res->window[i].end_ns / 1e9,
					us(res->window[i].t_ns));
		fputs("NaN NaN\nEOD\n", f);
	}
}

static void forest_data(FILE *f, const struct sweep_result *res, size_t n)
{
	fputs("$forest << EOD\n", f);
	for (size_t i = 0; i < n; i++) {
		const struct sweep_estimate *k = &res->target[i].kappa;

		if (isfinite(k->est))
			fprintf(f, "%.9g %.9g %.9g %zu\n", k->est, isfinite(k->lo) ? k->lo : k->est,
				isfinite(k->hi) ? k->hi : k->est, n - i);
	}
	fputs("NaN NaN NaN NaN\nEOD\n", f);
}

static double largest_x(const struct sweep_target *t)
{
	double most = 1;

	for (size_t d = 0; d < t->n_doses; d++)
		if (isfinite(t->dose[d].x_ns) && us(t->dose[d].x_ns) > most)
			most = us(t->dose[d].x_ns);
	return most;
}

static void draw_nothing(FILE *f)
{
	fputs("set label 1 \"nothing was measured\" at graph 0.5,0.5 center\n"
	      "plot [0:1] [0:1] -1 notitle\nunset label 1\n",
	      f);
}

static void draw_dose(FILE *f, const struct sweep_target *t, size_t i)
{
	double k = isfinite(t->kappa_beyond.est) ? t->kappa_beyond.est : t->kappa.est;
	double s = t->slack_kind == SLACK_FOUND ? us(t->slack_ns.est) : 0;
	double lo = isfinite(t->kappa.lo) ? t->kappa.lo : k;
	double hi = isfinite(t->kappa.hi) ? t->kappa.hi : k;

	fputs("set title ", f);
	put_text(f, t->spec);
	fprintf(f, " . '  (%s)' noenhanced\n", sweep_verdict_name(t->verdict));
	fputs("set xlabel \"injected, us/item\"\nset ylabel \"time, us/item\"\nset key top left\n",
	      f);
	fprintf(f, "set xrange [0:%.9g]\n", largest_x(t) * 1.05);
	if (!isfinite(k) || !isfinite(t->t0_ns)) {
		draw_nothing(f);
		return;
	}
	fprintf(f, "t0=%.9g\nfit(x)=t0+%.9g*(x>%.9g?x-%.9g:0)\nlo(x)=t0+%.9g*x\nhi(x)=t0+%.9g*x\n",
		us(t->t0_ns), k, s, s, lo, hi);
	fprintf(f,
		"plot '+' using 1:(lo($1)):(hi($1)) with filledcurves fs transparent solid 0.15 lc "
		"2 "
		"title \"95%% of kappa\", fit(x) lc 2 lw 2 title \"fit, kappa %.2f\", "
		"$dose%zu using 1:2:3:4 with yerrorbars pt 7 lc 1 title \"doses\"\n",
		k, i);
}

static void draw_windows(FILE *f)
{
	fputs("set xrange [*:*]\nset title \"windows\"\nset xlabel \"s\"\nset ylabel \"time, "
	      "us/item\"\n"
	      "set key top left\n"
	      "plot $arm0 using 1:2 pt 6 lc rgb \"#888888\" title \"off\", "
	      "$arm1 using 1:2 pt 7 ps 0.7 lc 3 title \"sham\", "
	      "$arm2 using 1:2 pt 7 ps 0.7 lc 7 title \"dose\"\n",
	      f);
}

static size_t known_kappas(const struct sweep_result *res, size_t n)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		known += isfinite(res->target[i].kappa.est);
	return known;
}

static void draw_forest(FILE *f, const struct sweep_result *res, size_t n)
{
	if (!known_kappas(res, n)) {
		draw_nothing(f);
		return;
	}
	fputs("set title \"kappa, 95% intervals\"\nset xlabel \"kappa\"\nunset ylabel\nunset key\n"
	      "set ytics (",
	      f);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ", " : "", f);
		put_text(f, res->target[i].spec);
		fprintf(f, " %zu", n - i);
	}
	fprintf(f,
		") noenhanced\nset yrange [0.3:%zu.7]\nset xrange [*<0:1<*]\nset arrow 1 from 0, "
		"graph 0 to 0, graph 1 "
		"nohead dt 2\n"
		"set arrow 2 from 1, graph 0 to 1, graph 1 nohead dt 2\n"
		"plot $forest using 1:4:2:3 with xerrorbars pt 7 lc 7\n",
		n);
}

void out_sweep_script(FILE *f, const char *terminal, const char *path,
		      const struct sweep_result *res, size_t n)
{
	size_t shown = n < TARGETS_MAX ? n : TARGETS_MAX, cols = 2;
	size_t rows = (shown + 2 + cols - 1) / cols;

	for (size_t i = 0; i < shown; i++)
		dose_data(f, &res->target[i], i);
	window_data(f, res);
	forest_data(f, res, n);
	fprintf(f, "set terminal %s size %zu,%zu\n", terminal,
		strstr(terminal, "pdf") ? (size_t)12 : (size_t)1100,
		strstr(terminal, "pdf") ? rows * 4 : rows * 380);
	if (path) {
		fputs("set output ", f);
		put_text(f, path);
	}
	fprintf(f, "\nset multiplot layout %zu,%zu\nset grid\n", rows, cols);
	for (size_t i = 0; i < shown; i++)
		draw_dose(f, &res->target[i], i);
	draw_windows(f);
	draw_forest(f, res, n);
	fputs("unset multiplot\n", f);
}

/* The file is open already: a program without rights could not open it by its path. */
static void gnuplot_main(const int script[2], int picture)
{
	int null = open("/dev/null", O_WRONLY);

	if (dup2(script[0], STDIN_FILENO) < 0 || dup2(picture, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	confine_limit(RLIMIT_CORE, 0);
	confine_limit(RLIMIT_CPU, PLOT_S);
	confine_limit(RLIMIT_DATA, PLOT_MEMORY);
	confine_rights();
	execlp("gnuplot", "gnuplot", (char *)NULL);
	_exit(127);
}

static pid_t start_gnuplot(int picture, FILE **script)
{
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		gnuplot_main(fd, picture);
	close(fd[0]);
	*script = pid < 0 ? NULL : fdopen(fd[1], "w");
	if (!*script)
		close(fd[1]);
	return pid;
}

int out_sweep_gnuplot(const char *terminal, int picture, const char *path,
		      const struct sweep_result *res, size_t n, struct sb_err *err)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	FILE *f = NULL;
	pid_t pid = start_gnuplot(picture, &f);
	struct stat st;
	int status = -1;

	if (pid < 0)
		return err_sys(err, SB_ESYS, "gnuplot cannot be started");
	sigaction(SIGPIPE, &ignore, &old); /* it may end before it has read everything */
	if (f) {
		out_sweep_script(f, terminal, NULL, res, n);
		fclose(f);
	}
	sigaction(SIGPIPE, &old, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0 && fstat(picture, &st) == 0 && st.st_size > 0)
		return 0;
	err_set(err, SB_EFILE, "gnuplot could not draw %s", path);
	err_hint(err, "does it know the format? 'echo set terminal | gnuplot' lists what it knows");
	return -SB_EFILE;
}

static int copy(int from, const char *path, struct sb_err *err)
{
	FILE *to = out_place_stream(path);
	char buf[65536];
	ssize_t n;

	if (!to)
		return err_sys(err, SB_EFILE, "cannot write %s", path);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, (size_t)n, to);
	return fclose(to) || n < 0 ? err_sys(err, SB_EFILE, "cannot write %s", path) : 0;
}

int out_sweep_plot(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err)
{
	const char *dot = strrchr(path, '.');
	const char *terminal = !strcmp(dot, ".png") ? "pngcairo" :
			       !strcmp(dot, ".pdf") ? "pdfcairo" :
						      "svg";

	char drawn[] = "/tmp/sbinject-plot-XXXXXX";
	int fd = mkstemp(drawn), ret;

	if (fd < 0)
		return err_sys(err, SB_EFILE, "cannot make %s", drawn);
	unlink(drawn); /* gnuplot gets the open file, which is copied into the user's */
	ret = out_sweep_gnuplot(terminal, fd, path, res, out_sweep_shown(res, about), err);
	if (ret == 0)
		ret = lseek(fd, 0, SEEK_SET) < 0 ? -SB_EFILE : copy(fd, path, err);
	close(fd);
	return ret;
}
