/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a form of INT and computes its properties. */
#include "gen/int_form.h"

#include <errno.h>

enum pl_int_version pl_int_form_version(const struct pl_gen_cfg *cfg)
{
	return cfg->version == PL_GEN_INT_V05   ? PL_INT_V05
	       : cfg->version == PL_GEN_INT_V10 ? PL_INT_V10
						: PL_INT_V20;
}

bool pl_int_form_in_tunnel(const struct pl_gen_cfg *cfg)
{
	return cfg->carrier == PL_GEN_GRE || cfg->carrier == PL_GEN_GPE ||
	       cfg->carrier == PL_GEN_GENEVE;
}

unsigned int pl_int_form_hops(const struct pl_gen_cfg *cfg)
{
	struct pl_int_layout l;
	unsigned int words = cfg->carrier == PL_GEN_GENEVE ? 31 : 255, fixed, budget;

	if (pl_int_layout_make(
		    &l, pl_int_form_version(cfg), cfg->bitmap, cfg->ds_words, cfg->dialect) < 0 ||
		l.words == 0)
		return 0;
	fixed = cfg->version == PL_GEN_INT_V21 ? 3 : cfg->carrier == PL_GEN_GENEVE ? 2 : 3;
	if (cfg->version == PL_GEN_INT_V05 && !pl_int_form_in_tunnel(cfg))
		fixed += cfg->dialect == PL_DIALECT_HOST_INT ? 2 : 1;
	fixed += cfg->source_words;
	budget = words > fixed ? (words - fixed) / l.words : 0;
	return cfg->max_hops != 0 && cfg->max_hops < budget ? cfg->max_hops : budget;
}

unsigned int pl_int_gen_stack_bytes(const struct pl_gen_cfg *cfg, unsigned int nodes)
{
	unsigned int budget = pl_int_form_hops(cfg), hops = nodes < budget ? nodes : budget;
	struct pl_int_layout l;

	if (cfg->mode != PL_GEN_MD || pl_int_layout_make(&l, pl_int_form_version(cfg), cfg->bitmap,
					      cfg->ds_words, cfg->dialect) < 0)
		return 0;
	return 4 * (hops * l.words + cfg->source_words);
}

/* ---- defaults and what goes together ---- */

static int refuse(struct pl_diag *diag, const char *text)
{
	pl_diag_set(diag, "%s", text);
	return -EINVAL;
}

static void resolve_versions(struct pl_gen_cfg *cfg)
{
	if (cfg->version == PL_GEN_INT_AUTO) {
		if (cfg->dialect == PL_DIALECT_HOST_INT || cfg->dialect == PL_DIALECT_V04)
			cfg->version = PL_GEN_INT_V05;
		else if (cfg->dialect != PL_DIALECT_SPEC)
			cfg->version = PL_GEN_INT_V10;
		else if (cfg->mode == PL_GEN_MX || cfg->carrier == PL_GEN_GRE)
			cfg->version = PL_GEN_INT_V21;
		else
			cfg->version = cfg->report == PL_GEN_REPORT_V05   ? PL_GEN_INT_V05
				       : cfg->report == PL_GEN_REPORT_V10 ? PL_GEN_INT_V10
									  : PL_GEN_INT_V21;
	}
	if (cfg->report == PL_GEN_REPORT_AUTO)
		cfg->report = cfg->version == PL_GEN_INT_V05   ? PL_GEN_REPORT_V05
			      : cfg->version == PL_GEN_INT_V10 ? PL_GEN_REPORT_V10
							       : PL_GEN_REPORT_V20;
}

static uint16_t default_bitmap(const struct pl_gen_cfg *cfg)
{
	switch (cfg->dialect) {
	case PL_DIALECT_INTCOLLECTOR:
		return 0xff00;
	case PL_DIALECT_NOVIFLOW:
		return 0xfc00;
	case PL_DIALECT_HOST_INT:
		return 0xcc00;
	default:
		return 0xfd00;
	}
}

static void resolve_form(struct pl_gen_cfg *cfg)
{
	bool host_int = cfg->dialect == PL_DIALECT_HOST_INT;

	if (cfg->mode == PL_GEN_MODE_AUTO)
		cfg->mode = PL_GEN_MD;
	if (cfg->carrier == PL_GEN_CARRIER_AUTO)
		cfg->carrier = cfg->gpe_chain > 0               ? PL_GEN_GPE
			       : cfg->proto == PL_GEN_PROTO_TCP ? PL_GEN_TCP
								: PL_GEN_UDP;
	if (cfg->inner == PL_GEN_INNER_AUTO)
		cfg->inner = host_int ? PL_GEN_IP : PL_GEN_ETHERNET;
	if (cfg->sink == PL_GEN_SINK_AUTO)
		cfg->sink =
			cfg->report == PL_GEN_REPORT_V20 ? PL_GEN_SINK_HEADER : PL_GEN_SINK_STACK;
	if (cfg->announce == PL_GEN_ANNOUNCE_AUTO)
		cfg->announce = cfg->npt != 0 ? PL_GEN_ANNOUNCE_PORT : PL_GEN_ANNOUNCE_DSCP;
	if (cfg->bitmap == 0)
		cfg->bitmap = default_bitmap(cfg);
	if (cfg->announce == PL_GEN_ANNOUNCE_PORT && cfg->version == PL_GEN_INT_V21 &&
		cfg->npt == 0)
		cfg->npt = 1;
	if (cfg->ds_words > 0 && cfg->ds_id == 0)
		cfg->ds_id = 0x0042;
	if (cfg->source_words > 0 && cfg->ds_id == 0)
		cfg->ds_id = 0x0042;
}

static int check_form(const struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	bool v21 = cfg->version == PL_GEN_INT_V21;
	struct pl_int_layout l;

	if (cfg->mode == PL_GEN_MX && !v21)
		return refuse(diag, "INT-MX exists only in INT 2.1");
	if (cfg->mode == PL_GEN_XD && cfg->report == PL_GEN_REPORT_NONE)
		return refuse(diag, "INT-XD leaves packets as they are: it needs a report version");
	if (cfg->report == PL_GEN_REPORT_NONE && cfg->udp)
		return refuse(
			diag, "instrumented packets are frames: write them to a capture file");
	if (cfg->carrier == PL_GEN_GRE && !v21)
		return refuse(diag, "INT over GRE exists only in INT 2.x");
	if (pl_int_form_in_tunnel(cfg) && cfg->inner == PL_GEN_VXLAN)
		return refuse(
			diag, "a VXLAN inner packet cannot carry INT in another tunnel as well");
	if (pl_int_form_in_tunnel(cfg) && cfg->npt != 0)
		return refuse(diag, "a next protocol type (NPT) belongs to INT over TCP or UDP");
	if (cfg->npt > 2 || (cfg->npt != 0 && (!v21 || cfg->announce != PL_GEN_ANNOUNCE_PORT)))
		return refuse(diag, "NPT 1 and 2 need INT 2.1 announced by port");
	if (cfg->npt == 1 && cfg->carrier != PL_GEN_UDP)
		return refuse(diag, "NPT 1 needs INT over UDP");
	if (cfg->announce == PL_GEN_ANNOUNCE_PORT && cfg->version == PL_GEN_INT_V10)
		return refuse(diag, "INT 1.0 is not announced by port");
	if (cfg->announce == PL_GEN_ANNOUNCE_PORT && cfg->carrier == PL_GEN_TCP && cfg->npt != 2)
		return refuse(diag, "INT over TCP is announced by port only with NPT 2");
	if (cfg->announce == PL_GEN_ANNOUNCE_MARKER && cfg->version == PL_GEN_INT_V05)
		return refuse(diag, "INT 0.5 has no probe marker");
	if ((cfg->ds_words > 0 || cfg->source_words > 0) && !v21)
		return refuse(diag, "domain-specific metadata exists only in INT 2.x");
	/* The source's own words are recognized by a stack that is not a number of whole hops (INT
	 * 2.1, 5.8). */
	if (cfg->source_words > 0 && cfg->mode == PL_GEN_MD &&
		pl_int_layout_make(&l, pl_int_form_version(cfg), cfg->bitmap, cfg->ds_words,
			cfg->dialect) == 0 &&
		l.words > 0 && cfg->source_words >= l.words)
		return refuse(diag, "source words that fill a whole hop cannot be told from one");
	if (cfg->reports_per_datagram > 1 && cfg->report != PL_GEN_REPORT_V20)
		return refuse(diag, "several reports per datagram need report version 2.0");
	/* Host-INT on its port is behind a UDP header that the source added. */
	if (cfg->announce != PL_GEN_ANNOUNCE_DSCP && cfg->dialect == PL_DIALECT_HOST_INT)
		return refuse(diag, "Host-INT is generated with a DSCP to announce it only");
	if (cfg->sink != PL_GEN_SINK_STACK && cfg->dialect == PL_DIALECT_HOST_INT)
		return refuse(diag, "Host-INT puts the sink on top of the stack");
	if (cfg->dialect == PL_DIALECT_HOST_INT &&
		(cfg->version != PL_GEN_INT_V05 || cfg->mode != PL_GEN_MD ||
			pl_int_form_in_tunnel(cfg) || cfg->inner != PL_GEN_IP ||
			cfg->inner_ip != 4 ||
			(cfg->report != PL_GEN_REPORT_V05 && cfg->report != PL_GEN_REPORT_NONE)))
		return refuse(
			diag, "Host-INT is INT-MD 0.5 over TCP or UDP in IPv4, with report 0.5");
	if (cfg->instrumented && cfg->udp)
		return refuse(
			diag, "an instrumented report is a frame: write it to a capture file");
	if (cfg->proto != PL_GEN_PROTO_AUTO && !pl_int_form_in_tunnel(cfg) &&
		cfg->mode != PL_GEN_XD &&
		cfg->proto != (cfg->carrier == PL_GEN_TCP ? PL_GEN_PROTO_TCP : PL_GEN_PROTO_UDP))
		return refuse(diag,
			"INT between TCP or UDP and its payload leaves no choice of the "
			"transport: it needs --mode xd or a tunnel");
	if (cfg->flush_hops > 0 && (cfg->mode != PL_GEN_MD || cfg->report != PL_GEN_REPORT_V20))
		return refuse(diag, "intermediate reports are INT-MD's in report version 2.0");
	if (cfg->inner_tlv && cfg->report != PL_GEN_REPORT_V20)
		return refuse(diag, "inner contents are TLVs in report version 2.0 only");
	if (cfg->gpe_chain > 2 || (cfg->gpe_chain > 0 && cfg->carrier != PL_GEN_GPE))
		return refuse(diag, "at most 2 further INT shims are chained, in VXLAN-GPE");
	if (cfg->destination_shim && cfg->carrier == PL_GEN_GENEVE &&
		cfg->version != PL_GEN_INT_V21)
		return refuse(diag, "a destination option in Geneve needs INT 2.1");
	if (cfg->ip_options > 10)
		return refuse(diag, "IPv4 has room for 10 words of options");
	if (cfg->fragments < 0 || cfg->fragments > 1)
		return refuse(diag, "a share is between 0 and 1");
	if (cfg->fragments > 0 && cfg->ip_options > 0)
		return refuse(diag, "fragments with IP options are not made");
	if (cfg->n_malform > 0 && (cfg->fragments > 0 || cfg->ip_options > 0 || cfg->inner_tlv ||
					  cfg->flush_hops > 0 || cfg->gpe_chain > 0))
		return refuse(diag,
			"damage is done to reports without fragments, IP options, TLVs, "
			"flushed stacks and chained shims");
	if (cfg->tcp_options > 10)
		return refuse(diag, "TCP has room for 10 words of options");
	if (cfg->hw_id > 63)
		return refuse(diag, "a hardware id has 6 bits");
	if (pl_int_layout_make(
		    &l, pl_int_form_version(cfg), cfg->bitmap, cfg->ds_words, cfg->dialect) < 0)
		return refuse(diag, "this dialect has no such version or instruction bitmap");
	if (cfg->mode == PL_GEN_MD && pl_int_form_hops(cfg) == 0)
		return refuse(diag, "not a single hop of this size fits this carrier");
	return 0;
}

int pl_int_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	if (cfg->outer_ip == 0)
		cfg->outer_ip = 4;
	if (cfg->inner_ip == 0)
		cfg->inner_ip = 4;
	if ((cfg->outer_ip != 4 && cfg->outer_ip != 6) ||
		(cfg->inner_ip != 4 && cfg->inner_ip != 6))
		return refuse(diag, "the IP version is 4 or 6");
	resolve_versions(cfg);
	resolve_form(cfg);
	if (cfg->dscp == 0)
		cfg->dscp = 0x17;
	if (cfg->marker == 0)
		cfg->marker = UINT64_C(0xaaaaaaaabbbbbbbb);
	if (cfg->int_port == 0)
		cfg->int_port = 33122;
	if (cfg->gre_ethertype == 0)
		cfg->gre_ethertype = 0x88b5;
	return check_form(cfg, diag);
}
