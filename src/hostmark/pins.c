/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs and maps that outlive their process. */
#include "hostmark/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int pl_pins_folder(const char *folder, struct pl_diag *diag)
{
	struct statfs fs;

	if ((mkdir(folder, 0700) < 0 && errno != EEXIST) || statfs(folder, &fs) < 0) {
		const int r = -errno;

		return pl_diag_fail(diag, r,
			"%s: %s; the folder above it must exist, in a BPF file system", folder,
			strerror(-r));
	}
	if ((unsigned long)fs.f_type == BPF_FS_MAGIC)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"%s is in no BPF file system, where programs can be kept: take a folder below /sys/fs/bpf, or mount -t bpf bpf FOLDER",
		folder);
}

int pl_pins_path(char *ret, const char *folder, const char *name)
{
	return snprintf(ret, PL_PINS_PATH, "%s/%s", folder, name) < PL_PINS_PATH ? 0
										 : -ENAMETOOLONG;
}

/* Returns -EBUSY with diag when the link is on another interface. */
static int check_interface(
	const char *folder, int link_fd, const char *ifname, struct pl_diag *diag)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	/* The index of a traffic control link is at the same place as that of XDP; older headers
	 * name only the latter. */
	if (bpf_obj_get_info_by_fd(link_fd, &info, &len) < 0 || info.xdp.ifindex == 0 ||
		info.xdp.ifindex == if_nametoindex(ifname))
		return 0;
	return pl_diag_fail(diag, -EBUSY,
		"%s has the program of another interface; give another folder, or end its program: rm -r %s",
		folder, folder);
}

int pl_pins_link(const char *folder, int prog_fd, const char *ifname, struct pl_diag *diag)
{
	char path[PL_PINS_PATH];
	int fd, r = pl_pins_path(path, folder, "link");

	if (r < 0)
		return r;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return fd;
	r = check_interface(folder, fd, ifname, diag);
	if (r == 0) {
		r = bpf_link_update(fd, prog_fd, NULL);
		if (r == 0)
			return fd;
		if (r == -ENOLINK) {
			(void)unlink(path);
			r = -ENOENT;
		} else {
			pl_diag_set(diag, "%s: taking up the program that is there: %s", path,
				strerror(-r));
		}
	}
	close(fd);
	return r;
}

int pl_pins_keep(const char *folder, int link_fd, struct pl_diag *diag)
{
	char path[PL_PINS_PATH];
	int r = pl_pins_path(path, folder, "link");

	if (link_fd < 0)
		return pl_diag_fail(diag, -ENOTSUP,
			"this kernel attaches programs of traffic control without links, so they cannot be kept: that needs Linux 6.6; leave out --pin");
	if (r == 0)
		r = bpf_obj_pin(link_fd, path);
	if (r < 0)
		pl_diag_set(diag, "%s: %s", path, strerror(-r));
	return r;
}

void pl_pins_remove(const char *folder)
{
	static const char *const names[] = { "link", "flows", "cells", "table", "state", "work" };
	char path[PL_PINS_PATH];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (pl_pins_path(path, folder, names[i]) == 0)
			(void)unlink(path);
	}
	(void)rmdir(folder);
}
