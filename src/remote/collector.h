/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collector: region files of this machine, written by peers through the software NIC, or an RDMA
 * NIC. It joins an interface (nic.h), a responder and a connection manager, or a NIC's
 * (verbs/verbs.h), and a control server (exchange_server.h). Peers get a queue pair for one store
 * each, which reaches that store and nothing else, over either way of connecting:
 *
 *   TCP        they send their parameters and the store's name (rdma/exchange.h) and keep the
 *              connection open; when it ends, the queue pair ends, and later packets to it are
 *              refused
 *   RDMA-CM    a request's private data are the store's name, the reply's are the same answer as
 *              over TCP
 *
 * A peer proves its address before anything is done for it: over TCP the connection comes from it,
 * by RDMA-CM the answer that was sent there is confirmed. Only a proxy asks for queue pairs of
 * others, as a switch's controller does; such queue pairs never READ, for the peer did not agree to
 * get the answers. A responder in software gives each queue pair a key of its own, which no other
 * queue pair can use; an RDMA NIC has one key for each region.
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
#define PL_COLLECTOR_TCP_PORT   7471 /* TCP port of the control server */
#define PL_COLLECTOR_CM_PORT    7471 /* port of RDMA-CM, apart from the ports of TCP */

struct pl_collector_store {
	/* name by which peers request the store, at most PL_EXCHANGE_NAME_MAX bytes of UTF-8;
	 * unique */
	const char *name;
	const char *path;
};

/* A request that signals its reader: a WRITE with immediate, or a SEND. */
struct pl_collector_signal {
	uint32_t store; /* index in the options' stores */
	uint32_t imm;
	bool have_imm;
	uint64_t ns; /* pl_clock_mono_ns when the request was executed */
};

/*
 * A switch that writes without a host, as in the P4-to-RDMA collector of Beltman and Knossen
 * (2020): one record behind the other, by WRITEs of RC whose acknowledgements it ignores. Its
 * controller gets the address (announce.h). The first store is its list: an unsealed append of one
 * list, whose entries are the records. The collector publishes the head by the address of the last
 * write; records that were lost on the way leave entries unwritten. After the list's end the switch
 * begins again.
 */
struct pl_collector_switch {
	const char *controller; /* "host:port" */
	/* address of the switch in its packets; its network is the interface's */
	struct pl_addr gid;
	/* queue pair for acknowledgements; first packet number of the switch */
	uint32_t qpn, psn;
	bool v1; /* the switch sends RoCEv1 */
};

/* Rules for requests beside their addresses; requests that break them are dropped (struct
 * pl_rdma_qp). */
struct pl_collector_rules {
	/* one source MAC address: by RDMA-CM that of the connection request, else that of the first
	 * request executed */
	bool check_mac;
	bool check_vlan;
	uint16_t vlan;   /* with check_vlan: the tag that frames must have, also requests of
			  * RDMA-CM */
	uint8_t min_ttl; /* lowest TTL or hop limit that is taken */
	/* unreliable connections: largest distance from the expected packet number; 0: any */
	uint32_t max_jump;
};

struct pl_collector_options {
	const char *uri;    /* interface, as pl_nic_open; or "verbs:DEVICE" (pl_verbs_parse) */
	const char *listen; /* address of the control server, as pl_tcp_listen; NULL: none */
	uint16_t cm_port;   /* port of RDMA-CM; 0: none */
	const struct pl_collector_store *stores;
	uint32_t n_stores; /* 1 to PL_COLLECTOR_STORES_MAX */
	/* Addresses that may connect and write. None: only on the loopback, and only this host. */
	const struct pl_prefix *allow;
	uint32_t n_allow;
	/* Addresses that may connect and READ, whatever may_read says; they write only when they
	 * are in `allow` too. */
	const struct pl_prefix *readers;
	uint32_t n_readers;
	/* Hosts that may request queue pairs for other addresses over TCP, and may connect for
	 * that. */
	const struct pl_prefix *proxies;
	uint32_t n_proxies;
	/* largest number of queue pairs, apart from unconfirmed requests of RDMA-CM; 0: 64 */
	uint32_t max_peers;
	/* largest number of queue pairs of one address; 0: three quarters of max_peers */
	uint32_t max_each;
	/* NULL: none; its controller must answer at opening */
	const struct pl_collector_switch *peer_switch;
	struct pl_collector_rules rules; /* ignored by an RDMA NIC */
	bool any_mac;  /* execute frames to other MAC addresses than the interface's, too */
	bool may_read; /* peers may READ the stores */
	/* Peers by RDMA-CM that are silent for this long lose their queue pairs, after probes
	 * (rdma/cm.h); 0: never. Ignored by an RDMA NIC, whose connection manager cannot probe. */
	uint64_t silent_ns;
	uint64_t sync_ns;               /* as in struct pl_region_options */
	const struct pl_rights *rights; /* rights of a helper (netio/rights.h); NULL: our own */
	/* Called from pl_collector_step. NULL: signals are only counted. */
	void (*signal)(void *arg, const struct pl_collector_signal *signal);
	void *arg;
};

/* Makes a collector and opens its interface, which takes rights. An RDMA NIC takes none, and the
 * kernel serves it only to a process with the rights it had when it opened the NIC: it is opened by
 * pl_collector_open. Returns negative errno with diag. */
int pl_collector_new(struct pl_collector **ret, const struct pl_collector_options *options,
	struct pl_diag *diag);
/* Opens the regions for writing and the servers. Returns negative errno with diag; then the
 * collector is only to be closed. */
int pl_collector_open(struct pl_collector *c, struct pl_diag *diag);
/* Ends the queue pairs, writes the regions to disk and marks them clean. Returns the first error,
 * or 0. NULL is fine. */
int pl_collector_close(struct pl_collector *c);

/* Descriptor that is readable when pl_collector_step has something to do. */
int pl_collector_fd(const struct pl_collector *c);

/*
 * Takes at most a batch of packets and does all work that is due; never waits. Returns the number
 * of packets taken; -ENETDOWN and -EAGAIN with diag as pl_nic_recv, -EAGAIN also with news of peers
 * that fell silent and, at most once a second, of sources that guess; other errors are final. An
 * RDMA NIC whose device is gone returns -ENETDOWN: regions stay open, peers are refused, and each
 * second it checks for the device; when the device is back, it returns -EAGAIN, and peers connect
 * again, with new keys.
 */
int pl_collector_step(struct pl_collector *c, struct pl_diag *diag);
/* Time until something is due, at most max_ms: how long to wait for the descriptor. */
/* Returns 0 when the smallest path MTU of RoCE fits the interface as it is now, or -EMSGSIZE with
 * diag. */
int pl_collector_fits(const struct pl_collector *c, struct pl_diag *diag);
int pl_collector_wait_ms(const struct pl_collector *c, int max_ms);

/* Address of the control server; NULL: none. */
const char *pl_collector_address(const struct pl_collector *c);
/* Addresses for which RDMA-CM answered when it was opened, in *ret, and their number: the
 * interface's, or the NIC's. RDMA-CM follows the interface's addresses afterwards. */
uint32_t pl_collector_cm_addresses(const struct pl_collector *c, const struct pl_addr **ret);
/* "packet:eth0", "verbs:mlx5_0" */
const char *pl_collector_name(const struct pl_collector *c);
/* Remark about the NIC for the user (pl_nic_note); NULL: none. */
const char *pl_collector_note(const struct pl_collector *c);
/* Region of a store, for reading while the collector is open. */
const struct pl_region *pl_collector_region(const struct pl_collector *c, uint32_t store);

/*
 * Epochs of a store whose region has two halves (memory/region.h): requests write into the next
 * half from now on, without any peer noticing. Returns -ENOTSUP with diag for a list, whose writers
 * keep its position, and with an RDMA NIC, whose memory cannot be moved. A sketch is written column
 * by column in an order that continues in the next epoch: its next epoch begins when all columns
 * are complete and before the next ones come, else -EAGAIN with diag.
 *
 * `prepare` empties the half to be written, and may be called from another thread while this one
 * steps; without it, `next` empties that half, and no packet is taken meanwhile.
 */
int pl_collector_can_turn(const struct pl_collector *c, uint32_t store, struct pl_diag *diag);
int pl_collector_prepare_epoch(struct pl_collector *c, uint32_t store, struct pl_diag *diag);
int pl_collector_next_epoch(struct pl_collector *c, uint32_t store, struct pl_diag *diag);

/* Account of one peer and one store, over all its queue pairs, also those that ended. */
struct pl_collector_account {
	struct pl_addr peer;
	uint32_t store;
	uint32_t connected;        /* queue pairs at present */
	uint64_t packets, refused; /* packets to its queue pairs; of them, not executed */
	uint64_t tcp, cm;          /* number of connections by each way */
};

#define PL_COLLECTOR_ACCOUNTS_MAX 256

struct pl_collector_stats {
	/* Counters of an RDMA NIC (pl_verbs_counters, pl_verbs_hw_counters), which has the next two
	 * but not nic and port; NULL for a software NIC. */
	const struct pl_verbs *verbs;
	const struct pl_responder_counters *responder;
	const struct pl_connector_counters *cm;             /* NULL: no connection manager */
	const struct pl_exchange_server_counters *exchange; /* NULL: no control server */
	const struct pl_nic_counters *nic;
	struct pl_port_stats port;
#define PL_STAT PL_STAT_MEMBER
#include "remote/collector_device.def" /* counters of an RDMA NIC's device */
#include "remote/collector_stats.def"
#undef PL_STAT
	uint32_t n_accounts;
	struct pl_collector_account accounts[PL_COLLECTOR_ACCOUNTS_MAX];
	uint32_t n_suspects; /* number of sources that guessed (pl_responder_suspects) */
	struct pl_rdma_suspect suspects[PL_RDMA_SUSPECTS_MAX];
};
extern const struct pl_stats pl_collector_stats_list, pl_collector_device_list;

/* Calls the kernel; too slow for every batch. */
void pl_collector_get_stats(struct pl_collector *c, struct pl_collector_stats *ret);
