/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes Community IDs; the hash is GnuTLS's. */
#include "record/community_id.h"

#include <assert.h>
#include <gnutls/crypto.h>
#include <string.h>

#include "record/icmp.h"

enum { TCP = 6, UDP = 17, SCTP = 132, SHA1_BYTES = 20 };

struct tuple {
	const struct pl_addr *src, *dst;
	uint16_t sport, dport;
	uint8_t proto;
};

bool pl_community_id_of_kind(enum pl_flat_kind kind)
{
	kind = pl_flat_short(kind);
	return kind == PL_FLAT_PKT64 || kind == PL_FLAT_FLOW128;
}

static bool has_ports(uint8_t proto)
{
	return proto == TCP || proto == UDP || proto == SCTP;
}

/* The types of a message and of its answer take the place of ports. False: nothing answers it, type
 * and code do, and its direction counts. */
static bool pair_types(struct tuple *t)
{
	const int answer = pl_icmp_answer(t->proto, t->sport);

	if (answer == PL_ICMP_NO_ANSWER)
		return false;
	t->dport = (uint16_t)answer;
	return true;
}

static bool is_ordered(const struct tuple *t)
{
	const int differ = memcmp(t->src->b, t->dst->b, sizeof(t->src->b));

	return differ < 0 || (differ == 0 && t->sport <= t->dport);
}

static uint8_t *put_addr(uint8_t *p, const struct pl_addr *addr, bool v4)
{
	const size_t skipped = v4 ? 12 : 0, n = sizeof(addr->b) - skipped;

	memcpy(p, addr->b + skipped, n);
	return p + n;
}

static uint8_t *put_port(uint8_t *p, uint16_t port)
{
	*p++ = (uint8_t)(port >> 8);
	*p++ = (uint8_t)port;
	return p;
}

/* 20 bytes as base64 (RFC 4648 4). */
static void put_base64(char *to, const uint8_t *from)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (unsigned int i = 0; i < SHA1_BYTES; i += 3) {
		const uint32_t third = i + 2 < SHA1_BYTES ? from[i + 2] : 0;
		const uint32_t v = (uint32_t)from[i] << 16 | (uint32_t)from[i + 1] << 8 | third;

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = digits[v >> 6 & 63];
		*to++ = i + 2 < SHA1_BYTES ? digits[v & 63] : '=';
	}
	*to = '\0';
}

static void make(char ret[PL_COMMUNITY_ID_MAX], struct tuple t)
{
	const bool icmp = t.proto == PL_ICMP_PROTO || t.proto == PL_ICMP6_PROTO;
	const bool ports = icmp || has_ports(t.proto);
	const bool v4 = pl_addr_is_v4(t.src) && pl_addr_is_v4(t.dst);
	uint8_t bytes[2 + 2 * 16 + 2 + 4] = { 0 }, hash[SHA1_BYTES], *p = bytes + 2;
	int r;

	if (!ports)
		t.sport = t.dport = 0;
	if ((!icmp || pair_types(&t)) && !is_ordered(&t))
		t = (struct tuple){ t.dst, t.src, t.dport, t.sport, t.proto };
	p = put_addr(put_addr(p, t.src, v4), t.dst, v4);
	*p++ = t.proto;
	*p++ = 0;
	if (ports)
		p = put_port(put_port(p, t.sport), t.dport);
	r = gnutls_hash_fast(GNUTLS_DIG_SHA1, bytes, (size_t)(p - bytes), hash);
	assert(r == 0);
	(void)r;
	memcpy(ret, "1:", 2);
	put_base64(ret + 2, hash);
}

/* True when the ports are missing. */
static bool lacks_ports(const struct tuple *t, uint16_t obs)
{
	return t->sport == 0 && t->dport == 0 && (obs & (PL_OBS_TRUNCATED | PL_OBS_FRAGMENT)) != 0;
}

bool pl_community_id(char ret[PL_COMMUNITY_ID_MAX], enum pl_flat_kind kind, const void *record)
{
	const struct pl_flow128 *f = record;
	const struct pl_pkt64 *p = record;
	const bool flow = pl_flat_short(kind) == PL_FLAT_FLOW128;
	const struct tuple t =
		flow ? (struct tuple){ &f->src, &f->dst, f->sport, f->dport, f->proto }
		     : (struct tuple){ &p->src, &p->dst, p->sport, p->dport, p->proto };

	assert(pl_community_id_of_kind(kind));
	if (lacks_ports(&t, flow ? f->obs : p->obs))
		return false;
	make(ret, t);
	return true;
}

void pl_community_id_json(struct pl_buf *buf, enum pl_flat_kind kind, const void *record)
{
	char id[PL_COMMUNITY_ID_MAX];

	if (buf->failed || !pl_community_id(id, kind, record))
		return;
	assert(buf->len > 0 && buf->data[buf->len - 1] == '}');
	buf->len--;
	pl_buf_printf(buf, ",\"community_id\":\"%s\"}", id);
}
