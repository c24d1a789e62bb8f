/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss and delay between a marker on another host and the meter of this one, while both run: a service
 * beside the meter's (mark_host.h). The marker's records come as mkpair/1 (mark/pair.h), which is
 * answered; the meter's are handed over. A block of a flow is told when both have it, or its time is
 * over (mark/domain.h).
 */
#pragma once

#include "mark/domain.h"
#include "mark/pair.h"
#include "netio/udp_address.h"
#include "runtime/runtime.h"

#define PL_MARK_BETWEEN_PORT 40051u /* of UDP, where records of a marker arrive */

struct pl_mark_between_options {
	/* The marker's host: records of others are left out. Of a link-local address the interface is
	 * told too. Its port is that of our socket. */
	struct pl_udp_address from;
	struct pl_mark_terms terms; /* of this meter */
	uint64_t clock_ns;          /* the most that clocks differ; 0: what records say */
	void (*result)(void *arg, const struct pl_mark_result *result);
	void *arg;
};

/* Numbers of the points. */
enum { PL_MARK_BETWEEN_MARKER = 1, PL_MARK_BETWEEN_METER = 2 };

struct pl_mark_between {
	const struct pl_mark_between_options *o;
	/* Its own. */
	int fd;
	struct pl_addr from;
	struct pl_mark_network network;
	struct pl_prefix allow[2];
	struct pl_mark_domain *domain;
	struct pl_mark_heard heard;
	struct pl_mark_terms
		told; /* of a marker that does not fit, the last of which that was said */
	bool said_stranger, said_unreadable, other_rules;
};

extern const struct pl_service_ops pl_mark_between_ops;

/* Records of this host's meter; arg: struct pl_mark_between, which is open. */
void pl_mark_between_take(void *arg, const struct pl_mark128 *records, uint32_t n);
void pl_mark_between_close(struct pl_mark_between *b);
