/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport of IPFIX messages to a collector: one datagram each (RFC 7011 10.3), or a
 * connection that is made again when it breaks (10.4). Nothing waits for the collector. The caller
 * makes messages with a writer of ipfix/ and keeps entries that wait for a connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/diag.h"
#include "ipfix/writer.h"
#include "netio/uri.h"

struct pl_port;

/* Values of these keys of the URI: transport, time, pen. */
struct pl_ipfix_target {
	char endpoint[PL_URI_TEXT_MAX]; /* "HOST:PORT" */
	bool tcp;
	enum pl_ipfix_time time;
	uint64_t pen; /* 0: none */
};

#define PL_IPFIX_KEYS "transport", "time", "pen"

/* Reads the target without a name lookup. -EINVAL with diag. */
int pl_ipfix_target_read(
	struct pl_ipfix_target *ret, const struct pl_uri *uri, struct pl_diag *diag);

/* Number of the caller's entries (flows, paths), and sums over them. */
struct pl_ipfix_amount {
	uint64_t entries;
	struct pl_ipfix_sum sum;
};

void pl_ipfix_amount_add(struct pl_ipfix_amount *to, const struct pl_ipfix_amount *more);

struct pl_ipfix_link {
	struct pl_port *port; /* UDP; NULL: TCP, with the members below */
	struct pl_addr addr;
	uint16_t at;
	int fd;               /* -1: none */
	bool connected;       /* the handshake is over */
	bool began;           /* connected, and not reported to the caller yet */
	uint64_t next_ns;     /* without a connection: next attempt; during one: its timeout */
	struct pl_buf unsent; /* messages, of which `taken` bytes are with the kernel */
	size_t taken;
	struct pl_ipfix_amount in_unsent;
	uint32_t unsent_messages;
	uint64_t refused_ns; /* UDP: last time a message was refused */

	struct pl_ipfix_amount sent, failed; /* amounts sent and lost since the start */
	uint64_t messages, bytes, refused, connections;
	char trouble[128]; /* present trouble; "": none */
	bool news;         /* `trouble` has changed; the caller clears this */
};

/* Returns negative errno with diag. */
int pl_ipfix_link_open(
	struct pl_ipfix_link *l, const struct pl_ipfix_target *target, struct pl_diag *diag);
void pl_ipfix_link_close(struct pl_ipfix_link *l); /* also closes a link that failed to open */

/* Sends a message with these entries. Over TCP only while connected. */
void pl_ipfix_link_send(struct pl_ipfix_link *l, const uint8_t *message, uint32_t bytes,
	const struct pl_ipfix_amount *carries, uint64_t now_ns);
/* Returns true when messages may be made: over TCP, connected and nothing is unsent. */
bool pl_ipfix_link_ready(const struct pl_ipfix_link *l);
/* Continues connecting and sending. Returns true when a session has begun, in which templates must
 * come first (pl_ipfix_begin). */
bool pl_ipfix_link_turn(struct pl_ipfix_link *l, uint64_t now_ns);
/* Gives up the connection and its unsent messages. */
void pl_ipfix_link_drop(struct pl_ipfix_link *l, const char *words, uint64_t now_ns);

uint32_t pl_ipfix_now_s(void); /* seconds since the Unix epoch */
