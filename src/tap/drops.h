/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that the kernel drops, as records drop168 (record/fields.def): loads the program on the
 * tracepoint skb:kfree_skb (bpf/drops.bpf.c), gives it its rules, and reads its ring.
 *
 *   drops:         of this network namespace
 *   drops:IFACE    of those at this interface
 *   rate=N (10000), at most N records in a second; ring=SIZE (4MiB)
 *
 * The program takes times of CLOCK_TAI, which become times since the Unix epoch as in the tap in
 * the kernel (tap/kernel.h). Reasons and places have the names of the running kernel.
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "bpf/drops_kernel.h"
#include "record/packet.h"
#include "tap/rules.h"

#define PL_TAP_DROPS_BATCH 256

struct pl_tap_drops;

/* Returns true for a URI of drops. */
bool pl_tap_drops_is(const char *uri);

/* Checks the URI without asking the system. Returns -EINVAL with diag. */
int pl_tap_drops_check(const char *uri, struct pl_diag *diag);

/* Loads and attaches the program. point: observation point, at most PL_OBS_POINT_MASK. Returns with
 * diag -EINVAL (the URI), -ENODEV (no such interface), -EPERM (diag names the missing capability),
 * -ENOTSUP (a build without kernel programs, a kernel without BTF or before 6.1), -ENOMEM. */
int pl_tap_drops_open(struct pl_tap_drops **ret, const char *uri, const struct pl_tap_rules *rules,
	uint16_t point, struct pl_diag *diag);
/* Checks that opening would work: loads the program without attaching it. Errors as above. */
int pl_tap_drops_try(struct pl_diag *diag);
/* NULL is allowed. */
void pl_tap_drops_close(struct pl_tap_drops *d);

const char *pl_tap_drops_name(const struct pl_tap_drops *d);
/* File descriptor that is readable when records came. Without a wake-up the ring is to be read when
 * pl_tap_drops_due_ns is reached (monotonic; UINT64_MAX: the descriptor suffices). */
int pl_tap_drops_fd(const struct pl_tap_drops *d);
uint64_t pl_tap_drops_due_ns(const struct pl_tap_drops *d);

/* Reads at most PL_TAP_DROPS_BATCH records, whose record_seq is left to the caller; returns how
 * many. Never waits. Negative errno with diag. */
int pl_tap_drops_recv(struct pl_tap_drops *d, struct pl_drop168 *ret, struct pl_diag *diag);

/* Sets rules and observation point for every drop from now on. */
void pl_tap_drops_rules(struct pl_tap_drops *d, const struct pl_tap_rules *rules, uint16_t point);
/* Adds the number of drops that each present rule was the first to match, and behind them of drops
 * that none matched. */
void pl_tap_drops_hits(struct pl_tap_drops *d, uint64_t ret[PL_TAP_RULES_MAX + 1]);

/* Detaches the program; records in the ring can still be read. */
void pl_tap_drops_stop(struct pl_tap_drops *d);

/* Counters of all drops. */
void pl_tap_drops_counts(struct pl_tap_drops *d, struct pl_drops_counts *ret);
/* Drops that the program did not see, because they happened within an interrupt while it ran. */
uint64_t pl_tap_drops_missed(const struct pl_tap_drops *d);

/* Adds the drops of this namespace and interface by the slot of their reason
 * (bpf/drops_kernel.h). */
void pl_tap_drops_by_reason(struct pl_tap_drops *d, uint64_t into[PL_DROPS_REASONS]);

#define PL_DROPS_NAME_MAX 64
/* Writes the kernel's name of the reason in a slot: "NO_SOCKET"; by number where it has no name:
 * "openvswitch.3", "core.200"; "other" for the last slot. */
void pl_tap_drops_reason_name(
	const struct pl_tap_drops *d, uint32_t slot, char ret[PL_DROPS_NAME_MAX]);

/* Makes the place of a record from the kernel's text: "tcp_v4_rcv+0x1a2", "ip_vs_in+0x1[ip_vs]";
 * empty where the kernel has no name for it. In a name that is too long '~' stands for the rest. */
void pl_tap_drops_place(struct pl_text40 *ret, const char at[PL_DROPS_AT_BYTES]);
