/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA devices of this host: their ports and addresses. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "verbs/verbs_internal.h"

#define GIDS_MAX 256

/* Reads the first line of a small file, without its end; empty when there is none. */
static void first_line(const char *path, char *dst, size_t cap)
{
	FILE *f = fopen(path, "re");

	dst[0] = '\0';
	if (f == NULL)
		return;
	if (fgets(dst, (int)cap, f) == NULL)
		dst[0] = '\0';
	fclose(f);
	dst[strcspn(dst, "\n")] = '\0';
}

void verbs_netdev(const char *device, uint8_t port, char ret[16], uint8_t *ret_mac)
{
	char path[256], text[32];
	unsigned int b[6];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", device,
		port);
	first_line(path, text, sizeof(text));
	snprintf(ret, 16, "%.15s", text);
	if (ret_mac == NULL || ret[0] == '\0')
		return;
	snprintf(path, sizeof(path), "/sys/class/net/%s/address", ret);
	first_line(path, text, sizeof(text));
	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) ==
		6) {
		for (int i = 0; i < 6; i++)
			ret_mac[i] = (uint8_t)b[i];
	}
}

unsigned int verbs_gids(
	struct ibv_context *context, uint8_t port, struct verbs_gid *ret, unsigned int max)
{
	struct ibv_port_attr attr;
	unsigned int n = 0;

	if (ibv_query_port(context, port, &attr) != 0)
		return 0;
	for (int i = 0; i < attr.gid_tbl_len && n < max; i++) {
		struct ibv_gid_entry entry;

		/* Empty entries give errors. */
		if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0) != 0)
			continue;
		ret[n].index = (uint32_t)i;
		ret[n].roce2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
		ret[n++].addr = pl_addr_v6(entry.gid.raw);
	}
	return n;
}

void pl_verbs_hw_counters(
	const struct pl_verbs *v, void (*tell)(void *arg, const char *name, uint64_t n), void *arg)
{
	struct dirent *e;
	char path[512], text[32];
	DIR *folder;
	int n = snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/hw_counters",
		v->options.device, v->options.port);

	folder = opendir(path);
	if (folder == NULL)
		return;
	while ((e = readdir(folder)) != NULL) {
		uint64_t value;

		snprintf(path + n, sizeof(path) - (size_t)n, "/%s", e->d_name);
		/* `lifespan` is a setting, the age of the counters. */
		if (e->d_name[0] == '.' || strcmp(e->d_name, "lifespan") == 0)
			continue;
		first_line(path, text, sizeof(text));
		if (pl_parse_u64(text, &value) == 0)
			tell(arg, e->d_name, value);
	}
	closedir(folder);
}

static void look_at(struct ibv_device *device, struct pl_verbs_device *d)
{
	struct ibv_context *context = ibv_open_device(device);
	struct verbs_gid gids[GIDS_MAX];
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int best;

	if (context == NULL) {
		snprintf(d->state, sizeof(d->state), "cannot be opened: %s", strerror(errno));
		return;
	}
	if (ibv_query_device(context, &attr) == 0)
		d->ports = attr.phys_port_cnt;
	if (ibv_query_port(context, 1, &port) != 0) {
		snprintf(d->state, sizeof(d->state), "cannot query its port");
	} else if (port.link_layer != IBV_LINK_LAYER_ETHERNET) {
		snprintf(d->state, sizeof(d->state), "not on Ethernet");
	} else if (port.state != IBV_PORT_ACTIVE) {
		snprintf(d->state, sizeof(d->state), "port %s", ibv_port_state_str(port.state));
	} else {
		best = verbs_gid_choose(gids, verbs_gids(context, 1, gids, GIDS_MAX));
		d->usable = best >= 0;
		if (d->usable)
			pl_format_addr(d->state, &gids[best].addr);
		else
			snprintf(d->state, sizeof(d->state), "no address for RoCEv2");
	}
	ibv_close_device(context);
}

int pl_verbs_devices(struct pl_verbs_device *ret, unsigned int max)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list == NULL)
		return errno > 0 ? -errno : -ENOSYS;
	for (unsigned int i = 0; i < (unsigned int)n && i < max; i++) {
		memset(&ret[i], 0, sizeof(ret[i]));
		snprintf(ret[i].name, sizeof(ret[i].name), "%s", ibv_get_device_name(list[i]));
		verbs_netdev(ret[i].name, 1, ret[i].netdev, NULL);
		look_at(list[i], &ret[i]);
	}
	ibv_free_device_list(list);
	return n;
}
