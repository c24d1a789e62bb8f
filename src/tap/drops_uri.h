/* SPDX-License-Identifier: BSD-2-Clause */
/* What the URI of drops says (tap/drops.h), for drops.c. */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "netio/uri.h"

struct pl_tap_drops_settings {
	uint64_t ring_bytes, rate; /* records a second */
	char interface[16];        /* and zeros; zeros: all */
};

/* `uri` gets the parts. -EINVAL with diag. */
int pl_tap_drops_settings(struct pl_tap_drops_settings *ret, const char *text, struct pl_uri *uri,
	struct pl_diag *diag);
