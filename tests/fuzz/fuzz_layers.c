/* SPDX-License-Identifier: BSD-2-Clause */
/* Carriers and tunnels, level by level as the decoder goes: every cursor stays inside its parent. */
#include "fuzz.h"
#include "wire/layers.h"

static void inside(const struct pl_cursor *outer, const struct pl_cursor *c)
{
	if (c->pos == NULL)
		return;
	must(c->pos >= outer->pos && c->pos <= c->end && c->end <= outer->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_layers layers;
	struct pl_tunnel tunnel;
	struct pl_cursor frame;
	enum pl_link link;
	enum pl_verdict v;

	if (size < 1)
		return 0;
	link = (enum pl_link)(data[0] % PL_LINK_MAX);
	frame = pl_cursor(data + 1, size - 1);
	for (unsigned int level = 0; level < PL_NESTING_MAX; level++) {
		if (link == PL_LINK_UDP || link >= PL_LINK_UNKNOWN)
			return 0;
		memset(&layers, 0, sizeof(layers));
		v = pl_layers_walk(&layers, frame, link, (data[0] & 0x80) != 0);
		must(v < PL_V_MAX);
		inside(&frame, &layers.transport);
		inside(&frame, &layers.payload);
		inside(&frame, &layers.hop_opts);
		inside(&frame, &layers.dst_opts);
		if (v != PL_V_OK)
			return 0;
		must(layers.ip_version == 4 || layers.ip_version == 6);
		must(layers.flow.dscp < 64 && layers.flow.vlan < 4096);
		memset(&tunnel, 0, sizeof(tunnel));
		v = pl_tunnel_open(&tunnel, &layers);
		must(v < PL_V_MAX);
		if (v != PL_V_OK || tunnel.kind == PL_TUNNEL_NONE)
			return 0;
		inside(&frame, &tunnel.options);
		inside(&frame, &tunnel.inner);
		/* An opened tunnel has consumed at least an IP header. */
		must(pl_cursor_left(&tunnel.inner) + 20 <= pl_cursor_left(&frame));
		frame = tunnel.inner;
		link = tunnel.inner_link;
	}
	return 0;
}
