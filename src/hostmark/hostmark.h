/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking in the kernel (bpf/mark.bpf.c): loads the program, attaches it to an interface,
 * and reads its flows block by block.
 *
 *   marker   a program of traffic control on packets that leave: packets that a rule chooses get
 *            the colour of the present block, and are counted in it
 *   meter    on packets that enter or leave, or XDP: counts packets in the block of their colour
 *   edge     clears the marking bits of packets that leave the domain, or enter it
 *
 * Blocks follow CLOCK_TAI. One thread, and with ticks (mark/tick.h) another one that sets them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "bpf/mark_kernel.h"
#include "hostmark/ticker.h"
#include "netio/rights.h"
#include "tap/rules.h"

extern const struct pl_stats pl_hostmark_marker_list, pl_hostmark_meter_list, pl_hostmark_edge_list;

enum pl_hostmark_role { PL_HOSTMARK_MARKER, PL_HOSTMARK_METER, PL_HOSTMARK_EDGE };

#define PL_HOSTMARK_FLOWS     4096u
#define PL_HOSTMARK_FLOWS_MAX (1u << 20)

struct pl_hostmark_options {
	const char *dev;
	enum pl_hostmark_role role;
	bool leaving; /* meter and edge: on packets that leave; a marker always is */
	/* Meter of packets that enter, in the driver: generic XDP gets packets that a sender on the
	 * same machine left to be taken apart, and does not say how many they are. */
	bool xdp;
	const struct pl_tap_rules *rules; /* packets without a matching rule are not chosen */
	const struct pl_rights
		/* rights of a helper (netio/rights.h), or NULL; outlives the host */
		*rights;
	struct pl_mark_setup setup; /* raw and each are set here */
	uint32_t flows_max;         /* 0: PL_HOSTMARK_FLOWS */
	/* Folder of a BPF file system in which program and counters outlive the process, for the
	 * next one; NULL: they end with the process. */
	const char *pin;
};

struct pl_hostmark;

/* Checks that rules choose by flow: conditions on a single packet, and sampling of packets, are
 * refused. Returns -EINVAL with diag. */
int pl_hostmark_check_rules(const struct pl_tap_rules *rules, struct pl_diag *diag);

/* Makes the rules of the kernel's programs. */
void pl_hostmark_make_rules(struct pl_mark_rules *ret, const struct pl_tap_rules *rules);

/* Returns negative errno with diag: -EINVAL for a wrong option or interface, or another meter's
 * pins; -ENODEV; -ENETDOWN; -EPERM, with the missing capability; -EBUSY for another program on the
 * interface; -ENOTSUP for a build without kernel programs, or a kernel that refuses this one. */
int pl_hostmark_open(
	struct pl_hostmark **ret, const struct pl_hostmark_options *options, struct pl_diag *diag);
/* NULL is allowed. Pins stay. */
void pl_hostmark_close(struct pl_hostmark *h);

const char *pl_hostmark_name(const struct pl_hostmark *h); /* the interface's */
/* As pl_tap_kernel_unnoted (tap/kernel.h). */
int pl_hostmark_unnoted(const struct pl_hostmark *h);
/* Returns true when it continues from the pins of another process. */
bool pl_hostmark_resumed(const struct pl_hostmark *h);
/* Returns true when it continues, but the program was not on the interface any more: packets may have
 * passed uncounted. */
bool pl_hostmark_is_anew(const struct pl_hostmark *h);
/* Descriptor that is readable when the interface changed: then call pl_hostmark_turn. */
int pl_hostmark_fd(const struct pl_hostmark *h);
/* Returns 0; -ENETDOWN and -EAGAIN with diag as pl_port_recv. */
int pl_hostmark_turn(struct pl_hostmark *h, struct pl_diag *diag);
/* Returns true when its program is on the interface; false when the program was removed, and is not
 * attached again. */
bool pl_hostmark_attached(const struct pl_hostmark *h);

/* Makes a marker mark: before, it only reads packets. */
void pl_hostmark_arm(struct pl_hostmark *h);

/* Starts a thread that sets the ticks of a setup whose programs read no clock; called once threads
 * may be started. Returns negative errno with diag. */
int pl_hostmark_start_ticks(struct pl_hostmark *h, struct pl_diag *diag);
/* Sets the ticks now, and tells which blocks have unknown counts; called before a block is read.
 * Without ticks all 0. */
struct pl_ticker_state pl_hostmark_tick(struct pl_hostmark *h);

/* The next block to be read; 0: none was read yet. Kept with the pins. */
uint64_t pl_hostmark_next(const struct pl_hostmark *h);
void pl_hostmark_set_next(struct pl_hostmark *h, uint64_t block);

/* Called when the clock was set back. Drops what was counted in blocks behind `last`: they come
 * again. No packet may still be counted in one of them. */
void pl_hostmark_drop_behind(struct pl_hostmark *h, uint64_t last);

/* Memory of the caller, kept with that block. */
struct pl_mark_watch *pl_hostmark_watch(struct pl_hostmark *h);

/* Takes the counts of a flow in the block, of all processors; zeros without packets. overwritten: a
 * later block overwrote the counts, so they are unknown. */
typedef void pl_hostmark_take(void *arg, const struct pl_mark_key *key,
	const struct pl_mark_cell *cell, bool overwritten);

/* Gives every flow's block, and forgets flows without a packet for `idle` blocks, PL_MARK_KEPT at
 * least. A packet that comes meanwhile is not lost. */
void pl_hostmark_read(
	struct pl_hostmark *h, uint64_t block, uint32_t idle, pl_hostmark_take *take, void *arg);

/* Number of flows at the last read. */
uint64_t pl_hostmark_flows(const struct pl_hostmark *h);
void pl_hostmark_counts(struct pl_hostmark *h, struct pl_mark_counts *ret);
