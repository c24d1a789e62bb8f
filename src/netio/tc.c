/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaches a traffic control program to an interface and detaches it. */
#include "netio/tc.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"
#include "netio/caps.h"
#include "netio/program.h"

#define FILTER_HANDLE   0x504c
#define FILTER_PRIORITY 0x504c
#define FIRST           (UINT32_C(1) << 3) /* BPF_F_BEFORE without a program: before all others */

struct pl_tc {
	int ifindex;
	bool leaving;
	int link_fd;   /* -1: a filter of clsact */
	int keeper_fd; /* pipe whose end tells the keeper process to remove the filter */
	int note_fd;   /* locked while this process or the keeper lives */
	int unnoted;   /* negative errno: why there is no note; 0: there is one, or none needed */
	pid_t keeper;
};

static int link_with(
	const struct pl_rights *rights, int prog_fd, int ifindex, enum pl_tc_place place)
{
	const uint32_t type = place == PL_TC_IN ? PL_LINK_TCX_IN : PL_LINK_TCX_OUT,
		       flags = place == PL_TC_OUT ? 0 : FIRST;
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags);

	if (rights != NULL)
		return rights->link(rights, prog_fd, ifindex, type, flags);
	return bpf_link_create(prog_fd, ifindex, (enum bpf_attach_type)type, &options);
}

/* ---- clsact ---- */

static struct bpf_tc_hook hook_of(const struct pl_tc *tc)
{
	return (struct bpf_tc_hook){ .sz = sizeof(struct bpf_tc_hook),
		.ifindex = tc->ifindex,
		.attach_point = tc->leaving ? BPF_TC_EGRESS : BPF_TC_INGRESS };
}

static int add_filter(const struct pl_tc *tc, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_opts, o, .prog_fd = prog_fd, .handle = FILTER_HANDLE,
		.priority = FILTER_PRIORITY);
	pl_program_voice before = pl_program_hush();
	struct bpf_tc_hook hook = hook_of(tc);
	int r = bpf_tc_hook_create(&hook);

	if (r == 0 || r == -EEXIST)
		r = bpf_tc_attach(&hook, &o);
	pl_program_talk(before);
	return r;
}

/*
 * Opens the note in pl_tc_notes() that tells a later process whether a filter is the left-over of
 * ended processes: it holds the id of our program, and is locked (flock) while this process or its
 * keeper lives. The file is never removed, so that all processes lock the same one.
 */
static int open_note(const struct pl_tc *tc)
{
	const char *folder = pl_tc_notes();
	char path[256];
	struct stat ns, st;
	int fd;

	if (stat("/proc/self/ns/net", &ns) < 0)
		return -errno;
	(void)mkdir(folder, 0755);
	if (snprintf(path, sizeof(path), "%s/tc-%ju-%d-%s", folder, (uintmax_t)ns.st_ino,
		    tc->ifindex, tc->leaving ? "out" : "in") >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	/* The folder may belong to a service user: a file with a second link is not overwritten. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Returns the id of the program; 0 on an error. */
static uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(prog_fd, &info, &len) == 0 ? info.id : 0;
}

/* Writes the program's id into the note. The filter works without it, but is not cleaned up when
 * both processes are killed. */
static void write_note(struct pl_tc *tc, int prog_fd)
{
	char text[16];
	const int n = snprintf(text, sizeof(text), "%" PRIu32 "\n", id_of(prog_fd));

	errno = ENOSPC; /* of a write that was cut */
	if (tc->note_fd >= 0 &&
		(ftruncate(tc->note_fd, 0) < 0 || pwrite(tc->note_fd, text, (size_t)n, 0) != n)) {
		tc->unnoted = -errno;
		close(tc->note_fd);
		tc->note_fd = -1;
	}
}

/* Returns the program id of the filter under our handle and priority; 0: none. */
static uint32_t attached_id(const struct pl_tc *tc)
{
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY);
	pl_program_voice before = pl_program_hush();
	struct bpf_tc_hook hook = hook_of(tc);
	const int r = bpf_tc_query(&hook, &o);

	pl_program_talk(before);
	return r == 0 ? o.prog_id : 0;
}

/* Returns true when the attached filter is the one in the note; the caller holds the note's
 * lock. */
static bool is_left_over(const struct pl_tc *tc)
{
	char text[16] = "";
	const uint32_t id = attached_id(tc);

	return tc->note_fd >= 0 && pread(tc->note_fd, text, sizeof(text) - 1, 0) > 0 && id != 0 &&
	       strtoul(text, NULL, 10) == id;
}

static void remove_filter(const struct pl_tc *tc)
{
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY);
	struct bpf_tc_hook hook = hook_of(tc);

	(void)bpf_tc_detach(&hook, &o);
}

/* Adds the filter, replacing one whose owners have ended. */
static int add_own_filter(struct pl_tc *tc, int prog_fd)
{
	int r = add_filter(tc, prog_fd);

	if (r != 0 && r != -EEXIST)
		return r;
	tc->note_fd = open_note(tc);
	tc->unnoted = tc->note_fd < 0 ? tc->note_fd : 0;
	if (tc->note_fd >= 0 && flock(tc->note_fd, LOCK_EX | LOCK_NB) < 0) {
		/* Its owner still runs. */
		close(tc->note_fd);
		tc->note_fd = -1;
	}
	if (r == -EEXIST && is_left_over(tc)) {
		remove_filter(tc);
		r = add_filter(tc, prog_fd);
	}
	if (r == 0)
		write_note(tc, prog_fd);
	return r;
}

/* The keeper process: removes the filter when the pipe closes, that is when this process has ended
 * in any way. */
_Noreturn static void keep(const struct pl_tc *tc, int fd)
{
	const struct pl_privilege_options privilege = { .keep = PL_PRIVILEGE_NET_ADMIN };
	struct pl_diag diag = { .text = "" };
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "pathline-filter", 0, 0, 0);
	/* Descriptor 4 is the note: it keeps the lock. */
	fd = fcntl(fd, F_DUPFD, 16);
	if (fd < 0 || dup2(tc->note_fd >= 0 ? tc->note_fd : fd, 4) < 0 || dup2(fd, 3) < 0)
		_exit(1);
	(void)syscall(SYS_close_range, 5, ~0u, 0);
	(void)pl_privilege_drop(&privilege, &diag);
	while (read(3, &byte, 1) < 0 && errno == EINTR)
		;
	remove_filter(tc);
	_exit(0);
}

static int attach_filter(struct pl_tc *tc, int prog_fd)
{
	int fds[2], r = add_own_filter(tc, prog_fd);

	if (r < 0)
		return r;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		r = -errno;
	} else {
		tc->keeper = fork();
		if (tc->keeper == 0) {
			close(fds[1]);
			keep(tc, fds[0]);
		}
		r = tc->keeper < 0 ? -errno : 0;
		close(fds[0]);
		if (r < 0)
			close(fds[1]);
		else
			tc->keeper_fd = fds[1];
	}
	if (r < 0)
		remove_filter(tc);
	return r;
}

/* ---- the rest ---- */

static int tell(const char *ifname, int r, bool leaving, struct pl_diag *diag)
{
	char caps[96];

	if (r == -EPERM || r == -EACCES) {
		pl_caps_text(pl_caps_missing(PL_CAP_NET_ADMIN | PL_CAP_BPF), caps, sizeof(caps));
		pl_diag_set(diag, "%s: attaching a program of traffic control needs %s", ifname,
			caps[0] != '\0' ? caps : "privileges that this process lacks (EPERM)");
		return -EPERM;
	}
	if (r == -EEXIST || r == -EBUSY) {
		pl_diag_set(diag,
			"%s has a program of another pathline process already, a tap or INT at hosts "
			"(clsact, %s, priority %d); on Linux before 6.6 there can be one only: end that "
			"process (if there is none any more: tc filter del dev %s %s pref %d)",
			ifname, leaving ? "egress" : "ingress", FILTER_PRIORITY, ifname,
			leaving ? "egress" : "ingress", FILTER_PRIORITY);
		return -EBUSY;
	}
	pl_diag_set(diag, "%s: attaching a program of traffic control: %s", ifname, strerror(-r));
	return r;
}

int pl_tc_attach(struct pl_tc **ret, const char *ifname, int prog_fd, enum pl_tc_place place,
	const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_tc *tc = calloc(1, sizeof(*tc));
	int r;

	if (tc == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	tc->link_fd = tc->keeper_fd = tc->note_fd = -1;
	tc->leaving = place != PL_TC_IN;
	tc->ifindex = (int)if_nametoindex(ifname);
	if (tc->ifindex == 0) {
		pl_diag_set(diag, "there is no interface '%s'", ifname);
		free(tc);
		return -ENODEV;
	}
	r = link_with(rights, prog_fd, tc->ifindex, place);
	if (r >= 0)
		tc->link_fd = r;
	else if (r == -EINVAL || r == -EOPNOTSUPP)
		r = attach_filter(tc, prog_fd);
	if (r < 0) {
		r = tell(ifname, r, tc->leaving, diag);
		if (tc->note_fd >= 0)
			close(tc->note_fd);
		free(tc);
		return r;
	}
	*ret = tc;
	return 0;
}

int pl_tc_unnoted(const struct pl_tc *tc)
{
	return tc != NULL ? tc->unnoted : 0;
}

int pl_tc_link(const struct pl_tc *tc)
{
	return tc->link_fd;
}

void pl_tc_detach(struct pl_tc *tc)
{
	if (tc == NULL)
		return;
	if (tc->link_fd >= 0)
		close(tc->link_fd);
	if (tc->keeper_fd >= 0) {
		close(tc->keeper_fd);
		(void)waitpid(tc->keeper, NULL, 0);
	}
	if (tc->note_fd >= 0)
		close(tc->note_fd);
	free(tc);
}
