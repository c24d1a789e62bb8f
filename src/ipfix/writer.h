/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of flows (flow288/1) as IPFIX messages (RFC 7011, RFC 7012): what collectors of NetFlow and
 * IPFIX read. A flow becomes a data record for each direction that had packets, as all collectors
 * read them, or one for both (RFC 5103). docs/protocols/ipfix.md has the elements. The engine owns no
 * socket and no clock: messages are given to a function.
 *
 * Templates, one each: IPv4 and IPv6, with ports and with ICMP type and code, where directions are
 * known also with them; and one of options, the account of flows that were not exported. Every transport session begins with them
 * (pl_ipfix_begin); over UDP they are repeated (pl_ipfix_templates).
 *
 * libfixbuf encodes. It ends the process when there is no memory for a few kilobytes.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/packet.h"

/* Bytes of a message at most: no fragments over Ethernet, also in a tunnel. */
#define PL_IPFIX_MESSAGE_BYTES 1400

enum pl_ipfix_time {
	PL_IPFIX_MILLISECONDS, /* flowStartMilliseconds: all collectors read it */
	PL_IPFIX_MICROSECONDS, /* flowStartMicroseconds, in NTP format (RFC 7011 6.1.9) */
	PL_IPFIX_NANOSECONDS,  /* flowStartNanoseconds, likewise (6.1.10) */
};

struct pl_ipfix_options {
	uint32_t domain; /* observation domain id */
	bool biflow;     /* one data record for both directions */
	bool directed;   /* packets come with the direction of their hook: PL_OBS_OUT says it */
	enum pl_ipfix_time time;
	/* Private enterprise number under which round-trip times, retransmissions, gaps, roles and more
	 * of TCP are sent; 0: they are not. */
	uint32_t pen;
	/* Takes a whole message of so many flows. */
	void (*send)(void *arg, const uint8_t *message, uint32_t bytes, uint32_t flows);
	void *arg;
};

/* Data records, and the packets and bytes that they tell of. */
struct pl_ipfix_sum {
	uint64_t records, packets, bytes;
};

struct pl_ipfix;

/* -ENOMEM. */
int pl_ipfix_new(struct pl_ipfix **ret, const struct pl_ipfix_options *options);
void pl_ipfix_free(struct pl_ipfix *x); /* NULL is allowed; flows that wait are gone */

/* What becomes of a flow. */
struct pl_ipfix_sum pl_ipfix_of(const struct pl_ipfix *x, const struct pl_flow288 *flow);

/* Puts a flow into the message that is being made, which is sent when another one finds no room.
 * Times of a flow that ends before it began, as its clock was set back, become one: that of its
 * end, and it is counted. export_s: the time of the export, seconds since the Unix epoch. */
void pl_ipfix_flow(struct pl_ipfix *x, const struct pl_flow288 *flow, uint32_t export_s);
/* Sends what there is, if anything. */
void pl_ipfix_flush(struct pl_ipfix *x, uint32_t export_s);
/* Puts all templates and the account: over UDP, now and then. lost: data records that were not
 * exported, since the start. */
void pl_ipfix_templates(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s);
/* Puts the account alone: over TCP, now and then (a template is sent once there: RFC 7011 8.1). */
void pl_ipfix_account(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s);
/* A new transport session: numbers begin at 0, with the templates. Flows that wait are gone. */
void pl_ipfix_begin(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s);

uint64_t pl_ipfix_mended(const struct pl_ipfix *x);  /* flows that ended before they began */
uint32_t pl_ipfix_waiting(const struct pl_ipfix *x); /* flows in the message that is being made */
