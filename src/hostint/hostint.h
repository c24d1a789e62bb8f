/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host as INT source or sink, in the kernel (bpf/host_int.bpf.c): loaded, attached to an
 * interface, told its rules, and the sink's ring read.
 *
 *   source   a program of traffic control on packets that leave: those that a rule chooses get INT
 *            v2.1 (MD) with the node's id, the time they leave at, and a number within their flow
 *   sink     XDP on packets that enter: INT of our domain is taken off before the network stack
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
	const struct pl_tap_rules *rules; /* what none matches is not chosen, or not let in */
	uint8_t dscp;                     /* that announces INT */
	const struct pl_rights
		*rights; /* of somebody else (netio/rights.h), or NULL; outlives it */
	/* source */
	uint32_t node;
	uint16_t bitmap; /* instructions, for the switches on the way too */
	uint8_t hops;    /* that may add to the stack behind the source */
	uint32_t mtu;    /* most bytes of an IP packet with INT; 0: the interface's */
	/* sink */
	enum pl_xdp_mode mode;
	uint32_t
		every; /* of each flow every so many packets are reported; 0: when something changed */
	uint64_t change_ns, refresh_ns; /* of every = 0: the latency by so much; or so long ago */
	bool drop_malformed, drop_outside;
	uint64_t ring_bytes; /* a power of two; 0: 4 MiB */
};

/* What a source with these options puts into packets, as the kernel has it. -EINVAL with diag. */
int pl_hostint_template(struct pl_host_template *ret, const struct pl_hostint_options *options,
	struct pl_diag *diag);

struct pl_hostint;

/* Negative errno with diag: -EINVAL, an option or an interface that it cannot be; -ENODEV;
 * -ENETDOWN, it is down; -EPERM, which capability is missing; -EBUSY, another program is in the
 * way; -ENOTSUP, a build without kernel programs, or a kernel that refuses this one. */
int pl_hostint_open(
	struct pl_hostint **ret, const struct pl_hostint_options *options, struct pl_diag *diag);
/* NULL is allowed. */
void pl_hostint_close(struct pl_hostint *h);

const char *pl_hostint_name(const struct pl_hostint *h); /* the interface's */
bool pl_hostint_is_raw(const struct pl_hostint *h);      /* packets begin with IP */
uint32_t pl_hostint_growth(const struct pl_hostint *h);  /* bytes that a source adds */
/* As pl_tap_kernel_unnoted (tap/kernel.h). */
int pl_hostint_unnoted(const struct pl_hostint *h);
/* Readable when packets came, or the interface changed; also look when it is due (monotonic;
 * UINT64_MAX: that is told). */
int pl_hostint_fd(const struct pl_hostint *h);
uint64_t pl_hostint_due_ns(const struct pl_hostint *h);

/* A packet that the sink took INT off, to be reported; ts_ns is since the Unix epoch. */
typedef void pl_hostint_take(void *arg, struct pl_host_event *event);

/* Gives what is in the ring, at most `most` packets; how many. Never waits. -ENETDOWN and -EAGAIN
 * with diag as pl_port_recv. */
int pl_hostint_recv(struct pl_hostint *h, uint32_t most, pl_hostint_take *take, void *arg,
	struct pl_diag *diag);

/* Other rules, in force for every packet from the next one on, all at once. */
void pl_hostint_rules(struct pl_hostint *h, const struct pl_tap_rules *rules);

/* The descriptor of its program, for who measures it; it stays h's. */
int pl_hostint_program(const struct pl_hostint *h);

/* No more packets are touched; what is in the ring can still be read. */
void pl_hostint_stop(struct pl_hostint *h);

/* What became of all packets; of the kind that it is. */
void pl_hostint_source_counts(struct pl_hostint *h, struct pl_host_source_counts *ret);
void pl_hostint_sink_counts(struct pl_hostint *h, struct pl_host_sink_counts *ret);
