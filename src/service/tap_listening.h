/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports on which this host listens, for the roles of a tap's flows (flow/listening.h): read from
 * the kernel when flows are requested and then every five seconds. Only for taps whose sources are
 * all interfaces of this host: addresses in captures and in records of others may be of other
 * networks.
 */
#pragma once

#include <stdint.h>

#include "base/stats.h"

struct pl_tap_service;
struct pl_tap_listening;

struct pl_tap_listening_stats {
#define PL_STAT PL_STAT_MEMBER
#include "service/tap_listening_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_tap_listening_list;

/* Needs the flow cache. Without the kernel's answer the tap goes on; that is logged. */
void pl_tap_listening_begin(struct pl_tap_service *t);
/* Reads the ports if that is due. Returns the time of the next call; UINT64_MAX: none. */
uint64_t pl_tap_listening_turn(struct pl_tap_service *t, uint64_t now_ns);
void pl_tap_listening_end(struct pl_tap_service *t);
