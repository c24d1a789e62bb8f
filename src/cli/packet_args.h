/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of read and listen as those of tap, which prints records of packets. */
#pragma once

#include <stdint.h>

#include "base/opt.h"
#include "cli/record_args.h"

struct pl_packet_args {
	const struct pl_record_args *out;
	const char *kind;         /* option of tap that chooses other records: "--flows"; or NULL */
	const char *filter;       /* of pcap-filter(7), or NULL */
	const char *user, *group; /* or NULL */
	uint64_t duration_ns;     /* 0: until the end of the sources, or a signal */
};

/* Runs tap with them. Returns an exit code; prints errors. */
int pl_packets_print(const struct pl_packet_args *args, const struct pl_opt_list *sources);
