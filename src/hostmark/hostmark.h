/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in the kernel (bpf/mark.bpf.c): loaded, attached to an interface, its flows
 * read block by block.
 *
 *   marker   a program of traffic control on packets that leave: those that a rule chooses get the
 *            colour of the block of time, and are counted in it
 *   meter    on packets that enter or leave, or XDP: they are counted in the block of their colour
 *   edge     clears the marking bits of packets that leave the domain, or enter it
 *
 * Blocks are of CLOCK_TAI. One thread, and with ticks (mark/tick.h) another one that sets them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "bpf/mark_kernel.h"
#include "hostmark/ticker.h"
#include "netio/rights.h"
#include "netio/xdp.h"
#include "tap/rules.h"

extern const struct pl_stats pl_hostmark_marker_list, pl_hostmark_meter_list, pl_hostmark_edge_list;

enum pl_hostmark_role { PL_HOSTMARK_MARKER, PL_HOSTMARK_METER, PL_HOSTMARK_EDGE };

#define PL_HOSTMARK_FLOWS     4096u
#define PL_HOSTMARK_FLOWS_MAX (1u << 20)

struct pl_hostmark_options {
	const char *dev;
	enum pl_hostmark_role role;
	bool leaving; /* meter and edge: packets that leave; a marker's always do */
	bool xdp;     /* meter of packets that enter */
	enum pl_xdp_mode mode;
	const struct pl_tap_rules *rules; /* what none matches is not chosen */
	const struct pl_rights
		*rights;            /* of somebody else (netio/rights.h), or NULL; outlives it */
	struct pl_mark_setup setup; /* raw and each are found out */
	uint32_t flows_max;         /* 0: PL_HOSTMARK_FLOWS */
	/* Folder of a BPF file system in which program and counters outlive the process, to be taken
	 * up by the next one; NULL: they go with the process. */
	const char *pin;
};

struct pl_hostmark;

/* Whether rules can choose by flow: conditions on a single packet, and sampling of packets, are
 * refused. -EINVAL with diag. */
int pl_hostmark_check_rules(const struct pl_tap_rules *rules, struct pl_diag *diag);

/* Negative errno with diag: -EINVAL, an option or an interface that it cannot be, or another meter's
 * pins; -ENODEV; -ENETDOWN, it is down; -EPERM, which capability is missing; -EBUSY, another program
 * is in the way; -ENOTSUP, a build without kernel programs, or a kernel that refuses this one. */
int pl_hostmark_open(
	struct pl_hostmark **ret, const struct pl_hostmark_options *options, struct pl_diag *diag);
/* NULL is allowed. What is pinned stays. */
void pl_hostmark_close(struct pl_hostmark *h);

const char *pl_hostmark_name(const struct pl_hostmark *h); /* the interface's */
/* As pl_tap_kernel_unnoted (tap/kernel.h). */
int pl_hostmark_unnoted(const struct pl_hostmark *h);
/* Whether it goes on with what another process left. */
bool pl_hostmark_resumed(const struct pl_hostmark *h);
/* Readable when the interface changed: then pl_hostmark_turn. */
int pl_hostmark_fd(const struct pl_hostmark *h);
/* 0; -ENETDOWN and -EAGAIN with diag as pl_port_recv. */
int pl_hostmark_turn(struct pl_hostmark *h, struct pl_diag *diag);
/* Whether its program is on the interface; not when that went, and is not taken up again. */
bool pl_hostmark_attached(const struct pl_hostmark *h);

/* A marker only looks, until then. */
void pl_hostmark_arm(struct pl_hostmark *h);

/* Of a setup with ticks, whose programs read no clock, once threads may be started: keeps telling them
 * their block. Negative errno with diag. */
int pl_hostmark_start_ticks(struct pl_hostmark *h, struct pl_diag *diag);
/* Tells them now, and says of which blocks counts are not known; to be asked before a block is read.
 * Without ticks all 0. */
struct pl_ticker_state pl_hostmark_tick(struct pl_hostmark *h);

/* The block that is to be read next; 0: none was read yet. Kept with the pins. */
uint64_t pl_hostmark_next(const struct pl_hostmark *h);
void pl_hostmark_set_next(struct pl_hostmark *h, uint64_t block);

/* The caller's, kept with that block. */
struct pl_mark_watch *pl_hostmark_watch(struct pl_hostmark *h);

/* What a flow counted in the block, of all processors; of another block it is empty. overwritten:
 * it was counted over by a later block, so it is not known. */
typedef void pl_hostmark_take(void *arg, const struct pl_mark_key *key,
	const struct pl_mark_cell *cell, bool overwritten);

/* Gives every flow's block, and forgets flows that had no packet for `idle` blocks, PL_MARK_KEPT at
 * least. A packet that comes meanwhile is not lost. */
void pl_hostmark_read(
	struct pl_hostmark *h, uint64_t block, uint32_t idle, pl_hostmark_take *take, void *arg);

/* Flows at the last read. */
uint64_t pl_hostmark_flows(const struct pl_hostmark *h);
void pl_hostmark_counts(struct pl_hostmark *h, struct pl_mark_counts *ret);
