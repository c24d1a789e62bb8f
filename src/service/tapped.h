/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page /api/v1/tapped of flows in the caches of a configuration's taps: for each tap with a
 * flow cache the flows with the most bytes, looked up when the page is requested, at most once a
 * second for each tap.
 */
#pragma once

#include "record/packet.h"
#include "web/http.h"

#define PL_TAPPED_ROWS 1000u
/* Larger caches are not searched: it would take too much of a tap's time. */
#define PL_TAPPED_ROOM (1u << 20)

struct pl_tap_service;

/* Result of the last search of a tap's cache. */
struct pl_tapped {
	struct pl_flow288 *rows; /* NULL: not searched yet */
	uint32_t n;
	uint64_t made_ns, clock_ns; /* when it was searched, monotonic; the cache's clock then */
};

void pl_tapped_done(struct pl_tapped *tapped);

/* arg: struct pl_taps; NULL: there are no taps. */
pl_http_handler pl_tapped_page;
