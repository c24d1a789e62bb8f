/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, watches and ends the programs and commands in the nodes of a lab. */
#include "lab/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lab/change.h"
#include "lab/keeping.h"

#define READY_NS UINT64_C(60000000000)
/* Time from SIGTERM to SIGKILL. */
#define END_NS   UINT64_C(2000000000)

static bool has_name(const struct pl_lab_running *r)
{
	return r->of != NULL && r->of->name != NULL;
}

static const char *told_name(const struct pl_lab_running *r)
{
	return has_name(r) ? r->of->name : r->text;
}

static const char *log_of(const struct pl_lab_commands *c, const struct pl_lab_running *r)
{
	return has_name(r) ? r->of->name : c->t->nodes[r->node].name;
}

static void become(const struct pl_lab_commands *c, const struct pl_lab_running *r)
{
	pl_lab_reset_signals();
	/* A request for the account must not kill it before it has its handler. */
	if (r->of != NULL && r->of->account)
		(void)signal(SIGUSR1, SIG_IGN);
	(void)setpgid(0, 0);
	if (setns(c->ns[r->node], CLONE_NEWNET) < 0 || pl_lab_redirect(log_of(c, r)) < 0)
		_exit(126);
	/* After the last open(): until then the limit of the lab's process is needed. */
	(void)setrlimit(RLIMIT_NOFILE, &c->descriptors);
	execl("/bin/sh", "sh", "-c", r->text, (char *)NULL);
	_exit(127);
}

static bool is_ready(const struct pl_lab_commands *c, struct pl_lab_running *r)
{
	if (r->serves)
		return pl_lab_listens(c->t->nodes[r->node].name);
	return r->of == NULL || r->of->ready == NULL ||
	       pl_lab_said(r->of->name, r->of->ready, &r->log_at);
}

/* Waits until it is ready: before that, packets to it would be lost uncounted. */
static int await(struct pl_lab_commands *c, struct pl_lab_running *r, struct pl_diag *diag)
{
	const uint64_t until_ns = pl_clock_mono_ns() + READY_NS;

	while (!is_ready(c, r)) {
		/* In a lab that is up c->wait() reaps children, and may set pid to 0. */
		if (r->pid == 0 || waitpid(r->pid, &r->status, WNOHANG) == r->pid) {
			r->pid = 0;
			return pl_lab_say_ended(log_of(c, r), r->text, diag);
		}
		if (pl_clock_mono_ns() > until_ns) {
			pl_diag_set(diag, "%s: '%s' is not ready within a minute", log_of(c, r),
				r->text);
			return -ETIMEDOUT;
		}
		if (!c->wait(c->arg))
			return -ECANCELED;
	}
	return 0;
}

/* The caller has checked that there is room. */
static struct pl_lab_running *add(struct pl_lab_commands *c, const struct pl_lab_step *s)
{
	struct pl_lab_running *r = &c->all[c->n++];

	*r = (struct pl_lab_running){
		.node = s->node, .text = s->command, .of = s->of, .serves = s->serves, .waits = true
	};
	return r;
}

static int start(struct pl_lab_commands *c, struct pl_lab_running *r, struct pl_diag *diag)
{
	const pid_t pid = fork();

	if (pid < 0) {
		pl_diag_set(diag, "a command: %s", strerrordesc_np(errno));
		return -errno;
	}
	if (pid == 0)
		become(c, r);
	/* Both set it: end() finds the group however late the command comes to do so, and it has
	 * one when it is executed. */
	(void)setpgid(pid, pid);
	r->pid = r->group = pid;
	r->waits = false;
	return r->of != NULL ? await(c, r, diag) : 0;
}

int pl_lab_commands_check(const struct pl_lab_plan *plan, struct pl_diag *diag)
{
	unsigned int n = 0;

	for (size_t i = 0; i < plan->n; i++)
		n += plan->steps[i].kind == PL_LAB_RUN;
	if (n <= PL_LAB_COMMANDS_MAX)
		return 0;
	pl_diag_set(diag, "more than %d commands", PL_LAB_COMMANDS_MAX);
	return -E2BIG;
}

int pl_lab_commands_start(
	struct pl_lab_commands *c, const struct pl_lab_plan *plan, struct pl_diag *diag)
{
	int r = pl_lab_commands_check(plan, diag);

	for (size_t i = 0; i < plan->n && r == 0; i++) {
		if (plan->steps[i].kind == PL_LAB_RUN)
			r = start(c, add(c, &plan->steps[i]), diag);
	}
	/* The lab's own programs need no order: all are started, then awaited. */
	for (unsigned int i = 0; i < c->n && r == 0; i++) {
		if (c->all[i].serves)
			r = await(c, &c->all[i], diag);
	}
	return r;
}

static void put_end(int status, char ret[32])
{
	snprintf(ret, 32, "%s %d", WIFSIGNALED(status) ? "signal" : "exit code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Writes the end to the file `ended`, which `lab show` reads, and to standard error. */
static void note_end(const struct pl_lab_commands *c, const struct pl_lab_running *r)
{
	int fd = open("ended", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600), n;
	char line[512], how[32];

	put_end(r->status, how);
	n = snprintf(line, sizeof(line) - 1, "%s: '%.400s' ended with %s, output in %s.log",
		c->t->nodes[r->node].name, told_name(r), how, log_of(c, r));
	dprintf(2, "%s\n", line);
	line[n] = '\n';
	if (fd >= 0 && write(fd, line, (size_t)n + 1) < 0)
		dprintf(2, "ended: %s\n", strerrordesc_np(errno));
	if (fd >= 0)
		close(fd);
}

void pl_lab_commands_ended(struct pl_lab_commands *c, pid_t pid, int status)
{
	for (unsigned int i = 0; i < c->n; i++) {
		struct pl_lab_running *r = &c->all[i];

		if (r->pid == pid) {
			r->pid = 0;
			r->status = status;
			if (!r->dismissed)
				note_end(c, r);
		}
		/* Without processes its number is free for others. */
		if (r->pid == 0 && r->group != 0 && kill(-r->group, 0) < 0)
			r->group = 0;
	}
}

/* ---- others in their place ---- */

static bool goes_on(const struct pl_lab_running *r, const struct pl_lab_step *s)
{
	if (r->of == NULL || s->of == NULL)
		return r->of == NULL && s->of == NULL && r->node == s->node;
	return !r->waits && pl_lab_change_same_command(r->of, s->of);
}

/* For each RUN step of the plan sets ret_by_step to 1 + the index of the running command that goes
 * on as it; 0: none. A running command serves one step only. */
static void match(const struct pl_lab_commands *c, const struct pl_lab_plan *plan,
	unsigned int ret_by_step[PL_LAB_COMMANDS_MAX], bool ret_goes_on[PL_LAB_COMMANDS_MAX])
{
	unsigned int n = 0;

	for (size_t i = 0; i < plan->n; i++) {
		if (plan->steps[i].kind != PL_LAB_RUN)
			continue;
		ret_by_step[n] = 0;
		for (unsigned int k = 0; k < c->n && ret_by_step[n] == 0; k++) {
			if (ret_goes_on[k] || !goes_on(&c->all[k], &plan->steps[i]))
				continue;
			ret_goes_on[k] = true;
			ret_by_step[n] = k + 1;
		}
		n++;
	}
}

/* Ends a command with all that its shell started (its process group), which may go on without the
 * shell. */
static int end(struct pl_lab_commands *c, struct pl_lab_running *r)
{
	const uint64_t until_ns = pl_clock_mono_ns() + END_NS;
	const pid_t group = r->group;
	bool killed = false;

	if (group == 0)
		return 0;
	(void)kill(-group, SIGTERM);
	/* c->wait() reaps the ended ones, so that kill() stops finding the group. */
	while (kill(-group, 0) == 0) {
		if (!killed && pl_clock_mono_ns() > until_ns) {
			(void)kill(-group, SIGKILL);
			killed = true;
		}
		if (!c->wait(c->arg))
			return -ECANCELED;
	}
	return 0;
}

/* Renames an old log of that name, perhaps of another command, so that the new one has only the new
 * command's output. */
static void begin_log(const struct pl_lab_running *r)
{
	char path[PL_LAB_NAME_MAX + sizeof(".log")], old[PL_LAB_NAME_MAX + sizeof(".log.1")];

	if (!has_name(r))
		return;
	snprintf(path, sizeof(path), "%s.log", r->of->name);
	snprintf(old, sizeof(old), "%s.log.1", r->of->name);
	if (rename(path, old) < 0 && errno != ENOENT)
		dprintf(2, "%s: %s\n", path, strerrordesc_np(errno));
}

static int end_others(struct pl_lab_commands *c, const bool *stay, const struct pl_lab_topology *t,
	struct pl_buf *out)
{
	int r = 0;

	for (unsigned int i = c->n; i-- > 0 && r == 0;) {
		struct pl_lab_running *one = &c->all[i];

		if (stay[i] || one->waits)
			continue;
		/* A command that is restarted is reported as it starts. */
		if (!has_name(one) || pl_lab_find_command(t, one->of->name) == NULL)
			pl_lab_change_tell(out, "command", "ended", told_name(one));
		one->dismissed = true;
		r = end(c, one);
	}
	return r;
}

/* Rebuilds c->all in the order of the plan; old: a copy of the previous c->all. */
static void take_places(struct pl_lab_commands *c, const struct pl_lab_plan *plan,
	const struct pl_lab_running *old, const unsigned int *by_step)
{
	c->n = 0;
	for (size_t i = 0; i < plan->n; i++) {
		struct pl_lab_running *next;
		unsigned int was;

		if (plan->steps[i].kind != PL_LAB_RUN)
			continue;
		was = by_step[c->n];
		next = add(c, &plan->steps[i]);
		if (was == 0)
			continue;
		next->pid = old[was - 1].pid;
		next->group = old[was - 1].group;
		next->told = old[was - 1].told;
		next->waits = old[was - 1].waits;
		next->status = old[was - 1].status;
	}
}

/* Starts the commands of the new plan that do not run yet. */
static int start_others(struct pl_lab_commands *c, const struct pl_lab_topology *was,
	struct pl_buf *out, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; i < c->n && r == 0; i++) {
		struct pl_lab_running *one = &c->all[i];
		bool again;

		if (!one->waits)
			continue;
		again = has_name(one) && pl_lab_find_command(was, one->of->name) != NULL;
		pl_lab_change_tell(out, "command", again ? "restarted" : "started", told_name(one));
		begin_log(one);
		r = start(c, one, diag);
	}
	return r;
}

int pl_lab_commands_become(struct pl_lab_commands *c, const struct pl_lab_topology *t,
	const struct pl_lab_plan *plan, struct pl_buf *out, struct pl_diag *diag)
{
	struct pl_lab_running *old = calloc(PL_LAB_COMMANDS_MAX, sizeof(*old));
	const struct pl_lab_topology *was = c->t;
	unsigned int by_step[PL_LAB_COMMANDS_MAX];
	bool stay[PL_LAB_COMMANDS_MAX] = { false };
	int r = old == NULL ? -ENOMEM : 0;

	match(c, plan, by_step, stay);
	if (r == 0)
		r = end_others(c, stay, t, out);
	if (r == 0) {
		memcpy(old, c->all, sizeof(c->all));
		take_places(c, plan, old, by_step);
		c->t = t;
		r = start_others(c, was, out, diag);
	}
	free(old);
	return r;
}

/* ---- asked and ended ---- */

static void ask(const struct pl_lab_commands *c)
{
	for (unsigned int i = 0; i < c->n; i++) {
		if (has_name(&c->all[i]) && c->all[i].of->account && c->all[i].pid != 0)
			(void)kill(c->all[i].pid, SIGUSR1);
	}
}

/* Ends the last running command when those without `ready` have finished. */
static void finish(struct pl_lab_commands *c)
{
	struct pl_lab_running *last = NULL;

	for (unsigned int i = 0; i < c->n; i++) {
		struct pl_lab_running *r = &c->all[i];

		if (!has_name(r) || r->pid == 0)
			continue;
		if (r->of->ready == NULL)
			return;
		last = r;
	}
	if (last == NULL || last->told)
		return;
	last->told = true;
	/* The whole process group, as the shell may have children. */
	(void)kill(-last->pid, SIGTERM);
}

int pl_lab_commands_serve(struct pl_lab_commands *c, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag)
{
	char state[32];

	if (n == 1 && strcmp(words[0], "ask") == 0) {
		ask(c);
	} else if (n == 1 && strcmp(words[0], "finish") == 0) {
		finish(c);
	} else {
		pl_diag_set(diag, "a request that is none");
		return -EINVAL;
	}
	for (unsigned int i = 0; i < c->n; i++) {
		const struct pl_lab_running *r = &c->all[i];

		if (!has_name(r))
			continue;
		snprintf(state, sizeof(state), "%s",
			r->waits  ? "not started"
			: r->told ? "ending"
				  : "running");
		if (r->pid == 0 && !r->waits)
			put_end(r->status, state);
		pl_buf_printf(out, "%s %d %s\n", r->of->name, (int)r->pid, state);
	}
	return 0;
}
