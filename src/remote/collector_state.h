/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a collector, for collector.c (stores, turns), collector_peers.c (queue pairs),
 * collector_cm.c (the connection manager), collector_switch.c (a switch that writes by itself). */
#pragma once

#include "memory/append.h"
#include "remote/collector_nic.h"

struct collector_store {
	struct pl_region *region;
	char name[PL_EXCHANGE_NAME_MAX + 1];
	struct pl_region_info info;
	uint64_t va;
	uint32_t key; /* key of all peers, with a NIC that has no key for each */
	uint32_t domain;
};

/* A queue pair. Its index in the table + 1 is its id for the control server. */
struct collector_peer {
	bool used, by_cm;
	bool settled;        /* by_cm: the connection was confirmed */
	struct pl_addr from; /* host that requested the queue pair */
	struct pl_addr addr; /* host that writes by the queue pair */
	uint64_t number;     /* serial number of the queue pair */
	uint32_t qpn, cm_id;
	uint32_t key;      /* key of this queue pair; 0: the store's */
	uint32_t peer_qpn; /* queue pair of the peer */
	/* its peer's queue pair can have no second one here: reliable connections, and those by
	 * RDMA-CM */
	bool exclusive;
	uint32_t store, account; /* account: UINT32_MAX: none, or not settled yet */
	uint64_t executed;       /* by_cm: packets executed at the last check */
};

struct pl_collector {
	struct pl_collector_options options;
	const struct collector_nic_ops *ops; /* operations of the NIC */
	struct collector_nic *nic;
	struct pl_exchange_server *server; /* NULL: none */
	bool have_cm;
	int poll_fd;
	struct pl_addr *cm_addresses;
	uint32_t n_cm_addresses;

	struct collector_store *stores;
	uint32_t n_stores;
	struct collector_peer *peers;
	uint32_t n_peers; /* length of `peers`: max_peers and max_unsettled */
	uint32_t max_peers, max_each, max_unsettled;
	uint64_t numbers; /* number of queue pairs made so far */
	struct pl_collector_account accounts[PL_COLLECTOR_ACCOUNTS_MAX];
	uint32_t n_accounts;
	uint64_t signals, lost_signals, failed, forgotten, silent;
	uint64_t displaced, crowded, no_room, stale;
	uint64_t lost, returns; /* losses of the device; number of times it came back */
	bool away;              /* the device is gone */
	uint64_t again_ns;      /* while away: time of the next check for the device */
	struct pl_diag why;     /* while away: the last reported reason */
	uint64_t silent_told;   /* number of reported silent peers; the newest is silent_addr */
	struct pl_addr silent_addr;
	/* alarms of the NIC so far; time of the last reported one, 0: never */
	uint64_t alarms_seen, alarm_ns;
	uint64_t lively_ns; /* time of the last check for signs of life */
	/* list of the first store, into which options.peer_switch writes */
	struct pl_append switch_list;
	uint32_t switch_qpn;

	/* time of this turn; time of the last check of the control side */
	uint64_t now_ns, control_ns;
};

/* collector_peers.c */

/* The operations of struct pl_exchange_server_options; `arg` is the collector. */
bool collector_may_connect(void *arg, const struct pl_addr *peer);
int collector_ask(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ret_ours, uint64_t *ret_id);
void collector_ended(void *arg, uint64_t id);

enum collector_request_kind {
	COLLECTOR_TCP,    /* the exchange of parameters over TCP */
	COLLECTOR_CM,     /* the connection manager */
	COLLECTOR_SWITCH, /* the switch of options.peer_switch, which sends no request */
};

/* A request for a queue pair. Pointers are valid during the call. */
struct collector_request {
	enum collector_request_kind kind;
	const struct pl_roce_path *path; /* of answers, from this side to the peer */
	const struct pl_addr *from;      /* host that asks */
	const struct pl_exchange *theirs;
	uint32_t connection; /* CM: its id */
	uint32_t psn;        /* switch: first packet sequence number; a random one for others */
};

/* Makes the queue pair of a request. Returns 0 with the answer in *ret_ours, or enum
 * pl_exchange_refusal. */
int collector_make_peer(struct pl_collector *c, const struct collector_request *request,
	struct pl_exchange *ret_ours, struct collector_peer **ret);

/* Ends a peer: removes its queue pair and its key. */
void collector_end_peer(struct pl_collector *c, struct collector_peer *p);
/* Settles a peer: its request of RDMA-CM was confirmed. */
void collector_confirm(struct pl_collector *c, struct collector_peer *p);
/* Takes the signals of peers, and queue pairs that went to error. */
void collector_completions(struct pl_collector *c);
/* Ends all queue pairs and their connections after the NIC's device is gone. Returns their
 * number. */
uint32_t collector_lose_peers(struct pl_collector *c);

/* collector_switch.c */

/* Makes the queue pair of options.peer_switch and tells its controller. Returns negative errno with
 * diag. */
int collector_switch_open(struct pl_collector *c, struct pl_diag *diag);
/* Publishes the entries that the switch wrote since the last call. */
void collector_switch_publish(struct pl_collector *c);

/* collector_cm.c */

/* Takes the events of the connection manager. */
void collector_cm_events(struct pl_collector *c);
/* Tells the connection manager which peers' requests were executed since the last call. */
void collector_signs_of_life(struct pl_collector *c);
/* Disconnects the peers by RDMA-CM once; peers over TCP see their connection end. */
void collector_say_goodbye(struct pl_collector *c);
