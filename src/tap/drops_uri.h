/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of a URI of drops (tap/drops.h), for drops.c. */
#pragma once

#include <stdint.h>

#include "base/diag.h"
#include "netio/uri.h"

struct pl_tap_drops_settings {
	uint64_t ring_bytes, rate; /* records a second */
	char interface[16];        /* padded with zeros; only zeros: all interfaces */
};

/* Reads the settings; `uri` gets the parts of the text. -EINVAL with diag. */
int pl_tap_drops_settings(struct pl_tap_drops_settings *ret, const char *text, struct pl_uri *uri,
	struct pl_diag *diag);
