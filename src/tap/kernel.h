/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tap in the kernel (bpf/tap.bpf.c): loads the program, attaches it to an interface, gives it
 * its rules, and reads its ring. Packets go on to the host; user space gets records.
 *
 *   xdp:IFACE?mode=auto|native|generic   what enters, before the network stack
 *   tc:IFACE?dir=both|in|out             what enters and what leaves, as the stack has it; of a
 *                                        loopback, where each packet does both, what enters
 *   both: ring=SIZE (4MiB), record=pkt96|pkt64, counts=N (16384): keys that are counted in the
 *         kernel between two readings, when a query requests that; other packets become records
 *   tc:   hwtstamp=BOOL, the driver is asked to stamp every received frame (netio/hwtstamp.h); not
 *         with dir=out or record=pkt64, which have no use for it
 *
 * The kernel stamps records with CLOCK_TAI, which setting the clock does not change; here they
 * become times since the Unix epoch, with the offset of that moment. tc: takes the NIC's time where
 * it stamps what enters (as packet: does), but not with record=pkt64, whose records cannot say
 * whose time they have.
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
		*rights;      /* of another process (netio/rights.h), or NULL; must outlive it */
	uint64_t vxlan_ports; /* a word of them (wire/tunnel_ports.h); 0: 4789 and 8472 */
	/* Counts to make instead of records; NULL: none. */
	const struct pl_tap_count_plan *plan;
};

/* Returns true for a URI of a tap in the kernel. */
bool pl_tap_kernel_is(const char *uri);

/* Returns true when the URI asks for records of 64 bytes (record=pkt64). */
bool pl_tap_kernel_is_short(const char *uri);

/* Returns true when records have the NIC's times: the URI asks for them, or the interface stamps
 * now. */
bool pl_tap_kernel_stamps(const char *uri);

/* Checks the URI without asking the system. counts: the key counts= is allowed, as a query may
 * count packets in the kernel. -EINVAL with diag. */
int pl_tap_kernel_check(const char *uri, bool counts, struct pl_diag *diag);

/* Loads and attaches the tap. Returns with diag -EINVAL (the URI, or a type of interface that it
 * cannot read), -ENODEV, -ENETDOWN (it is down), -EPERM (diag names the missing capability), -EBUSY
 * (another program is attached), -ENOTSUP (a build without kernel programs, or a kernel that
 * rejects this one), -ENOMEM. */
int pl_tap_kernel_open(struct pl_tap_kernel **ret, const char *uri,
	const struct pl_tap_kernel_options *options, struct pl_diag *diag);
/* NULL is allowed. */
void pl_tap_kernel_close(struct pl_tap_kernel *k);

/* Returns a negative errno when the tap's filters could not be noted, so that after a kill of all
 * processes the next start would not know them (netio/tc.h); else 0. */
int pl_tap_kernel_unnoted(const struct pl_tap_kernel *k);

const char *pl_tap_kernel_name(const struct pl_tap_kernel *k);
/* File descriptor that is readable when records came, or the interface changed. At times there is
 * no wake-up: recv is also to be called when pl_tap_kernel_due_ns is reached (monotonic;
 * UINT64_MAX: the descriptor suffices). */
int pl_tap_kernel_fd(const struct pl_tap_kernel *k);
uint64_t pl_tap_kernel_due_ns(const struct pl_tap_kernel *k);

/* Reads at most PL_TAP_KERNEL_BATCH records, whose record_seq is left to the caller; returns how
 * many. Behind a pkt64 the rest is 0 but for the flow hash. Records of a frame that stands for
 * several packets on the wire may go on in the next call. Never waits. -ENETDOWN and -EAGAIN with
 * diag as pl_port_recv. */
int pl_tap_kernel_recv(struct pl_tap_kernel *k, struct pl_pkt96 *ret, struct pl_diag *diag);

/* Time since the epoch before which every packet is in a record that was received, unless its
 * record took more than 20 ms to write. 0: not known, because records still wait, or the NIC gives
 * times. */
uint64_t pl_tap_kernel_passed_ns(struct pl_tap_kernel *k);

/*
 * Gives the counts since the last call. Until the next call pl_tap_kernel_passed_ns() returns the
 * time of this one: every packet before it is in a count that was given, or in a record that was
 * received since. While more records come than are received, it returns the time of an earlier call
 * whose records are all received. Takes some milliseconds. Negative errno with diag.
 */
int pl_tap_kernel_read_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag);
/* Stops counting, and gives the last counts; packets become records from then on. */
int pl_tap_kernel_stop_counts(
	struct pl_tap_kernel *k, pl_tap_count_sink *sink, void *arg, struct pl_diag *diag);
/* Returns true when a packet had a time of the NIC, so that passed_ns is not known beside
 * counts. */
bool pl_tap_kernel_is_stamped(struct pl_tap_kernel *k);

/* Sets rules and observation point for every packet from now on, all at once. The rules' counts of
 * matches begin at 0. */
void pl_tap_kernel_rules(struct pl_tap_kernel *k, const struct pl_tap_rules *rules, uint16_t point);

/* Adds the number of packets that each present rule was the first to match, and behind them of
 * packets that none matched. */
void pl_tap_kernel_hits(struct pl_tap_kernel *k, uint64_t ret[PL_TAP_RULES_MAX + 1]);

/* Number of the records received last that have the NIC's time; the others have the kernel's
 * (PL_STAMP_TAI). */
uint32_t pl_tap_kernel_nic(const struct pl_tap_kernel *k);

/* Clock that times are expected to be of: the NIC's when it stamped received frames at the
 * opening. */
enum pl_clock_kind pl_tap_kernel_clock(const struct pl_tap_kernel *k);

/* Detaches the program; records in the ring can still be read. */
void pl_tap_kernel_stop(struct pl_tap_kernel *k);

/* Counters of all packets. Records may still be in the ring. */
void pl_tap_kernel_counts(struct pl_tap_kernel *k, struct pl_tap_kernel_counts *ret);

/* Returns the file descriptor of the program for received packets, which the tap keeps; -EINVAL:
 * the tap has only one for sent packets. */
int pl_tap_kernel_program(const struct pl_tap_kernel *k);
