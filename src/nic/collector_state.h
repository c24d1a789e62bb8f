/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector inside, for the files that make it up. */
#pragma once

#include "nic/collector_card.h"

struct collector_store {
	struct pl_region *region;
	char name[PL_EXCHANGE_NAME_MAX + 1];
	struct pl_region_info info;
	uint64_t va;
	uint32_t key, domain;
};

/* A queue pair. Its number in the table + 1 is its id for the control server. */
struct collector_peer {
	bool used, by_cm;
	uint32_t qpn, cm_id;
	uint32_t store, account;
};

struct pl_collector {
	struct pl_collector_options options;
	const struct collector_card_ops *ops; /* of the card */
	struct collector_card *card;
	struct pl_exchange_server *server; /* NULL: none */
	bool have_cm;
	int poll_fd;
	struct pl_addr cm_address;

	struct collector_store *stores;
	uint32_t n_stores;
	struct collector_peer *peers;
	uint32_t n_peers; /* slots */
	struct pl_collector_account accounts[PL_COLLECTOR_ACCOUNTS_MAX];
	uint32_t n_accounts;
	uint64_t signals, lost_signals, failed, forgotten;

	uint64_t now_ns, control_ns; /* of this turn; when the control side was looked after last */
};

/* collector_peers.c */

/* The operations of struct pl_exchange_server_options; `arg` is the collector. */
bool collector_allowed(void *arg, const struct pl_addr *peer);
int collector_ask(void *arg, const struct pl_addr *peer, const struct pl_exchange *theirs,
	struct pl_exchange *ret_ours, uint64_t *ret_id);
void collector_ended(void *arg, uint64_t id);

/* What the connection manager has to tell. */
void collector_cm_events(struct pl_collector *c);
/* What peers signalled, and queue pairs that went to error. */
void collector_completions(struct pl_collector *c);
