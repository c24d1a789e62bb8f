/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A marker's records to the meter of another host (between.h), as mkpair/1 (mark/pair.h): a service
 * beside the marker's (service/mark_host.h), which hands records over. They are sent until they are answered.
 */
#pragma once

#include "mark/pair.h"
#include "netio/udp_address.h"
#include "runtime/runtime.h"

struct pl_mark_to_options {
	struct pl_udp_address to;
	const char *name; /* of that host */
	struct pl_mark_terms terms;
	uint32_t flows_max;
};

struct pl_mark_to {
	const struct pl_mark_to_options *o;
	/* Its own. */
	int fd;
	struct pl_mark_sender *sender;
	uint64_t due_ns, given_up; /* datagrams, of which was said that nobody answers */
	bool answered, said_silent, said_rules;
	struct pl_mark_terms
		told; /* of a meter that does not fit, the last of which that was said */
};

extern const struct pl_service_ops pl_mark_to_ops;

/* Records of this host's marker, and the end of its turn; t is open. */
void pl_mark_to_take(struct pl_mark_to *t, const struct pl_mark128 *records, uint32_t n);
void pl_mark_to_turned(struct pl_mark_to *t);
void pl_mark_to_close(struct pl_mark_to *t);
