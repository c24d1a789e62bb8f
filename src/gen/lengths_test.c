/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lengths that devices do not raise, or count by another version's rule: in good packets of every
 * carrier and version each length is made wrong by a little, and whatever is then read must be
 * something that the good packet has too. Nodes, ports and path ids are never made of bytes that
 * another length says are something else.
 *
 * Some lengths stand alone: no other length of the packet tells the damaged one from a right one
 * (`stands_alone`). Of those nothing can be asked, here or of a decoder.
 */
#include "base/rng.h"
#include "base/test.h"
#include "decode/decode.h"
#include "gen/gen.h"
#include "wire/build.h"
#include "wire/report.h"

static struct pl_batch batch;
static struct pl_record_batch out;
static char why[256]; /* the last thing that was wrong */

enum kind {
	IP_LENGTH,
	UDP_LENGTH,
	TCP_OFFSET,
	GENEVE_LENGTH,
	GENEVE_OPTION,
	SHIM_LENGTH,
	DESTINATION_LENGTH, /* of a shim of the destination type */
	HOP_WORDS,          /* Hop ML; v0.5: InsCnt */
	HOP_COUNT,          /* v0.5 */
	REPORT_LENGTH,
	MD_LENGTH,
	TLV_LENGTH,
	OPTION_LENGTH,    /* of an option in an IPv6 extension header */
	NODE_LENGTH,      /* IOAM NodeLen */
	REMAINING_LENGTH, /* IOAM RemainingLen */
	KINDS
};

static const char *const kind_names[KINDS] = { "IP length", "UDP length", "TCP data offset",
	"Geneve length", "Geneve option length", "shim length", "destination shim length",
	"hop words", "hop count", "report length", "metadata length", "TLV length", "option length",
	"NodeLen", "RemainingLen" };

/* `bits` bits of the `bytes` bytes at `at`, above `shift` others. */
struct length {
	enum kind kind;
	unsigned int at, bytes, shift, bits;
};

#define LENGTHS_MAX 96
#define DELTA_MAX   8

struct places {
	struct length at[LENGTHS_MAX];
	unsigned int n;
	/* of the first INT header: what follows can be checked, and where the packet's bytes end */
	unsigned int shim, end;
	bool checked;
};

static void add(struct places *ret, enum kind kind, const uint8_t *data, const uint8_t *p,
	unsigned int bytes, unsigned int shift, unsigned int bits)
{
	if (ret->n < LENGTHS_MAX)
		ret->at[ret->n++] =
			(struct length){ kind, (unsigned int)(p - data), bytes, shift, bits };
}

static unsigned int get(const uint8_t *data, const struct length *l)
{
	unsigned int v = l->bytes == 2 ? pl_be16(data + l->at) : data[l->at];

	return v >> l->shift & ((1u << l->bits) - 1);
}

static void set(uint8_t *data, const struct length *l, unsigned int value)
{
	unsigned int mask = ((1u << l->bits) - 1) << l->shift;
	unsigned int v = l->bytes == 2 ? pl_be16(data + l->at) : data[l->at];

	v = (v & ~mask) | value << l->shift;
	if (l->bytes == 2)
		data[l->at] = (uint8_t)(v >> 8);
	data[l->at + l->bytes - 1] = (uint8_t)v;
}

/* ---- where lengths are, in good packets ---- */

static void find_md(struct places *ret, const uint8_t *data, const uint8_t *md)
{
	if (md[0] >> 4 == 0) {
		add(ret, HOP_WORDS, data, md + 1, 1, 0, 5);
		add(ret, HOP_COUNT, data, md + 3, 1, 0, 8);
	} else {
		add(ret, HOP_WORDS, data, md + 2, 1, 0, 5);
	}
}

/* A shim at c, if there is one; *c moves behind the stack. */
static bool find_int(struct places *ret, const uint8_t *data, struct pl_cursor *c,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int *in)
{
	static struct pl_int_cache cache;
	struct pl_cursor at = *c;

	memset(&cache, 0, sizeof(cache));
	if (pl_int_parse(in, c, carrier, hints, &cache, false) != PL_V_OK)
		return false;
	for (;;) {
		const uint8_t *s = pl_cursor_take(&at, 4);

		if (s == NULL)
			return false;
		if (s[0] == 2) {
			add(ret, DESTINATION_LENGTH, data, s + 2, 1, 0, 8);
			pl_cursor_skip(&at, 4 * (size_t)s[2] - 4);
		} else if (s[0] >> 4 == 2) {
			add(ret, DESTINATION_LENGTH, data, s + 1, 1, 0, 8);
			pl_cursor_skip(&at, 4 * (size_t)s[1]);
		} else {
			if (ret->shim == 0)
				ret->shim = (unsigned int)(s - data);
			add(ret, SHIM_LENGTH, data, s + (s[0] < 16 ? 2 : 1), 1, 0, 8);
			find_md(ret, data, s + 4);
			return true;
		}
	}
}

static void find_original(
	struct places *ret, const uint8_t *data, uint8_t proto, struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, 20);

	if (proto == PL_IP_UDP && pl_cursor_left(&c) >= 8)
		add(ret, UDP_LENGTH, data, c.pos + 4, 2, 0, 16);
	else if (proto == PL_IP_TCP && p != NULL)
		add(ret, TCP_OFFSET, data, p + 12, 1, 4, 4);
}

static void find_geneve(struct places *ret, const uint8_t *data, struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_take(&c, 8);
	struct pl_cursor options;

	if (p == NULL)
		return;
	options = pl_cursor_split(&c, 4 * (size_t)(p[0] & 0x3f));
	add(ret, GENEVE_LENGTH, data, p, 1, 0, 6);
	while (pl_cursor_left(&options) > 0) {
		const uint8_t *o = pl_cursor_take(&options, 4);

		if (o == NULL)
			return;
		add(ret, GENEVE_OPTION, data, o + 3, 1, 0, 5);
		if ((o[2] & 0x7f) != 2) {
			ret->shim = (unsigned int)(o - data);
			find_md(ret, data, o + 4);
		}
		pl_cursor_skip(&options, 4 * (size_t)(o[3] & 0x1f));
	}
}

/* Options of IPv6 extension headers, those of IOAM among them. */
static void find_options(struct places *ret, const uint8_t *data, const uint8_t *ip)
{
	uint8_t proto = ip[6];
	const uint8_t *p = ip + 40;

	while (proto == PL_IP_HOPOPTS || proto == PL_IP_DSTOPTS) {
		const unsigned int size = (p[1] + 1u) * 8;

		for (unsigned int i = 2; i + 1 < size;) {
			if (p[i] == 0) {
				i++;
				continue;
			}
			add(ret, OPTION_LENGTH, data, p + i + 1, 1, 0, 8);
			if (p[i] == 0x31 && p[i + 3] <= 1) {
				add(ret, NODE_LENGTH, data, p + i + 6, 1, 3, 5);
				add(ret, REMAINING_LENGTH, data, p + i + 7, 1, 0, 7);
			}
			i += 2u + p[i + 1];
		}
		proto = p[0];
		p += size;
	}
}

static void find_packet(struct places *ret, const uint8_t *data, struct pl_cursor c,
	enum pl_link link, const struct pl_gen_cfg *cfg, const struct pl_int_hints *hints)
{
	for (unsigned int level = 0; level < 4; level++) {
		struct pl_layers l;
		struct pl_tunnel t;
		struct pl_int in;
		bool is_int;

		if (pl_layers_walk(&l, c, link, true) != PL_V_OK || (l.flags & PL_LAYERS_FRAGMENT))
			return;
		ret->end = (unsigned int)(l.transport.end - data);
		add(ret, IP_LENGTH, data, l.network + (l.ip_version == 4 ? 2 : 4), 2, 0, 16);
		if (l.ip_version == 6)
			find_options(ret, data, l.network);
		if (l.flow.proto == PL_IP_UDP)
			add(ret, UDP_LENGTH, data, l.transport.pos + 4, 2, 0, 16);
		if (l.flow.proto == PL_IP_TCP)
			add(ret, TCP_OFFSET, data, l.transport.pos + 12, 1, 4, 4);
		if (pl_tunnel_open(&t, &l, PL_VXLAN_PORTS) != PL_V_OK)
			return;
		c = t.inner;
		link = t.inner_link;
		switch (t.kind) {
		case PL_TUNNEL_NONE: {
			struct pl_cursor at = l.payload, before = l.transport;
			const uint8_t *head = pl_cursor_peek(&at, 8);

			pl_cursor_skip(&before, l.flow.proto == PL_IP_TCP ? 20 : 8);
			if (head != NULL && pl_be64(head) == UINT64_C(0xaaaaaaaabbbbbbbb)) {
				pl_cursor_skip(&at, 8);
				before = at;
			}
			if (cfg->mode != PL_GEN_XD &&
				(find_int(ret, data, &before, PL_INT_OVER_L4, hints, &in) ||
					find_int(ret, data, &at, PL_INT_OVER_L4, hints, &in))) {
				ret->checked = in.version == PL_INT_V05 || in.npt == 2;
				if (in.npt == 2)
					find_original(ret, data, in.proto, in.rest);
			}
			return;
		}
		case PL_TUNNEL_GENEVE:
			find_geneve(ret, data, l.payload);
			break;
		case PL_TUNNEL_VXLAN_GPE:
		case PL_TUNNEL_GRE:
			ret->checked = true;
			is_int = t.kind == PL_TUNNEL_GRE
					 ? t.next == 0x88b5
					 : t.next == PL_GPE_INT_05 || t.next == PL_GPE_INT_10 ||
						   t.next == PL_GPE_INT_20;
			while (is_int) {
				if (!find_int(ret, data, &c,
					    t.kind == PL_TUNNEL_GRE ? PL_INT_OVER_GRE
								    : PL_INT_OVER_GPE,
					    hints, &in))
					return;
				is_int = t.kind != PL_TUNNEL_GRE && in.next > 4;
				link = t.kind == PL_TUNNEL_GRE ? pl_link_of_ethertype(in.next)
							       : pl_link_of_gpe((uint8_t)in.next);
			}
			break;
		default:
			break;
		}
		if (link == PL_LINK_UNKNOWN)
			return;
	}
}

static void find_report(struct places *ret, const uint8_t *data, struct pl_cursor c,
	const struct pl_gen_cfg *cfg, const struct pl_int_hints *hints)
{
	struct pl_report_iter it;
	struct pl_report r;
	enum pl_verdict v;

	if (cfg->report == PL_GEN_REPORT_V10)
		add(ret, REPORT_LENGTH, data, c.pos, 1, 0, 4);
	if (pl_report_begin(&it, c, -1, false) != PL_V_OK)
		return;
	for (;;) {
		const uint8_t *p = it.c.pos;

		if (!pl_report_next(&it, &r, &v))
			return;
		if (cfg->report == PL_GEN_REPORT_V20) {
			const unsigned int fixed = p[0] >> 4 == 1 ? 12 + 4u * p[2] : 4;

			add(ret, REPORT_LENGTH, data, p + 1, 1, 0, 8);
			if (p[0] >> 4 == 1)
				add(ret, MD_LENGTH, data, p + 2, 1, 0, 8);
			if ((p[0] & 15) == 1) {
				add(ret, TLV_LENGTH, data, p + fixed + 1, 1, 0, 8);
				add(ret, TLV_LENGTH, data, p + fixed + 5 + 4u * p[fixed + 1], 1, 0,
					8);
			}
		}
		if (r.inner_link != PL_LINK_UNKNOWN)
			find_packet(ret, data, r.inner, r.inner_link, cfg, hints);
	}
}

static void find_lengths(struct places *ret, const struct pl_packet *pkt,
	const struct pl_gen_cfg *cfg, const struct pl_int_hints *hints)
{
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);
	struct pl_layers l;

	memset(ret, 0, sizeof(*ret));
	if (cfg->report == PL_GEN_REPORT_NONE) {
		find_packet(ret, pkt->data, c, (enum pl_link)pkt->link, cfg, hints);
		return;
	}
	if (pl_layers_walk(&l, c, (enum pl_link)pkt->link, false) != PL_V_OK)
		return;
	add(ret, IP_LENGTH, pkt->data, l.network + (l.ip_version == 4 ? 2 : 4), 2, 0, 16);
	add(ret, UDP_LENGTH, pkt->data, l.transport.pos + 4, 2, 0, 16);
	find_report(ret, pkt->data, l.payload, cfg, hints);
}

/* ---- what may be read ---- */

#define SEEN_MAX 4096
struct seen {
	uint64_t v[SEEN_MAX];
	unsigned int n;
};

static void see(struct seen *s, uint64_t v)
{
	if (s->n < SEEN_MAX)
		s->v[s->n++] = v;
}

static bool has_seen(const struct seen *s, uint64_t v)
{
	for (unsigned int i = 0; i < s->n; i++) {
		if (s->v[i] == v)
			return true;
	}
	return false;
}

static struct {
	struct seen nodes, ports, ids, flows;
} good;

/* Ports of the levels around the flow. */
static void see_levels(struct pl_cursor c, enum pl_link link)
{
	for (unsigned int level = 0; level < 8; level++) {
		struct pl_layers l;
		struct pl_tunnel t;

		if (pl_layers_walk(&l, c, link, true) != PL_V_OK)
			return;
		see(&good.flows, (uint64_t)l.flow.sport << 16 | l.flow.dport);
		if (pl_tunnel_open(&t, &l, PL_VXLAN_PORTS) != PL_V_OK ||
			t.inner_link == PL_LINK_UNKNOWN)
			return;
		c = t.inner;
		link = t.inner_link;
	}
}

static void see_good(const struct pl_packet *pkt, const struct pl_gen_cfg *cfg)
{
	struct pl_cursor c = pl_cursor(pkt->data, pkt->len);
	struct pl_layers l;

	memset(&good, 0, sizeof(good));
	for (uint32_t i = 0; i < out.n_paths; i++) {
		const struct pl_path *p = &out.paths[i];

		see(&good.nodes, p->node);
		see(&good.flows, (uint64_t)p->sport << 16 | p->dport);
		see(&good.ids, p->path_id);
		for (uint32_t k = 0; k < p->hop_count; k++) {
			const struct pl_hop *h = &out.hops[out.first_hop[i] + k];

			see(&good.nodes, h->node);
			see(&good.ports, h->ingress_port);
			see(&good.ports, h->egress_port);
			see(&good.ports, h->ingress_port2);
			see(&good.ports, h->egress_port2);
		}
	}
	see(&good.ids, 0);
	see(&good.ports, 0);
	see(&good.flows, 0);
	if (pl_layers_walk(&l, c, (enum pl_link)pkt->link, true) != PL_V_OK)
		return;
	if (cfg->report != PL_GEN_REPORT_NONE) {
		struct pl_report_iter it;
		struct pl_report r;
		enum pl_verdict v;

		if (pl_report_begin(&it, l.payload, -1, false) != PL_V_OK)
			return;
		while (pl_report_next(&it, &r, &v))
			see_levels(r.inner, r.inner_link);
	} else {
		see_levels(c, (enum pl_link)pkt->link);
	}
}

/* Says in `why` what was invented; false: nothing. */
static bool invents(void)
{
	for (uint32_t i = 0; i < out.n_paths; i++) {
		const struct pl_path *p = &out.paths[i];
		const uint64_t flow = (uint64_t)p->sport << 16 | p->dport;

		if ((p->present & PL_PATH_HAS_sport) != 0 && !has_seen(&good.flows, flow)) {
			snprintf(why, sizeof(why), "ports %u > %u", p->sport, p->dport);
			return true;
		}
		for (uint32_t k = 0; k < p->hop_count; k++) {
			const struct pl_hop *h = &out.hops[out.first_hop[i] + k];

			if (!has_seen(&good.nodes, h->node)) {
				snprintf(why, sizeof(why), "node %#" PRIx64, h->node);
				return true;
			}
			if (!has_seen(&good.ports, h->ingress_port) ||
				!has_seen(&good.ports, h->egress_port) ||
				!has_seen(&good.ports, h->ingress_port2) ||
				!has_seen(&good.ports, h->egress_port2)) {
				snprintf(why, sizeof(why), "a port of node %#" PRIx64, h->node);
				return true;
			}
		}
		if (!has_seen(&good.ids, p->path_id)) {
			snprintf(why, sizeof(why),
				"path id %#" PRIx64 " of %u hops, mode %u, flags %#x, %u of %u",
				p->path_id, p->hop_count, p->mode, p->flags, i, out.n_paths);
			return true;
		}
	}
	return false;
}

/* Whether the damaged length is as good as the right one: nothing else in the packet tells how long
 * the stack is, and it is still a stack of whole hops within the packet. */
static bool stands_alone(const struct places *places, const struct length *l,
	const struct pl_gen_cfg *cfg, const uint8_t *data, int delta)
{
	const uint8_t *md = data + places->shim + 4;
	const unsigned int words = md[2] & 0x1f;

	switch (l->kind) {
	case DESTINATION_LENGTH:
		/* In a chain of shims it may reach to the next one. */
		return cfg->carrier == PL_GEN_UDP || cfg->carrier == PL_GEN_TCP ||
		       cfg->gpe_chain > 0;
	case SHIM_LENGTH:
		/* MX: as many words as one node's values are read as those. */
		return !places->checked &&
		       (cfg->mode == PL_GEN_MX || (words != 0 && delta % (int)words == 0));
	case GENEVE_OPTION:
		return l->at < places->shim || cfg->mode == PL_GEN_MX ||
		       (words != 0 && delta % (int)words == 0);
	case HOP_WORDS:
		/* How long the words of a domain are that nobody knows. */
		return cfg->ds_words != 0;
	case REMAINING_LENGTH:
		/* Free room of whole nodes. */
		return true;
	default:
		return false;
	}
}

static unsigned int tried[KINDS], read_well[KINDS], alone[KINDS], wrong[KINDS];

static void damage(struct pl_decode *d, const struct pl_packet *pkt, const struct places *places,
	const struct pl_gen_cfg *cfg, const char *form)
{
	static uint8_t copy[PL_GEN_PACKET_MAX];
	static struct pl_batch one;

	for (unsigned int i = 0; i < places->n; i++) {
		const struct length *l = &places->at[i];
		const unsigned int is = get(pkt->data, l);

		for (int delta = -DELTA_MAX; delta <= DELTA_MAX; delta++) {
			const int value = (int)is + delta;

			if (delta == 0 || value < 0 || value >= 1 << l->bits)
				continue;
			memcpy(copy, pkt->data, pkt->len);
			set(copy, l, (unsigned int)value);
			one.n = 1;
			one.pkts[0] = *pkt;
			one.pkts[0].data = copy;
			pl_record_batch_clear(&out);
			pl_decode_batch(d, &one, &out);
			tried[l->kind]++;
			read_well[l->kind] += pl_decode_outcomes(d)[0].verdict == PL_V_OK;
			if (!invents())
				continue;
			if (stands_alone(places, l, cfg, pkt->data, delta)) {
				alone[l->kind]++;
				continue;
			}
			if (wrong[l->kind]++ < 5)
				printf("# %s at %u: %u read as %d: %s; %s: %s\n",
					kind_names[l->kind], l->at, is, value, why,
					pl_verdict_name(
						(enum pl_verdict)pl_decode_outcomes(d)[0].verdict),
					form);
		}
	}
}

/* The payload is of zeros; anything may be there. */
static void fill_payload(
	uint8_t *data, uint32_t len, const struct pl_gen_cfg *cfg, struct pl_rng *rng)
{
	for (uint32_t i = 0; i < cfg->payload && i < len; i++)
		data[len - 1 - i] = (uint8_t)pl_rng_u64(rng);
}

static uint32_t pick(struct pl_rng *rng, uint32_t n)
{
	return (uint32_t)(pl_rng_u64(rng) >> 33) % n;
}

static void random_form(struct pl_gen_cfg *cfg, struct pl_rng *rng)
{
	static const uint16_t bitmaps[] = { 0x8000, 0xc000, 0xfc00, 0xff00, 0xfd00, 0xff80, 0xa000,
		0xd000 };

	*cfg = (struct pl_gen_cfg){
		.seed = pl_rng_u64(rng),
		.flows = 5,
		.count = 3,
		.report = (enum pl_gen_report)(1 + pick(rng, 4)),
		.version = (enum pl_gen_version)(1 + pick(rng, 3)),
		.mode = pick(rng, 6) == 0 ? (enum pl_gen_mode)(1 + pick(rng, 3)) : PL_GEN_MD,
		.carrier = (enum pl_gen_carrier)(1 + pick(rng, 5)),
		.inner = (enum pl_gen_inner)(1 + pick(rng, 6)),
		.sink = (enum pl_gen_sink)(1 + pick(rng, 3)),
		.bitmap = bitmaps[pick(rng, 8)],
		.npt = (uint8_t)pick(rng, 3),
		.outer_ip = pick(rng, 3) == 0 ? 6 : 4,
		.inner_ip = pick(rng, 3) == 0 ? 6 : 4,
		.tcp_options = (uint8_t)(pick(rng, 3) == 0 ? pick(rng, 11) : 0),
		.tcp_before_options = pick(rng, 4) == 0,
		.payload = (uint16_t)(1 + pick(rng, 60)),
		.reports_per_datagram = (uint8_t)(pick(rng, 3) == 0 ? 1 + pick(rng, 4) : 0),
		.inner_tlv = pick(rng, 6) == 0,
		.ds_words = (uint8_t)(pick(rng, 8) == 0 ? 1 + pick(rng, 2) : 0),
		.gpe_chain = (uint8_t)(pick(rng, 6) == 0),
		.destination_shim = pick(rng, 8) == 0,
	};
	if (cfg->npt != 0)
		cfg->announce = PL_GEN_ANNOUNCE_PORT;
	if (pick(rng, 12) == 0) {
		cfg->inner_ip = cfg->outer_ip = 6;
		cfg->ioam.options = (uint8_t)(1 + pick(rng, 31));
		cfg->ioam.destination = (uint8_t)pick(rng, 32);
	}
}

/* One that expects INT wherever it is announced, so that INT which is not read is no packet without
 * INT. */
static struct pl_decode *decoder(const struct pl_gen_cfg *cfg)
{
	struct pl_profile profile = {
		.hints = { .dialect = (uint8_t)cfg->dialect },
		.tcp_placement = cfg->tcp_before_options ? PL_TCP_BEFORE_OPTIONS : PL_TCP_AUTO,
		.dscp_set = true,
		.dscp_value = 0x17,
		.dscp_mask = 0x3f,
		.int_port = 33122,
	};
	struct pl_decode_options options = {
		.profiles = &profile,
		.n_profiles = 1,
		.gre_int_ethertype = 0x88b5,
		.report_ports = { 32766 },
		.n_report_ports = 1,
		.max_exporters = 256,
		.max_paths = 1024,
	};
	struct pl_decode *d = NULL;

	if (pl_decode_new(&d, &options) < 0)
		exit(1);
	return d;
}

static void test_random(unsigned int rounds)
{
	unsigned int forms = 0, packets = 0;
	struct pl_rng rng;
	const char *wanted = getenv("PATHLINE_SEED");
	const uint64_t seed = wanted != NULL ? strtoull(wanted, NULL, 0) : 1;

	printf("# PATHLINE_SEED=%" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	while (forms < rounds) {
		struct pl_gen_cfg cfg;
		const struct pl_gen_cfg *full;
		struct pl_gen *g;
		struct pl_decode *d;
		char form[256];

		random_form(&cfg, &rng);
		if (pl_gen_new(&g, &cfg, NULL) < 0)
			continue;
		forms++;
		full = pl_gen_cfg(g);
		d = decoder(full);
		snprintf(form, sizeof(form),
			"report %d int %d mode %d carrier %d inner %d ip %d/%d sink %d npt %d bitmap %#x "
			"payload %u reports %u tlv %d options %u%s seed %" PRIu64,
			(int)full->report, (int)full->version, (int)full->mode, (int)full->carrier,
			(int)full->inner, full->outer_ip, full->inner_ip, (int)full->sink,
			full->npt, full->bitmap, full->payload, full->reports_per_datagram,
			full->inner_tlv, full->tcp_options,
			full->tcp_before_options ? " before" : "", cfg.seed);
		while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
			for (uint32_t i = 0; i < batch.n; i++) {
				static uint8_t bytes[PL_GEN_PACKET_MAX];
				static struct pl_batch whole;
				const struct pl_int_hints hints = { 0 };
				struct places places;

				whole.n = 1;
				whole.pkts[0] = batch.pkts[i];
				memcpy(bytes, batch.pkts[i].data, batch.pkts[i].len);
				/* Zeros are not the length of an original UDP header, nor INT in
				 * a packet that has none. */
				if (full->npt != 2 && full->mode != PL_GEN_XD)
					fill_payload(bytes, batch.pkts[i].len, full, &rng);
				whole.pkts[0].data = bytes;
				pl_record_batch_clear(&out);
				pl_decode_batch(d, &whole, &out);
				if (pl_decode_outcomes(d)[0].verdict != PL_V_OK) {
					ok(false, "the good packet is read: %s: %s",
						pl_verdict_name(
							(enum pl_verdict)pl_decode_outcomes(d)[0]
								.verdict),
						form);
					continue;
				}
				packets++;
				see_good(&whole.pkts[0], full);
				find_lengths(&places, &whole.pkts[0], full, &hints);
				damage(d, &whole.pkts[0], &places, full, form);
			}
		}
		pl_decode_free(d);
		pl_gen_free(g);
	}
	printf("# %u packets\n", packets);
	for (int k = 0; k < KINDS; k++) {
		eq(wrong[k], 0,
			"%s: of %u damaged %u were read, nothing is invented (%u stood alone)",
			kind_names[k], tried[k], read_well[k], alone[k]);
		ok(tried[k] > rounds / 100, "%s: %u tried", kind_names[k], tried[k]);
	}
}

/* The generator has no INT over ICMP. */
static void icmp_packet(struct pl_build *b, enum pl_int_version version, struct pl_rng *rng)
{
	const uint8_t src[4] = { 192, 0, 2, 1 }, dst[4] = { 192, 0, 2, 2 };
	const struct pl_flow flow = { .src = pl_addr_v4(src),
		.dst = pl_addr_v4(dst),
		.sport = 8,
		.proto = PL_IP_ICMP,
		.dscp = 0x17 };
	const struct pl_int_header h = { .version = version,
		.bitmap = pick(rng, 2) == 0 ? 0xd000 : 0x8000,
		.proto = version == PL_INT_V05 ? PL_IP_ICMP : 0 };
	struct pl_int_hop hops[6];
	unsigned int n = 1 + pick(rng, 6);
	size_t at;

	for (unsigned int i = 0; i < n; i++)
		hops[i] = (struct pl_int_hop){ .have = UINT32_MAX,
			.node = 1 + pick(rng, 1000),
			.ingress_port = 1 + pick(rng, 100),
			.egress_port = 1 + pick(rng, 100) };
	pl_put_eth(b, PL_ETH_IPV4, 0);
	at = pl_put_ip(b, &flow, 64, 0);
	pl_int_put(b, &h, hops, n);
	for (unsigned int i = pick(rng, 40); i > 0; i--)
		pl_put_u8(b, (uint8_t)pl_rng_u64(rng));
	pl_end_ip(b, at);
}

static void test_icmp(void)
{
	const struct pl_gen_cfg cfg = {
		.report = PL_GEN_REPORT_NONE, .mode = PL_GEN_MD, .carrier = PL_GEN_UDP
	};
	const struct pl_int_hints hints = { 0 };
	struct pl_decode *d = decoder(&cfg);
	unsigned int before = wrong[IP_LENGTH] + wrong[SHIM_LENGTH] + wrong[HOP_WORDS], found = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, 7);
	for (unsigned int i = 0; i < 300; i++) {
		static uint8_t bytes[1024];
		static struct pl_batch whole;
		struct pl_build b = pl_build(bytes, sizeof(bytes));
		struct places places;

		icmp_packet(&b, (enum pl_int_version)(i % 3), &rng);
		whole.n = 1;
		whole.pkts[0] = (struct pl_packet){ .data = bytes,
			.len = (uint32_t)b.len,
			.wire_len = (uint32_t)b.len,
			.link = PL_LINK_ETHERNET };
		pl_record_batch_clear(&out);
		pl_decode_batch(d, &whole, &out);
		found += out.n_paths == 1 && out.paths[0].hop_count > 0;
		see_good(&whole.pkts[0], &cfg);
		find_lengths(&places, &whole.pkts[0], &cfg, &hints);
		damage(d, &whole.pkts[0], &places, &cfg, "INT over ICMP");
	}
	eq(found, 300, "INT over ICMP is read");
	eq(wrong[IP_LENGTH] + wrong[SHIM_LENGTH] + wrong[HOP_WORDS], before,
		"INT over ICMP: nothing is invented");
	pl_decode_free(d);
}

int main(void)
{
	const char *rounds = getenv("PATHLINE_LENGTHS_ROUNDS");

	eq(pl_record_batch_init(&out, 16384, 65536), 0, "room for records");
	test_random(rounds == NULL ? 6000 : (unsigned int)atoi(rounds));
	test_icmp();
	pl_record_batch_done(&out);
	return pl_test_done();
}
