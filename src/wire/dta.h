/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct Telemetry Access on the wire: a datagram to UDP port 40040 that asks a translator to put
 * something into telemetry memory, and the translator's NACK to port 40044. Three forms of header:
 *
 *   plain     2 bytes   opcode 8 | immediate 1, reserved 7; of the published reporter
 *   tracking  3 bytes   opcode 8 | sequence number 8 | immediate 1, sequenced 1, reserved 6;
 *                       of the published generator
 *   pathline  12 bytes  0xD1 | opcode 8 | immediate 1, sequenced 1, asks 1, reserved 5 | copies 8 |
 *                       store 16 | body bytes 16 | sequence number 32; several such reports may
 *                       follow each other in a datagram
 *
 * The first two look alike on the wire, so a reporter's form is configured; the third is
 * recognised, because 0xD1 is no opcode. Behind the header stands the body ("…" runs to the end of
 * the datagram or body):
 *
 *              plain, tracking                         pathline
 *   key-write  copies 8 | key 32 | value …             key bytes 8 | key | value …
 *   append     list 32 | entry …                       list 32 | entries, one behind the other …
 *   increment  copies 8 | key 32 | increment 64        increment 64 | key …
 *   postcard   key 32 | hop 8 | value 32               hop 8 | path length 8 | value 32 | key …
 *   sketch     –                                       epoch 32 | first column 32 | columns …
 *   NACK       sequence number 8 | nack 1, reserved 7  header with opcode 0x80; then optionally
 *                                                      reports given up 32, reports refused 32
 *
 * All integers are big-endian. Source: Langlet et al., "Direct Telemetry Access", SIGCOMM 2023,
 * section 4, and the code published with it for the first two forms; docs/protocols/dta.md has the
 * third bit by bit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/build.h"
#include "wire/cursor.h"

#define PL_PORT_DTA           40040u
#define PL_PORT_DTA_NACK      40044u
#define PL_DTA_MAGIC          0xD1u
#define PL_DTA_HEADER_BYTES   12u
#define PL_DTA_NACK_BYTES_MAX (PL_DTA_HEADER_BYTES + 8u)
#define PL_DTA_KEY_BYTES_MAX  255u
#define PL_DTA_HOPS_MAX       255u
#define PL_DTA_BODY_BYTES_AT  6u /* in pathline's header: length of its body */
/* In pathline's header: flags. Asks: the translator shall answer this sequenced report with the
 * number of the last one accepted in order; in a NACK: it is that answer. */
#define PL_DTA_FLAGS_AT       2u
#define PL_DTA_FLAG_ASKS      0x20u

enum pl_dta_form { PL_DTA_PLAIN, PL_DTA_TRACKING, PL_DTA_PATHLINE, PL_DTA_FORM_MAX };

/* Opcodes as on the wire. */
enum pl_dta_op {
	PL_DTA_KEY_WRITE = 1,
	PL_DTA_APPEND = 2,
	PL_DTA_INCREMENT = 3,
	PL_DTA_POSTCARD = 4,
	PL_DTA_SKETCH = 5, /* PL_DTA_PATHLINE only, as all after it */
	PL_DTA_NACK = 0x80,
};

/* Results of reading a report: ok, or why it is refused. */
enum pl_dta_verdict {
	PL_DTA_OK,
#define PL_DTA_VERDICT(id, name, help) PL_DTA_##id,
#include "wire/dta_verdicts.def"
#undef PL_DTA_VERDICT
	PL_DTA_VERDICT_MAX
};

const char *pl_dta_verdict_name(enum pl_dta_verdict verdict);
const char *pl_dta_verdict_help(enum pl_dta_verdict verdict);

/* A report. Its pointers point into the datagram it was read from, or to memory of the writer. */
struct pl_dta_report {
	enum pl_dta_form form;
	enum pl_dta_op op;
	bool immediate; /* the collector shall be woken */
	bool sequenced; /* seq is valid; a lost report is requested again */
	bool asks;      /* PL_DTA_PATHLINE, sequenced: requests an answer */
	uint32_t seq;   /* PL_DTA_TRACKING: modulo 2^8, PL_DTA_PATHLINE: modulo 2^32 */
	uint16_t store; /* PL_DTA_PATHLINE; else 0 */
	/* 0: as many as the store has; in the published forms never 0 in key-write and increment,
	 * which alone have it */
	uint8_t copies;
	uint8_t hop;         /* postcard: 1 is the source */
	uint8_t path_length; /* postcard: 0: not given */
	uint8_t key_bytes;   /* 4 in the published forms */
	const uint8_t *key;
	uint64_t increment;
	uint32_t list;         /* append */
	uint32_t value;        /* postcard */
	uint32_t epoch;        /* sketch */
	uint32_t first_column; /* sketch */
	const uint8_t *data;   /* value, entries, columns */
	uint32_t data_bytes;
};

/*
 * Reads the next report of a datagram. `form` is the exporter's form (PL_DTA_PLAIN or
 * PL_DTA_TRACKING) for reports that are not PL_DTA_PATHLINE, which is recognised. *ret is complete
 * only with PL_DTA_OK; form, op, sequenced and seq are set as soon as they are read, and zero
 * before. A refused report ends the datagram: the cursor is then empty. The owner of the stores
 * checks whether store, list, copies and sizes exist.
 */
enum pl_dta_verdict pl_dta_next(
	struct pl_cursor *c, enum pl_dta_form form, struct pl_dta_report *ret);

/*
 * Writes a report. Returns -EINVAL when the form cannot express it (a store, a key of other than
 * four bytes, several copies …), -ENOBUFS when it does not fit: b is to be discarded then.
 */
int pl_dta_put(struct pl_build *b, const struct pl_dta_report *report);

/* The translator's answer to a gap: `last` was the last report accepted in order; the reporter
 * shall go on with the next. Or its answer to a report that asked: nothing is to be sent again. */
struct pl_dta_nack {
	enum pl_dta_form form;
	uint32_t last;
	/* PL_DTA_PATHLINE */
	bool answer;
	bool tells_lost;
	/* number of this reporter's reports that were given up, since it or the translator began */
	uint32_t lost;
	bool tells_refused;
	/* number that was refused for good, in the same time; told only with `lost` */
	uint32_t refused;
};

/* Reads a NACK; a published one is recognised by its length of two bytes. PL_DTA_OPCODE: it is
 * another message. */
enum pl_dta_verdict pl_dta_nack_read(struct pl_cursor *c, struct pl_dta_nack *ret);
int pl_dta_nack_put(struct pl_build *b, const struct pl_dta_nack *nack);
