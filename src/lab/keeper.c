/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper: the process that builds a lab, serves it while it is up, and ends it. */
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
#include "lab/apply.h"
#include "lab/build.h"
#include "lab/change.h"
#include "lab/commands.h"
#include "lab/control.h"
#include "lab/keeping.h"
#include "lab/reload.h"
#include "lab/teller.h"
#include "lab/up.h"

/* 12 MB of truth records. */
#define EVENTS 65536

struct keeper {
	struct pl_lab_keeper *k;
	const struct pl_lab_topology *t; /* the lab's current topology */
	struct pl_lab_topology *applied; /* owned; NULL: the lab is as it came up */
	bool up, stop;
	struct pl_lab_plan plan;
	struct pl_lab_build build;
	struct pl_lab_commands commands;
	int signals;
	struct pl_lab_wires *wires; /* NULL: all links are bare */
	struct pl_lab_control control;
	struct pl_lab_teller *teller; /* NULL: no story */
	struct pl_dp_truth_log *truth;
};

static bool starter_is_gone(void *arg)
{
	const struct keeper *p = arg;

	return pl_lab_starter_is_gone(p->k);
}

/* Without root: mounts a private /run for the names of namespaces. */
static int make_own_run(struct pl_diag *diag)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") == 0)
		return 0;
	pl_diag_set(diag, "a /run of the lab's own: %s", strerrordesc_np(errno));
	return -errno;
}

/* Opens the wires inside their namespace, to which their sockets then belong. */
static int open_wires(struct keeper *p, struct pl_diag *diag)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), r;

	/* The timer slack, 50 us by default, would be added to delays. */
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

/* Reaps children; as PID 1 of its namespace the keeper is the parent of all orphans. Returns false
 * when it is to end. */
static bool take_signal(struct keeper *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(p->signals, &info, sizeof(info)) != sizeof(info))
		return !p->stop;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		pl_lab_commands_ended(&p->commands, pid, status);
		pl_lab_teller_ended(p->teller, pid);
	}
	p->stop |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
	return !p->stop;
}

/* Carries frames for 5 ms, as commands that start may need each other. Returns false to give up. */
static bool wait_for_start(void *arg)
{
	struct keeper *p = arg;
	const uint64_t until = pl_clock_mono_ns() + UINT64_C(5000000);
	uint64_t now;

	while ((now = pl_clock_mono_ns()) < until) {
		struct pollfd fd = { .fd = p->wires != NULL ? pl_lab_wires_fd(p->wires) : -1,
			.events = POLLIN };
		uint64_t next = p->wires != NULL ? pl_lab_wires_run(p->wires, now) : until;
		struct timespec ts;

		next = next > until ? until : next;
		ts = pl_clock_timespec(next <= now ? 0 : next - now);
		(void)ppoll(&fd, 1, &ts, NULL);
	}
	return p->up ? take_signal(p) : !starter_is_gone(arg);
}

static void tell_truth(void *arg, struct pl_lab_truth_account *ret)
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

static int commands(void *arg, const char *const *words, unsigned int n, struct pl_buf *out,
	struct pl_diag *diag)
{
	struct keeper *p = arg;

	return pl_lab_commands_serve(&p->commands, words, n, out, diag);
}

/* ---- another file ---- */

/* Checks all that can be checked before anything is changed. */
static int check_change(struct keeper *p, const struct pl_lab_topology *want,
	const struct pl_lab_plan *plan, struct pl_diag *diag)
{
	const struct pl_lab_reload reload = { &p->commands, &p->plan, plan };
	int r = pl_lab_commands_check(plan, diag);

	for (unsigned int i = 0; i < want->n_links && r == 0; i++) {
		struct pl_lab_impairments as;

		pl_lab_impairments_of(&want->links[i].quality, &as);
		if (!want->links[i].quality.bare)
			r = pl_lab_impairments_check(&as, diag);
	}
	return r == 0 ? pl_lab_reload_check(&reload, diag) : r;
}

/* An unchanged story goes on; another one starts again, and senders of the old one are ended. */
static int change_story(struct keeper *p, const struct pl_lab_topology *was, struct pl_buf *out)
{
	if (pl_lab_change_same_story(&was->story, &p->t->story)) {
		pl_lab_teller_keep(p->teller, p->t);
		return 0;
	}
	pl_lab_teller_free(p->teller);
	(void)unlink("story");
	pl_lab_change_tell(out, "story", p->t->story.n > 0 ? "begun" : "ended", "");
	return pl_lab_teller_new(&p->teller, p->t, p->wires, p->build.ns, pl_clock_mono_ns());
}

static void say_partly(int error, struct pl_diag *diag)
{
	char why[sizeof(diag->text)];

	snprintf(why, sizeof(why), "%s",
		diag->text[0] != '\0' ? diag->text : strerrordesc_np(-error));
	pl_diag_set(
		diag, "%s; commands from that one on do not run, all else is as in the file", why);
}

/* Changes the rest, after the switches. From here on nothing can be refused. */
static int become(struct keeper *p, struct pl_lab_topology *want, struct pl_lab_plan *plan,
	struct pl_buf *out, struct pl_diag *diag)
{
	struct pl_lab_topology *applied = p->applied;
	const struct pl_lab_topology *was = p->t;
	struct pl_lab_plan before = p->plan;
	int r, one;

	p->t = p->applied = want;
	p->plan = *plan;
	r = pl_lab_apply_note(want);
	one = pl_lab_build_again(&p->build, &before, out, diag);
	r = r == 0 ? one : r;
	one = p->wires != NULL ? pl_lab_wires_become(p->wires, want, out, diag) : 0;
	r = r == 0 ? one : r;
	one = change_story(p, was, out);
	r = r == 0 ? one : r;
	one = pl_lab_commands_become(&p->commands, want, &p->plan, out, diag);
	if (one < 0)
		say_partly(one, diag);
	/* The lab ends, or memory is out: the commands still use the previous texts. */
	if (p->commands.t != want)
		return one;
	pl_lab_plan_done(&before);
	if (applied != NULL)
		pl_lab_topology_done(applied);
	free(applied);
	return r == 0 ? one : r;
}

static int apply(void *arg, const char *const *words, unsigned int n, struct pl_buf *out,
	struct pl_diag *diag)
{
	struct keeper *p = arg;
	struct pl_lab_topology *want = NULL;
	struct pl_lab_plan plan = { .t = NULL };
	int r = n == 1 ? pl_lab_apply_read(&want, p->k->t->name, words[0], true, diag) : -EINVAL;

	if (r == 0)
		r = pl_lab_change_check(p->t, want, false, diag);
	if (r == 0)
		r = pl_lab_plan_make(&plan, want, diag);
	if (r == 0)
		r = check_change(p, want, &plan, diag);
	if (r == 0)
		r = pl_lab_reload_run(
			&(struct pl_lab_reload){ &p->commands, &p->plan, &plan }, out, diag);
	if (r == 0)
		return become(p, want, &plan, out, diag);
	pl_lab_plan_done(&plan);
	if (want != NULL)
		pl_lab_topology_done(want);
	free(want);
	return r;
}

static void true_event(void *arg, const struct pl_event *event)
{
	pl_dp_truth_log_event(arg, event);
}

/* Opens the log of all packets that are dropped or lost between nodes. */
static int open_truth(struct keeper *p, struct pl_diag *diag)
{
	int r = pl_dp_truth_log_new(&p->truth, "truth", EVENTS, 0, 0, diag);

	if (r == 0 && p->wires != NULL)
		pl_lab_wires_tell(p->wires, true_event, p->truth);
	return r;
}

static int build(struct keeper *p, struct pl_diag *diag)
{
	const struct pl_lab_control_ops ops = { .truth = tell_truth,
		.impair = impair,
		.apply = apply,
		.commands = commands,
		.arg = p };

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
	p->commands.t = p->k->t;
	p->commands.ns = p->build.ns;
	p->commands.wait = wait_for_start;
	p->commands.arg = p;
	return r == 0 ? pl_lab_commands_start(&p->commands, &p->plan, diag) : r;
}

/* Serves the lab until a request ends it. */
static void keep(struct keeper *p)
{
	struct pollfd fds[3 + PL_LAB_CLIENTS_MAX];

	while (!p->stop) {
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
			(void)take_signal(p);
		pl_lab_control_serve(&p->control, fds + 2);
	}
}

/* Ends all other processes of the namespace: SIGTERM, and SIGKILL after 2 seconds. Processes of
 * `lab exec` are not its children: it cannot wait for them. */
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
	p->up = r == 0;
	if (r == 0)
		keep(p);
	return r;
}

/* Raises the limit of descriptors: a link needs two sockets, a node one descriptor. */
static void allow_descriptors(struct keeper *p)
{
	struct rlimit most, *before = &p->commands.descriptors;

	if (getrlimit(RLIMIT_NOFILE, before) < 0)
		return;
	most = (struct rlimit){ before->rlim_max, before->rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &most);
}

int pl_lab_keep(struct pl_lab_keeper *k)
{
	struct keeper *p = calloc(1, sizeof(*p));
	int r = p == NULL ? -ENOMEM : 0;

	/* The keeper kills all processes of its PID namespace, so it must have its own. */
	assert(getpid() == 1);
	if (p != NULL) {
		p->k = k;
		p->t = k->t;
		pl_lab_control_init(&p->control);
		for (unsigned int i = 0; i < PL_LAB_NETNSES; i++)
			p->build.ns[i] = -1;
		allow_descriptors(p);
		r = pl_lab_keep_begin(k, &p->signals);
		if (r == 0)
			r = run(p);
		pl_lab_teller_free(p->teller);
		end_commands();
		pl_lab_control_close(&p->control);
		pl_lab_wires_free(p->wires);
		pl_dp_truth_log_free(p->truth);
		pl_lab_build_close(&p->build);
		pl_lab_plan_done(&p->plan);
		if (p->applied != NULL)
			pl_lab_topology_done(p->applied);
		free(p->applied);
		free(p);
	}
	/* The lab's folder may be in the machine's /run, which the private one hides. */
	if (chdir("/") == 0 && k->tier == PL_LAB_UNPRIVILEGED)
		(void)umount2("/run", MNT_DETACH);
	pl_lab_state_sweep(k->state);
	return r == 0 ? 0 : 1;
}
