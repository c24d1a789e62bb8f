/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager (rdma/cm.h) on a NIC: both sides of RDMA-CM need it so. One thread. */
#pragma once

#include "nic/nic.h"
#include "rdma/cm.h"

struct pl_manage {
	struct pl_nic *nic; /* borrowed */
	struct pl_connector *connector;
	uint32_t changes; /* of the interface, as the connector knows it */
};

/* Makes a connector for the NIC's addresses, which are given too (to be freed); `options` but for
 * own, n_own and smac. As pl_nic_addresses and pl_connector_new, with diag. */
int pl_manage_open(struct pl_manage *m, struct pl_nic *nic, struct pl_connector_options options,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag);
void pl_manage_close(struct pl_manage *m); /* also what was never opened and is zero */

/* The addresses are those that the NIC has now. True: the interface has changed. */
bool pl_manage_follow(struct pl_manage *m);
/* A packet that may be for queue pair 1. */
void pl_manage_packet(struct pl_manage *m, const struct pl_packet *packet, uint64_t now_ns);
