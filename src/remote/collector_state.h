/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector inside, for the files that make it up. */
#pragma once

#include "memory/append.h"
#include "remote/collector_nic.h"

struct collector_store {
	struct pl_region *region;
	char name[PL_EXCHANGE_NAME_MAX + 1];
	struct pl_region_info info;
	uint64_t va;
	uint32_t key; /* of all peers, with a NIC that gives no others */
	uint32_t domain;
};

/* A queue pair. Its number in the table + 1 is its id for the control server. */
struct collector_peer {
	bool used, by_cm;
	bool settled;        /* by_cm: it was confirmed */
	struct pl_addr from; /* who asked for it */
	struct pl_addr addr; /* who writes by it */
	uint64_t number;     /* as the so many-th */
	uint32_t qpn, cm_id;
	uint32_t key;      /* its own; 0: the store's */
	uint32_t peer_qpn; /* of the other side */
	bool exclusive;    /* by it no second one goes there: reliable ones, and those by RDMA-CM */
	uint32_t store, account; /* account: UINT32_MAX: none, or not settled yet */
	uint64_t executed;       /* by_cm: its packets, when they were looked at last */
};

struct pl_collector {
	struct pl_collector_options options;
	const struct collector_nic_ops *ops; /* of the NIC */
	struct collector_nic *nic;
	struct pl_exchange_server *server; /* NULL: none */
	bool have_cm;
	int poll_fd;
	struct pl_addr *cm_addresses;
	uint32_t n_cm_addresses;

	struct collector_store *stores;
	uint32_t n_stores;
	struct collector_peer *peers;
	uint32_t n_peers; /* slots: max_peers and max_unsettled */
	uint32_t max_peers, max_each, max_unsettled;
	uint64_t numbers; /* queue pairs made so far */
	struct pl_collector_account accounts[PL_COLLECTOR_ACCOUNTS_MAX];
	uint32_t n_accounts;
	uint64_t signals, lost_signals, failed, forgotten, silent;
	uint64_t displaced, crowded, no_room, stale;
	uint64_t lost, returns; /* by the device's loss; how often it was back */
	bool away;              /* the device is gone */
	uint64_t again_ns;      /* then: when it is looked for next */
	struct pl_diag why;     /* and what was told last of why it is not there yet */
	uint64_t silent_told;   /* of them; the newest is silent_addr */
	struct pl_addr silent_addr;
	uint64_t alarms_seen, alarm_ns; /* of the NIC; when some were told last, 0: never */
	uint64_t lively_ns;             /* when signs of life were looked for last */
	/* of the first store, into which options.peer_switch writes */
	struct pl_append switch_list;
	uint32_t switch_qpn;

	uint64_t now_ns, control_ns; /* of this turn; when the control side was looked after last */
};

/* collector_peers.c */

/* Whether this address may write. */
bool collector_allows(const struct pl_collector *c, const struct pl_addr *addr);

/* The operations of struct pl_exchange_server_options; `arg` is the collector. */
bool collector_may_connect(void *arg, const struct pl_addr *peer);
int collector_ask(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ret_ours, uint64_t *ret_id);
void collector_ended(void *arg, uint64_t id);

/* Makes the queue pair that `theirs` asks for and `from` wants, with answers along `path` from this
 * side to the peer; for a request of the connection manager, or a switch, or neither (NULL). 0 with
 * *ret_ours the answer, or enum pl_exchange_refusal. */
int collector_make_peer(struct pl_collector *c, const struct pl_roce_path *path,
	const struct pl_addr *from, const struct pl_exchange *theirs, const uint32_t *connection,
	const struct pl_collector_switch *is_switch, struct pl_exchange *ret_ours,
	struct collector_peer **ret);

/* collector_switch.c */

/* The queue pair of options.peer_switch, which its controller is told. Negative errno with diag. */
int collector_switch_open(struct pl_collector *c, struct pl_diag *diag);
/* What it wrote since the last time is published. */
void collector_switch_publish(struct pl_collector *c);

/* It is over: the queue pair and its key are no more. */
void collector_end_peer(struct pl_collector *c, struct collector_peer *p);
/* Likewise, and so is its connection, by which the peer sees it and makes another. */
void collector_drop_peer(struct pl_collector *c, struct collector_peer *p);
/* A request of RDMA-CM was confirmed. */
void collector_confirm(struct pl_collector *c, struct collector_peer *p);

/* collector_cm.c */

/* What the connection manager has to tell. */
void collector_cm_events(struct pl_collector *c);
/* Tells the connection manager whose requests were executed since the last time. */
void collector_signs_of_life(struct pl_collector *c);
/* Peers by RDMA-CM are told, once, that it is over; those over TCP see it. */
void collector_say_goodbye(struct pl_collector *c);
/* collector_peers.c */

/* What peers signalled, and queue pairs that went to error. */
void collector_completions(struct pl_collector *c);
/* The NIC's device is gone, and so are all queue pairs, with their connections; how many they
 * were. */
uint32_t collector_lose_peers(struct pl_collector *c);
