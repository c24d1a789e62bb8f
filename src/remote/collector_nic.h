/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What carries out the requests of a collector's peers: the software NIC (collector_soft.c), or an
 * RDMA NIC (collector_verbs.c). Shapes and rules are those of rdma/responder.h and rdma/cm.h.
 */
#pragma once

#include "remote/collector.h"

struct collector_nic;

/* Connection management (RDMA-CM) of a NIC. */
struct collector_connection_ops {
	/* The connection manager, at these addresses, to be freed. The rest of
	 * these only after this. */
	int (*listen)(struct collector_nic *nic, uint16_t port, uint64_t silent_ns,
		struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag);
	/* Its peer's requests are executed. NULL: silent_ns is nothing to it. */
	void (*heard)(struct collector_nic *nic, uint32_t id);
	bool (*event)(struct collector_nic *nic, struct pl_connection_event *ret);
	int (*accept)(
		struct collector_nic *nic, uint32_t id, const struct pl_connection_terms *terms);
	void (*reject)(struct collector_nic *nic, uint32_t id, uint16_t reason);
	void (*disconnect)(struct collector_nic *nic, uint32_t id);
	/* As pl_connector_forget. NULL: disconnect does that. */
	int (*forget)(struct collector_nic *nic, uint32_t id);
	/* Sends what the connection manager has to say. */
	void (*flush)(struct collector_nic *nic);
};

/* The data path of a NIC: device, memory, queue pairs, packets. */
struct collector_nic_ops {
	/* Room for max_qps queue pairs with COLLECTOR_RECEIVES receives each. Negative errno with
	 * diag. */
	int (*open)(struct collector_nic **ret, const struct pl_collector_options *options,
		uint32_t max_qps, struct pl_diag *diag);
	void (*close)(struct collector_nic *nic);
	/* "packet:eth0"; and what peers are to be told: *ret_mac has 6 bytes. */
	const char *(*note)(
		const struct collector_nic *nic); /* pl_collector_note; NULL: never one */
	const char *(*name)(const struct collector_nic *nic);
	const uint8_t *(*mac)(const struct collector_nic *nic);
	uint16_t (*mtu)(const struct collector_nic *nic);
	/* As pl_nic_fits. NULL: it always does. */
	int (*fits)(const struct collector_nic *nic, struct pl_diag *diag);
	int (*fd)(const struct collector_nic *nic); /* readable: step */
	/* Whether none but this host reaches it. NULL: others do. */
	bool (*is_loopback)(const struct collector_nic *nic);

	/* Whether it can write what lies in this file. NULL: every file. */
	int (*memory_check)(int fd, const char *name, struct pl_diag *diag);
	int (*region_add)(struct collector_nic *nic, const struct pl_rdma_region *region,
		uint32_t *ret_key, struct pl_diag *diag);
	/* NULL: memory that was added stays, and a store has one key for all its peers; else each
	 * queue pair has its own. */
	void (*region_remove)(struct collector_nic *nic, uint32_t key);
	/* The key names this memory from now on, by the same addresses. NULL: it cannot. */
	int (*region_move)(struct collector_nic *nic, uint32_t key, void *base);

	/* The way to a peer: at least src and dst. */
	int (*path)(
		struct collector_nic *nic, const struct pl_addr *peer, struct pl_roce_path *ret);
	/* A queue pair with its receives. `connection`: the request that it is for, or NULL. */
	int (*qp_add)(struct collector_nic *nic, const struct pl_rdma_qp *qp,
		const uint32_t *connection, uint32_t *ret_qpn);
	void (*qp_remove)(struct collector_nic *nic, uint32_t qpn);
	/* packets and refused of a queue pair; -ENOENT. Zeros where the NIC does not say. */
	int (*qp_status)(
		const struct collector_nic *nic, uint32_t qpn, struct pl_rdma_qp_status *ret);
	/* Receives that they used are posted again. */
	uint32_t (*completions)(
		struct collector_nic *nic, struct pl_rdma_completion *ret, uint32_t max);

	/* Takes what came, and answers; as pl_collector_step. -ENODEV with diag: the device is
	 * gone; leave it. */
	int (*step)(struct collector_nic *nic, uint64_t now_ns, struct pl_diag *diag);
	/* NULL: it cannot be gone. All that it had ends, and until `again` nothing but that and
	 * `close` is asked of it, besides what names it and its account. */
	void (*leave)(struct collector_nic *nic);
	/* Opens the device anew, when it is there, and listens as before; next come the regions.
	 * Negative errno with diag: call it again a moment later. */
	int (*again)(struct collector_nic *nic, struct pl_diag *diag);
	/* When it next has something to do by itself; UINT64_MAX: never. */
	uint64_t (*next_ns)(const struct collector_nic *nic);
	/* As pl_responder_alarm, and how many there were. NULL: it notices nothing. */
	uint64_t (*alarms)(const struct collector_nic *nic);
	bool (*alarm)(struct collector_nic *nic, struct pl_rdma_suspect *ret);
	/* How its peers connect by RDMA-CM. */
	const struct collector_connection_ops *connections;

	/* Its part of the account. */
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

#define COLLECTOR_RECEIVES 64 /* of each queue pair: immediates that may come in a row */

extern const struct collector_nic_ops collector_soft;
#if PL_HAVE_VERBS
extern const struct collector_nic_ops collector_verbs;
#endif
