/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the NIC that executes the requests of a collector's peers: the software NIC
 * (collector_soft.c), or an RDMA NIC (collector_verbs.c). Structures and rules are those of
 * rdma/responder.h and rdma/cm.h.
 */
#pragma once

#include "remote/collector.h"

struct collector_nic;

/* Connection management (RDMA-CM) of a NIC. */
struct collector_connection_ops {
	/* Starts the connection manager. *ret_own has its addresses, which the caller frees. The
	 * other operations are called only after this one. */
	int (*listen)(struct collector_nic *nic, uint16_t port, uint64_t silent_ns,
		struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag);
	/* The peer's requests were executed: a sign of life. NULL: the NIC ignores silent_ns. */
	void (*heard)(struct collector_nic *nic, uint32_t id);
	bool (*event)(struct collector_nic *nic, struct pl_connection_event *ret);
	int (*accept)(
		struct collector_nic *nic, uint32_t id, const struct pl_connection_terms *terms);
	void (*reject)(struct collector_nic *nic, uint32_t id, uint16_t reason);
	void (*disconnect)(struct collector_nic *nic, uint32_t id);
	/* As pl_connector_forget. NULL: disconnect does the same. */
	int (*forget)(struct collector_nic *nic, uint32_t id);
	/* Sends the connection manager's messages. */
	void (*flush)(struct collector_nic *nic);
};

/* The data path of a NIC: device, memory, queue pairs, packets. */
struct collector_nic_ops {
	/* Makes room for max_qps queue pairs with COLLECTOR_RECEIVES receives each. Returns
	 * negative errno with diag. */
	int (*open)(struct collector_nic **ret, const struct pl_collector_options *options,
		uint32_t max_qps, struct pl_diag *diag);
	void (*close)(struct collector_nic *nic);
	/* Remark for the user, name ("packet:eth0"), MAC address (6 bytes) and path MTU for
	 * peers. */
	const char *(*note)(
		const struct collector_nic *nic); /* pl_collector_note; NULL: never one */
	const char *(*name)(const struct collector_nic *nic);
	const uint8_t *(*mac)(const struct collector_nic *nic);
	uint16_t (*mtu)(const struct collector_nic *nic);
	/* Number of READs and atomics of one queue pair that it takes at a time. NULL:
	 * PL_RDMA_DEPTH_MAX. */
	uint8_t (*depth)(const struct collector_nic *nic);
	/* As pl_nic_fits. NULL: every MTU fits. */
	int (*fits)(const struct collector_nic *nic, struct pl_diag *diag);
	int (*fd)(const struct collector_nic *nic); /* readable: step has something to do */
	/* Returns true when only this host reaches the NIC. NULL: others do. */
	bool (*is_loopback)(const struct collector_nic *nic);

	/* Returns 0 when the NIC can write the memory of this file. NULL: every file. */
	int (*memory_check)(int fd, const char *name, struct pl_diag *diag);
	int (*region_add)(struct collector_nic *nic, const struct pl_rdma_region *region,
		uint32_t *ret_key, struct pl_diag *diag);
	/* NULL: memory that was added stays, and a store has one key for all its peers; otherwise
	 * each queue pair has its own key. */
	void (*region_remove)(struct collector_nic *nic, uint32_t key);
	/* Makes the key name this memory from now on, by the same addresses. NULL: not possible. */
	int (*region_move)(struct collector_nic *nic, uint32_t key, void *base);

	/* Finds the path to a peer: at least src and dst. */
	int (*path)(
		struct collector_nic *nic, const struct pl_addr *peer, struct pl_roce_path *ret);
	/* Adds a queue pair with its receives. `connection`: the request that it is for, or
	 * NULL. */
	int (*qp_add)(struct collector_nic *nic, const struct pl_rdma_qp *qp,
		const uint32_t *connection, uint32_t *ret_qpn);
	void (*qp_remove)(struct collector_nic *nic, uint32_t qpn);
	/* Reads `packets` and `refused` of a queue pair, zeros when the NIC does not count them.
	 * Returns -ENOENT. */
	int (*qp_status)(
		const struct collector_nic *nic, uint32_t qpn, struct pl_rdma_qp_status *ret);
	/* Fetches completions and posts the receives that they used again. */
	uint32_t (*completions)(
		struct collector_nic *nic, struct pl_rdma_completion *ret, uint32_t max);

	/* Takes packets and answers; as pl_collector_step. Returns -ENODEV with diag when the
	 * device is gone; call `leave` then. */
	int (*step)(struct collector_nic *nic, uint64_t now_ns, struct pl_diag *diag);
	/* Ends everything on the device. Until `again` has succeeded, only `again`, `close`, name
	 * and stats are called. NULL: the device cannot vanish. */
	void (*leave)(struct collector_nic *nic);
	/* Opens the device again when it is back, and listens as before; regions are added next.
	 * Returns negative errno with diag: call it again a moment later. */
	int (*again)(struct collector_nic *nic, struct pl_diag *diag);
	/* Time at which the NIC next has something to do without a packet; UINT64_MAX: never. */
	uint64_t (*next_ns)(const struct collector_nic *nic);
	/* As pl_responder_alarm; returns the number of alarms. NULL: the NIC detects no guesses. */
	uint64_t (*alarms)(const struct collector_nic *nic);
	bool (*alarm)(struct collector_nic *nic, struct pl_rdma_suspect *ret);
	/* Connection management by RDMA-CM. */
	const struct collector_connection_ops *connections;

	/* Adds the NIC's part of the account. */
	void (*stats)(struct collector_nic *nic, struct pl_collector_stats *ret);
};

/* 127.0.0.0/8 and ::1 */
#define COLLECTOR_LOOPBACK 2
static const struct pl_prefix collector_loopback[COLLECTOR_LOOPBACK] = {
	{ { { [10] = 0xff, 0xff, 127 } }, 104 },
	{ { { [15] = 1 } }, 128 },
};

static inline bool collector_has(
	const struct pl_prefix *prefixes, uint32_t n, const struct pl_addr *addr)
{
	for (uint32_t i = 0; i < n; i++) {
		if (pl_prefix_has(&prefixes[i], addr))
			return true;
	}
	return false;
}

#define COLLECTOR_RECEIVES 64 /* of each queue pair: immediates that can arrive in a row */

extern const struct collector_nic_ops collector_soft;
#if PL_HAVE_VERBS
extern const struct collector_nic_ops collector_verbs;
#endif
