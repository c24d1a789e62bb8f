/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that the kernel drops, as records drop168 (record/fields.def): its program on the
 * tracepoint skb:kfree_skb (bpf/drops.bpf.c) loaded, told its rules, and its ring read.
 *
 *   drops:         of this network namespace
 *   drops:IFACE    of those at this interface
 *   rate=N (10000), at most so many records in a second; ring=SIZE (4MiB)
 *
 * Times are those of CLOCK_TAI, turned into times since the Unix epoch, as of the tap in the kernel
 * (tap/kernel.h). Reasons and places are named by the running kernel.
 *
 * One thread.
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

/* Whether the URI is one of drops. */
bool pl_tap_drops_is(const char *uri);

/* Checks the URI without the system. -EINVAL with diag. */
int pl_tap_drops_check(const char *uri, struct pl_diag *diag);

/* point: observation point, at most PL_OBS_POINT_MASK. Negative errno with diag: -EINVAL; -ENODEV,
 * no such interface; -EPERM, which capability is missing; -ENOTSUP, a build without kernel programs,
 * a kernel without BTF or before 6.1. */
int pl_tap_drops_open(struct pl_tap_drops **ret, const char *uri, const struct pl_tap_rules *rules,
	uint16_t point, struct pl_diag *diag);
/* Whether that would be possible: its program is loaded, and nothing attached. As above. */
int pl_tap_drops_try(struct pl_diag *diag);
/* NULL is allowed. */
void pl_tap_drops_close(struct pl_tap_drops *d);

const char *pl_tap_drops_name(const struct pl_tap_drops *d);
/* Readable when records came; also look when it is due (monotonic; UINT64_MAX: it is told). */
int pl_tap_drops_fd(const struct pl_tap_drops *d);
uint64_t pl_tap_drops_due_ns(const struct pl_tap_drops *d);

/* Records that came into ret, at most PL_TAP_DROPS_BATCH, their number left to the caller. Never
 * waits. Negative errno with diag. */
int pl_tap_drops_recv(struct pl_tap_drops *d, struct pl_drop168 *ret, struct pl_diag *diag);

/* Other rules and observation point, in force for every drop from the next one on. */
void pl_tap_drops_rules(struct pl_tap_drops *d, const struct pl_tap_rules *rules, uint16_t point);
/* Adds how many drops each rule in force was the first to match, behind them those of none. */
void pl_tap_drops_hits(struct pl_tap_drops *d, uint64_t ret[PL_TAP_RULES_MAX + 1]);

/* No more drops are looked at; what is in the ring can still be read. */
void pl_tap_drops_stop(struct pl_tap_drops *d);

/* What became of all drops. */
void pl_tap_drops_counts(struct pl_tap_drops *d, struct pl_drops_counts *ret);
/* Drops that the program did not see, because they happened within an interrupt while it ran. */
uint64_t pl_tap_drops_missed(const struct pl_tap_drops *d);

/* Adds the drops of this namespace and interface by the place of their reason (bpf/drops_kernel.h). */
void pl_tap_drops_by_reason(struct pl_tap_drops *d, uint64_t into[PL_DROPS_REASONS]);

#define PL_DROPS_NAME_MAX 64
/* The reason in such a place as the kernel calls it: "NO_SOCKET"; "openvswitch.3" where it has a
 * number only, "core.200" likewise, "other" of the last place. */
void pl_tap_drops_reason_name(
	const struct pl_tap_drops *d, uint32_t slot, char ret[PL_DROPS_NAME_MAX]);

/* The place of a record out of the kernel's text: "tcp_v4_rcv+0x1a2", "ip_vs_in+0x1[ip_vs]"; empty
 * where the kernel has no name for it. Of a name that is too long '~' stands for the rest. */
void pl_tap_drops_place(struct pl_text40 *ret, const char at[PL_DROPS_AT_BYTES]);
