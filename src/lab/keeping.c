/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the lab processes of all tiers use. */
#include "lab/keeping.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/local_socket.h"

#define LOG_PART 4096 /* bytes of a log that are read together */

/* Uses the system call: the C library refuses its two internal signals, which the lab's starter may
 * have ignored as well. */
void pl_lab_reset_signals(void)
{
	/* The kernel's struct sigaction of the default action: all zeros. */
	static const unsigned long by_default[8];

	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)syscall(SYS_rt_sigaction, i, by_default, NULL, (NSIG - 1) / 8);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int pl_lab_redirect(const char *name)
{
	char path[PL_LAB_NAME_MAX + 8];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fd;

	snprintf(path, sizeof(path), "%s.log", name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (null < 0 || fd < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		return -errno;
	return 0;
}

void pl_lab_lead_path(void)
{
	const char *old = getenv("PATH");
	char self[512], path[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	snprintf(path, sizeof(path), "%s:%s", self, old != NULL ? old : "/usr/bin:/bin");
	(void)setenv("PATH", path, 1);
}

bool pl_lab_listens(const char *node)
{
	char path[PL_LAB_NAME_MAX + sizeof(".sock")];
	int fd;

	snprintf(path, sizeof(path), "%s.sock", node);
	fd = pl_local_connect(path, SOCK_STREAM, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- logs ---- */

static int open_log(const char *name)
{
	char path[PL_LAB_NAME_MAX + sizeof(".log")];

	snprintf(path, sizeof(path), "%s.log", name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

bool pl_lab_said(const char *name, const char *text, uint64_t *at)
{
	const size_t len = strlen(text), room = LOG_PART + len;
	char *part = malloc(room);
	const int fd = part != NULL ? open_log(name) : -1;
	bool found = len == 0 && fd >= 0;
	ssize_t n;

	while (fd >= 0 && !found && (n = pread(fd, part, room, (off_t)*at)) >= (ssize_t)len) {
		found = memmem(part, (size_t)n, text, len) != NULL;
		/* The text may begin in this part and end in the next. */
		if (!found)
			*at += (uint64_t)n - len + 1;
	}
	if (fd >= 0)
		close(fd);
	free(part);
	return found;
}

/* Reads the end of a log, without newlines behind it. */
static void read_end(const char *name, char *ret, size_t size)
{
	const int fd = open_log(name);
	const off_t all = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	const off_t from = all > (off_t)size - 1 ? all - (off_t)size + 1 : 0;
	ssize_t n = fd >= 0 ? pread(fd, ret, size - 1, from) : 0;

	if (fd >= 0)
		close(fd);
	while (n > 0 && ret[n - 1] == '\n')
		n--;
	ret[n > 0 ? n : 0] = '\0';
}

int pl_lab_say_ended(const char *node, const char *command, struct pl_diag *diag)
{
	char text[LOG_PART];
	const char *last;

	read_end(node, text, sizeof(text));
	last = strrchr(text, '\n');
	pl_diag_set(diag, "%s: '%s' ended: %s", node, command,
		last != NULL      ? last + 1
		: text[0] != '\0' ? text
				  : "it said nothing");
	return -ECHILD;
}

/* ---- the keeper ---- */

/* Returns a signalfd of SIGTERM, SIGINT and SIGCHLD, which become blocked, or negative errno. */
static int take_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Closes all descriptors from 3 on that the lab does not need: an inherited pipe would never end,
 * an inherited lock never be released. */
static void close_inherited(const struct pl_lab_keeper *k)
{
	const unsigned int keep[] = { (unsigned int)k->state->lock, (unsigned int)k->go,
		(unsigned int)k->verdict };

	for (unsigned int from = 3, next = 0; next != ~0u; from = next + 1) {
		next = ~0u;
		for (unsigned int i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
			next = keep[i] >= from && keep[i] < next ? keep[i] : next;
		if (next > from)
			(void)syscall(SYS_close_range, from, next - 1, 0);
	}
}

int pl_lab_tell_verdict(struct pl_lab_keeper *k, int r, const struct pl_diag *diag)
{
	struct pl_lab_verdict v = { .error = r, .diag = *diag };

	if (r < 0 && v.diag.text[0] == '\0')
		pl_diag_set(&v.diag, "%s", strerrordesc_np(-r));
	if (write(k->verdict, &v, sizeof(v)) != sizeof(v) && r == 0)
		r = -ECANCELED;
	close(k->verdict);
	k->verdict = -1;
	return r;
}

void pl_lab_say_unable(const struct pl_lab_keeper *k, int error)
{
	struct pl_lab_verdict v = { .error = error };

	pl_diag_set(&v.diag, "%s: %s", k->state->folder, strerrordesc_np(-error));
	if (write(k->verdict, &v, sizeof(v)) < 0)
		return; /* no process waits for it any more */
}

int pl_lab_keep_begin(const struct pl_lab_keeper *k, int *ret_signals)
{
	int r = 0;

	(void)setsid();
	close_inherited(k);
	*ret_signals = take_signals();
	/* A process in the folder can use it also after another /run is mounted. */
	if (*ret_signals < 0 || chdir(k->state->folder) < 0 || pl_lab_redirect("keeper") < 0)
		r = -errno;
	pl_lab_lead_path();
	if (r < 0)
		pl_lab_say_unable(k, r);
	return r;
}

bool pl_lab_starter_is_gone(const struct pl_lab_keeper *k)
{
	struct pollfd fd = { .fd = k->go, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 && (fd.revents & POLLHUP) != 0;
}
