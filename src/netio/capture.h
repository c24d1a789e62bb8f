/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads capture files: pcap (draft-ietf-opsawg-pcap; both byte orders, microseconds and
 * nanoseconds) and pcapng (draft-ietf-opsawg-pcapng: section headers, interface descriptions,
 * enhanced, simple and obsolete packet blocks; other blocks are skipped). Packets are lent out of
 * one buffer, up to PL_BATCH_MAX at a time, without a copy. This reader exists because libpcap
 * gives one packet at a time in a buffer that it reuses, and allows one link type and time
 * resolution per file. Every byte may be hostile: lengths are checked against bounds before
 * anything is allocated or awaited, memory does not depend on the file except for 32 bytes per
 * described interface (at most PL_CAPTURE_INTERFACES_MAX). Reading ends at the first damage, after
 * all packets before it. A packet with more bytes captured than it had on the wire is no damage:
 * writers exist that leave the second length 0. Its wire length is then the captured length, and it
 * is counted (length_lies).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netio/source.h"
#include "wire/packet.h"

#define PL_CAPTURE_PACKET_MAX     (256u * 1024)  /* as libpcap's MAXIMUM_SNAPLEN */
#define PL_CAPTURE_BLOCK_MAX      (1024u * 1024) /* a pcapng block that must be looked into */
#define PL_CAPTURE_INTERFACES_MAX 4096

/* Conversion of ticks to nanoseconds. */
struct pl_capture_clock {
	enum { PL_TICKS_TIMES, PL_TICKS_DIVIDED, PL_TICKS_BINARY, PL_TICKS_TOO_FINE } kind;
	unsigned int shift; /* PL_TICKS_BINARY: 2^-shift seconds */
	uint64_t factor;    /* ns per tick, or ticks per ns */
	int64_t offset_s;   /* added, seconds */
};

struct pl_capture_interface {
	struct pl_capture_clock clock;
	uint32_t snaplen; /* 0 = none */
	uint16_t linktype;
};

struct pl_capture {
	struct pl_source source;
	uint8_t *buf;
	size_t pos, end; /* unread bytes in buf */
	uint64_t base;   /* offset in the file of buf[0] */
	bool ended;

	enum { PL_CAPTURE_FRESH, PL_CAPTURE_PCAP, PL_CAPTURE_PCAPNG } format;
	bool little;         /* little-endian; pcapng: in this section */
	size_t record_bytes; /* pcap: length of a packet's header */
	uint64_t skip;       /* pcapng: bytes of a skipped block still to come */
	uint32_t trailer;    /* pcapng: total length expected behind it; 0 = nothing to check */
	struct pl_capture_interface *interfaces; /* pcap: one */
	unsigned int ninterfaces, interfaces_room;
	uint64_t length_lies; /* packets with more bytes captured than on the wire */

	int fault; /* errno that ends reading, negative; 0 = none */
	char fault_text[256];
};

/* Takes the source over (done by pl_capture_done, also after failure). */
int pl_capture_init(struct pl_capture *capture, const struct pl_source *source);
void pl_capture_done(struct pl_capture *capture);

/* Reads the file's header. Returns 1; 0 when it did not come within timeout_ms; or errors as
 * pl_capture_recv. Optional: pl_capture_recv calls it when needed. */
int pl_capture_start(struct pl_capture *capture, int timeout_ms);

/* As pl_port_recv; for -EBADMSG or another errno fault_text has the reason. The packets are valid
 * until the next call. */
int pl_capture_recv(struct pl_capture *capture, struct pl_batch *ret_batch, int timeout_ms);
