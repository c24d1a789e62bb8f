/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of AF_XDP ports, for afxdp.c (the driver) and afxdp_program.c (what they share). */
#pragma once

#include <pthread.h>

#include "netio/iface.h"
#include "netio/xdp.h"
#include "netio/xsk.h"

struct pl_bpf_collect;

#define QUEUES_MAX 256

/* What the ports of one interface have in common. */
struct pl_afxdp_shared {
	pthread_mutex_t lock;
	unsigned int refs;
	enum pl_xdp_mode mode;
	const struct pl_rights *rights;
	struct pl_bpf_collect *own; /* NULL: the program is the caller's */
	struct pl_xdp_program program;
	bool stamps;        /* the program writes when frames entered (bpf/collect_stamp.h) */
	struct pl_xdp *xdp; /* NULL: there is no interface at present */
};

struct pl_afxdp_settings {
	uint32_t queues[QUEUES_MAX];
	int nqueues; /* 0: all */
	uint32_t ring;
	enum pl_xdp_mode mode;
	enum pl_xsk_copy copy;
	bool busy_poll;
	struct pl_filter_rules rules;
};

/* Queues that receive, or send; 1 where the driver does not tell. */
uint32_t pl_afxdp_queues(const char *name, enum pl_port_mode mode);
/* The smaller frame as long as the interface's packets fit. */
uint32_t pl_afxdp_frame_bytes(const char *name);
int pl_afxdp_memory_node(const char *name);
void pl_afxdp_shared_put(struct pl_afxdp_shared *s);
int pl_afxdp_shared_new(struct pl_afxdp_shared **ret, const char *name,
	const struct pl_afxdp_settings *set, const struct pl_port_options *options,
	struct pl_diag *diag);
/* After the interface was removed: the first port that sees it takes the program off, the first
 * that sees it back attaches it anew. */
int pl_afxdp_attach(struct pl_afxdp_shared *s, const char *name, int ifindex, struct pl_diag *diag);
