/* SPDX-License-Identifier: BSD-2-Clause */
/* State of an open device, for the files of the verbs driver. Needs the libraries' headers. */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "verbs/choose.h"
#include "verbs/verbs.h"

#define REGIONS_MAX 1024
#define DOMAINS_MAX 1024
#define NEWS_MAX    1024

/* Place of a queue pair. Receives have its generation, so that late completions are not taken for
 * another queue pair's. */
struct verbs_qp {
	struct ibv_qp *qp;     /* NULL: free */
	struct rdma_cm_id *id; /* connection of the queue pair, or NULL */
	uint32_t qpn;
	uint16_t generation;
	bool broken; /* reported */
};

struct verbs_connection {
	struct rdma_cm_id *id; /* NULL: free */
	uint32_t number;       /* for the owner */
	uint32_t qpn;          /* 0: not accepted */
	struct pl_addr own;    /* address at which it was requested, and that address's place: */
	uint32_t gid_index;
};

/* An event, with the private data of a request behind it. */
struct verbs_told {
	struct pl_verbs_news news;
	uint8_t private[64];
};

struct pl_verbs {
	struct pl_verbs_options options;
	struct ibv_context *context; /* NULL: no device */
	bool own_context;            /* false: the context is librdmacm's */
	struct ibv_context **of_cm;  /* then: all contexts that librdmacm had open */
	struct ibv_context *left;    /* of these, the one that was left */
	struct {
		uint32_t number;
		struct ibv_pd *pd;
	} domains[DOMAINS_MAX];
	unsigned int n_domains;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct rdma_event_channel *cm; /* NULL: no connection manager */
	struct verbs_listener {
		struct rdma_cm_id *id; /* NULL: nobody listens for now */
		struct pl_addr at;
		uint16_t port;
	} listeners[16];
	unsigned int n_listeners;
	struct rdma_cm_id *parked; /* a list by their contexts; released with the device */
	bool deaf;                 /* a listener could not be set up again */
	bool in_sysfs;             /* the device has been seen in sysfs */
	uint64_t look_ns;          /* time of the next check for changes without an event */
	int epoll;
	struct verbs_gid home; /* chosen when the device was opened */
	struct verbs_gid gid;  /* address that peers get now */
	bool no_gid;           /* no address at the moment */
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
	struct verbs_told fetched; /* the event that was fetched last */
	bool told_gone;
	bool undrained; /* completions were left, for which no wake comes */

	struct pl_verbs_counters counters;
};

static inline int verbs_failed(struct pl_diag *diag, const char *what, int error)
{
	pl_diag_set(diag, "%s: %s", what, strerror(error));
	return error > 0 ? -error : -EIO;
}

/* device.c */
/* Reads the table of a port. Returns the number of entries, at most max. */
unsigned int verbs_gids(
	struct ibv_context *context, uint8_t port, struct verbs_gid *ret, unsigned int max);
/* Reads the name of the network interface behind the port and, unless ret_mac is NULL, its MAC
 * address. */
void verbs_netdev(const char *device, uint8_t port, char ret[16], uint8_t *ret_mac);

/* verbs.c */
/* Finds or makes the protection domain of this number. NULL with errno. */
struct ibv_pd *verbs_domain(struct pl_verbs *v, uint32_t number);
/* Makes room for one more event, counted as lost when there is none (NULL). */
struct verbs_told *verbs_tell(struct pl_verbs *v, enum pl_verbs_news_kind kind);

/* queue.c */
/* Posts `n` receives. Returns 0, or the errno of the one that failed. */
int verbs_post(struct pl_verbs *v, struct verbs_qp *q, uint32_t n);
/* Finds a free place and gives it a new generation. NULL: none. */
struct verbs_qp *verbs_place(struct pl_verbs *v);
struct verbs_qp *verbs_find(struct pl_verbs *v, uint32_t qpn);
void verbs_init_attr(const struct pl_verbs *v, uint8_t service, struct ibv_qp_init_attr *ret);
unsigned int verbs_access(uint8_t access);
void verbs_drain(struct pl_verbs *v);
void verbs_broken(struct pl_verbs *v, struct verbs_qp *q);

/* open.c */
/* Finds our address after a change of the table, for listeners too. Returns -EADDRNOTAVAIL with
 * diag. */
int verbs_address_again(struct pl_verbs *v, struct pl_diag *diag);

/* connect.c */
/* Moves listeners to our address, which may have changed; on failure v->deaf is set. */
void verbs_listen_again(struct pl_verbs *v);
void verbs_connections_step(struct pl_verbs *v);
/* Ends the connection of a queue pair, and the queue pair. */
void verbs_connection_end(struct pl_verbs *v, struct rdma_cm_id *id);
/* Ends all connections and listeners. */
void verbs_connections_done(struct pl_verbs *v);
