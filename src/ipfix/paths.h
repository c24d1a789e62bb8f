/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths and their hops (struct pl_path, pl_hop) as IPFIX messages: a data record for the path, and
 * one behind it for each hop, which has the path's key, so that it can be read by itself. What
 * IPFIX has elements for has those; the rest is under a private enterprise number. A value that a
 * record does not have is not in its template: each set of values has a template of its own, made
 * when it comes first (docs/protocols/ipfix.md). As writer.h else.
 */
#pragma once

#include "ipfix/sets.h"
#include "ipfix/writer.h"
#include "record/record.h"

struct pl_ipfix_paths_options {
	uint32_t domain;
	enum pl_ipfix_time time;
	uint32_t pen;
	/* Takes a whole message, in which so many paths end. */
	void (*send)(void *arg, const uint8_t *message, uint32_t bytes, uint32_t paths);
	void *arg;
};

struct pl_ipfix_paths;

/* -ENOMEM. */
int pl_ipfix_paths_new(struct pl_ipfix_paths **ret, const struct pl_ipfix_paths_options *options);
void pl_ipfix_paths_free(struct pl_ipfix_paths *x); /* NULL is allowed */

/* A new transport session: numbers begin at 0, no template was sent. What waits is gone. */
void pl_ipfix_paths_begin(struct pl_ipfix_paths *x);
/* Over UDP, now and then: templates are sent again, each before its next data record; those that
 * were not used since the last time are forgotten. */
void pl_ipfix_paths_renew(struct pl_ipfix_paths *x, uint32_t export_s);

/* False: it was not put, as there are too many sets of values. Its data records are in one message where
 * they fit into one. */
bool pl_ipfix_paths_put(struct pl_ipfix_paths *x, const struct pl_path *path,
	const struct pl_hop *hops, uint32_t export_s);
void pl_ipfix_paths_flush(struct pl_ipfix_paths *x, uint32_t export_s);
uint32_t pl_ipfix_paths_waiting(const struct pl_ipfix_paths *x); /* in the message being made */
