/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reporter: puts values into telemetry memory far away through `pathline translate`, by Direct
 * Telemetry Access over UDP.
 *
 *   pathline_reporter_open(&r, "10.0.0.2:40040", NULL, &error);
 *   pathline_reporter_key_write(r, 0, "host7", 5, "up--", 4);
 *   pathline_reporter_finish(r, 1000);
 *   pathline_reporter_close(r);
 *
 * Reports are gathered into datagrams, numbered, kept, and sent again when the translator misses
 * some. The handle has a socket and no thread: what is due happens within these calls, so call one
 * of them now and then, or pathline_reporter_wait.
 */
#ifndef PATHLINE_REPORTER_H
#define PATHLINE_REPORTER_H

#include <stddef.h>
#include <stdint.h>

#include "pathline/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pathline_reporter;

struct pathline_reporter_options {
	uint32_t unnumbered; /* 1: reports are sent once, and what is lost is lost */
	uint32_t ring;       /* reports kept; 0: 8192 */
	uint64_t linger_ns;  /* how long reports wait for company; 0: 1 ms */
	double rate;         /* reports per second; 0: no limit */
	uint64_t reserved[4];
};

/* to: "10.0.0.2:40040" or "[fd00::2]:40040". options may be NULL. -EINVAL, or what the system says
 * of the socket. */
int pathline_reporter_open(struct pathline_reporter **ret, const char *to,
	const struct pathline_reporter_options *options, struct pathline_error *error);
/* Reports that are not sent yet are not sent any more. */
void pathline_reporter_close(struct pathline_reporter *reporter);

/* store: the region's place among those that the translator was given. The bytes are copied.
 * -EAGAIN: the ring is full: wait. -EMSGSIZE: longer than a datagram; -EINVAL: a key of 0 or more
 * than 255 bytes. */
int pathline_reporter_key_write(struct pathline_reporter *reporter, uint16_t store, const void *key,
	size_t key_bytes, const void *value, size_t value_bytes);
int pathline_reporter_append(struct pathline_reporter *reporter, uint16_t store, uint32_t list,
	const void *entries, size_t bytes);
int pathline_reporter_increment(struct pathline_reporter *reporter, uint16_t store, const void *key,
	size_t key_bytes, uint64_t increment);
/* One hop of a path: hop 1 to path_length. */
int pathline_reporter_postcard(struct pathline_reporter *reporter, uint16_t store, const void *key,
	size_t key_bytes, uint8_t hop, uint8_t path_length, uint32_t value);

/* Does what is due and takes what came back, until something came or for so long; 0: only what is
 * due now. */
int pathline_reporter_wait(struct pathline_reporter *reporter, unsigned int timeout_ms);
/* Sends all there is, and waits until the translator has it, where reports are numbered. 0;
 * -ETIMEDOUT: it has not said so. */
int pathline_reporter_finish(struct pathline_reporter *reporter, unsigned int timeout_ms);

struct pathline_reporter_counts {
	uint64_t reports;   /* put */
	uint64_t datagrams; /* sent */
	uint64_t again;     /* reports sent again */
	uint64_t lost;      /* that the translator asked for in vain or gave up */
	uint64_t unsent;    /* datagrams that the system refused */
	uint64_t
		refused; /* numbered reports that the translator refused: wrong store or size, above a quota */
	uint64_t reserved[3];
};

void pathline_reporter_count(
	const struct pathline_reporter *reporter, struct pathline_reporter_counts *ret);

#ifdef __cplusplus
}
#endif

#endif
