/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT sink: removes the INT header from a packet, whose bytes are then the same as before the
 * source (except for changes that nodes make to any packet). INT 0.5 4.6, 1.0 4.6, 2.1 5.6. The
 * report about it (dataplane/telemetry/reporter.h) is made before that, from the packet with its
 * stack: pl_dp_int_sink_look finds the header, pl_dp_int_sink_strip removes it.
 *
 * Destination-type headers before the INT header stay, and with them the announcement of INT. A GRE
 * header that a source inserted (G) stays too: only the end of the tunnel knows what was there.
 */
#pragma once

#include "dataplane/telemetry/int_find.h"

struct pl_dp_int_sink {
	struct pl_dp_int_domain domain; /* pl_dp_int_domain() was applied */
	struct pl_int_cache cache;
};

/* An open edit, and the INT header found in it. */
struct pl_dp_int_sink_look {
	struct pl_dp_edit edit;
	struct pl_dp_int_found found;
};

void pl_dp_int_sink_init(struct pl_dp_int_sink *s, const struct pl_dp_int_domain *domain);

/* Finds the INT header. DONE: there is one to remove. */
enum pl_dp_int_outcome pl_dp_int_sink_look(
	struct pl_dp_int_sink *s, struct pl_dp_packet *pkt, struct pl_dp_int_sink_look *ret);
/* Removes the INT header. True: the packet is a copy or probe (C, D), which ends here. */
bool pl_dp_int_sink_strip(const struct pl_dp_int_sink *s, struct pl_dp_int_sink_look *look);
