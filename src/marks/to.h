/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends a marker's records to the meter of another host (between.h) as mkpair/1 (mark/pair.h),
 * again until they are answered or given up: a service beside the marker's (service/mark_host.h).
 */
#pragma once

#include "mark/pair.h"
#include "netio/udp_address.h"
#include "runtime/runtime.h"

struct pl_mark_to_options {
	struct pl_sockaddr to;
	const char *name; /* name of that host */
	struct pl_mark_terms terms;
	uint32_t flows_max;
};

struct pl_mark_to {
	const struct pl_mark_to_options *o;
	/* Private members. */
	int fd;
	struct pl_mark_sender *sender;
	uint64_t due_ns, given_up; /* given_up: unanswered datagrams already reported */
	bool answered, said_silent, said_rules;
	struct pl_mark_terms
		told; /* of the last meter that did not fit, which has been reported once */
};

extern const struct pl_service_ops pl_mark_to_ops;

/* Takes records of this host's marker, and the end of its turn; t must be open. */
void pl_mark_to_take(struct pl_mark_to *t, const struct pl_mark128 *records, uint32_t n);
void pl_mark_to_turned(struct pl_mark_to *t);
void pl_mark_to_close(struct pl_mark_to *t);
