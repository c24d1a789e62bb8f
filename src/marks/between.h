/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures loss and delay between a marker on another host and the meter of this one, while both
 * run: a service beside the meter's (mark_host.h). The marker's records come as mkpair/1
 * (mark/pair.h) and are answered; the meter hands its own over. A flow's block is reported when
 * both have sent it, or its time is over (mark/domain.h).
 */
#pragma once

#include "mark/domain.h"
#include "mark/pair.h"
#include "netio/udp_address.h"
#include "runtime/runtime.h"

#define PL_MARK_BETWEEN_PORT 40051u /* UDP port for records of a marker */

struct pl_mark_between_options {
	/* The marker's host: records of others are ignored. A link-local address includes the
	 * interface. The port is that of our socket. */
	struct pl_sockaddr from;
	struct pl_mark_terms terms; /* of this meter */
	uint32_t flows_max;         /* PL_MARK_PAIR_FLOWS_MAX at most */
	uint64_t clock_ns;          /* largest difference of clocks; 0: as in records */
	void (*result)(void *arg, const struct pl_mark_result *result);
	void *arg;
};

/* Numbers of the two points. */
enum { PL_MARK_BETWEEN_MARKER = 1, PL_MARK_BETWEEN_METER = 2 };

struct pl_mark_between {
	const struct pl_mark_between_options *o;
	/* Private members. */
	int fd;
	struct pl_addr from;
	struct pl_mark_network network;
	struct pl_prefix allow[2];
	struct pl_mark_domain *domain;
	struct pl_mark_heard heard;
	struct pl_mark_terms
		told; /* of the last marker that did not fit, which has been reported once */
	bool said_stranger, said_unreadable, other_rules;
};

extern const struct pl_service_ops pl_mark_between_ops;

/* Takes records of this host's meter; arg: an open struct pl_mark_between. */
void pl_mark_between_take(void *arg, const struct pl_mark128 *records, uint32_t n);
void pl_mark_between_close(struct pl_mark_between *b);
