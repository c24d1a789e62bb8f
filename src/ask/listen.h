/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints packets with telemetry as they arrive at ports, and explains those that do not decode. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/decode.h"
#include "show/record_out.h"

struct pl_listen_options {
	const char *const *uris; /* n URIs; none: the default ports */
	size_t n;
	const struct pl_decode_options *decode;
	const char *filter;       /* an expression of pcap-filter(7) for frames; NULL: none */
	const char *user, *group; /* taken once the ports are open; NULL: none */
	uint64_t duration_ns;     /* 0: until a signal ends it */
	bool stats;               /* prints counters at the end; as an object in forms of JSON */
};

/*
 * Prints packets until `out` is full, the time is over, or SIGINT or SIGTERM comes; to be called
 * before the first thread starts. Prints errors, and returns an exit code. `out` is
 * the caller's, initialized.
 */
int pl_listen(const struct pl_listen_options *options, struct pl_record_out *out);
