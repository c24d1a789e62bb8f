/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaches and detaches XDP programs. */
#include "netio/xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netio/caps.h"
#include "netio/program.h"
#include "netio/tc.h"

struct pl_xdp {
	int ifindex;
	int link_fd; /* -1: attached by netlink */
	bool native;
	uint32_t id;
	char note[128]; /* path of the note for a later process; only by netlink */
};

static uint32_t mode_flags(bool native)
{
	return native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
}

/* ---- who has it ---- */

/* Reads the name of a process from /proc; "" when there is none. */
static void process_name(int pid, char *dst, size_t cap)
{
	char path[64];
	FILE *f;

	dst[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	if (fgets(dst, (int)cap, f) == NULL)
		dst[0] = '\0';
	fclose(f);
	dst[strcspn(dst, "\n")] = '\0';
}

/* Returns true when this file of fdinfo describes the BPF link that attaches the program to the
 * interface. */
static bool is_link_of(int dir, const char *name, uint32_t id, int ifindex)
{
	char text[1024];
	const char *at;
	bool xdp, same_id = false, same_interface = false;
	ssize_t n;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	xdp = strstr(text, "link_type:\txdp\n") != NULL;
	at = strstr(text, "prog_id:\t");
	if (at != NULL)
		same_id = strtoul(at + strlen("prog_id:\t"), NULL, 10) == id;
	at = strstr(text, "ifindex:\t");
	if (at != NULL)
		same_interface = strtol(at + strlen("ifindex:\t"), NULL, 10) == ifindex;
	return xdp && same_id && same_interface;
}

static bool holds_link(const char *pid, uint32_t id, int ifindex)
{
	char path[300];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	d = opendir(path);
	if (d == NULL)
		return false;
	while (!found && (e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.')
			found = is_link_of(dirfd(d), e->d_name, id, ifindex);
	}
	closedir(d);
	return found;
}

/* Returns the process that holds the link, or 0. It reads /proc of all processes, so it is only for
 * messages. */
static int find_holder(uint32_t id, int ifindex)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int pid = 0;

	if (d == NULL)
		return 0;
	while (pid == 0 && (e = readdir(d)) != NULL) {
		if (isdigit((unsigned char)e->d_name[0]) && holds_link(e->d_name, id, ifindex))
			pid = (int)strtol(e->d_name, NULL, 10);
	}
	closedir(d);
	return pid;
}

static int query_id(int ifindex, uint32_t *ret_id, bool *ret_native)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	int r = bpf_xdp_query(ifindex, 0, &q);

	if (r < 0)
		return r;
	*ret_native = q.drv_prog_id != 0 || q.hw_prog_id != 0;
	*ret_id = q.drv_prog_id != 0   ? q.drv_prog_id
		  : q.hw_prog_id != 0  ? q.hw_prog_id
		  : q.skb_prog_id != 0 ? q.skb_prog_id
				       : q.prog_id;
	return 0;
}

int pl_xdp_query(int ifindex, struct pl_xdp_state *ret)
{
	int fd, r;

	memset(ret, 0, sizeof(*ret));
	r = query_id(ifindex, &ret->id, &ret->native);
	if (r < 0 || ret->id == 0)
		return r;
	fd = bpf_prog_get_fd_by_id(ret->id);
	if (fd >= 0) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0)
			snprintf(ret->name, sizeof(ret->name), "%s", info.name);
		close(fd);
	}
	ret->pid = find_holder(ret->id, ifindex);
	if (ret->pid != 0)
		process_name(ret->pid, ret->process, sizeof(ret->process));
	return 0;
}

static void tell_other(const char *ifname, int ifindex, struct pl_diag *diag)
{
	struct pl_xdp_state other;
	char program[64] = "", holder[128] = "";

	if (pl_xdp_query(ifindex, &other) < 0 || other.id == 0) {
		pl_diag_set(diag, "%s: another process is attaching an XDP program to it", ifname);
		return;
	}
	if (other.name[0] != '\0')
		snprintf(program, sizeof(program), "'%s' ", other.name);
	if (other.pid != 0)
		snprintf(holder, sizeof(holder), ", held by process %d (%s)", other.pid,
			other.process);
	pl_diag_set(diag,
		"%s has an XDP program already: %s(id %" PRIu32
		", %s)%s; an interface can have one only: detach it",
		ifname, program, other.id, other.native ? "native" : "generic", holder);
}

/* ---- the note for the next start, where the kernel does not clean up ---- */

/* Returns the start time of a process in ticks since boot, which tells it from a later one with the
 * same pid. 0: no such process. */
static uint64_t process_start(int pid)
{
	char path[64], text[1024], *at;
	uint64_t start = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may hold anything */
	/* The name is field 2, the time of start field 22. */
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at != NULL)
		start = strtoull(at, NULL, 10);
	return start;
}

/* Returns the folder of notes: RUNTIME_DIRECTORY of systemd, /run/pathline, or the user's own.
 * -ENOENT when there is none. */
static int note_folder(char *dst, size_t cap)
{
	const char *folder = pl_tc_notes(), *user = getenv("XDG_RUNTIME_DIR");
	int n;

	if (getenv("RUNTIME_DIRECTORY") != NULL || access("/run", W_OK) == 0 ||
		access(folder, W_OK) == 0)
		n = snprintf(dst, cap, "%s", folder);
	else if (user != NULL)
		n = snprintf(dst, cap, "%s/pathline", user);
	else
		return -ENOENT;
	return (size_t)n < cap ? 0 : -ENAMETOOLONG;
}

/* Writes the path of an interface's note; it names the network namespace too, because each numbers
 * its interfaces on its own. */
static int note_path(int ifindex, bool make, char *dst, size_t cap)
{
	struct stat ns;
	char dir[96];
	int r;

	if (stat("/proc/self/ns/net", &ns) < 0)
		return -errno;
	r = note_folder(dir, sizeof(dir));
	if (r < 0)
		return r;
	if (make && mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	return (size_t)snprintf(dst, cap, "%s/xdp-%ju-%d", dir, (uintmax_t)ns.st_ino, ifindex) < cap
		       ? 0
		       : -ENAMETOOLONG;
}

static int write_note(struct pl_xdp *xdp)
{
	int r = note_path(xdp->ifindex, true, xdp->note, sizeof(xdp->note));
	FILE *f;
	int fd;

	if (r < 0) {
		xdp->note[0] = '\0';
		return r;
	}
	/* The folder may belong to a service user: no file elsewhere is overwritten. Each process
	 * writes a file of its own; unlink() does not follow a link. */
	if (unlink(xdp->note) < 0 && errno != ENOENT)
		return -errno;
	fd = open(xdp->note, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "w");
	if (f == NULL) {
		r = -errno;
		close(fd);
		return r;
	}
	fprintf(f, "%" PRIu32 " %d %" PRIu64 "\n", xdp->id, (int)getpid(), process_start(getpid()));
	return fclose(f) != 0 ? -errno : 0;
}

/* Returns true when the note says that the attached program was ours and its process has ended. */
static bool is_left_over(int ifindex, uint32_t id)
{
	char path[128], line[128] = "", *at = line;
	uint64_t noted_id, start;
	long pid;
	FILE *f;

	if (note_path(ifindex, false, path, sizeof(path)) < 0)
		return false;
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	noted_id = strtoull(at, &at, 10);
	pid = strtol(at, &at, 10);
	start = strtoull(at, &at, 10);
	return *at == '\n' && noted_id == id && start != 0 && process_start((int)pid) != start;
}

static int attach_by_netlink(struct pl_xdp *xdp, int prog_fd)
{
	uint32_t flags = mode_flags(xdp->native) | XDP_FLAGS_UPDATE_IF_NOEXIST, id = 0;
	bool native;
	int r;

	if (query_id(xdp->ifindex, &id, &native) == 0 && id != 0 && is_left_over(xdp->ifindex, id))
		(void)bpf_xdp_detach(xdp->ifindex, mode_flags(native), NULL);
	r = bpf_xdp_attach(xdp->ifindex, prog_fd, flags, NULL);
	if (r < 0)
		return r;
	xdp->link_fd = -1;
	r = query_id(xdp->ifindex, &xdp->id, &native);
	if (r == 0)
		r = write_note(xdp);
	/* Without the note no later process could clean up. */
	if (r < 0)
		(void)bpf_xdp_detach(xdp->ifindex, mode_flags(xdp->native), NULL);
	return r;
}

static int attach_by_link(struct pl_xdp *xdp, int prog_fd, const struct pl_rights *rights)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = mode_flags(xdp->native));
	int fd = rights != NULL
			 ? rights->link(rights, prog_fd, xdp->ifindex, PL_LINK_XDP, options.flags)
			 : bpf_link_create(prog_fd, xdp->ifindex, BPF_XDP, &options);

	if (fd < 0)
		return fd;
	xdp->link_fd = fd;
	return 0;
}

/* Attaches by link; by netlink on kernels before 5.9, which do not know links (-EINVAL). */
static int attach_in_mode(
	struct pl_xdp *xdp, int prog_fd, bool native, const struct pl_rights *rights)
{
	int r;

	xdp->native = native;
	r = attach_by_link(xdp, prog_fd, rights);
	if (r == -EINVAL)
		r = attach_by_netlink(xdp, prog_fd);
	return r;
}

static void tell_attach(const char *ifname, int error, enum pl_xdp_mode mode, struct pl_diag *diag)
{
	char caps[96];

	switch (error) {
	case EPERM:
	case EACCES:
		pl_caps_text(pl_caps_missing(PL_CAP_NET_ADMIN | PL_CAP_BPF), caps, sizeof(caps));
		pl_diag_set(diag, "%s: attaching an XDP program needs %s", ifname,
			caps[0] != '\0' ? caps : "privileges that this process lacks (EPERM)");
		break;
	case EOPNOTSUPP:
		pl_diag_set(diag, "%s: its driver has no XDP%s", ifname,
			mode == PL_XDP_NATIVE ? "; mode=generic works with any interface" : "");
		break;
	case ERANGE:
		pl_diag_set(diag,
			"%s: XDP does not work with its MTU or that of its peer; lower it%s",
			ifname, mode == PL_XDP_NATIVE ? ", or use mode=generic" : "");
		break;
	default:
		pl_diag_set(diag, "%s: attaching an XDP program: %s", ifname, strerror(error));
	}
}

int pl_xdp_attach(struct pl_xdp **ret, const char *ifname, int prog_fd, enum pl_xdp_mode mode,
	const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_xdp *xdp = calloc(1, sizeof(*xdp));
	int r;

	if (xdp == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	xdp->ifindex = (int)if_nametoindex(ifname);
	if (xdp->ifindex == 0) {
		pl_diag_set(diag, "there is no interface '%s'", ifname);
		r = -ENODEV;
		goto fail;
	}
	r = attach_in_mode(xdp, prog_fd, mode != PL_XDP_GENERIC, rights);
	if (mode == PL_XDP_AUTO && (r == -EOPNOTSUPP || r == -ERANGE || r == -EINVAL))
		r = attach_in_mode(xdp, prog_fd, false, rights);
	if (r == -EBUSY || r == -EEXIST) {
		tell_other(ifname, xdp->ifindex, diag);
		r = -EBUSY;
	} else if (r < 0) {
		tell_attach(ifname, -r, mode, diag);
	}
	if (r < 0)
		goto fail;
	*ret = xdp;
	return 0;
fail:
	free(xdp);
	return r;
}

void pl_xdp_detach(struct pl_xdp *xdp)
{
	uint32_t id = 0;
	bool native;

	if (xdp == NULL)
		return;
	if (xdp->link_fd >= 0) {
		close(xdp->link_fd);
	} else {
		/* The interface may be gone, and its ifindex reused. */
		if (query_id(xdp->ifindex, &id, &native) == 0 && id == xdp->id)
			(void)bpf_xdp_detach(xdp->ifindex, mode_flags(xdp->native), NULL);
		(void)unlink(xdp->note);
	}
	free(xdp);
}

int pl_xdp_ifindex(const struct pl_xdp *xdp)
{
	return xdp->ifindex;
}

const char *pl_xdp_library(void)
{
	return libbpf_version_string();
}

int pl_xdp_counts(int counts_fd, struct pl_filter_counts *ret)
{
	struct pl_each each;
	int r = pl_each_open(&each, counts_fd, sizeof(*ret));

	memset(ret, 0, sizeof(*ret));
	if (r == 0)
		r = pl_each_add(&each, 0, 0, ret, sizeof(*ret) / sizeof(uint64_t));
	pl_each_close(&each);
	return r;
}
