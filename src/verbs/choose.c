/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions without a device: choose addresses, parse names, check memory. */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "netio/uri.h"
#include "verbs/choose.h"
#include "verbs/verbs.h"

static int rank(const struct verbs_gid *g)
{
	static const uint8_t link_local[2] = { 0xfe, 0x80 };

	if (!g->roce2 || pl_addr_is_unspecified(&g->addr))
		return 0;
	if (pl_addr_is_v4(&g->addr))
		return 3;
	return memcmp(g->addr.b, link_local, sizeof(link_local)) != 0 ? 2 : 1;
}

int verbs_gid_choose(const struct verbs_gid *gids, unsigned int n)
{
	int best = -1, best_rank = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (rank(&gids[i]) > best_rank) {
			best_rank = rank(&gids[i]);
			best = (int)i;
		}
	}
	return best;
}

int verbs_gid_find(
	const struct verbs_gid *gids, unsigned int n, const struct verbs_gid *home, int index)
{
	for (unsigned int i = 0; home != NULL && i < n; i++) {
		if (gids[i].roce2 == home->roce2 && pl_addr_equal(&gids[i].addr, &home->addr))
			return (int)i;
	}
	if (index < 0)
		return verbs_gid_choose(gids, n);
	for (unsigned int i = 0; i < n; i++) {
		if (gids[i].index == (uint32_t)index)
			return (int)i;
	}
	return -1;
}

int pl_verbs_parse(struct pl_verbs_options *ret, const char *target, struct pl_diag *diag)
{
	static const char *const keys[] = { "port", "gid", NULL };
	uint64_t port = 1, gid = UINT64_MAX;
	struct pl_uri uri;
	int r = pl_uri_split(&uri, target, keys, diag);

	if (r == 0)
		r = pl_uri_get_size(&uri, "port", 1, 255, &port, diag);
	if (r == 0)
		r = pl_uri_get_size(&uri, "gid", 0, 65535, &gid, diag);
	if (r < 0)
		return r;
	if (uri.target[0] == '\0' || strlen(uri.target) >= sizeof(ret->device)) {
		pl_diag_set(diag, "'%s' is not the name of an RDMA device, such as rxe0 or mlx5_0",
			uri.target);
		return -EINVAL;
	}
	*ret = (struct pl_verbs_options){ .port = (uint8_t)port,
		.gid = gid == UINT64_MAX ? -1 : (int)gid };
	memcpy(ret->device, uri.target, strlen(uri.target));
	return 0;
}

int pl_verbs_memory_check(int fd, const char *name, struct pl_diag *diag)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0) {
		int error = errno;

		pl_diag_set(diag, "%s: %s", name, strerror(error));
		return -error;
	}
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return 0;
	pl_diag_set(diag,
		"%s is on a disk, whose pages cannot be registered with an RDMA NIC: put the region on /dev/shm, another tmpfs or hugetlbfs, and copy it to disk with --save",
		name);
	return -ENOTSUP;
}
