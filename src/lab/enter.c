/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs functions and commands inside the nodes of a running lab. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/keeping.h"
#include "lab/plan.h"
#include "lab/up.h"

static int open_namespace(pid_t pid, const char *kind)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int join(int fd, int flag)
{
	int r = fd < 0 ? fd : setns(fd, flag) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

static int join_network(const struct pl_lab_found *f, unsigned int node)
{
	char name[PL_LAB_NETNS_MAX], path[PL_LAB_NETNS_MAX + 48];
	int fd;

	pl_lab_netns_name(&f->topology, node, name);
	/* Through the lab process's root: with other mounts the file may be empty here. */
	snprintf(path, sizeof(path), "/proc/%d/root/run/netns/%s", (int)f->keeper, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return join(fd < 0 ? -errno : fd, CLONE_NEWNET);
}

/* Moves this process into the node; the PID namespace holds for its children. */
static int enter(const struct pl_lab_found *f, unsigned int node)
{
	const bool user = f->tier == PL_LAB_UNPRIVILEGED;
	int pid_ns = open_namespace(f->keeper, "pid_for_children");
	int user_ns = user ? open_namespace(f->keeper, "user") : -1;
	int mount_ns = user ? open_namespace(f->keeper, "mnt") : -1;
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (user) {
		r = join(user_ns, CLONE_NEWUSER);
		if (r == 0)
			r = join(mount_ns, CLONE_NEWNS);
		else if (mount_ns >= 0)
			close(mount_ns);
	}
	if (r == 0)
		r = join(pid_ns, CLONE_NEWPID);
	else if (pid_ns >= 0)
		close(pid_ns);
	if (r == 0)
		r = join_network(f, node);
	if (here >= 0) {
		/* If the folder cannot be reached in those mounts, `/` is taken. */
		if (user && fchdir(here) < 0 && chdir("/") < 0)
			r = -errno;
		close(here);
	}
	return r;
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs in a child: enters the node, forks a child into the PID namespace for what(), and passes its
 * exit code on. Writes an error of entering to `said`. Never returns. */
static void be_inside(const struct pl_lab_found *f, unsigned int node, int said,
	int (*what)(void *arg), void *arg)
{
	int r = enter(f, node), status = 0;
	pid_t pid;

	/* Signals of the terminal's keys are for the command. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	pid = r == 0 ? fork() : -1;
	if (r == 0 && pid < 0)
		r = -errno;
	if (pid == 0) {
		(void)signal(SIGINT, SIG_DFL);
		(void)signal(SIGQUIT, SIG_DFL);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(what(arg));
	}
	if (r < 0 && write(said, &r, sizeof(r)) != sizeof(r))
		_exit(1);
	close(said);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	_exit(code_of(status));
}

int pl_lab_call(const struct pl_lab_found *f, unsigned int node, int (*what)(void *arg), void *arg,
	struct pl_diag *diag)
{
	void (*old_int)(int), (*old_quit)(int);
	int said[2], status = 0, r = 0;
	pid_t pid;

	if (pipe2(said, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(said[0]);
		/* It ends with this process, and the command with it. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_inside(f, node, said[1], what, arg);
	}
	close(said[1]);
	if (pid < 0) {
		close(said[0]);
		return -errno;
	}
	old_int = signal(SIGINT, SIG_IGN);
	old_quit = signal(SIGQUIT, SIG_IGN);
	if (read(said[0], &r, sizeof(r)) != sizeof(r))
		r = 0;
	close(said[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	(void)signal(SIGINT, old_int);
	(void)signal(SIGQUIT, old_quit);
	if (r < 0) {
		pl_diag_set(diag, "node '%s' of lab '%s' cannot be entered: %s",
			f->topology.nodes[node].name, f->name, strerrordesc_np(-r));
		return r;
	}
	return code_of(status);
}

static int run_command(void *arg)
{
	char *const *argv = arg;

	/* Runs with the same PATH as the lab's own commands. */
	pl_lab_lead_path();
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerrordesc_np(errno));
	return errno == ENOENT ? 127 : 126;
}

int pl_lab_exec(
	const struct pl_lab_found *f, unsigned int node, char *const *argv, struct pl_diag *diag)
{
	if (f->tier == PL_LAB_SIMULATED && f->topology.nodes[node].collector)
		return run_command((void *)(uintptr_t)argv);
	if (f->tier == PL_LAB_SIMULATED) {
		pl_diag_set(diag,
			"the network of lab '%s' is simulated: programs run at its collector only, and hosts send by pathline lab traffic",
			f->name);
		return -EOPNOTSUPP;
	}
	return pl_lab_call(f, node, run_command, (void *)(uintptr_t)argv, diag);
}
