/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that is a lab while it is up. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "dataplane/truth_log.h"
#include "lab/build.h"
#include "lab/control.h"
#include "lab/keeping.h"
#include "lab/teller.h"
#include "lab/up.h"

#define COMMANDS_MAX 1024
#define READY_MS     60000
/* 2 MB of the truth. */
#define EVENTS       16384

struct command {
	pid_t pid;
	unsigned int node;
	const char *text;
	bool serves; /* until it listens, the lab is not up */
};

struct keeper {
	struct pl_lab_keeper *k;
	struct pl_lab_plan plan;
	struct pl_lab_build build;
	struct command commands[COMMANDS_MAX];
	unsigned int n_commands;
	int signals;
	struct rlimit descriptors;  /* as it was, for commands */
	struct pl_lab_wires *wires; /* NULL: all links are bare */
	struct pl_lab_control control;
	struct pl_lab_teller *teller; /* NULL: there is no story */
	struct pl_dp_truth_log *truth;
};

static bool starter_is_gone(void *arg)
{
	const struct keeper *p = arg;
	struct pollfd fd = { .fd = p->k->go, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 && (fd.revents & POLLHUP) != 0;
}

static void become_command(const struct keeper *p, const struct pl_lab_step *s)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	pl_lab_reset_signals();
	(void)setsid();
	if (setns(p->build.ns[s->node], CLONE_NEWNET) < 0 ||
		pl_lab_redirect(p->k->t->nodes[s->node].name) < 0)
		_exit(126);
	/* Behind the last that is opened: until then those of the lab's process count. */
	(void)setrlimit(RLIMIT_NOFILE, &p->descriptors);
	execl("/bin/sh", "sh", "-c", s->command, (char *)NULL);
	_exit(127);
}

static int start_commands(struct keeper *p, struct pl_diag *diag)
{
	for (size_t i = 0; i < p->plan.n; i++) {
		const struct pl_lab_step *s = &p->plan.steps[i];
		struct command *c = &p->commands[p->n_commands];

		if (s->kind != PL_LAB_RUN)
			continue;
		if (p->n_commands == COMMANDS_MAX) {
			pl_diag_set(diag, "more than %d commands", COMMANDS_MAX);
			return -E2BIG;
		}
		*c = (struct command){
			.pid = fork(), .node = s->node, .text = s->command, .serves = s->serves
		};
		if (c->pid < 0) {
			pl_diag_set(diag, "a command: %s", strerrordesc_np(errno));
			return -errno;
		}
		if (c->pid == 0)
			become_command(p, s);
		p->n_commands++;
	}
	return 0;
}

/* Before they forward, packets would be lost without anybody's telling. */
static int await_programs(struct keeper *p, struct pl_diag *diag)
{
	const uint64_t until = pl_clock_mono_ns() + READY_MS * UINT64_C(1000000);

	for (unsigned int i = 0; i < p->n_commands; i++) {
		struct command *c = &p->commands[i];

		while (c->serves && !pl_lab_listens(p->k->t->nodes[c->node].name)) {
			if (starter_is_gone(p))
				return -ECANCELED;
			if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
				return pl_lab_say_ended(
					p->k->t->nodes[c->node].name, c->text, diag);
			if (pl_clock_mono_ns() > until) {
				pl_diag_set(diag, "%s: '%s' does not listen within a minute",
					p->k->t->nodes[c->node].name, c->text);
				return -ETIMEDOUT;
			}
			(void)poll(NULL, 0, 5);
		}
	}
	return 0;
}

/* Without root: a /run of our own, where namespaces have names. */
static int make_own_run(struct pl_diag *diag)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") == 0)
		return 0;
	pl_diag_set(diag, "a /run of the lab's own: %s", strerrordesc_np(errno));
	return -errno;
}

/* Sockets are of the namespace in which they were opened. */
static int open_wires(struct keeper *p, struct pl_diag *diag)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), r;

	/* Delays are exact to the timer's slack, and it is 50 us by default. */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	if (home < 0)
		return -errno;
	r = setns(p->build.ns[p->k->t->n_nodes], CLONE_NEWNET) < 0 ? -errno : 0;
	if (r == 0)
		r = pl_lab_wires_new(&p->wires, p->k->t, pl_hash_seed(), diag);
	if (setns(home, CLONE_NEWNET) < 0 && r == 0)
		r = -errno;
	close(home);
	return r;
}

static void tell_truth(void *arg, struct pl_lab_truth_books *ret)
{
	const struct keeper *p = arg;

	if (p->wires != NULL)
		pl_lab_wires_truth(p->wires, pl_clock_real_ns(), ret);
}

static int impair(
	void *arg, const char *link, const char *const *words, unsigned int n, struct pl_diag *diag)
{
	const struct keeper *p = arg;

	if (p->wires != NULL)
		return pl_lab_wires_impair(p->wires, link, words, n, diag);
	pl_diag_set(diag, "all links are bare");
	return -EINVAL;
}

static void true_event(void *arg, const struct pl_event *event)
{
	pl_dp_truth_log_event(arg, event);
}

/* Each packet that is dropped or lost between nodes. */
static int open_truth(struct keeper *p, struct pl_diag *diag)
{
	int r = pl_dp_truth_log_new(&p->truth, "truth", EVENTS, 0, 0, diag);

	if (r == 0 && p->wires != NULL)
		pl_lab_wires_tell(p->wires, true_event, p->truth);
	return r;
}

static int build(struct keeper *p, struct pl_diag *diag)
{
	const struct pl_lab_control_ops ops = { .truth = tell_truth, .impair = impair, .arg = p };

	int r = p->k->tier == PL_LAB_UNPRIVILEGED ? make_own_run(diag) : 0;

	if (r == 0)
		r = pl_lab_netns_folder(diag);
	if (r == 0)
		r = pl_lab_plan_make(&p->plan, p->k->t, diag);
	if (r == 0)
		r = pl_lab_check_names(&p->plan, diag);
	if (r < 0)
		return r;
	p->build.plan = &p->plan;
	p->build.state = p->k->tier == PL_LAB_ROOT ? p->k->state : NULL;
	p->build.stop = starter_is_gone;
	p->build.arg = p;
	r = pl_lab_build_run(&p->build, diag);
	if (r == 0 && p->plan.wires)
		r = open_wires(p, diag);
	if (r == 0)
		r = open_truth(p, diag);
	if (r == 0)
		r = pl_lab_control_open(&p->control, &ops);
	if (r == 0)
		r = start_commands(p, diag);
	return r == 0 ? await_programs(p, diag) : r;
}

/* Where lab show reads it, and in the log. */
static void note_end(struct keeper *p, pid_t pid, int status)
{
	int fd = open("ended", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	for (unsigned int i = 0; i < p->n_commands; i++) {
		struct command *c = &p->commands[i];
		char line[512];
		int n;

		if (c->pid != pid)
			continue;
		n = snprintf(line, sizeof(line) - 1, "%s: '%.400s' ended with %s %d",
			p->k->t->nodes[c->node].name, c->text,
			WIFSIGNALED(status) ? "signal" : "exit code",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		dprintf(2, "%s\n", line);
		line[n] = '\n';
		if (fd >= 0 && write(fd, line, (size_t)n + 1) < 0)
			dprintf(2, "ended: %s\n", strerrordesc_np(errno));
		c->pid = 0;
	}
	if (fd >= 0)
		close(fd);
}

/* The first process of its namespace is the parent of all orphans. Whether to go on. */
static bool take_signal(struct keeper *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(p->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		note_end(p, pid, status);
		pl_lab_teller_ended(p->teller, pid);
	}
	return info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT;
}

/* Until it is told to end. */
static void keep(struct keeper *p)
{
	struct pollfd fds[3 + PL_LAB_CLIENTS_MAX];
	bool go_on = true;

	while (go_on) {
		uint64_t now = pl_clock_mono_ns(), next = pl_lab_teller_run(p->teller, now), wait;
		struct timespec ts;

		if (p->wires != NULL) {
			wait = pl_lab_wires_run(p->wires, now);
			next = wait < next ? wait : next;
		}
		wait = next <= now ? 0 : next - now;
		ts = pl_clock_timespec(wait);
		fds[0] = (struct pollfd){ .fd = p->signals, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = p->wires != NULL ? pl_lab_wires_fd(p->wires) : -1,
			.events = POLLIN };
		pl_lab_control_wait(&p->control, fds + 2);
		if (ppoll(fds, 3 + PL_LAB_CLIENTS_MAX, next == UINT64_MAX ? NULL : &ts, NULL) <= 0)
			continue;
		if (fds[0].revents != 0)
			go_on = take_signal(p);
		pl_lab_control_serve(&p->control, fds + 2);
	}
}

/* All others of the namespace, and itself not: politely, then not. Those of exec are nobody's
 * children here. */
static void end_commands(void)
{
	(void)kill(-1, SIGTERM);
	for (unsigned int i = 0; i < 100; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (kill(-1, 0) < 0 && errno == ESRCH)
			return;
		(void)poll(NULL, 0, 20);
	}
	(void)kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
}

static int run(struct keeper *p)
{
	struct pl_diag diag = { .text = "" };
	char go;
	int r;

	if (read(p->k->go, &go, 1) != 1)
		return -ECANCELED;
	r = build(p, &diag);
	if (r == 0)
		r = pl_lab_teller_new(
			&p->teller, p->k->t, p->wires, p->build.ns, pl_clock_mono_ns());
	r = pl_lab_tell_verdict(p->k, r, &diag);
	if (r == 0)
		keep(p);
	return r;
}

/* Two sockets for each link, and a descriptor for each node. */
static void allow_descriptors(struct keeper *p)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &p->descriptors) < 0)
		return;
	most = (struct rlimit){ p->descriptors.rlim_max, p->descriptors.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &most);
}

int pl_lab_keep(struct pl_lab_keeper *k)
{
	struct keeper *p = calloc(1, sizeof(*p));
	int r = p == NULL ? -ENOMEM : 0;

	/* It ends everybody in its PID namespace, which must be one of its own. */
	assert(getpid() == 1);
	if (p != NULL) {
		p->k = k;
		pl_lab_control_init(&p->control);
		for (unsigned int i = 0; i < PL_LAB_NETNSES; i++)
			p->build.ns[i] = -1;
		(void)setsid();
		pl_lab_close_inherited(k);
		allow_descriptors(p);
		p->signals = pl_lab_take_signals();
		/* Its folder is reached by where it is, also when /run is another one. */
		if (p->signals < 0 || chdir(k->state->folder) < 0 || pl_lab_redirect("keeper") < 0)
			r = -errno;
		pl_lab_lead_path();
		if (r == 0)
			r = run(p);
		else
			pl_lab_say_unable(k, r);
		pl_lab_teller_free(p->teller);
		end_commands();
		pl_lab_control_close(&p->control);
		pl_lab_wires_free(p->wires);
		pl_dp_truth_log_free(p->truth);
		pl_lab_build_close(&p->build);
		pl_lab_plan_done(&p->plan);
		free(p);
	}
	/* The folder is below the /run of the machine, maybe. */
	if (chdir("/") == 0 && k->tier == PL_LAB_UNPRIVILEGED)
		(void)umount2("/run", MNT_DETACH);
	pl_lab_state_sweep(k->state);
	return r == 0 ? 0 : 1;
}
