/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a connection manager (rdma/cm.h) on a NIC, for peers that ask and peers that answer. One
 * thread. */
#pragma once

#include "nic/nic.h"
#include "rdma/cm.h"

struct pl_manage {
	struct pl_nic *nic; /* borrowed */
	struct pl_connector *connector;
	uint32_t changes; /* pl_nic_changes at the last update of the connector */
};

/* Makes a connector for the NIC's addresses, which are returned too (the caller frees them);
 * `options` without own, n_own and smac. Errors as pl_nic_addresses and pl_connector_new, with
 * diag. */
int pl_manage_open(struct pl_manage *m, struct pl_nic *nic, struct pl_connector_options options,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag);
/* Closes a manager; one that is zero, because it was never opened, is left as it is. */
void pl_manage_close(struct pl_manage *m);

/* Gives the connector the NIC's present addresses. Returns true when the interface has changed. */
bool pl_manage_follow(struct pl_manage *m);
/* Takes a packet that may be for queue pair 1. */
void pl_manage_packet(struct pl_manage *m, const struct pl_packet *packet, uint64_t now_ns);
