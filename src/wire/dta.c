/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes DTA reports and NACKs. */
#include "wire/dta.h"

#include <errno.h>
#include <stddef.h>

#define FLAG_IMMEDIATE     0x80u
#define FLAG_SEQUENCED     0x40u
#define FLAG_NACK          0x80u
/* Bytes of a NACK's body that tell of reports given up, and also of reports refused. */
#define NACK_LOST_BYTES    4u
#define NACK_REFUSED_BYTES 8u

static const struct {
	const char *name, *help;
} verdicts[PL_DTA_VERDICT_MAX] = {
	[PL_DTA_OK] = { "ok", "read completely" },
#define PL_DTA_VERDICT(id, name, help) [PL_DTA_##id] = { name, help },
#include "wire/dta_verdicts.def"
#undef PL_DTA_VERDICT
};

const char *pl_dta_verdict_name(enum pl_dta_verdict verdict)
{
	return verdicts[verdict].name;
}

const char *pl_dta_verdict_help(enum pl_dta_verdict verdict)
{
	return verdicts[verdict].help;
}

/* ---- reading ---- */

static void get_key(struct pl_cursor *c, struct pl_dta_report *r, size_t n)
{
	r->key_bytes = (uint8_t)n;
	r->key = pl_cursor_take(c, n);
}

/* Takes the rest as data; a datagram has less than 2^32 bytes. */
static void get_data(struct pl_cursor *c, struct pl_dta_report *r)
{
	r->data_bytes = (uint32_t)pl_cursor_left(c);
	r->data = pl_cursor_take(c, r->data_bytes);
}

static enum pl_dta_verdict get_body_published(struct pl_cursor *c, struct pl_dta_report *r)
{
	switch (r->op) {
	case PL_DTA_KEY_WRITE:
		r->copies = pl_get_u8(c);
		get_key(c, r, 4);
		get_data(c, r);
		break;
	case PL_DTA_APPEND:
		r->list = pl_get_be32(c);
		get_data(c, r);
		break;
	case PL_DTA_INCREMENT:
		r->copies = pl_get_u8(c);
		get_key(c, r, 4);
		r->increment = pl_get_be64(c);
		break;
	case PL_DTA_POSTCARD:
		get_key(c, r, 4);
		r->hop = pl_get_u8(c);
		r->value = pl_get_be32(c);
		break;
	default:
		return PL_DTA_OPCODE;
	}
	if (c->short_read)
		return PL_DTA_SHORT;
	if ((r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_INCREMENT) && r->copies == 0)
		return PL_DTA_COPIES;
	return PL_DTA_OK;
}

static enum pl_dta_verdict get_body(struct pl_cursor *c, struct pl_dta_report *r)
{
	switch (r->op) {
	case PL_DTA_KEY_WRITE:
		get_key(c, r, pl_get_u8(c));
		get_data(c, r);
		break;
	case PL_DTA_APPEND:
		r->list = pl_get_be32(c);
		get_data(c, r);
		break;
	case PL_DTA_INCREMENT:
		r->increment = pl_get_be64(c);
		break;
	case PL_DTA_POSTCARD:
		r->hop = pl_get_u8(c);
		r->path_length = pl_get_u8(c);
		r->value = pl_get_be32(c);
		break;
	case PL_DTA_SKETCH:
		r->epoch = pl_get_be32(c);
		r->first_column = pl_get_be32(c);
		get_data(c, r);
		break;
	default:
		return PL_DTA_OPCODE;
	}
	if (c->short_read)
		return PL_DTA_SHORT;
	if (r->op == PL_DTA_INCREMENT || r->op == PL_DTA_POSTCARD) {
		/* The rest is the key. */
		size_t n = pl_cursor_left(c);

		if (n > PL_DTA_KEY_BYTES_MAX)
			return PL_DTA_TRAILING;
		get_key(c, r, n);
	}
	return PL_DTA_OK;
}

/* Checks the values of a report, in every form. */
static enum pl_dta_verdict check(const struct pl_dta_report *r)
{
	switch (r->op) {
	case PL_DTA_KEY_WRITE:
		if (r->key_bytes == 0)
			return PL_DTA_KEY;
		return r->data_bytes > 0 ? PL_DTA_OK : PL_DTA_EMPTY;
	case PL_DTA_APPEND:
	case PL_DTA_SKETCH:
		return r->data_bytes > 0 ? PL_DTA_OK : PL_DTA_EMPTY;
	case PL_DTA_INCREMENT:
		return r->key_bytes > 0 ? PL_DTA_OK : PL_DTA_KEY;
	case PL_DTA_POSTCARD:
		if (r->key_bytes == 0)
			return PL_DTA_KEY;
		if (r->hop == 0 || (r->path_length != 0 && r->hop > r->path_length))
			return PL_DTA_HOP;
		return PL_DTA_OK;
	default:
		return PL_DTA_OPCODE;
	}
}

static void get_flags(struct pl_dta_report *r, uint8_t flags)
{
	r->immediate = (flags & FLAG_IMMEDIATE) != 0;
	r->sequenced = r->form != PL_DTA_PLAIN && (flags & FLAG_SEQUENCED) != 0;
	r->asks = r->form == PL_DTA_PATHLINE && r->sequenced && (flags & PL_DTA_FLAG_ASKS) != 0;
}

static enum pl_dta_verdict next_published(struct pl_cursor *c, struct pl_dta_report *r)
{
	enum pl_dta_verdict verdict;

	r->op = pl_get_u8(c);
	if (r->form == PL_DTA_TRACKING)
		r->seq = pl_get_u8(c);
	get_flags(r, pl_get_u8(c));
	if (c->short_read)
		return PL_DTA_SHORT;
	verdict = get_body_published(c, r);
	if (verdict == PL_DTA_OK && pl_cursor_left(c) > 0)
		return PL_DTA_TRAILING;
	return verdict;
}

static enum pl_dta_verdict next_pathline(struct pl_cursor *c, struct pl_dta_report *r)
{
	struct pl_cursor body;
	uint8_t flags;
	uint16_t bytes;

	pl_cursor_skip(c, 1);
	r->op = pl_get_u8(c);
	flags = pl_get_u8(c);
	r->copies = pl_get_u8(c);
	r->store = pl_get_be16(c);
	bytes = pl_get_be16(c);
	r->seq = pl_get_be32(c);
	if (c->short_read)
		return PL_DTA_SHORT;
	get_flags(r, flags);
	body = pl_cursor_split(c, bytes);
	return body.short_read ? PL_DTA_SHORT : get_body(&body, r);
}

enum pl_dta_verdict pl_dta_next(
	struct pl_cursor *c, enum pl_dta_form form, struct pl_dta_report *ret)
{
	const uint8_t *first = pl_cursor_peek(c, 1);
	enum pl_dta_verdict verdict;

	*ret = (struct pl_dta_report){ .form = form };
	if (first != NULL && *first == PL_DTA_MAGIC)
		ret->form = PL_DTA_PATHLINE;
	if (first == NULL)
		verdict = PL_DTA_SHORT;
	else if (ret->form == PL_DTA_PATHLINE && *first != PL_DTA_MAGIC)
		verdict = PL_DTA_OPCODE;
	else if (ret->form == PL_DTA_PATHLINE)
		verdict = next_pathline(c, ret);
	else
		verdict = next_published(c, ret);
	if (verdict == PL_DTA_OK)
		verdict = check(ret);
	if (verdict != PL_DTA_OK)
		pl_cursor_fail(c);
	return verdict;
}

enum pl_dta_verdict pl_dta_nack_read(struct pl_cursor *c, struct pl_dta_nack *ret)
{
	const uint8_t *first = pl_cursor_peek(c, 1);
	uint16_t body_bytes;
	uint8_t flags;

	*ret = (struct pl_dta_nack){ .form = PL_DTA_TRACKING };
	/* The first byte of a NACK of two bytes is a number, and may equal the magic. */
	if (first != NULL && *first == PL_DTA_MAGIC && pl_cursor_left(c) != 2) {
		struct pl_dta_report r = { .form = PL_DTA_PATHLINE };

		ret->form = PL_DTA_PATHLINE;
		ret->answer = pl_cursor_left(c) > PL_DTA_FLAGS_AT &&
			      (first[PL_DTA_FLAGS_AT] & PL_DTA_FLAG_ASKS) != 0;
		next_pathline(c, &r);
		ret->last = r.seq;
		if (c->short_read)
			return PL_DTA_SHORT;
		body_bytes = pl_be16(first + PL_DTA_BODY_BYTES_AT);
		ret->tells_lost = body_bytes >= NACK_LOST_BYTES;
		ret->tells_refused = body_bytes >= NACK_REFUSED_BYTES;
		if (ret->tells_lost)
			ret->lost = pl_be32(first + PL_DTA_HEADER_BYTES);
		if (ret->tells_refused)
			ret->refused = pl_be32(first + PL_DTA_HEADER_BYTES + NACK_LOST_BYTES);
		return r.op == PL_DTA_NACK ? PL_DTA_OK : PL_DTA_OPCODE;
	}
	ret->last = pl_get_u8(c);
	flags = pl_get_u8(c);
	if (c->short_read)
		return PL_DTA_SHORT;
	if (pl_cursor_left(c) > 0)
		return PL_DTA_TRAILING;
	return (flags & FLAG_NACK) != 0 ? PL_DTA_OK : PL_DTA_OPCODE;
}

/* ---- writing ---- */

static uint8_t flags_of(const struct pl_dta_report *r)
{
	return (uint8_t)((r->immediate ? FLAG_IMMEDIATE : 0) | (r->sequenced ? FLAG_SEQUENCED : 0) |
			 (r->asks ? PL_DTA_FLAG_ASKS : 0));
}

/* Returns true when the report's published form can express it. */
static bool published_can(const struct pl_dta_report *r)
{
	if (r->store != 0 || r->path_length != 0 || r->op == PL_DTA_SKETCH || r->asks)
		return false;
	if (r->op != PL_DTA_APPEND && r->key_bytes != 4)
		return false;
	if ((r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_INCREMENT) != (r->copies != 0))
		return false;
	if (r->form == PL_DTA_PLAIN)
		return !r->sequenced && r->seq == 0;
	return r->seq <= UINT8_MAX;
}

static void put_published(struct pl_build *b, const struct pl_dta_report *r)
{
	pl_put_u8(b, (uint8_t)r->op);
	if (r->form == PL_DTA_TRACKING)
		pl_put_u8(b, (uint8_t)r->seq);
	pl_put_u8(b, flags_of(r));
	switch (r->op) {
	case PL_DTA_KEY_WRITE:
		pl_put_u8(b, r->copies);
		pl_put(b, r->key, 4);
		pl_put(b, r->data, r->data_bytes);
		break;
	case PL_DTA_APPEND:
		pl_put_be32(b, r->list);
		pl_put(b, r->data, r->data_bytes);
		break;
	case PL_DTA_INCREMENT:
		pl_put_u8(b, r->copies);
		pl_put(b, r->key, 4);
		pl_put_be64(b, r->increment);
		break;
	default:
		pl_put(b, r->key, 4);
		pl_put_u8(b, r->hop);
		pl_put_be32(b, r->value);
		break;
	}
}

static void put_header(struct pl_build *b, const struct pl_dta_report *r)
{
	pl_put_u8(b, PL_DTA_MAGIC);
	pl_put_u8(b, (uint8_t)r->op);
	pl_put_u8(b, flags_of(r));
	pl_put_u8(b, r->copies);
	pl_put_be16(b, r->store);
	pl_put_be16(b, 0); /* length of the body, patched later */
	pl_put_be32(b, r->seq);
}

static int put_pathline(struct pl_build *b, const struct pl_dta_report *r)
{
	size_t at = b->len, bytes;

	put_header(b, r);
	switch (r->op) {
	case PL_DTA_KEY_WRITE:
		pl_put_u8(b, r->key_bytes);
		pl_put(b, r->key, r->key_bytes);
		pl_put(b, r->data, r->data_bytes);
		break;
	case PL_DTA_APPEND:
		pl_put_be32(b, r->list);
		pl_put(b, r->data, r->data_bytes);
		break;
	case PL_DTA_INCREMENT:
		pl_put_be64(b, r->increment);
		pl_put(b, r->key, r->key_bytes);
		break;
	case PL_DTA_POSTCARD:
		pl_put_u8(b, r->hop);
		pl_put_u8(b, r->path_length);
		pl_put_be32(b, r->value);
		pl_put(b, r->key, r->key_bytes);
		break;
	default:
		pl_put_be32(b, r->epoch);
		pl_put_be32(b, r->first_column);
		pl_put(b, r->data, r->data_bytes);
		break;
	}
	if (b->full)
		return -ENOBUFS;
	bytes = b->len - at - PL_DTA_HEADER_BYTES;
	if (bytes > UINT16_MAX)
		return -EINVAL;
	pl_patch_be16(b, at + PL_DTA_BODY_BYTES_AT, (uint16_t)bytes);
	return 0;
}

int pl_dta_put(struct pl_build *b, const struct pl_dta_report *report)
{
	if (check(report) != PL_DTA_OK)
		return -EINVAL;
	if (report->form == PL_DTA_PATHLINE)
		return put_pathline(b, report);
	if (!published_can(report))
		return -EINVAL;
	put_published(b, report);
	return b->full ? -ENOBUFS : 0;
}

int pl_dta_nack_put(struct pl_build *b, const struct pl_dta_nack *nack)
{
	const struct pl_dta_report r = {
		.op = PL_DTA_NACK, .seq = nack->last, .asks = nack->answer
	};

	if (nack->form == PL_DTA_PATHLINE) {
		const size_t at = b->len;

		put_header(b, &r);
		if (nack->tells_lost)
			pl_put_be32(b, nack->lost);
		if (nack->tells_lost && nack->tells_refused)
			pl_put_be32(b, nack->refused);
		pl_patch_be16(b, at + PL_DTA_BODY_BYTES_AT,
			(uint16_t)(b->len - at - PL_DTA_HEADER_BYTES));
	} else {
		if (nack->form == PL_DTA_PLAIN || nack->last > UINT8_MAX)
			return -EINVAL;
		pl_put_u8(b, (uint8_t)nack->last);
		pl_put_u8(b, FLAG_NACK);
	}
	return b->full ? -ENOBUFS : 0;
}
