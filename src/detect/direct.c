/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads packets without making records of them. */
#include "detect/direct.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/layouts.h"

#define LATENCY_MAX UINT64_C(2000000000) /* default of decode/ */

_Static_assert(PL_CORE_TCP_BEFORE_OPTIONS == (int)PL_TCP_BEFORE_OPTIONS &&
		       PL_CORE_TCP_AFTER_OPTIONS == (int)PL_TCP_AFTER_OPTIONS &&
		       PL_CORE_EMBEDDED_ANNOUNCED == (int)PL_EMBEDDED_ANNOUNCED &&
		       PL_CORE_EMBEDDED_NEVER == (int)PL_EMBEDDED_NEVER,
	"as bpf/ has them");

/* Converts a profile of decode/ into the form of the core. */
static void convert_profile(struct pl_core_profile *ret, const struct pl_profile *p)
{
	*ret = (struct pl_core_profile){
		.layout_key = pl_int_layout_key(0, 0, 0, false, p->hints.dialect, &p->hints),
		.marker = p->marker_set ? p->marker : PL_CORE_MARKER,
		/* Values of 31 bits, flags in other places; words that no instruction has. */
		.escalate = (p->hints.dialect == PL_DIALECT_V04 && p->hints.dialect_pinned) ||
			    p->hints.trailing_words != 0 || p->hints.source_words != 0,
		.announces = p->dscp_set || p->int_port != 0,
		.general = p->embedded != PL_EMBEDDED_AUTO || p->report_version != 0 ||
			   p->marker_set || p->tcp_placement != PL_TCP_AUTO ||
			   p->timestamp_unit != PL_UNIT_NS || p->latency_unit != PL_UNIT_NS,
		.int_port = p->int_port,
		.dscp_mask = p->dscp_set ? p->dscp_mask : 0,
		.dscp_value = p->dscp_value,
		.report_version = (uint8_t)p->report_version,
		.marker_set = p->marker_set,
		.tcp_placement = p->tcp_placement,
		.embedded = p->embedded,
		.units = (uint8_t)((p->timestamp_unit == PL_UNIT_US ? PL_CORE_TIMES_US : 0) |
				   (p->latency_unit == PL_UNIT_US ? PL_CORE_LATENCIES_US : 0)),
	};
}

int pl_direct_init(struct pl_direct *direct, const struct pl_decode_options *o)
{
	static const struct pl_profile none;
	static const uint16_t usual_ports[] = { 32766, 54321 };
	const uint16_t *ports = o->n_report_ports > 0 ? o->report_ports : usual_ports;
	unsigned int n_ports = o->n_report_ports > 0 ? o->n_report_ports : 2;
	uint64_t max = o->latency_max_ns != 0 ? o->latency_max_ns : LATENCY_MAX;

	memset(direct, 0, sizeof(*direct));
	direct->max_latency_ns = max < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
	direct->vxlan_ports = o->vxlan_ports != 0 ? o->vxlan_ports : PL_VXLAN_PORTS;
	direct->any_port = o->any_port;
	for (unsigned int i = 0; i < n_ports; i++)
		direct->ports[ports[i] / 64] |= UINT64_C(1) << (ports[i] % 64);
	direct->n_profiles = o->n_profiles + 1;
	direct->profiles = calloc(direct->n_profiles, sizeof(*direct->profiles));
	direct->memos = calloc(PL_FAST_MEMOS, sizeof(*direct->memos));
	if (direct->profiles == NULL || direct->memos == NULL) {
		pl_direct_done(direct);
		return -ENOMEM;
	}
	convert_profile(&direct->profiles[0].profile, &none);
	for (unsigned int i = 0; i < o->n_profiles; i++) {
		struct pl_direct_profile *p = &direct->profiles[i + 1];

		p->prefix = o->profiles[i].prefix;
		p->prefix_bits = o->profiles[i].prefix_bits;
		convert_profile(&p->profile, &o->profiles[i]);
	}
	pl_layouts_usual(&direct->layouts);
	return 0;
}

void pl_direct_done(struct pl_direct *direct)
{
	free(direct->profiles);
	free(direct->memos);
	direct->profiles = NULL;
	direct->memos = NULL;
}

static bool matches(const struct pl_addr *a, const struct pl_direct_profile *p)
{
	unsigned int whole = p->prefix_bits / 8, rest = p->prefix_bits % 8;

	if (memcmp(a->b, p->prefix.b, whole) != 0)
		return false;
	return rest == 0 || ((a->b[whole] ^ p->prefix.b[whole]) >> (8 - rest)) == 0;
}

/* The longest matching prefix, the last of equals: as decode/. */
static const struct pl_core_profile *profile_of(
	const struct pl_direct *direct, const struct pl_addr *a)
{
	const struct pl_direct_profile *best = &direct->profiles[0];

	for (unsigned int i = 1; i < direct->n_profiles; i++) {
		const struct pl_direct_profile *p = &direct->profiles[i];

		if (p->prefix_bits >= best->prefix_bits && matches(a, p))
			best = p;
	}
	return &best->profile;
}

static bool is_report_port(const struct pl_direct *direct, uint32_t port)
{
	return direct->ports[port / 64] >> (port % 64) & 1;
}

/* The datagram in an Ethernet frame: *c moves to its payload. */
static uint32_t frame(const struct pl_direct *direct, struct pl_core_scratch *s,
	struct pl_frame_cursor *c, const struct pl_core_profile **ret_profile)
{
	const uint8_t *p = pl_frame_take(c, 14), *udp;
	uint32_t type, version, header, there, length, escalate;

	if (p == NULL)
		return PL_ESCALATION_CARRIER;
	type = pl_frame_be16(p + 12);
	for (unsigned int i = 0; i < 2 && (type == PL_ETH_VLAN || type == PL_ETH_QINQ); i++) {
		p = pl_frame_take(c, 4);
		if (p == NULL)
			return PL_ESCALATION_CARRIER;
		type = pl_frame_be16(p + 2);
	}
	version = type == PL_ETH_IPV4 ? 4 : 6;
	there = c->left;
	header = 40;
	p = pl_frame_peek(c, 20);
	if ((type != PL_ETH_IPV4 && type != PL_ETH_IPV6) || p == NULL || p[0] >> 4 != version)
		return PL_ESCALATION_CARRIER;
	if (version == 4) {
		header = (p[0] & 15u) * 4;
		/* A fragment has an offset, or "more fragments" set. */
		if (header < 20 || p[9] != PL_IP_UDP || (pl_frame_be16(p + 6) & 0x3fff) != 0)
			return PL_ESCALATION_CARRIER;
		pl_core_addr_v4(&s->report.exporter, p + 12);
	}
	if (!pl_frame_skip(c, header, 60))
		return PL_ESCALATION_CARRIER;
	udp = pl_frame_take(c, 8);
	if (udp == NULL)
		return PL_ESCALATION_CARRIER;
	if (version == 6) {
		if (p[6] != PL_IP_UDP)
			return PL_ESCALATION_CARRIER;
		pl_core_addr_v6(&s->report.exporter, p + 8);
	}
	if (!is_report_port(direct, pl_frame_be16(udp + 2)))
		return PL_ESCALATION_CARRIER;
	*ret_profile = __builtin_expect(direct->n_profiles == 1, 1)
			       ? &direct->profiles[0].profile
			       : profile_of(direct, &s->report.exporter);
	escalate =
		pl_core_carrier(p, udp, version, header, there, *ret_profile, &length, &s->marked);
	if (escalate == PL_ESCALATION_NONE)
		pl_frame_trim(c, length);
	return escalate;
}

uint32_t pl_direct_fast(
	const struct pl_direct *direct, struct pl_fast *q, const struct pl_packet *pkt)
{
	const struct pl_core_profile *profile = &direct->profiles[0].profile;
	struct pl_frame_cursor c = { pkt->data, pkt->data + pkt->len, pkt->len };
	struct pl_fast_to to;
	struct pl_addr exporter;

	if (direct->general)
		return PL_SLOW_RULES;
	if (pkt->link == PL_LINK_UDP) {
		if ((!direct->any_port && !is_report_port(direct, pkt->dport)) ||
			pkt->wire_len > pkt->len)
			return PL_SLOW_CARRIER;
		memcpy(q->keys->exporter, pkt->src.b, sizeof(pkt->src.b));
	} else if (pkt->link != PL_LINK_ETHERNET || !pl_fast_carrier(q->keys, &c, &to) ||
		   !is_report_port(direct, (uint16_t)to.port)) {
		return PL_SLOW_CARRIER;
	}
	if (direct->n_profiles != 1) {
		memcpy(exporter.b, q->keys->exporter, sizeof(exporter.b));
		profile = profile_of(direct, &exporter);
	}
	if (profile->escalate || profile->announces || profile->general)
		return PL_SLOW_RULES;
	return pl_fast_read(q, c, &direct->layouts, profile, direct->vxlan_ports);
}

static inline uint32_t attempt(const struct pl_direct *direct,
	const struct pl_core_layouts *layouts, struct pl_core_scratch *s,
	const struct pl_packet *pkt, uint64_t now_ns)
{
	struct pl_frame_cursor c = { pkt->data, pkt->data + pkt->len, pkt->len };
	const struct pl_core_profile *profile;
	uint32_t escalate;

	pl_core_scratch_clear(s);
	s->report.now_ns = now_ns;
	s->report.ts_ns = pkt->ts_ns;
	s->max_latency_ns = direct->max_latency_ns;
	s->vxlan_ports = direct->vxlan_ports;
	s->marked = 0;
	if (pkt->link == PL_LINK_UDP) {
		if ((!direct->any_port && !is_report_port(direct, pkt->dport)) ||
			pkt->wire_len > pkt->len)
			return PL_ESCALATION_CARRIER;
		s->report.exporter = pkt->src;
		profile = profile_of(direct, &pkt->src);
	} else if (pkt->link == PL_LINK_ETHERNET) {
		escalate = frame(direct, s, &c, &profile);
		if (escalate != PL_ESCALATION_NONE)
			return escalate;
	} else {
		return PL_ESCALATION_CARRIER;
	}
	escalate = pl_core_parse(s, c, layouts, profile);
	return escalate != PL_ESCALATION_NONE ? escalate : pl_core_hops(s);
}

uint32_t pl_direct_try(const struct pl_direct *direct, const struct pl_core_layouts *layouts,
	struct pl_core_scratch *s, const struct pl_packet *pkt, uint64_t now_ns)
{
	return attempt(direct, layouts, s, pkt, now_ns);
}

uint32_t pl_direct_report(struct pl_direct *direct, struct pl_core_scratch *s,
	const struct pl_packet *pkt, uint64_t now_ns)
{
	uint32_t escalate = attempt(direct, &direct->layouts, s, pkt, now_ns);

	/* Twice: a header and a stack may both be new. */
	for (int i = 0; __builtin_expect(escalate == PL_ESCALATION_LAYOUT, 0) && i < 2; i++) {
		if (pl_layouts_learn(&direct->layouts, s->missing_key) < 0)
			break;
		escalate = attempt(direct, &direct->layouts, s, pkt, now_ns);
	}
	return escalate;
}

static const char *const names[PL_ESCALATION_MAX] = {
#define PL_ESCALATION(id, name, help) [PL_ESCALATION_##id] = (name),
#include "core/escalations.def"
#undef PL_ESCALATION
};

static const char *const helps[PL_ESCALATION_MAX] = {
#define PL_ESCALATION(id, name, help) [PL_ESCALATION_##id] = (help),
#include "core/escalations.def"
#undef PL_ESCALATION
};

static const char *const slow_names[PL_SLOW_MAX] = {
#define PL_SLOW(id, name, help) [PL_SLOW_##id] = (name),
#include "core/slow_causes.def"
#undef PL_SLOW
};

static const char *const slow_helps[PL_SLOW_MAX] = {
#define PL_SLOW(id, name, help) [PL_SLOW_##id] = (help),
#include "core/slow_causes.def"
#undef PL_SLOW
};

const char *pl_slow_name(enum pl_slow cause)
{
	return (unsigned int)cause < PL_SLOW_MAX ? slow_names[cause] : NULL;
}

const char *pl_slow_help(enum pl_slow cause)
{
	return (unsigned int)cause < PL_SLOW_MAX ? slow_helps[cause] : NULL;
}

const char *pl_escalation_name(enum pl_escalation h)
{
	return (unsigned int)h < PL_ESCALATION_MAX ? names[h] : NULL;
}

const char *pl_escalation_help(enum pl_escalation h)
{
	return (unsigned int)h < PL_ESCALATION_MAX ? helps[h] : NULL;
}
