/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the sources of a tap. */
#pragma once

#include "service/tap.h"

/* All of t->o->sources: sockets, captures and taps in the kernel. Negative errno with diag; what was
 * opened until then is closed with the service. */
int pl_tap_open_sources(
	struct pl_tap_service *t, const struct pl_rights *rights, struct pl_diag *diag);

/* Whether it goes on for ever; captures have an end. */
bool pl_tap_source_is_live(const char *uri);

/* Whether packets are seen at an interface: not records that others made, nor drops. */
bool pl_tap_source_is_interface(const char *uri);

/* Whether all packets are of interfaces of this host, which says whose addresses these are and which way
 * a packet went. */
bool pl_tap_is_of_this_host(const struct pl_tap_service *t);
