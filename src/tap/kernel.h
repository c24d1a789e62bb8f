/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap in the kernel (bpf/tap.bpf.c): loaded, attached to an interface, told its rules, and its
 * ring read. Packets stay the host's; what comes up are records.
 *
 *   xdp:IFACE?mode=auto|native|generic   what enters, before the network stack
 *   tc:IFACE?dir=both|in|out             what enters and what leaves, as the stack has it; of a
 *                                        loopback, where each packet does both, what enters
 *   both: ring=SIZE (4MiB), record=pkt96|pkt64, counts=N (16384): keys that are counted in the
 *         kernel between two readings, where a query has that done; other packets become records
 *   tc:   hwtstamp=BOOL, the driver is asked to stamp every received frame (netio/hwtstamp.h); not
 *         with dir=out or record=pkt64, which have no use for it
 *
 * The kernel stamps records by CLOCK_TAI, which no step of the clock moves; here they become times
 * since the Unix epoch by the offset of that moment. tc: takes the NIC's time where it stamps what
 * enters (as packet: does), but not with record=pkt64, whose records cannot say whose time they
 * have.
 *
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock_kind.h"
#include "base/diag.h"
#include "bpf/tap_kernel.h"
#include "netio/rights.h"
#include "record/packet.h"
#include "tap/counter.h"
#include "tap/rules.h"

#define PL_TAP_KERNEL_BATCH 256

struct pl_tap_kernel;

struct pl_tap_kernel_options {
	const struct pl_tap_rules *rules;
	uint16_t point; /* observation point, at most PL_OBS_POINT_MASK */
	const struct pl_rights
		*rights; /* of somebody else (netio/rights.h), or NULL; outlives it */
	/* What is counted instead of recorded; NULL: nothing. */
	const struct pl_tap_count_plan *plan;
};

/* Whether it is a tap in the kernel that the URI names. */
bool pl_tap_kernel_is(const char *uri);

/* Whether the URI has its records end behind the first 64 bytes. */
bool pl_tap_kernel_is_short(const char *uri);

/* Whether its records have the NIC's times: the URI asks for them, or the interface has them now. */
bool pl_tap_kernel_stamps(const char *uri);

/* Checks the URI without the system. counts: a question may have packets counted there, so how many
 * keys there are may be said. -EINVAL with diag. */
int pl_tap_kernel_check(const char *uri, bool counts, struct pl_diag *diag);

/* Negative errno with diag: -EINVAL, a URI or an interface that it cannot be; -ENODEV; -ENETDOWN,
 * it is down; -EPERM, which capability is missing; -EBUSY, another program is in the way; -ENOTSUP,
 * a build without kernel programs, or a kernel that refuses this one. */
int pl_tap_kernel_open(struct pl_tap_kernel **ret, const char *uri,
	const struct pl_tap_kernel_options *options, struct pl_diag *diag);
/* NULL is allowed. */
void pl_tap_kernel_close(struct pl_tap_kernel *k);

/* Why the next start will not know its filters by a note (netio/tc.h), should all processes be
 * killed: a negative errno; 0: it will, or there will be none. */
int pl_tap_kernel_unnoted(const struct pl_tap_kernel *k);

const char *pl_tap_kernel_name(const struct pl_tap_kernel *k);
/* Readable when records came, or the interface changed; at times that is not told at once: also
 * look when it is due (monotonic; UINT64_MAX: it is told). */
int pl_tap_kernel_fd(const struct pl_tap_kernel *k);
uint64_t pl_tap_kernel_due_ns(const struct pl_tap_kernel *k);

/* Records that came into ret, at most PL_TAP_KERNEL_BATCH, their number left to the caller; of
 * pkt64 the rest is 0 but for the flow hash. A frame that stands for several packets on the wire may
 * go on in the next call. Never waits. -ENETDOWN and -EAGAIN with diag as
 * pl_port_recv. */
int pl_tap_kernel_recv(struct pl_tap_kernel *k, struct pl_pkt96 *ret, struct pl_diag *diag);

/* Every packet before this time, since the epoch, is in a record that was received, unless its record
 * took more than 20 ms to write. 0: that cannot be told, as records wait, or the NIC gives times. */
uint64_t pl_tap_kernel_passed_ns(struct pl_tap_kernel *k);

/*
 * Gives what was counted since the last call. Until the next one pl_tap_kernel_passed_ns() is of this
 * call: every packet before is in a count that was given, or in a record that was received since.
 * Where more comes than is received it is of an earlier call, until its records are received.
 * Waits for some milliseconds. Negative errno with diag.
 */
int pl_tap_kernel_read_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag);
/* Counts no more, and gives the last counts; other packets become records. */
int pl_tap_kernel_stop_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag);
/* Whether a packet had a time of the NIC, so that its time cannot be told beside counts. */
bool pl_tap_kernel_is_stamped(struct pl_tap_kernel *k);

/* Other rules and observation point, in force for every packet from the next one on, all at once.
 * Their counts of matches begin anew. */
void pl_tap_kernel_rules(struct pl_tap_kernel *k, const struct pl_tap_rules *rules, uint16_t point);

/* Adds how many packets each rule in force matched first, and behind them how many none did. */
void pl_tap_kernel_hits(struct pl_tap_kernel *k, uint64_t ret[PL_TAP_RULES_MAX + 1]);

/* How many of the records that were received last have the NIC's time; the others have the kernel's
 * (PL_STAMP_TAI). */
uint32_t pl_tap_kernel_nic(const struct pl_tap_kernel *k);

/* Which clock times are to be of: the NIC's when it stamps what enters now. */
enum pl_clock_kind pl_tap_kernel_clock(const struct pl_tap_kernel *k);

/* No more packets are looked at; what is in the ring can still be read. */
void pl_tap_kernel_stop(struct pl_tap_kernel *k);

/* What became of all packets. Records may still be in the ring. */
void pl_tap_kernel_counts(struct pl_tap_kernel *k, struct pl_tap_kernel_counts *ret);

/* The file descriptor of the program that packets which enter run through; the tap keeps it. -EINVAL: it
 * looks at those that leave alone. */
int pl_tap_kernel_program(const struct pl_tap_kernel *k);
