/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of the URI of a tap in the kernel (tap/kernel.h), for kernel.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "netio/uri.h"
#include "netio/xdp.h"

struct pl_tap_kernel_settings {
	bool xdp, in, out, hwtstamp;
	bool dir_told; /* the URI sets the direction */
	enum pl_xdp_mode mode;
	uint64_t ring_bytes;
	uint32_t record_bytes;
	uint64_t counts; /* keys of a table of counts */
};

/* Reads the settings; `uri` gets the parts of the text. -EINVAL with diag. */
int pl_tap_kernel_settings(struct pl_tap_kernel_settings *ret, const char *text, struct pl_uri *uri,
	struct pl_diag *diag);
