/* SPDX-License-Identifier: BSD-2-Clause */
/* What the URI of a tap in the kernel says (tap/kernel.h), for kernel.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "netio/uri.h"
#include "netio/xdp.h"

struct pl_tap_kernel_settings {
	bool xdp, in, out, hwtstamp;
	bool dir_told; /* in and out are as the URI says */
	enum pl_xdp_mode mode;
	uint64_t ring_bytes;
	uint32_t record_bytes;
	uint64_t counts; /* keys of a table of counts */
};

/* `uri` gets the parts. -EINVAL with diag. */
int pl_tap_kernel_settings(struct pl_tap_kernel_settings *ret, const char *text, struct pl_uri *uri,
	struct pl_diag *diag);
