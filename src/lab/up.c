/* SPDX-License-Identifier: BSD-2-Clause */
/* Brings labs up and down. */
#include "lab/up.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"
#include "lab/build.h"
#include "runtime/signals.h"

#define CAP_SYS_ADMIN_BIT (UINT64_C(1) << 21)
/* Time for the keeper to end: it gives commands two seconds, and the kernel needs 10 ms to close a
 * link's socket. */
#define DOWN_MS           10000
#define DOWN_LINK_MS      50

/* ---- tiers ---- */

/* Tries in a child, as unshare() cannot be undone. Returns 0 or the errno of the first refusal.
 * Root of a container may have namespaces, but no right to mount. */
static int try_namespaces(int flags, bool named)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(unshare(flags) < 0 ? errno : named ? -pl_lab_netns_folder(NULL) : 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

/* Returns 0, or the errno of the refusal. */
static int try_tier(enum pl_lab_tier tier)
{
	const uint64_t needed = CAP_SYS_ADMIN_BIT | PL_PRIVILEGE_NET_ADMIN;

	if (tier == PL_LAB_UNPRIVILEGED)
		return try_namespaces(
			CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID, false);
	if (geteuid() != 0 || (pl_privilege_effective() & needed) != needed)
		return EPERM;
	return try_namespaces(CLONE_NEWNET | CLONE_NEWPID, true);
}

int pl_lab_choose_tier(enum pl_lab_tier *ret, const char *wanted, struct pl_diag *diag)
{
	int refused = 0;

	for (unsigned int i = 0; pl_lab_tiers[i] != NULL; i++) {
		if (wanted != NULL && strcmp(wanted, pl_lab_tiers[i]) != 0)
			continue;
		*ret = (enum pl_lab_tier)i;
		if (i == PL_LAB_SIMULATED && refused == 0)
			return 0;
		if (i == PL_LAB_SIMULATED)
			break;
		refused = try_tier(*ret);
		if (refused == 0)
			return 0;
	}
	pl_diag_set(diag,
		"no network namespaces here (%s): for them run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces above 0); a container has neither without --privileged",
		strerrordesc_np(refused));
	return *ret == PL_LAB_SIMULATED ? 0 : -EPERM;
}

static int write_word(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Makes the user root of a new user namespace, with new mount, PID and network namespaces. */
static int become_own_root(void)
{
	const unsigned int uid = geteuid(), gid = getegid();
	char map[64];
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) < 0)
		return -errno;
	r = write_word("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (r == 0)
		r = write_word("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return r == 0 ? write_word("/proc/self/gid_map", map) : r;
}

/* ---- up ---- */

struct pipes {
	int go[2], verdict[2];
};

/* Blocks SIGINT and SIGTERM until the lab is up, or nothing is left of it. Returns a descriptor of
 * them, or negative errno. */
static int hold_signals(sigset_t *ret_before)
{
	int fd;

	(void)sigprocmask(SIG_BLOCK, NULL, ret_before);
	fd = pl_signals_fd((const int[]){ 0 }, SFD_NONBLOCK);
	if (fd >= 0)
		return fd;
	fd = -errno;
	(void)sigprocmask(SIG_SETMASK, ret_before, NULL);
	return fd;
}

/* Discards pending ones and restores the mask. */
static void release_signals(int fd, const sigset_t *before)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) > 0)
		continue;
	close(fd);
	(void)sigprocmask(SIG_SETMASK, before, NULL);
}

/* Waits for the verdict or a signal. Returns true for a signal without verdict. */
static bool is_interrupted(int verdict, int signals)
{
	struct pollfd fds[] = { { .fd = verdict, .events = POLLIN },
		{ .fd = signals, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		continue;
	return fds[0].revents == 0 && fds[1].revents != 0;
}

/* Waits for the keeper's verdict. Returns it, -EINTR, or -ECHILD when the keeper died without
 * one. */
static int wait_for_verdict(
	const struct pl_lab_keeper *k, int fd, int signals, struct pl_diag *diag)
{
	struct pl_lab_verdict said;
	ssize_t n;

	if (is_interrupted(fd, signals)) {
		k->interrupted();
		pl_diag_set(diag,
			"lab '%s' did not come up: it was interrupted, and all of it was removed",
			k->t->name);
		return -EINTR;
	}
	do
		n = read(fd, &said, sizeof(said));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(said)) {
		pl_diag_set(diag, "another process ended that of the lab; all of it was removed");
		return -ECHILD;
	}
	if (said.error < 0 && diag != NULL)
		*diag = said.diag;
	return said.error;
}

static void be_keeper(struct pl_lab_keeper *k, struct pipes *p)
{
	close(p->go[1]);
	close(p->verdict[0]);
	k->go = p->go[0];
	k->verdict = p->verdict[1];
	_exit(k->tier == PL_LAB_SIMULATED ? pl_lab_keep_simulated(k) : pl_lab_keep(k));
}

static int start(struct pl_lab_keeper *k, struct pipes *p, int signals, struct pl_diag *diag)
{
	char number[16];
	pid_t pid;
	int r = k->tier == PL_LAB_UNPRIVILEGED ? become_own_root()
		: k->tier == PL_LAB_SIMULATED  ? 0
		: unshare(CLONE_NEWPID) < 0    ? -errno
					       : 0;

	if (r < 0) {
		pl_diag_set(diag, "namespaces of the lab: %s", strerrordesc_np(-r));
		pl_lab_state_sweep(k->state);
		return r;
	}
	pid = fork();
	if (pid == 0)
		be_keeper(k, p);
	if (pid < 0) {
		r = -errno;
		pl_lab_state_sweep(k->state);
		return r;
	}
	close(p->go[0]);
	close(p->verdict[1]);
	p->go[0] = p->verdict[1] = -1;
	snprintf(number, sizeof(number), "%d\n", (int)pid);
	/* The file is written in place, because replacing it would lose the lock. */
	if (pwrite(k->state->lock, number, strlen(number), 0) < 0 || write(p->go[1], "g", 1) != 1)
		r = -errno;
	if (r == 0)
		r = wait_for_verdict(k, p->verdict[0], signals, diag);
	if (r < 0) {
		/* The keeper removes what it made, and ends; the remains of a killed keeper are
		 * removed here. */
		close(p->go[1]);
		p->go[1] = -1;
		/* It may be up already, and no longer look whether this process is there. */
		(void)kill(pid, SIGTERM);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		if (r == -ECHILD)
			pl_lab_state_sweep(k->state);
	}
	return r;
}

static void close_pipe(int p[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		if (p[i] >= 0)
			close(p[i]);
	}
}

int pl_lab_up(const struct pl_lab_topology *t, enum pl_lab_tier tier, void (*interrupted)(void),
	struct pl_diag *diag)
{
	struct pl_lab_state state = { .lock = -1 };
	struct pl_lab_keeper k = {
		.t = t, .tier = tier, .state = &state, .interrupted = interrupted
	};
	struct pipes p = { { -1, -1 }, { -1, -1 } };
	sigset_t before;
	int r, signals;

	(void)pl_lab_sweep_all();
	signals = hold_signals(&before);
	if (signals < 0)
		return signals;
	r = pl_lab_state_make(&state, t->name, diag);
	if (r < 0)
		goto out;
	r = pl_lab_state_write(&state, "tier", pl_lab_tiers[tier]);
	if (r == 0)
		r = pl_lab_state_write(&state, "topology", t->text);
	if (r == 0 && (pipe2(p.go, O_CLOEXEC) < 0 || pipe2(p.verdict, O_CLOEXEC) < 0))
		r = -errno;
	if (r == 0) {
		r = start(&k, &p, signals, diag);
		pl_lab_state_leave(&state);
	} else {
		pl_lab_state_sweep(&state);
	}
	if (r < 0 && diag != NULL && diag->text[0] == '\0')
		pl_diag_set(diag, "lab '%s': %s", t->name, strerrordesc_np(-r));
	close_pipe(p.go);
	close_pipe(p.verdict);
out:
	release_signals(signals, &before);
	return r;
}

/* ---- down ---- */

int pl_lab_down(const char *what, char ret_name[PL_LAB_LAB_NAME_MAX + 1], struct pl_diag *diag)
{
	struct pl_lab_found f;
	struct pollfd ended = { .events = POLLIN };
	int r = pl_lab_find(&f, what, diag), wait, done = 0;

	/* A lab whose topology cannot be read is ended, too. */
	if (r < 0 && f.pidfd < 0) {
		pl_lab_found_done(&f);
		return r;
	}
	snprintf(ret_name, PL_LAB_LAB_NAME_MAX + 1, "%s", f.name);
	ended.fd = f.pidfd;
	r = syscall(SYS_pidfd_send_signal, f.pidfd, SIGTERM, NULL, 0) < 0 ? -errno : 0;
	wait = DOWN_MS + DOWN_LINK_MS * (int)f.topology.n_links;
	for (unsigned int i = 0; i < 2 && r == 0 && done == 0; i++) {
		if (i > 0 && syscall(SYS_pidfd_send_signal, f.pidfd, SIGKILL, NULL, 0) < 0)
			r = -errno;
		while (r == 0 && (done = poll(&ended, 1, wait)) < 0 && errno == EINTR)
			continue;
	}
	if (r == 0 && done <= 0)
		r = -ETIMEDOUT;
	if (r < 0 && r != -ESRCH)
		pl_diag_set(diag, "lab '%s': %s", f.name, strerrordesc_np(-r));
	else
		r = 0;
	pl_lab_found_done(&f);
	(void)pl_lab_sweep_all();
	return r;
}
