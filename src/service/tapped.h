/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of flows that the taps of a configuration have in their caches: /api/v1/tapped. Of all
 * taps with a flow cache the flows with the most bytes, looked up when the page is asked for, of
 * each tap at most once a second.
 */
#pragma once

#include "record/packet.h"
#include "web/http.h"

#define PL_TAPPED_ROWS 1000u
/* Caches for more flows are not looked through: it would take a tap's time. */
#define PL_TAPPED_ROOM (1u << 20)

struct pl_tap_service;

/* What was found in a tap's cache last. */
struct pl_tapped {
	struct pl_flow288 *rows; /* NULL: nobody asked yet */
	uint32_t n;
	uint64_t made_ns, clock_ns; /* monotonic; the cache's clock then */
};

void pl_tapped_done(struct pl_tapped *tapped);

/* arg: struct pl_taps, NULL: there are none. */
pl_http_handler pl_tapped_page;
