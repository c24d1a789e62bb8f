/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs driver: telemetry memory behind a real RDMA NIC, or Linux soft-RoCE, by
 * libibverbs and librdmacm. The NIC executes what peers ask for; this side registers memory,
 * brings queue pairs up, keeps receives posted for immediates, and hears what happens. Shapes are
 * those of the software responder and its connection manager (rdma/responder.h, rdma/cm.h), so that
 * whoever collects can have either.
 *
 *   pl_verbs_open(&v, &options, &diag);
 *   pl_verbs_region_add(v, &region, &key, &diag);
 *   pl_verbs_qp_add(v, &qp, &qpn, &diag);           with what the peer told of itself
 *   poll pl_verbs_fd(v); pl_verbs_step(v);
 *   n = pl_verbs_completions(v, done, max);  while (pl_verbs_news(v, &news)) ...
 *   when the device is gone: pl_verbs_leave(v); now and then pl_verbs_again(v, &diag); then from
 *   region_add on
 *
 * Receives have no memory: each stands for one immediate, and is posted again as soon as it is used
 * up, so that the completion queue, which has room for all of them twice, cannot overflow. Memory
 * that a NIC writes must stay where it is: pl_verbs_memory_check says which can. One thread at a
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
	char device[PL_VERBS_NAME_MAX]; /* as `rdma link` names it: "rxe0", "mlx5_0" */
	uint8_t port;                   /* from 1; 0: 1 */
	int gid;                        /* its index in the port's table; -1: chosen */
	uint32_t max_qps;               /* 1 to 4096; 0: 64 */
	uint32_t receives;              /* for each queue pair, 1 to 4096; 0: 256 */
};

/* "DEVICE[?port=1&gid=3]", what stands behind "verbs:". -EINVAL with diag. */
int pl_verbs_parse(struct pl_verbs_options *ret, const char *target, struct pl_diag *diag);

/* -ENODEV (no such device), -EADDRNOTAVAIL (no address on it), -ENETDOWN (its port is not active),
 * -ENOTSUP (not an Ethernet port), -EINVAL, or what the system says, with diag. */
int pl_verbs_open(
	struct pl_verbs **ret, const struct pl_verbs_options *options, struct pl_diag *diag);
/* Queue pairs, regions and connections end. NULL is fine. */
void pl_verbs_close(struct pl_verbs *v);

/*
 * After PL_VERBS_GONE: gives the device up, for which the kernel may be waiting. Its queue pairs,
 * regions and connections end, and what was not fetched is forgotten. Until pl_verbs_again
 * everything that needs the device says -ENODEV, or that it has nothing.
 */
void pl_verbs_leave(struct pl_verbs *v);
/*
 * Opens the device of the same name, which may be another one or the old one, as pl_verbs_open
 * does; an address that it had is preferred. Listeners listen again and counters go on; regions and
 * queue pairs are to be made anew. On failure, with diag, it may be tried again.
 */
int pl_verbs_again(struct pl_verbs *v, struct pl_diag *diag);

struct pl_verbs_self {
	const char *device; /* until it is closed */
	/* by which peers name this side; unspecified: it has none at the moment */
	struct pl_addr gid;
	uint8_t mac[6]; /* zero when the system does not say */
	uint16_t mtu;   /* the port's path MTU */
	uint8_t depth;  /* READs and atomics that the NIC takes of one queue pair at a time */
	unsigned int gid_index;
	bool cm;        /* there is a connection manager */
	bool listening; /* at that address, on every port that was asked for */
};

void pl_verbs_self(const struct pl_verbs *v, struct pl_verbs_self *ret);

/* Whether the port still has our address, which is looked for anew where it was; the answer is in
 * pl_verbs_self. It comes before each queue pair anyway. -EADDRNOTAVAIL, -ENODEV with diag. */
int pl_verbs_address(struct pl_verbs *v, struct pl_diag *diag);

/*
 * Whether a NIC can be given the memory of this file: on tmpfs, memfd or hugetlbfs. -ENOTSUP with
 * diag for others: pages of a disk's file may move and be cleaned under a NIC that writes them,
 * and kernels refuse them (6.12 does).
 */
int pl_verbs_memory_check(int fd, const char *name, struct pl_diag *diag);

/*
 * Registers memory with the NIC, which pins it. `va` is the address by which peers name `base`; 0:
 * base itself. A wanted `key` is not for NICs: 0. -ENOMEM with advice where locked memory is
 * limited, -EFAULT (memory that cannot be registered), -ENOSPC, with diag.
 */
int pl_verbs_region_add(struct pl_verbs *v, const struct pl_rdma_region *region, uint32_t *ret_key,
	struct pl_diag *diag);
int pl_verbs_region_remove(struct pl_verbs *v, uint32_t key); /* -ENOENT */

/*
 * A queue pair for one peer, ready: `service` (RC, UC), `domain`, `access`, `mtu`, `depth`, `psn`,
 * `peer_qpn`, `rnr_timer` and path.dst and ttl are taken; the kernel finds the way, which can take
 * a second where the neighbour is not known. -ENOSPC, -EINVAL, -EHOSTUNREACH and others of the
 * system, with diag.
 */
int pl_verbs_qp_add(
	struct pl_verbs *v, const struct pl_rdma_qp *qp, uint32_t *ret_qpn, struct pl_diag *diag);
int pl_verbs_qp_remove(struct pl_verbs *v, uint32_t qpn); /* -ENOENT */

/* ---- what happens ---- */

/* Readable when a step has something to do; stays the same. Under a flood a step may leave some:
 * call it a few times in a second anyway. */
int pl_verbs_fd(const struct pl_verbs *v);

/* Takes what the NIC, the kernel and the connection manager have to say. Never waits. */
void pl_verbs_step(struct pl_verbs *v);

/* Immediates, as PL_RDMA_DONE_WRITE; up to max in their order, returns how many. */
uint32_t pl_verbs_completions(struct pl_verbs *v, struct pl_rdma_completion *ret, uint32_t max);

enum pl_verbs_news_kind {
	PL_VERBS_BROKEN = 1, /* queue pair `qpn` went to error; it is to be removed */
	PL_VERBS_PORT_DOWN,
	PL_VERBS_PORT_UP,
	PL_VERBS_ADDRESSES, /* the port's addresses changed: pl_verbs_self says which is ours now */
	PL_VERBS_GONE,      /* the device is no more: leave it */
	PL_VERBS_CONNECTION, /* `connection` says what: a request, connected, closed */
};

struct pl_verbs_news {
	uint8_t kind; /* enum pl_verbs_news_kind */
	uint32_t qpn;
	struct pl_connection_event connection; /* its terms' private data: until the next call */
};

/* False: there is none. What found no room is counted (news_lost). */
bool pl_verbs_news(struct pl_verbs *v, struct pl_verbs_news *ret);

/* ---- connections by librdmacm: reliable ones ---- */

/* Requests to this TCP port of RDMA-CM, at our address, become news. -ENOTSUP without a connection
 * manager, -EADDRINUSE and others of the system, with diag. */
int pl_verbs_listen(struct pl_verbs *v, uint16_t port, struct pl_diag *diag);

/* The queue pair of a request, as pl_verbs_qp_add; of `qp` domain and access are taken. Next comes
 * pl_verbs_accept. -ENOENT, -EINVAL (it has one). */
int pl_verbs_connection_qp(struct pl_verbs *v, uint32_t id, const struct pl_rdma_qp *qp,
	uint32_t *ret_qpn, struct pl_diag *diag);
/* Accepts it; of `terms` resources, depth, rnr_retries and the private data are taken. -ENOENT,
 * -EINVAL (no queue pair), and others of the system, with diag; the request is then refused, and
 * its queue pair is gone. */
int pl_verbs_accept(struct pl_verbs *v, uint32_t id, const struct pl_connection_terms *terms,
	struct pl_diag *diag);
/* Refuses a request, with its queue pair if it has one. -ENOENT. */
int pl_verbs_reject(struct pl_verbs *v, uint32_t id, const void *private, uint8_t n);
/* Ends it, and its queue pair. -ENOENT. */
int pl_verbs_disconnect(struct pl_verbs *v, uint32_t id);

struct pl_verbs_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "verbs/verbs_stats.def"
#undef PL_STAT
#define PL_VERBS_EVENT(id, name, help) struct pl_counter id;
#include "verbs/events.def"
#undef PL_VERBS_EVENT
};
extern const struct pl_stats pl_verbs_stats_list; /* with the events */

const struct pl_verbs_counters *pl_verbs_counters(const struct pl_verbs *v);

/* What the NIC itself counts of its port, by the names that its driver gives (docs of the kernel:
 * hw_counters); for each calls `tell`. Nothing where it counts nothing. */
void pl_verbs_hw_counters(
	const struct pl_verbs *v, void (*tell)(void *arg, const char *name, uint64_t n), void *arg);

/* ---- what there is ---- */

struct pl_verbs_device {
	char name[PL_VERBS_NAME_MAX];
	char netdev[16]; /* the network interface of port 1; empty when not known */
	bool usable; /* it can be opened, its first port is active and has an address for RoCEv2 */
	char state[64]; /* in words: why not, or its address */
	unsigned int ports;
};

/* The devices of this host, at most max of them; returns how many there are. -ENOSYS and others of
 * the system: no RDMA in this kernel. */
int pl_verbs_devices(struct pl_verbs_device *ret, unsigned int max);
