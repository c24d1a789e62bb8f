/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alternate marking as IPFIX messages: results (struct pl_seg192) and block records of points (struct
 * pl_mark128), a data record each. What IPFIX has elements for has those; the rest is under a private
 * enterprise number. A number that is not known is not in the template (sets.h, docs/protocols/ipfix.md).
 * As writer.h else.
 */
#pragma once

#include "ipfix/sets.h"
#include "ipfix/writer.h"
#include "record/packet.h"

struct pl_ipfix_marks_options {
	uint32_t domain;
	enum pl_ipfix_time time;
	uint32_t pen; /* not 0 */
	/* Takes a whole message of so many records. */
	void (*send)(void *arg, const uint8_t *message, uint32_t bytes, uint32_t records);
	void *arg;
};

struct pl_ipfix_marks;

/* -ENOMEM. */
int pl_ipfix_marks_new(struct pl_ipfix_marks **ret, const struct pl_ipfix_marks_options *options);
void pl_ipfix_marks_free(struct pl_ipfix_marks *x); /* NULL is allowed */

/* As pl_ipfix_sets_begin and pl_ipfix_sets_renew. */
void pl_ipfix_marks_begin(struct pl_ipfix_marks *x);
void pl_ipfix_marks_renew(struct pl_ipfix_marks *x, uint32_t export_s);

/* False: it was not put, as there are too many sets of values. */
bool pl_ipfix_marks_segment(
	struct pl_ipfix_marks *x, const struct pl_seg192 *segment, uint32_t export_s);
bool pl_ipfix_marks_point(
	struct pl_ipfix_marks *x, const struct pl_mark128 *point, uint32_t export_s);
void pl_ipfix_marks_flush(struct pl_ipfix_marks *x, uint32_t export_s);
uint32_t pl_ipfix_marks_waiting(const struct pl_ipfix_marks *x); /* in the message being made */
