/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the sources of a tap. */
#pragma once

#include "service/tap.h"

/* Opens all of t->o->sources: sockets, captures and taps in the kernel. Returns negative errno with
 * diag; sources opened until then are closed with the service. */
int pl_tap_open_sources(
	struct pl_tap_service *t, const struct pl_rights *rights, struct pl_diag *diag);

/* Returns whether the source never ends, as a capture does. */
bool pl_tap_source_is_live(const char *uri);
