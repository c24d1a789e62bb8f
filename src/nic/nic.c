/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a NIC, and sends and receives its frames. */
#include "nic/nic.h"
#include "base/stats.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "netio/port.h"
#include "nic/nic_wire.h"

#define MTU_LEAST 256u /* the smallest path MTU */
#define FRAMING   18u  /* bytes of a frame beyond the MTU of its interface: Ethernet and a tag */
#define LOOK_MASK 63   /* under load every 64th reception looks for changes of the interface */

struct pl_nic {
	const struct nic_wire_ops *ops; /* of the wire */
	struct nic_wire *wire;
	struct nic_interface interface;
	int poll_fd;
	uint32_t takes; /* receptions since it was idle */
	struct pl_nic_counters counters;
};

/* Looks for changes on this host. */
static void look(struct pl_nic *nic)
{
	if (nic_interface_look(&nic->interface) && nic->ops->renumbered != NULL)
		nic->ops->renumbered(nic->wire);
}

/* ---- opening ---- */

static int open_nic(struct pl_nic *nic, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	struct epoll_event e = { .events = EPOLLIN };
	int r;

	nic->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (nic->poll_fd < 0) {
		r = -errno;
		pl_diag_set(diag, "%s", strerror(-r));
		return r;
	}
	r = nic->ops->open(&nic->wire, uri, options, &nic->interface, nic->poll_fd, diag);
	if (r == 0 && epoll_ctl(nic->poll_fd, EPOLL_CTL_ADD, nic->interface.news_fd, &e) < 0) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", nic->interface.name, strerror(-r));
	}
	return r;
}

int pl_nic_open(struct pl_nic **ret, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag)
{
	struct pl_nic *nic = calloc(1, sizeof(*nic));
	int r;

	if (nic == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	nic->ops = (pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0 ? &nic_udp_wire
								       : &nic_port_wire;
	nic->interface.news_fd = -1;
	r = open_nic(nic, uri, options, diag);
	if (r < 0) {
		pl_nic_close(nic);
		return r;
	}
	*ret = nic;
	return 0;
}

void pl_nic_close(struct pl_nic *nic)
{
	if (nic == NULL)
		return;
	nic->ops->close(nic->wire);
	nic_interface_close(&nic->interface);
	if (nic->poll_fd >= 0)
		close(nic->poll_fd);
	free(nic);
}

/* ---- what it is ---- */

int pl_nic_fd(const struct pl_nic *nic)
{
	return nic->poll_fd;
}

const char *pl_nic_name(const struct pl_nic *nic)
{
	return nic->ops->name(nic->wire);
}

const char *pl_nic_note(const struct pl_nic *nic)
{
	return nic->ops->note != NULL ? nic->ops->note(nic->wire) : NULL;
}

const uint8_t *pl_nic_mac(const struct pl_nic *nic)
{
	return nic->interface.mac;
}

/* Payload that is left behind IP, UDP and the longest transport headers; the overhead counts
 * Ethernet and a tag too. */
static uint16_t path_mtu(const struct pl_nic *nic, uint32_t room)
{
	const uint32_t bytes =
		nic->interface.frame_bytes < room ? nic->interface.frame_bytes : room;
	uint16_t mtu = PL_ROCE_PATH_MTU;

	while (mtu > MTU_LEAST && (uint32_t)mtu + PL_ROCE_OVERHEAD > bytes)
		mtu /= 2;
	return mtu;
}

uint16_t pl_nic_mtu(const struct pl_nic *nic)
{
	return path_mtu(nic, nic->ops->room(nic->wire).send);
}

uint16_t pl_nic_receive_mtu(const struct pl_nic *nic)
{
	return path_mtu(nic, nic->ops->room(nic->wire).receive);
}

int pl_nic_fits(const struct pl_nic *nic, struct pl_diag *diag)
{
	if (nic->interface.frame_bytes >= MTU_LEAST + PL_ROCE_OVERHEAD)
		return 0;
	pl_diag_set(diag, "%s has an MTU of %u: RoCE takes %u and more, for a path MTU of %u",
		nic->interface.name,
		nic->interface.frame_bytes > FRAMING ? nic->interface.frame_bytes - FRAMING : 0,
		MTU_LEAST + PL_ROCE_OVERHEAD - FRAMING, MTU_LEAST);
	return -EMSGSIZE;
}

uint32_t pl_nic_changes(const struct pl_nic *nic)
{
	return nic->interface.changes;
}

int pl_nic_addresses(
	const struct pl_nic *nic, struct pl_addr **ret, uint32_t *ret_n, struct pl_diag *diag)
{
	struct pl_addr *one;

	if (nic->ops->address == NULL)
		return nic_interface_addresses(&nic->interface, ret, ret_n, diag);
	one = malloc(sizeof(*one));
	if (one == NULL) {
		pl_diag_set(diag, "%s: no memory", nic->interface.name);
		return -ENOMEM;
	}
	*one = *nic->ops->address(nic->wire);
	*ret = one;
	*ret_n = 1;
	return 0;
}

/* ---- frames ---- */

int pl_nic_recv(
	struct pl_nic *nic, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	int r;

	/* Before packets are read: they may be for an address that is new. */
	if ((nic->takes++ & LOOK_MASK) == 0)
		look(nic);
	r = nic->ops->recv(nic->wire, ret_batch, timeout_ms, diag);
	if (r <= 0)
		nic->takes = 0;
	return r;
}

void pl_nic_release(struct pl_nic *nic, struct pl_batch *batch)
{
	nic->ops->release(nic->wire, batch);
}

/* Writes our present MAC address: engines keep old paths, and no check of a packet covers it. */
static void stamp(const struct pl_nic *nic, struct pl_frames *frames)
{
	for (uint32_t i = 0; i < frames->batch.n; i++) {
		const size_t at = (size_t)(frames->batch.pkts[i].data - frames->build.data);

		assert(at + 2 * sizeof(nic->interface.mac) <= frames->build.len);
		memcpy(frames->build.data + at + sizeof(nic->interface.mac), nic->interface.mac,
			sizeof(nic->interface.mac));
	}
}

int pl_nic_send(struct pl_nic *nic, struct pl_frames *frames, struct pl_diag *diag)
{
	const uint32_t n = frames->batch.n;
	int r;

	assert(n <= PL_BATCH_MAX);
	if (n == 0)
		return 0;
	if (nic->interface.moved)
		stamp(nic, frames);
	r = nic->ops->send(nic->wire, &frames->batch, diag);
	if (r == -ENETDOWN)
		return r;
	assert(r < 0 || (uint32_t)r <= n);
	pl_count(&nic->counters.sent, r > 0 ? (uint64_t)r : 0);
	pl_count(&nic->counters.unsent, r > 0 ? n - (uint64_t)r : n);
	pl_frames_clear(frames);
	return r < 0 ? r : (uint32_t)r < n ? -EIO : 0;
}

void pl_nic_drop(struct pl_nic *nic, struct pl_frames *frames)
{
	pl_count(&nic->counters.unsent, frames->batch.n);
	pl_frames_clear(frames);
}

/* ---- peers ---- */

int pl_nic_path(struct pl_nic *nic, const struct pl_addr *peer, const uint8_t *mac,
	struct pl_roce_path *ret, struct pl_diag *diag)
{
	/* The interface may have been away. */
	look(nic);
	return nic->ops->path(nic->wire, peer, mac, ret, diag);
}

/* ---- accounts ---- */

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_nic_counters, __VA_ARGS__)
#include "nic/nic_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_nic_stats_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_nic_counters *pl_nic_counters(const struct pl_nic *nic)
{
	return &nic->counters;
}

void pl_nic_stats(struct pl_nic *nic, struct pl_port_stats *ret)
{
	nic->ops->stats(nic->wire, ret);
}
