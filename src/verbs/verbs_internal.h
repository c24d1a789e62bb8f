/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the verbs driver share: an open device. Needs the libraries' headers. */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "verbs/choose.h"
#include "verbs/verbs.h"

#define REGIONS_MAX 1024
#define DOMAINS_MAX 1024
#define NEWS_MAX    1024

/* A queue pair's place. Receives name it with its generation, so that what comes late is not taken
 * for another's. */
struct verbs_qp {
	struct ibv_qp *qp;     /* NULL: free */
	struct rdma_cm_id *id; /* the connection it belongs to, or NULL */
	uint32_t qpn;
	uint16_t generation;
	bool broken; /* told */
};

struct verbs_connection {
	struct rdma_cm_id *id; /* NULL: free */
	uint32_t number;       /* for the owner */
	uint32_t qpn;          /* 0: not accepted */
	struct pl_addr own;    /* the address at which it was asked for, which was there: */
	uint32_t gid_index;
};

/* News, with the private data of a request behind it. */
struct verbs_told {
	struct pl_verbs_news news;
	uint8_t private[64];
};

struct pl_verbs {
	struct pl_verbs_options options;
	struct ibv_context *context; /* NULL: the device was left */
	bool own_context;            /* else librdmacm's */
	struct ibv_context **of_cm;  /* then: all that it had open */
	struct ibv_context *left;    /* of them, the one that was left */
	struct {
		uint32_t number;
		struct ibv_pd *pd;
	} domains[DOMAINS_MAX];
	unsigned int n_domains;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct rdma_event_channel *cm; /* NULL: no connection manager */
	struct verbs_listener {
		struct rdma_cm_id *id; /* NULL: for now nobody listens */
		struct pl_addr at;
		uint16_t port;
	} listeners[16];
	unsigned int n_listeners;
	struct rdma_cm_id *parked; /* a list by their contexts; end with the device */
	bool deaf;                 /* one of them could not be set up again */
	bool in_sysfs;             /* the device is seen there, as long as it is */
	uint64_t look_ns;          /* when to look again for what no event tells */
	int epoll;
	struct verbs_gid home; /* what was chosen when it was opened */
	struct verbs_gid gid;  /* what peers are told now */
	bool no_gid;           /* there is none at the moment */
	uint16_t mtu;
	uint8_t depth;
	uint8_t mac[6];

	struct ibv_mr *regions[REGIONS_MAX];
	struct verbs_qp *qps;                 /* options.max_qps */
	struct verbs_connection *connections; /* as many */
	uint32_t next_number;

	/* Fetched later by the owner: rings, whose numbers only rise. */
	struct pl_rdma_completion *done;
	uint32_t done_cap;
	uint64_t done_head, done_tail;
	struct verbs_told *news;
	uint64_t news_head, news_tail;
	struct verbs_told fetched; /* the news that was fetched last */
	bool told_gone;
	bool undrained; /* completions were left, for which nothing wakes */

	struct pl_verbs_counters counters;
};

static inline int verbs_failed(struct pl_diag *diag, const char *what, int error)
{
	pl_diag_set(diag, "%s: %s", what, strerror(error));
	return error > 0 ? -error : -EIO;
}

/* device.c */
/* The table of a port; returns how many there are, at most max. */
unsigned int verbs_gids(
	struct ibv_context *context, uint8_t port, struct verbs_gid *ret, unsigned int max);
/* The name of the network interface behind it and, where ret_mac is given, its MAC address. */
void verbs_netdev(const char *device, uint8_t port, char ret[16], uint8_t *ret_mac);

/* verbs.c */
/* The protection domain of this number, which is made when it is new. NULL with errno. */
struct ibv_pd *verbs_domain(struct pl_verbs *v, uint32_t number);
/* Room for one more news, counted as lost when there is none (NULL). */
struct verbs_told *verbs_tell(struct pl_verbs *v, enum pl_verbs_news_kind kind);

/* queue.c */
/* Posts receives until `n` more are there. 0, or the errno of the one that was not taken. */
int verbs_post(struct pl_verbs *v, struct verbs_qp *q, uint32_t n);
/* A place with a new generation, or NULL. */
struct verbs_qp *verbs_place(struct pl_verbs *v);
struct verbs_qp *verbs_find(struct pl_verbs *v, uint32_t qpn);
void verbs_init_attr(const struct pl_verbs *v, uint8_t service, struct ibv_qp_init_attr *ret);
unsigned int verbs_access(uint8_t access);
void verbs_drain(struct pl_verbs *v);
void verbs_broken(struct pl_verbs *v, struct verbs_qp *q);

/* open.c */
/* The table of addresses was changed: which is ours now, for listeners too. -EADDRNOTAVAIL with
 * diag. */
int verbs_address_again(struct pl_verbs *v, struct pl_diag *diag);

/* connect.c */
/* Those that listen do so at our address, which may be another one now; where that fails, v->deaf
 * is set. */
void verbs_listen_again(struct pl_verbs *v);
void verbs_connections_step(struct pl_verbs *v);
/* Ends the connection that a queue pair belongs to, and the queue pair. */
void verbs_connection_end(struct pl_verbs *v, struct rdma_cm_id *id);
/* All connections end, and nobody listens. */
void verbs_connections_done(struct pl_verbs *v);
