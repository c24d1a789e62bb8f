/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of IPFIX by libfixbuf, for the files of this folder: templates and data records in,
 * whole messages out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ipfix/writer.h"

struct fbInfoModel_st;
struct fbInfoElementSpec_st;
struct fbSession_st;
struct fbExporter_st;
struct fBuf_st;

/* Bytes of the headers of a message and of a set (RFC 7011 3.1, 3.3.2). */
#define PL_IPFIX_HEADER_BYTES 16
#define PL_IPFIX_SET_BYTES    4

struct pl_ipfix_message {
	struct fbInfoModel_st *model;
	struct fBuf_st *buf; /* owns session and exporter */
	struct fbSession_st *session;
	struct fbExporter_st *exporter;
	uint32_t domain;
	uint32_t entries;  /* entries in the message being made; its owner counts them */
	uint32_t used;     /* most bytes of that message; its owner adds to them */
	uint32_t records;  /* data records in that message */
	uint32_t sequence; /* data records of the session before that message */
	bool begun;        /* the message has content */
	void (*send)(void *arg, const uint8_t *message, uint32_t bytes, uint32_t entries);
	void *arg;
	uint8_t bytes[PL_IPFIX_MESSAGE_BYTES];
};

/* Checks a call that can only fail by a mistake of its caller: names and lengths are the program's
 * own. */
#define PL_IPFIX_MUST(call)                                                                        \
	do {                                                                                       \
		GError *error = NULL;                                                              \
		if (!(call))                                                                       \
			g_error("IPFIX: %s", error != NULL ? error->message : "no reason");        \
	} while (0)

/* Adds an element of an enterprise; with pen 0 such elements are not sent. type: FB_UINT_32, … */
void pl_ipfix_own_element(
	struct pl_ipfix_message *m, uint32_t pen, const char *name, uint16_t id, int type);

/* Begins a session without templates in place of the present one, if any; sequence goes on from the
 * owner's value. The present message is dropped. Templates added before the session is opened are
 * sent by pl_ipfix_put_template, later ones at once. */
void pl_ipfix_session(struct pl_ipfix_message *m);
void pl_ipfix_open(struct pl_ipfix_message *m);
/* Bytes of a data record of the elements whose flags are all in `flags`, with the header of its set. */
uint32_t pl_ipfix_bytes(const struct fbInfoElementSpec_st *spec, uint32_t flags);
/* Adds a template of the elements of `spec` whose flags are all in `flags`. scope: number of
 * elements that are the scope of options. Returns pl_ipfix_bytes(). */
uint32_t pl_ipfix_template(struct pl_ipfix_message *m, struct fbInfoElementSpec_st *spec,
	uint16_t id, uint32_t flags, bool internal, uint16_t scope, uint32_t export_s);
void pl_ipfix_message_done(struct pl_ipfix_message *m);

/* Appends a data record, from the layout of the internal template. When the message has no room, it
 * is sent, and the record goes into the next one. */
void pl_ipfix_append(struct pl_ipfix_message *m, uint16_t internal, uint16_t external,
	const void *record, size_t bytes, uint32_t export_s);
void pl_ipfix_put_template(struct pl_ipfix_message *m, uint16_t id, uint32_t export_s);
/* Sends the message, if it has content. */
void pl_ipfix_send(struct pl_ipfix_message *m, uint32_t export_s);

/* Time in the form of the elements. */
uint64_t pl_ipfix_time(enum pl_ipfix_time form, uint64_t ns);
/* Number of an IPv4 address. */
uint32_t pl_ipfix_v4(const struct pl_addr *addr);
