/* SPDX-License-Identifier: BSD-2-Clause */
/* Private declarations of AF_XDP ports, for afxdp.c (the driver) and afxdp_program.c (the shared
 * program). */
#pragma once

#include <pthread.h>

#include "netio/iface.h"
#include "netio/xdp.h"
#include "netio/xsk.h"

struct pl_bpf_collect;

#define QUEUES_MAX 256

/* State that the ports of one interface share. */
struct pl_afxdp_shared {
	pthread_mutex_t lock;
	unsigned int refs;
	enum pl_xdp_mode mode;
	const struct pl_rights *rights;
	struct pl_bpf_collect *own; /* NULL: the program is the caller's */
	struct pl_xdp_program program;
	bool stamps;        /* the program writes when frames entered (bpf/collect_stamp.h) */
	struct pl_xdp *xdp; /* NULL: not attached, the interface is gone */
};

struct pl_afxdp_settings {
	uint32_t queues[QUEUES_MAX];
	int nqueues; /* 0: all */
	uint32_t ring;
	enum pl_xdp_mode mode;
	enum pl_xsk_copy copy;
	struct pl_filter_rules rules;
};

/* Number of queues that receive, or send, at most QUEUES_MAX; 1 where the driver does not tell. */
uint32_t pl_afxdp_queues(const char *name, enum pl_port_mode mode);
/* Returns 2048 where a packet of the interface's MTU fits into that, else 4096. */
uint32_t pl_afxdp_frame_bytes(const char *name);
int pl_afxdp_memory_node(const char *name);
void pl_afxdp_shared_put(struct pl_afxdp_shared *s);
int pl_afxdp_shared_new(struct pl_afxdp_shared **ret, const char *name,
	const struct pl_afxdp_settings *set, const struct pl_port_options *options,
	struct pl_diag *diag);
/* Attaches the program to ifindex; ifindex 0, or another one than before, detaches it first. After
 * a removal the first port that notices it detaches, and the first that sees the interface again
 * attaches. */
int pl_afxdp_attach(struct pl_afxdp_shared *s, const char *name, int ifindex, struct pl_diag *diag);
