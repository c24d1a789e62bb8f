/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts templates and data records into messages of IPFIX, by libfixbuf. */
#include "ipfix/message.h"

#include <arpa/inet.h>
#include <fixbuf/public.h>
#include <string.h>

/* Seconds from the NTP epoch (1900) to that of Unix. */
#define NTP_EPOCH   UINT64_C(2208988800)
#define SECOND_NS   UINT64_C(1000000000)
/* Number that is reserved for examples (RFC 5612): such elements are not sent. */
#define EXAMPLE_PEN 32473u

static uint16_t bytes_of(int type)
{
	return type == FB_UINT_8 ? 1 : type == FB_UINT_16 ? 2 : type == FB_UINT_32 ? 4 : 8;
}

void pl_ipfix_own_element(
	struct pl_ipfix_message *m, uint32_t pen, const char *name, uint16_t id, int type)
{
	fbInfoElement_t element = FB_IE_INIT_FULL(name, pen != 0 ? pen : EXAMPLE_PEN, id,
		bytes_of(type), FB_IE_F_ENDIAN | FB_IE_QUANTITY, 0, 0, type, NULL);

	if (m->model == NULL)
		m->model = fbInfoModelAlloc();
	fbInfoModelAddElement(m->model, &element);
}

void pl_ipfix_session(struct pl_ipfix_message *m)
{
	if (m->model == NULL)
		m->model = fbInfoModelAlloc();
	if (m->buf != NULL)
		fBufFree(m->buf);
	m->buf = NULL;
	m->session = fbSessionAlloc(m->model);
	fbSessionSetDomain(m->session, m->domain);
}

void pl_ipfix_open(struct pl_ipfix_message *m)
{
	m->exporter = fbExporterAllocBuffer(m->bytes, sizeof(m->bytes));
	m->buf = fBufAllocForExport(m->session, m->exporter);
	fBufSetAutomaticMode(m->buf, FALSE);
	m->entries = m->records = 0;
	m->used = PL_IPFIX_HEADER_BYTES;
	m->begun = false;
}

void pl_ipfix_message_done(struct pl_ipfix_message *m)
{
	if (m->buf != NULL)
		fBufFree(m->buf);
	if (m->model != NULL)
		fbInfoModelFree(m->model);
}

void pl_ipfix_send(struct pl_ipfix_message *m, uint32_t export_s)
{
	const uint32_t entries = m->entries;
	uint32_t words[2];

	if (!m->begun)
		return;
	PL_IPFIX_MUST(fBufEmit(m->buf, &error));
	/* libfixbuf would write the time at which the message was begun, and counts from 0 in each
	 * session of its own. */
	words[0] = htonl(export_s);
	words[1] = htonl(m->sequence);
	memcpy(m->bytes + 4, words, sizeof(words));
	m->sequence += m->records;
	m->entries = m->records = 0;
	m->used = PL_IPFIX_HEADER_BYTES;
	m->begun = false;
	m->send(m->arg, m->bytes, (uint32_t)fbExporterGetMsgLen(m->exporter), entries);
}

/* Prepares a second try, after an error that means one of these: the message is full, or has
 * templates before data records, or templates of options behind others, which libfixbuf does not
 * put into one message, so it is sent; or none was begun since the last was sent. */
static bool again(struct pl_ipfix_message *m, int trial, GError *why, uint32_t export_s)
{
	if (trial > 0 || !g_error_matches(why, FB_ERROR_DOMAIN, FB_ERROR_EOM))
		g_error("IPFIX: %s", why->message);
	g_clear_error(&why);
	pl_ipfix_send(m, export_s);
	return true;
}

uint32_t pl_ipfix_bytes(const fbInfoElementSpec_t *spec, uint32_t flags)
{
	uint32_t bytes = PL_IPFIX_SET_BYTES;

	for (; spec->name != NULL; spec++)
		bytes += (spec->flags & ~flags) == 0 ? spec->len_override : 0;
	return bytes;
}

uint32_t pl_ipfix_template(struct pl_ipfix_message *m, fbInfoElementSpec_t *spec, uint16_t id,
	uint32_t flags, bool internal, uint16_t scope, uint32_t export_s)
{
	fbTemplate_t *t = fbTemplateAlloc(m->model);
	int trial = 0;
	GError *why;

	PL_IPFIX_MUST(fbTemplateAppendSpecArray(t, spec, flags, &error));
	if (scope > 0)
		fbTemplateSetOptionsScope(t, scope);
	do {
		why = NULL;
	} while (fbSessionAddTemplate(m->session, internal, id, t, &why) == 0 &&
		 again(m, trial++, why, export_s));
	m->begun = m->begun || (m->buf != NULL && !internal);
	return pl_ipfix_bytes(spec, flags);
}

void pl_ipfix_append(struct pl_ipfix_message *m, uint16_t internal, uint16_t external,
	const void *record, size_t bytes, uint32_t export_s)
{
	int trial = 0;
	GError *why;

	PL_IPFIX_MUST(fBufSetInternalTemplate(m->buf, internal, &error));
	do {
		why = NULL;
		PL_IPFIX_MUST(fBufSetExportTemplate(m->buf, external, &error));
	} while (!fBufAppend(m->buf, (uint8_t *)(uintptr_t)record, bytes, &why) &&
		 again(m, trial++, why, export_s));
	m->begun = true;
	m->records++;
}

void pl_ipfix_put_template(struct pl_ipfix_message *m, uint16_t id, uint32_t export_s)
{
	int trial = 0;
	GError *why;

	do {
		why = NULL;
	} while (
		!fbSessionExportTemplate(m->session, id, &why) && again(m, trial++, why, export_s));
	m->begun = true;
}

static uint64_t ntp(uint64_t ns, uint64_t mask)
{
	const uint64_t seconds = ns / SECOND_NS + NTP_EPOCH;
	const uint64_t fraction = ((ns % SECOND_NS) << 32) / SECOND_NS;

	/* The era ends in 2036, and the readers' too: they take the nearest one. */
	return ((seconds & UINT32_MAX) << 32 | fraction) & mask;
}

uint64_t pl_ipfix_time(enum pl_ipfix_time form, uint64_t ns)
{
	switch (form) {
	case PL_IPFIX_MICROSECONDS:
		return ntp(ns, ~UINT64_C(0x7ff)); /* 11 bits are below a microsecond: 0 */
	case PL_IPFIX_NANOSECONDS:
		return ntp(ns, UINT64_MAX);
	default:
		return ns / 1000000;
	}
}

uint32_t pl_ipfix_v4(const struct pl_addr *addr)
{
	return (uint32_t)addr->b[12] << 24 | (uint32_t)addr->b[13] << 16 |
	       (uint32_t)addr->b[14] << 8 | addr->b[15];
}
