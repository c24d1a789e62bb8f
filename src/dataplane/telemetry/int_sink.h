/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT sink: takes the INT header out of a packet, whose bytes then are those that it had before the
 * source (but for what nodes on the way do to any packet). INT 0.5 4.6, 1.0 4.6, 2.1 5.6. The report
 * about it (dataplane/telemetry/reporter.h) is made before, of the packet with its stack: pl_dp_int_sink_look
 * finds the header, pl_dp_int_sink_strip takes it out.
 *
 * Headers of the destination type that stand before the INT header stay, and with them what
 * announces INT. A GRE header that a source put in (G) stays too: only its end knows what was there.
 */
#pragma once

#include "dataplane/telemetry/int_find.h"

struct pl_dp_int_sink {
	struct pl_dp_int_domain domain; /* pl_dp_int_domain() was applied */
	struct pl_int_cache cache;
	uint64_t copies; /* packets of which the header says that the sink drops them (C, D) */
	uint64_t outcomes[PL_DP_INT_MAX];
};

/* An edit that is open, and what it found. */
struct pl_dp_int_sink_look {
	struct pl_dp_edit edit;
	struct pl_dp_int_found found;
};

void pl_dp_int_sink_init(struct pl_dp_int_sink *s, const struct pl_dp_int_domain *domain);

/* DONE: there is a header to take out. Any other outcome is counted, and final. */
enum pl_dp_int_outcome pl_dp_int_sink_look(
	struct pl_dp_int_sink *s, struct pl_dp_packet *pkt, struct pl_dp_int_sink_look *ret);
/* Counted. True: the packet is a copy or probe, which ends here. */
bool pl_dp_int_sink_strip(struct pl_dp_int_sink *s, struct pl_dp_int_sink_look *look);
