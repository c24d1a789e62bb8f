/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks which URIs a tap can read packets from, and opens them. */
#include "service/tap_source.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "netio/pcap_filter.h"
#include "netio/tc.h"
#include "netio/uri.h"
#include "service/tap_drops.h"
#include "service/tap_places.h"
#include "tap/source.h"

int pl_tap_source_check(const char *uri, bool inner, bool dns, bool counts, struct pl_diag *diag)
{
	const uint32_t can = pl_port_uri_can(uri);
	char port[PL_URI_TEXT_MAX];
	int r;

	if (strncmp(uri, "region:", 7) == 0 || strncmp(uri, "kafka:", 6) == 0) {
		pl_diag_set(diag,
			"'%s' is no source of a tap: records that are stored are read by 'pathline query "
			"QUESTION %s'",
			uri, uri[0] == 'r' ? "region:PATH" : "kafka://HOST/TOPIC");
		return -EINVAL;
	}
	if (pl_tap_kernel_is(uri) && (inner || dns)) {
		const char *name = strchr(uri, ':') + 1;

		pl_diag_set(diag, "%s: the tap in the kernel reads no %s; use packet:%.*s", uri,
			inner ? "packets in tunnels (--inner)" : "DNS messages (--dns)",
			(int)strcspn(name, "?"), name);
		return -EINVAL;
	}
	if (pl_tap_drops_is(uri) && inner) {
		pl_diag_set(diag, "%s reads no packets in tunnels (--inner)", uri);
		return -EINVAL;
	}
	if (pl_tap_drops_is(uri))
		return pl_tap_drops_check(uri, diag);
	if (pl_tap_kernel_is(uri))
		return pl_tap_kernel_check(uri, counts, diag);
	if ((can & PL_PORT_CAN_LIVE) != 0 &&
		(can & (PL_PORT_CAN_INTERFACE | PL_PORT_CAN_DATAGRAMS)) == 0) {
		pl_diag_set(diag, "%s has no packets for a tap", uri);
		return -EINVAL;
	}
	r = pl_tap_source_tmpkt(uri, port, sizeof(port), diag);
	if (r < 0)
		return r;
	return r == 1 ? 0 : pl_port_uri_tap(port, diag);
}

static int open_socket(struct pl_tap_service *t, size_t source, const char *uri, bool tmpkt,
	unsigned int i, unsigned int of, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_port_options o = { .rights = rights,
		.index = i,
		.of = of,
		.lanes = true,
		.with = i > 0 ? t->ports[t->n_ports - i] : NULL,
		.filter = t->o->filter,
		.tap_bytes = tmpkt                                ? 0
			     : t->whole                           ? PL_TAP_WHOLE_BYTES
			     : pl_tap_asked_for(t, PL_FLAT_DNS64) ? PL_TAP_DNS_BYTES
			     : t->o->inner                        ? PL_TAP_INNER_BYTES
								  : PL_TAP_BYTES };
	int r;

	for (size_t k = 0; k < t->o->n_sources; k++)
		o.v6only |= pl_port_uri_v6only(uri, t->o->sources[k]);
	if (t->n_ports == PL_TAP_PORTS_MAX) {
		pl_diag_set(diag, "at most %d sockets", PL_TAP_PORTS_MAX);
		return -EINVAL;
	}
	r = pl_port_open(&t->ports[t->n_ports], uri, PL_PORT_RECV, &o, diag);
	if (r < 0)
		return r;
	t->port_sources[t->n_ports] = source;
	t->datagrams[t->n_ports++] = tmpkt || (pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0;
	return 0;
}

static int open_kernel(struct pl_tap_service *t, size_t source, const struct pl_rights *rights,
	struct pl_diag *diag)
{
	const struct pl_tap_kernel_options o = { .rules = &t->tap.rules,
		.point = pl_tap_place_point(t, source, t->point),
		.rights = rights,
		.vxlan_ports = t->o->vxlan_ports,
		.plan = t->o->plan };
	const char *uri = t->o->sources[source];
	int r;

	if (t->n_kernels == PL_TAP_KERNELS_MAX) {
		pl_diag_set(diag, "at most %d taps in the kernel", PL_TAP_KERNELS_MAX);
		return -EINVAL;
	}
	r = pl_tap_kernel_open(&t->kernels[t->n_kernels], uri, &o, diag);
	if (r < 0)
		return r;
	t->kernel_sources[t->n_kernels] = source;
	r = pl_tap_kernel_unnoted(t->kernels[t->n_kernels++]);
	if (r < 0)
		pl_warn("tap",
			"%s: cannot write its note in %s (%s): the filter stays on the interface after kill -9 of all processes, until 'tc filter del'; make that folder writable",
			uri, pl_tc_notes(), strerror(-r));
	return 0;
}

bool pl_tap_source_is_live(const char *uri)
{
	return pl_tap_kernel_is(uri) || pl_tap_drops_is(uri) ||
	       (pl_port_uri_can(uri) & PL_PORT_CAN_LIVE) != 0;
}

/* Returns -EINVAL with diag for sources without frames, to which filters cannot apply. */
static int check_filter(const char *uri, struct pl_diag *diag)
{
	const char *name = strchr(uri, ':');

	if (pl_tap_kernel_is(uri))
		pl_diag_set(diag,
			"'%s': the tap in the kernel takes no filter; choose packets by --rule, or use packet:%.*s",
			uri, (int)strcspn(name + 1, "?"), name + 1);
	else
		return pl_tap_drops_is(uri) || pl_tap_source_is_tmpkt(uri)
			       ? pl_pcap_filter_refuse(uri, diag)
			       : 0;
	return -EINVAL;
}

static int open_source(struct pl_tap_service *t, size_t source, const struct pl_rights *rights,
	struct pl_diag *diag)
{
	const char *uri = t->o->sources[source];
	char port[PL_URI_TEXT_MAX];
	const bool counts = t->o->print.counts != NULL, dns = pl_tap_asked_for(t, PL_FLAT_DNS64);
	int tmpkt, n, r = pl_tap_source_check(uri, t->o->inner, dns, counts, diag);

	if (r == 0 && t->o->filter != NULL)
		r = check_filter(uri, diag);
	if (r == 0)
		r = pl_tap_source_makes(uri, t->o->kinds, diag);
	if (r < 0)
		return r;
	if (pl_tap_drops_is(uri))
		return pl_tap_drops_source(t, uri, diag);
	if (pl_tap_kernel_is(uri))
		return open_kernel(t, source, rights, diag);
	tmpkt = pl_tap_source_tmpkt(uri, port, sizeof(port), diag);
	n = tmpkt < 0 ? tmpkt : pl_port_uri_sockets(port, diag);
	if (n < 0)
		return -EINVAL;
	for (int i = 0; r == 0 && i < n; i++)
		r = open_socket(t, source, port, tmpkt == 1, (unsigned int)i, (unsigned int)n,
			rights, diag);
	return r;
}

int pl_tap_open_sources(
	struct pl_tap_service *t, const struct pl_rights *rights, struct pl_diag *diag)
{
	int r = pl_tap_places_find(t, diag);

	t->live = t->o->n_sources == 0; /* without sources, records are given */
	for (size_t i = 0; r == 0 && i < t->o->n_sources; i++) {
		const bool live = pl_tap_source_is_live(t->o->sources[i]);

		if (i > 0 && live != t->live) {
			pl_diag_set(diag, "capture files and live sources cannot be read together");
			return -EINVAL;
		}
		t->live = live;
		r = open_source(t, i, rights, diag);
	}
	return r;
}
