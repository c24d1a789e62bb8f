/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What carries a NIC's frames: ports of netio/ on an interface (port_card.c), or a UDP socket (udp_card.c). Shapes and rules
 * are those of nic/nic.h, which counts, follows the interface, and keeps frames true to it.
 */
#pragma once

#include "nic/interface.h"
#include "nic/nic.h"

#define NIC_HOP_LIMIT 64

struct nic_card;

/* Bytes of the longest frames, as Ethernet has them. */
struct nic_card_room {
	uint32_t send, receive;
};

struct nic_card_ops {
	/* Opens it, and the interface that it is on, which is the caller's and stays as long as the card. Descriptors that are readable
	 * when there is something to receive go to poll_fd. Negative errno with diag. */
	int (*open)(struct nic_card **ret, const char *uri, const struct pl_nic_options *options,
		struct nic_interface *interface, int poll_fd, struct pl_diag *diag);
	void (*close)(struct nic_card *card);
	const char *(*name)(const struct nic_card *card); /* "afxdp:eth0" */
	struct nic_card_room (*room)(const struct nic_card *card);
	/* The only address that it has. NULL: all of the interface's. */
	const struct pl_addr *(*address)(const struct nic_card *card);
	/* The interface has another number than before. NULL: it is nothing to it. */
	void (*renumbered)(struct nic_card *card);

	/* Packets are lent until `release`. */
	int (*recv)(struct nic_card *card, struct pl_batch *ret_batch, int timeout_ms,
		struct pl_diag *diag);
	void (*release)(struct nic_card *card, struct pl_batch *batch);
	/* Frames, whose bytes it may change. How many were taken; -errno with diag when none was. */
	int (*send)(struct nic_card *card, struct pl_batch *frames, struct pl_diag *diag);
	int (*path)(struct nic_card *card, const struct pl_addr *peer, const uint8_t *mac,
		struct pl_roce_path *ret, struct pl_diag *diag);
	/* Of what receives. */
	void (*stats)(struct nic_card *card, struct pl_port_stats *ret);
};

extern const struct nic_card_ops nic_port_card, nic_udp_card;
