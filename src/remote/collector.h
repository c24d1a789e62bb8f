/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collector: region files of this machine, written by peers through the software NIC, or an RDMA
 * NIC. It joins an interface (nic.h), a responder and a connection manager, or a NIC's
 * (verbs/verbs.h), and a control server (exchange_server.h). Peers get a queue pair for one store
 * each, which reaches that store and nothing else, over either way of connecting:
 *
 *   TCP        they send what they are and the store's name (rdma/exchange.h) and keep the
 *              connection open; when it ends, so does the queue pair, and what still comes for it
 *              is refused
 *   RDMA-CM    a request's private data is the store's name, the reply's is the same answer as over
 *              TCP
 *
 * A peer proves its address before anything is done for it: over TCP the connection comes from it,
 * by RDMA-CM the answer that was sent there is confirmed. Only a proxy asks for queue pairs of
 * others, as a switch's controller does; those never READ, for nobody there has agreed to be sent
 * what a READ brings. A responder in software gives each queue pair a key of its own, which is
 * worth nothing by another one; an RDMA NIC has one key for each region.
 *
 *   pl_collector_open(&c, &options, &diag);
 *   while (...) { if (pl_collector_step(c, &diag) == 0) poll pl_collector_fd(c) for
 *   pl_collector_wait_ms(c, …) }
 *   pl_collector_close(c);
 *
 * Store addresses (va) are offsets in the region's file, and stay what they were when a new epoch
 * begins: the key then names the other half. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "memory/region.h"
#include "nic/nic.h"
#include "rdma/cm.h"
#include "rdma/responder.h"
#include "remote/exchange_server.h"

struct pl_collector;

struct pl_verbs;

#define PL_COLLECTOR_VERBS      "verbs:"
#define PL_COLLECTOR_STORES_MAX 256
#define PL_COLLECTOR_ALLOW_MAX  64
#define PL_COLLECTOR_TCP_PORT   7471 /* of the control server */
#define PL_COLLECTOR_CM_PORT    7471 /* of RDMA-CM: another space of numbers */

struct pl_collector_store {
	/* by which peers ask for it, at most PL_EXCHANGE_NAME_MAX bytes of UTF-8; no two alike */
	const char *name;
	const char *path;
};

/* Something arrived that its writer wanted noticed: a WRITE with immediate, or a SEND. */
struct pl_collector_signal {
	uint32_t store; /* as in the options */
	uint32_t imm;
	bool have_imm;
	uint64_t ns; /* pl_clock_mono_ns when it was executed */
};

/*
 * A switch that writes by itself, as that of the P4-to-RDMA collector of Beltman and Knossen
 * (2020): one record behind the other, by WRITEs of RC that nobody acknowledges, and its controller
 * is told where (announce.h). The first store is its list: an unsealed append of one list, whose
 * entries are the records. This side publishes the head, by where the switch wrote last; records
 * that were lost on the way are entries that nobody wrote. After the list's end it begins again.
 */
struct pl_collector_switch {
	const char *controller; /* "host:port" */
	struct pl_addr gid;     /* by which it writes; its net is the interface's */
	uint32_t qpn, psn;      /* where acknowledgements go; the first number it sends */
	bool v1;                /* it speaks RoCEv1 */
};

/* What requests must be like beside their addresses; those that are not are dropped (struct
 * pl_rdma_qp). */
struct pl_collector_rules {
	/* all from one MAC address: by RDMA-CM that of the request, else that of the first
	 * executed */
	bool check_mac;
	bool check_vlan;
	uint16_t vlan;   /* check_vlan: the tag; requests of RDMA-CM have it too */
	uint8_t min_ttl; /* the TTL or hop limit with which they come, at least */
	/* unreliable connections: how far numbers may be from the expected one; 0: any */
	uint32_t max_jump;
};

struct pl_collector_options {
	const char *uri; /* of the interface, as pl_nic_open; or "verbs:DEVICE" (pl_verbs_parse) */
	const char *listen; /* control server: as pl_tcp_listen; NULL: none */
	uint16_t cm_port;   /* RDMA-CM; 0: none */
	const struct pl_collector_store *stores;
	uint32_t n_stores; /* 1 to PL_COLLECTOR_STORES_MAX */
	/* The addresses that may connect and write. None: only on the loopback, and only itself. */
	const struct pl_prefix *allow;
	uint32_t n_allow;
	/* Those that may connect and READ, whatever may_read says; unless they are allowed too, they
	 * never write. */
	const struct pl_prefix *readers;
	uint32_t n_readers;
	/* Hosts that may ask over TCP for queue pairs of other addresses; they are allowed to
	 * connect by that. */
	const struct pl_prefix *proxies;
	uint32_t n_proxies;
	/* queue pairs; beside them requests of RDMA-CM that nobody confirmed; 0: 64 */
	uint32_t max_peers;
	uint32_t max_each; /* queue pairs of one address; 0: three quarters of max_peers */
	const struct pl_collector_switch *peer_switch; /* NULL: none; it must answer at opening */
	struct pl_collector_rules rules;               /* not with an RDMA NIC */
	bool any_mac;  /* execute what is sent to other MAC addresses than the interface's, too */
	bool may_read; /* peers may READ what lies in stores */
	/* Peers by RDMA-CM that are silent for so long, asked or not, lose their queue pairs
	 * (rdma/cm.h); 0: never. Not with an RDMA NIC, whose connection manager has no such
	 * question. */
	uint64_t silent_ns;
	uint64_t sync_ns;               /* as in struct pl_region_options */
	const struct pl_rights *rights; /* of somebody else (netio/rights.h); NULL: our own */
	/* The interface is open, or an RDMA NIC, which takes no rights, is not yet; nothing else
	 * is, and there is no thread: the place to give up rights. NULL: nothing. */
	int (*opened)(void *arg, struct pl_diag *diag);
	/* NULL: signals are counted only. Called from pl_collector_step. */
	void (*signal)(void *arg, const struct pl_collector_signal *signal);
	void *arg;
};

/* Opens the regions for writing, the interface, the servers. Negative errno with diag. */
int pl_collector_open(struct pl_collector **ret, const struct pl_collector_options *options,
	struct pl_diag *diag);
/* Queue pairs end, regions go to disk and are marked clean; the first error of that, or 0. NULL is
 * fine. */
int pl_collector_close(struct pl_collector *c);

/* Readable: step. */
int pl_collector_fd(const struct pl_collector *c);

/*
 * Takes what came, at most a batch of packets, and does what is due; never waits. Returns the
 * packets taken; -ENETDOWN and -EAGAIN with diag as pl_nic_recv, -EAGAIN also for peers that fell
 * silent and, at most once a second, for sources that guess: news to be told; other errors are the
 * end. An RDMA NIC whose device is gone is -ENETDOWN: regions stay open, peers are refused, and
 * the device is looked for each second; when it is back, -EAGAIN: peers connect anew, to other
 * keys.
 */
int pl_collector_step(struct pl_collector *c, struct pl_diag *diag);
/* How long to wait for the descriptor, at most max_ms: something is due then. */
/* Whether the smallest path MTU of RoCE fits the interface as it is now. -EMSGSIZE with diag. */
int pl_collector_fits(const struct pl_collector *c, struct pl_diag *diag);
int pl_collector_wait_ms(const struct pl_collector *c, int max_ms);

/* Where the control server listens; NULL: nowhere. */
const char *pl_collector_address(const struct pl_collector *c);
/* Of RDMA-CM: how many addresses it answered for when it was opened, which are in *ret: the
 * interface's, or the NIC's. It answers for those that the interface has now. */
uint32_t pl_collector_cm_addresses(const struct pl_collector *c, const struct pl_addr **ret);
/* "packet:eth0", "verbs:mlx5_0" */
const char *pl_collector_name(const struct pl_collector *c);
/* Something about its NIC to tell whoever runs it (pl_nic_note); NULL: nothing. */
const char *pl_collector_note(const struct pl_collector *c);
/* To read while it is open: the region of a store. */
const struct pl_region *pl_collector_region(const struct pl_collector *c, uint32_t store);

/*
 * Epochs of a store whose region has two halves (memory/region.h): what is executed from now on
 * goes to the next one, without any peer noticing. -ENOTSUP with diag: a list, whose writers know
 * by themselves where they are, or an RDMA NIC, whose memory is where it is. A sketch is written
 * column by column in an order that goes on over the turn: its next epoch begins when all columns
 * are complete and before the next ones come, else -EAGAIN with diag.
 *
 * `prepare` empties the half to be written, and may be called from another thread while this one
 * steps; without it, `next` does that, and nothing is taken meanwhile.
 */
int pl_collector_can_turn(const struct pl_collector *c, uint32_t store, struct pl_diag *diag);
int pl_collector_prepare_epoch(struct pl_collector *c, uint32_t store, struct pl_diag *diag);
int pl_collector_next_epoch(struct pl_collector *c, uint32_t store, struct pl_diag *diag);

/* What one peer did to one store: over all its queue pairs, those that ended too. */
struct pl_collector_account {
	struct pl_addr peer;
	uint32_t store;
	uint32_t connected;        /* queue pairs now */
	uint64_t packets, refused; /* that named its queue pairs; of them, not executed */
	uint64_t tcp, cm;          /* how often it connected */
};

#define PL_COLLECTOR_ACCOUNTS_MAX 256

struct pl_collector_stats {
	/* Of an RDMA NIC (pl_verbs_counters, pl_verbs_hw_counters), which has the next two, nic
	 * and port not; else NULL. */
	const struct pl_verbs *verbs;
	const struct pl_responder_counters *responder;
	const struct pl_connector_counters *cm;             /* NULL: there is none */
	const struct pl_exchange_server_counters *exchange; /* NULL: there is none */
	const struct pl_nic_counters *nic;
	struct pl_port_stats port;
#define PL_STAT PL_STAT_MEMBER
#include "remote/collector_device.def" /* of an RDMA NIC */
#include "remote/collector_stats.def"
#undef PL_STAT
	uint32_t n_accounts;
	struct pl_collector_account accounts[PL_COLLECTOR_ACCOUNTS_MAX];
	uint32_t n_suspects; /* sources that guessed (pl_responder_suspects) */
	struct pl_rdma_suspect suspects[PL_RDMA_SUSPECTS_MAX];
};
extern const struct pl_stats pl_collector_stats_list, pl_collector_device_list;

/* Asks the kernel; not for every batch. */
void pl_collector_get_stats(struct pl_collector *c, struct pl_collector_stats *ret);
