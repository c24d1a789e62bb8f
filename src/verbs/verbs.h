/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs driver: telemetry memory behind a real RDMA NIC, or Linux soft-RoCE, by libibverbs and
 * librdmacm. The NIC executes requests of peers; this side registers memory, brings queue pairs up,
 * keeps receives posted for immediates, and takes events. Structures are those of the software
 * responder and its connection manager (rdma/responder.h, rdma/cm.h), so that a collector can use
 * either.
 *
 *   pl_verbs_open(&v, &options, &diag);
 *   pl_verbs_region_add(v, &region, &key, &diag);
 *   pl_verbs_qp_add(v, &qp, &qpn, &diag);           with what the peer told of itself
 *   poll pl_verbs_fd(v); pl_verbs_step(v);
 *   n = pl_verbs_completions(v, done, max);  while (pl_verbs_news(v, &news)) ...
 *   when the device is gone: pl_verbs_leave(v); now and then pl_verbs_again(v, &diag); then from
 *   region_add on
 *
 * Receives have no memory: each is for one immediate, and is posted again as soon as it is used up,
 * so that the completion queue, which has room for all of them twice, cannot overflow. Memory that
 * a NIC writes must not be moved: pl_verbs_memory_check tells which memory that is. One thread at a
 * time. A build without the libraries (PL_HAVE_VERBS is 0) has pl_verbs_parse and
 * pl_verbs_memory_check alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/diag.h"
#include "base/stats.h"
#include "rdma/cm.h"
#include "rdma/responder.h"

struct pl_verbs;

#define PL_VERBS_NAME_MAX     64
#define PL_VERBS_QPS_MAX      4096
#define PL_VERBS_RECEIVES_MAX 4096

struct pl_verbs_options {
	char device[PL_VERBS_NAME_MAX]; /* name in `rdma link`: "rxe0", "mlx5_0" */
	uint8_t port;                   /* from 1; 0: 1 */
	int gid;                        /* index in the port's table; -1: chosen */
	uint32_t max_qps;               /* 1 to 4096; 0: 64 */
	uint32_t receives;              /* for each queue pair, 1 to 4096; 0: 256 */
};

/* Parses "DEVICE[?port=1&gid=3]", the text behind "verbs:". Returns -EINVAL with diag. */
int pl_verbs_parse(struct pl_verbs_options *ret, const char *target, struct pl_diag *diag);

/* Returns -ENODEV (no such device), -EADDRNOTAVAIL (no address on it), -ENETDOWN (its port is not
 * active), -ENOTSUP (not an Ethernet port), -EINVAL, or an error of the system, with diag. */
int pl_verbs_open(
	struct pl_verbs **ret, const struct pl_verbs_options *options, struct pl_diag *diag);
/* Ends queue pairs, regions and connections. NULL is fine. */
void pl_verbs_close(struct pl_verbs *v);

/*
 * Gives the device up after PL_VERBS_GONE, because the kernel may be waiting for that. Queue pairs,
 * regions and connections end, and events that were not fetched are forgotten. Until pl_verbs_again
 * every function that needs the device returns -ENODEV, or nothing.
 */
void pl_verbs_leave(struct pl_verbs *v);
/*
 * Opens the device of the same name, which may be another one or the old one, as pl_verbs_open
 * does; its former address is preferred. Listeners listen again and counters go on; regions and
 * queue pairs must be made again. After a failure, with diag, it may be called again.
 */
int pl_verbs_again(struct pl_verbs *v, struct pl_diag *diag);

struct pl_verbs_self {
	const char *device; /* valid until it is closed */
	/* address for peers; unspecified: none at the moment */
	struct pl_addr gid;
	uint8_t mac[6]; /* zero when unknown */
	uint16_t mtu;   /* the port's path MTU */
	uint8_t depth;  /* READs and atomics that the NIC takes of one queue pair at a time */
	unsigned int gid_index;
	bool cm;        /* there is a connection manager */
	bool listening; /* at that address, on every requested port */
};

void pl_verbs_self(const struct pl_verbs *v, struct pl_verbs_self *ret);

/* Checks that the port still has our address, and looks for it in the whole table when it moved;
 * the result is in pl_verbs_self. Done before each queue pair anyway. Returns -EADDRNOTAVAIL,
 * -ENODEV with diag. */
int pl_verbs_address(struct pl_verbs *v, struct pl_diag *diag);

/*
 * Checks that a NIC can use the memory of this file: on tmpfs, memfd or hugetlbfs. Returns -ENOTSUP
 * with diag for others: pages of a file on disk may move and be cleaned under a NIC that writes
 * them, and kernels refuse them (6.12 does).
 */
int pl_verbs_memory_check(int fd, const char *name, struct pl_diag *diag);

/*
 * Registers memory with the NIC, which pins it. `va` is the address that peers use for `base`; 0:
 * base itself. NICs choose their keys: `key` is 0. Returns -ENOMEM with advice when locked memory
 * is limited, -EFAULT (memory that cannot be registered), -ENOSPC, with diag.
 */
int pl_verbs_region_add(struct pl_verbs *v, const struct pl_rdma_region *region, uint32_t *ret_key,
	struct pl_diag *diag);
int pl_verbs_region_remove(struct pl_verbs *v, uint32_t key); /* -ENOENT */

/*
 * Makes a queue pair for one peer, ready, from `service` (RC, UC), `domain`, `access`, `mtu`,
 * `depth`, `psn`, `peer_qpn`, `rnr_timer` and path.dst and ttl; the kernel finds the route, which
 * can take a second when the neighbour is unknown. Returns -ENOSPC, -EINVAL, -EHOSTUNREACH and
 * other errors of the system, with diag.
 */
int pl_verbs_qp_add(
	struct pl_verbs *v, const struct pl_rdma_qp *qp, uint32_t *ret_qpn, struct pl_diag *diag);
int pl_verbs_qp_remove(struct pl_verbs *v, uint32_t qpn); /* -ENOENT */

/* ---- what happens ---- */

/* Descriptor that is readable when a step has something to do; stays the same. Under a flood a step
 * may leave some: call it a few times in a second anyway. */
int pl_verbs_fd(const struct pl_verbs *v);

/* Takes completions and events of the NIC, the kernel and the connection manager. Never waits. */
void pl_verbs_step(struct pl_verbs *v);

/* Fetches immediates, as PL_RDMA_DONE_WRITE; up to max in their order. Returns their number. */
uint32_t pl_verbs_completions(struct pl_verbs *v, struct pl_rdma_completion *ret, uint32_t max);

enum pl_verbs_news_kind {
	PL_VERBS_BROKEN = 1, /* queue pair `qpn` went to error, and must be removed */
	PL_VERBS_PORT_DOWN,
	PL_VERBS_PORT_UP,
	PL_VERBS_ADDRESSES,  /* the port's addresses changed: pl_verbs_self has ours */
	PL_VERBS_GONE,       /* the device has gone: call pl_verbs_leave */
	PL_VERBS_CONNECTION, /* `connection` has the event: a request, connected, closed */
};

struct pl_verbs_news {
	uint8_t kind; /* enum pl_verbs_news_kind */
	uint32_t qpn;
	/* private data of its terms: valid until the next call */
	struct pl_connection_event connection;
};

/* Fetches the next event. Returns false when there is none. Events without room are counted
 * (news_lost). */
bool pl_verbs_news(struct pl_verbs *v, struct pl_verbs_news *ret);

/* ---- connections by librdmacm: reliable ones ---- */

/* Begins to take requests to this TCP port of RDMA-CM, at our address, as events. Returns -ENOTSUP
 * without a connection manager, -EADDRINUSE and other errors of the system, with diag. */
int pl_verbs_listen(struct pl_verbs *v, uint16_t port, struct pl_diag *diag);

/* Makes the queue pair of a request, as pl_verbs_qp_add, with domain and access of `qp`.
 * pl_verbs_accept follows. Returns -ENOENT, -EINVAL (it has one). */
int pl_verbs_connection_qp(struct pl_verbs *v, uint32_t id, const struct pl_rdma_qp *qp,
	uint32_t *ret_qpn, struct pl_diag *diag);
/* Accepts a request with resources, depth, rnr_retries and private data of `terms`. Returns
 * -ENOENT, -EINVAL (no queue pair), and other errors of the system, with diag; the request is then
 * refused, and its queue pair is gone. */
int pl_verbs_accept(struct pl_verbs *v, uint32_t id, const struct pl_connection_terms *terms,
	struct pl_diag *diag);
/* Refuses a request, and removes its queue pair if it has one. Returns -ENOENT. */
int pl_verbs_reject(struct pl_verbs *v, uint32_t id, const void *private, uint8_t n);
/* Ends a connection and its queue pair. Returns -ENOENT. */
int pl_verbs_disconnect(struct pl_verbs *v, uint32_t id);

struct pl_verbs_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "verbs/verbs_stats.def"
#undef PL_STAT
#define PL_VERBS_EVENT(id, name, help) struct pl_counter id;
#include "verbs/events.def"
#undef PL_VERBS_EVENT
};
extern const struct pl_stats pl_verbs_stats_list; /* including the events */

const struct pl_verbs_counters *pl_verbs_counters(const struct pl_verbs *v);

/* Calls `tell` for each counter of the NIC's port, by the driver's names (docs of the kernel:
 * hw_counters); not at all when there are none. */
void pl_verbs_hw_counters(
	const struct pl_verbs *v, void (*tell)(void *arg, const char *name, uint64_t n), void *arg);

/* ---- what there is ---- */

struct pl_verbs_device {
	char name[PL_VERBS_NAME_MAX];
	char netdev[16]; /* the network interface of port 1; empty when not known */
	bool usable; /* it can be opened: its first port is active and has an address for RoCEv2 */
	char state[64]; /* reason when not usable, or its address */
	unsigned int ports;
};

/* Lists the devices of this host, at most max. Returns their number; -ENOSYS and other errors of
 * the system: no RDMA in this kernel. */
int pl_verbs_devices(struct pl_verbs_device *ret, unsigned int max);
