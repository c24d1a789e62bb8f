/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts and ends the processes of a chain. */
#include "chain/dta_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX      160
#define PROCESSES_MAX 256
#define TEXT_MAX      (1u << 20)

/* In the child: becomes the program, or says why not. */
static void become(char *const *argv, int netns, int out, int err)
{
	sigset_t none;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGUSR1, SIG_IGN); /* until it has handlers */
	signal(SIGUSR2, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* A SIGINT of the terminal is this program's: it ends the parts in their order. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	if (netns >= 0 && setns(netns, CLONE_NEWNET) < 0) {
		dprintf(2, "network namespace: %s\n", strerror(errno));
		_exit(127);
	}
	execv("/proc/self/exe", argv);
	dprintf(2, "/proc/self/exe: %s\n", strerror(errno));
	_exit(127);
}

int pl_dta_process_start(struct pl_dta_process *p, const char *role, const char *const *argv,
	int netns, const char *ready, struct pl_diag *diag)
{
	char *args[ARGS_MAX] = { (char *)(uintptr_t) "pathline" };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, r = 0;
	sigset_t all, before;
	size_t n = 1;

	snprintf(p->role, sizeof(p->role), "%s", role);
	p->ready = ready;
	p->is_ready = ready == NULL;
	p->out = p->err = -1;
	pl_buf_init(&p->text);
	pl_buf_init(&p->text_line);
	for (; *argv != NULL && n < ARGS_MAX - 1; argv++)
		args[n++] = (char *)(uintptr_t)*argv; /* exec does not write there */
	if (*argv != NULL)
		r = -E2BIG;
	if (r == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
		r = -errno;
	if (r == 0) {
		/* No signal comes before it is known what it does. */
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, &before);
		p->pid = fork();
		r = p->pid < 0 ? -errno : 0;
		if (p->pid == 0)
			become(args, netns, out[1], err[1]);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	if (out[1] >= 0)
		close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	p->out = out[0];
	p->err = err[0];
	if (r < 0) {
		p->pid = 0;
		pl_diag_set(diag, "%s: %s", role, strerror(-r));
		return r;
	}
	(void)fcntl(p->out, F_SETFL, O_NONBLOCK);
	(void)fcntl(p->err, F_SETFL, O_NONBLOCK);
	return 0;
}

static void take_line(struct pl_dta_process *p, bool loud)
{
	p->line[p->line_bytes] = '\0';
	memcpy(p->last, p->line, p->line_bytes + 1);
	p->line_bytes = 0;
	if (p->ready != NULL && strstr(p->last, p->ready) != NULL) {
		p->is_ready = true;
		p->answers++;
		memcpy(p->said, p->last, sizeof(p->said));
	}
	if (loud)
		fprintf(stderr, "[%s] %s\n", p->role, p->last);
}

/* False at the end. */
static bool take_words(struct pl_dta_process *p, bool loud)
{
	char bytes[4096];
	ssize_t n = read(p->err, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n' || p->line_bytes == sizeof(p->line) - 1)
			take_line(p, loud);
		if (bytes[i] != '\n')
			p->line[p->line_bytes++] = bytes[i];
	}
	if (n == 0 && p->line_bytes > 0)
		take_line(p, loud);
	return n > 0;
}

static bool take_text(struct pl_dta_process *p)
{
	char bytes[4096];
	ssize_t n = read(p->out, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			pl_buf_reset(&p->text);
			pl_buf_add(&p->text, p->text_line.data, p->text_line.len);
			pl_buf_reset(&p->text_line);
			p->answers++;
		} else if (p->text_line.len < TEXT_MAX) {
			pl_buf_chr(&p->text_line, bytes[i]);
		}
	}
	return n > 0;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void pl_dta_process_pump(struct pl_dta_process *p, unsigned int n, int timeout_ms, bool loud)
{
	struct pollfd fds[2 * PROCESSES_MAX];

	n = n < PROCESSES_MAX ? n : PROCESSES_MAX;
	for (unsigned int i = 0; i < n; i++) {
		/* Zeroed ones were never started. */
		fds[2 * i] =
			(struct pollfd){ .fd = p[i].pid != 0 ? p[i].out : -1, .events = POLLIN };
		fds[2 * i + 1] =
			(struct pollfd){ .fd = p[i].pid != 0 ? p[i].err : -1, .events = POLLIN };
	}
	if (poll(fds, 2 * n, timeout_ms) <= 0)
		return;
	for (unsigned int i = 0; i < n; i++) {
		if (fds[2 * i].revents != 0 && !take_text(&p[i]))
			shut(&p[i].out);
		if (fds[2 * i + 1].revents != 0 && !take_words(&p[i], loud))
			shut(&p[i].err);
		if (p[i].pid != 0 && p[i].out < 0 && p[i].err < 0 &&
			waitpid(p[i].pid, &p[i].status, 0) == p[i].pid) {
			p[i].pid = 0;
			p[i].ended = true;
		}
	}
}

bool pl_dta_process_ask(struct pl_dta_process *p)
{
	p->before = p->answers;
	return p->pid != 0 && kill(p->pid, SIGUSR1) == 0;
}

bool pl_dta_process_answered(const struct pl_dta_process *p)
{
	return p->answers != p->before;
}

void pl_dta_process_stop(const struct pl_dta_process *p)
{
	if (p->pid != 0)
		(void)kill(p->pid, SIGTERM);
}

void pl_dta_process_done(struct pl_dta_process *p)
{
	if (p->role[0] == '\0')
		return;
	if (p->pid != 0) {
		(void)kill(p->pid, SIGKILL);
		(void)waitpid(p->pid, &p->status, 0);
		p->pid = 0;
	}
	shut(&p->out);
	shut(&p->err);
	pl_buf_done(&p->text);
	pl_buf_done(&p->text_line);
}

void pl_dta_process_status(const struct pl_dta_process *p, char ret[32])
{
	if (WIFSIGNALED(p->status))
		snprintf(ret, 32, "signal %d", WTERMSIG(p->status));
	else
		snprintf(ret, 32, "exit code %d", WEXITSTATUS(p->status));
}
