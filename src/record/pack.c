/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts chosen fields of a record together as bytes. */
#include "record/pack.h"

#include <errno.h>

#include "record/put.h"
#include "record/rows.h"

#define FLOW_BYTES    37u
/* Two of "[ffff:…]:65535", a comma, "/icmp6". */
#define FLOW_TEXT_MAX 104u

/* Parts of a flow, from any kind of record. */
struct flow {
	const struct pl_addr *src, *dst;
	uint16_t sport, dport;
	uint8_t proto;
	bool ports;
};

/* ---- making ---- */

static const struct pl_field *find(enum pl_record_kind kind, const char *name)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	return name[0] == '\0' ? NULL : pl_row_field(fields, n, name);
}

static int init_field(struct pl_pack_field *f, enum pl_record_kind kind, const char *name)
{
	f->field = NULL;
	f->of_path = kind == PL_KIND_HOP;
	if (strcmp(name, "flow") == 0)
		return 0;
	f->field = find(kind, name);
	if (f->field != NULL) {
		f->of_path = false;
		return 0;
	}
	if (kind == PL_KIND_HOP)
		f->field = find(PL_KIND_PATH, name);
	return f->field != NULL ? 0 : -EINVAL;
}

int pl_pack_init(struct pl_pack *ret, enum pl_record_kind kind, const char *const *names, size_t n,
	struct pl_diag *diag)
{
	*ret = (struct pl_pack){ .kind = kind };
	if (n > PL_PACK_FIELDS_MAX)
		return pl_diag_fail(diag, -EINVAL, "at most %u fields", PL_PACK_FIELDS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (init_field(&ret->fields[i], kind, names[i]) < 0)
			return pl_diag_fail(diag, -EINVAL,
				"no %s has a field \"%s\"; \"pathline help fields\" lists them",
				pl_record_kind_name(kind), names[i]);
	}
	ret->n = (unsigned int)n;
	return 0;
}

/* ---- sizes ---- */

uint32_t pl_pack_bytes(const struct pl_pack *p)
{
	uint32_t bytes = 0;

	for (unsigned int i = 0; i < p->n; i++)
		bytes += p->fields[i].field == NULL ? FLOW_BYTES
						    : pl_field_width(p->fields[i].field);
	return bytes;
}

uint32_t pl_pack_text_max(const struct pl_pack *p)
{
	uint32_t bytes = 0;

	for (unsigned int i = 0; i < p->n; i++) {
		const struct pl_field *f = p->fields[i].field;
		unsigned int w = f == NULL ? 0 : pl_field_width(f);

		/* A word stands in one byte; no number has more than 20 digits. */
		bytes += i > 0;
		bytes += f == NULL ? FLOW_TEXT_MAX
			 : w == 16 ? PL_ADDR_TEXT_MAX - 1
			 : w == 2  ? 5
				   : 20;
	}
	return bytes;
}

bool pl_pack_is_number(const struct pl_pack *p, unsigned int bits)
{
	return p->n == 1 && p->fields[0].field != NULL &&
	       p->fields[0].field->form != PL_FORM_ADDR &&
	       pl_field_width(p->fields[0].field) * 8 <= bits;
}

bool pl_pack_has_flags(const struct pl_pack *p)
{
	for (unsigned int i = 0; i < p->n; i++) {
		if (p->fields[i].field != NULL && p->fields[i].field->form == PL_FORM_FLAGS)
			return true;
	}
	return false;
}

/* ---- values ---- */

static const void *record_of(
	const struct pl_pack *p, const struct pl_pack_field *f, const struct pl_pack_record *r)
{
	return p->kind == PL_KIND_HOP && f->of_path ? r->path : r->record;
}

static bool has(
	const struct pl_pack *p, const struct pl_pack_field *f, const struct pl_pack_record *r)
{
	const void *record = record_of(p, f, r);
	uint32_t present = p->kind == PL_KIND_EVENT ? ((const struct pl_event *)record)->present
			   : p->kind == PL_KIND_HOP && !f->of_path
				   ? ((const struct pl_hop *)record)->present
				   : ((const struct pl_path *)record)->present;

	return put_has(f->field, record, present);
}

static bool flow_of(const struct pl_pack *p, const struct pl_pack_record *r, struct flow *ret)
{
	if (p->kind == PL_KIND_EVENT) {
		const struct pl_event *e = r->record;

		*ret = (struct flow){ &e->src, &e->dst, e->sport, e->dport, e->proto,
			(e->present & PL_EVENT_HAS_sport) != 0 };
		return (e->present & PL_EVENT_HAS_src) != 0;
	}
	const struct pl_path *path = p->kind == PL_KIND_HOP ? r->path : r->record;

	*ret = (struct flow){ &path->src, &path->dst, path->sport, path->dport, path->proto,
		(path->present & PL_PATH_HAS_sport) != 0 };
	return (path->present & PL_PATH_HAS_src) != 0;
}

/* ---- packed ---- */

static uint8_t *pack_number(uint8_t *to, uint64_t v, unsigned int bytes, bool big)
{
	for (unsigned int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(v >> 8 * (big ? bytes - 1 - i : i));
	return to + bytes;
}

static uint8_t *pack_flow(uint8_t *to, const struct flow *flow, bool big)
{
	memcpy(to, flow->src->b, 16);
	memcpy(to + 16, flow->dst->b, 16);
	to = pack_number(to + 32, flow->sport, 2, big);
	to = pack_number(to, flow->dport, 2, big);
	*to = flow->proto;
	return to + 1;
}

bool pl_pack_put(
	const struct pl_pack *p, const struct pl_pack_record *r, bool big_endian, uint8_t *ret)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const struct pl_pack_field *f = &p->fields[i];
		struct flow flow;

		if (f->field == NULL) {
			if (!flow_of(p, r, &flow) || !flow.ports)
				return false;
			ret = pack_flow(ret, &flow, big_endian);
			continue;
		}
		if (!has(p, f, r))
			return false;
		if (f->field->form == PL_FORM_ADDR) {
			memcpy(ret, (const uint8_t *)record_of(p, f, r) + f->field->offset, 16);
			ret += 16;
		} else {
			ret = pack_number(ret, put_load(f->field, record_of(p, f, r)),
				pl_field_width(f->field), big_endian);
		}
	}
	return true;
}

bool pl_pack_number(const struct pl_pack *p, const struct pl_pack_record *r, uint64_t *ret)
{
	const struct pl_pack_field *f = &p->fields[0];

	if (!has(p, f, r))
		return false;
	*ret = put_load(f->field, record_of(p, f, r));
	return f->field->form != PL_FORM_S64 || (int64_t)*ret >= 0;
}

/* ---- text ---- */

static char *put_endpoint(char *to, const struct pl_addr *addr, bool has_port, uint16_t port)
{
	const bool brackets = has_port && !pl_addr_is_v4(addr);

	if (brackets)
		*to++ = '[';
	to = put_addr(to, addr);
	if (brackets)
		*to++ = ']';
	if (!has_port)
		return to;
	*to++ = ':';
	return put_u64(to, port);
}

static char *put_protocol(char *to, uint8_t proto)
{
	switch (proto) {
	case 1:
		return put_str(to, "icmp");
	case 6:
		return put_str(to, "tcp");
	case 17:
		return put_str(to, "udp");
	case 58:
		return put_str(to, "icmp6");
	case 132:
		return put_str(to, "sctp");
	default:
		return put_u64(to, proto);
	}
}

static char *put_flow(char *to, const struct flow *flow)
{
	to = put_endpoint(to, flow->src, flow->ports, flow->sport);
	*to++ = ',';
	to = put_endpoint(to, flow->dst, flow->ports, flow->dport);
	*to++ = '/';
	return put_protocol(to, flow->proto);
}

size_t pl_pack_text(const struct pl_pack *p, const struct pl_pack_record *r, char *ret)
{
	/* Numbers are written in whole words, a little beyond their end. */
	char text[PL_PACK_BYTES_MAX + PUT_VALUE_MAX], *to = text;
	size_t n;

	for (unsigned int i = 0; i < p->n; i++) {
		const struct pl_pack_field *f = &p->fields[i];
		struct flow flow;

		if (i > 0)
			*to++ = '/';
		if (f->field == NULL) {
			if (!flow_of(p, r, &flow))
				return 0;
			to = put_flow(to, &flow);
			continue;
		}
		if (!has(p, f, r))
			return 0;
		to = put_value(to, f->field, record_of(p, f, r), false);
	}
	n = (size_t)(to - text);
	memcpy(ret, text, n);
	return n;
}
