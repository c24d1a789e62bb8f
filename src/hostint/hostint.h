/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host as INT source or sink, in the kernel (bpf/host_int.bpf.c): loads the program, attaches it
 * to an interface, sets its rules, and reads the sink's ring.
 *
 *   source a program of traffic control on packets that leave: packets that a rule chooses get INT
 *   v2.1 (MD) with the node's id, the egress time, and a number within their flow sink XDP on
 *   packets that enter: removes INT of our domain before the network stack
 *
 * The kernel stamps by CLOCK_TAI, which no step of the clock moves; times in INT and in reports are
 * since the Unix epoch, by the offset of that moment.
 *
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "bpf/host_int_kernel.h"
#include "netio/rights.h"
#include "netio/xdp.h"
#include "tap/rules.h"

extern const struct pl_stats pl_hostint_source_list, pl_hostint_sink_list;

#define PL_HOSTINT_BITMAP  0x8400u /* node id and egress timestamp */
#define PL_HOSTINT_DSCP    0x17u   /* the specifications' example (v2.1 5.6.1) */
#define PL_HOSTINT_REFRESH UINT64_C(1000000000)

struct pl_hostint_options {
	const char *dev;
	bool sink;
	/* packets without a matching rule are not chosen, or not let in */
	const struct pl_tap_rules *rules;
	uint8_t dscp; /* DSCP that announces INT */
	const struct pl_rights
		*rights; /* rights of a helper (netio/rights.h), or NULL; outlives the host */
	/* source */
	uint32_t node;
	uint16_t bitmap; /* instructions, also for the switches on the path */
	uint8_t hops;    /* hops that may add to the stack after the source */
	uint32_t mtu;    /* largest IP packet with INT in bytes; 0: the interface's MTU */
	/* sink */
	enum pl_xdp_mode mode;
	uint32_t every; /* one of this many packets of each flow is reported; 0: changes only */
	/* with every = 0: change of latency that is reported; longest time without a report */
	uint64_t change_ns, refresh_ns;
	bool drop_malformed, drop_outside;
	uint64_t ring_bytes; /* a power of two; 0: 4 MiB */
};

/* Makes the bytes that a source with these options puts into packets, in the kernel's form. Returns
 * -EINVAL with diag. */
int pl_hostint_template(struct pl_host_template *ret, const struct pl_hostint_options *options,
	struct pl_diag *diag);

struct pl_hostint;

/* Returns negative errno with diag: -EINVAL for a wrong option or interface; -ENODEV; -ENETDOWN;
 * -EPERM, with the missing capability; -EBUSY for another program on the interface; -ENOTSUP for a
 * build without kernel programs, or a kernel that refuses this one. */
int pl_hostint_open(
	struct pl_hostint **ret, const struct pl_hostint_options *options, struct pl_diag *diag);
/* NULL is allowed. */
void pl_hostint_close(struct pl_hostint *h);

const char *pl_hostint_name(const struct pl_hostint *h); /* the interface's */
bool pl_hostint_is_raw(const struct pl_hostint *h);      /* packets begin with IP */
uint32_t pl_hostint_growth(const struct pl_hostint *h);  /* bytes that a source adds */
/* As pl_tap_kernel_unnoted (tap/kernel.h). */
int pl_hostint_unnoted(const struct pl_hostint *h);
/* Descriptor that is readable when packets came, or the interface changed; pl_hostint_due_ns gives
 * the time of the next check without it (monotonic; UINT64_MAX: none). */
int pl_hostint_fd(const struct pl_hostint *h);
uint64_t pl_hostint_due_ns(const struct pl_hostint *h);

/* Takes a packet from which the sink removed INT, for a report; ts_ns is since the Unix epoch. */
typedef void pl_hostint_take(void *arg, struct pl_host_event *event);

/* Gives the packets in the ring, at most `most`. Returns their number. Never waits. -ENETDOWN and
 * -EAGAIN with diag as pl_port_recv. */
int pl_hostint_recv(struct pl_hostint *h, uint32_t most, pl_hostint_take *take, void *arg,
	struct pl_diag *diag);

/* Sets other rules, all at once: they apply from the next packet on. */
void pl_hostint_rules(struct pl_hostint *h, const struct pl_tap_rules *rules);

/* Descriptor of the program, for measurements; it stays h's. */
int pl_hostint_program(const struct pl_hostint *h);

/* Stops the program; the ring can still be read. */
void pl_hostint_stop(struct pl_hostint *h);

/* Reads the counts of all packets, of the host's role. */
void pl_hostint_source_counts(struct pl_hostint *h, struct pl_host_source_counts *ret);
void pl_hostint_sink_counts(struct pl_hostint *h, struct pl_host_sink_counts *ret);
