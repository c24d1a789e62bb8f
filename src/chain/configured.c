/* SPDX-License-Identifier: BSD-2-Clause */
/* The services of telemetry memory, from the configuration. */
#include "chain/configured.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"

/* Reads prefixes that the configuration has checked. */
static unsigned int read_prefixes(const struct pl_conf_list *list, struct pl_prefix *ret)
{
	char *const *texts = list->items;
	unsigned int bits;

	for (size_t i = 0; i < list->n; i++) {
		(void)pl_parse_prefix(texts[i], &ret[i].addr, &bits);
		ret[i].bits = (uint8_t)bits;
	}
	return (unsigned int)list->n;
}

unsigned int pl_list_regions(const struct pl_config *c, enum pl_config_writer writer,
	const char **names, const char **paths)
{
	const struct pl_config_region *r = c->regions.items;
	unsigned int n = 0;

	assert(paths != NULL);
	for (size_t i = 0; i < c->regions.n; i++) {
		if (r[i].writer != writer)
			continue;
		if (names != NULL)
			names[n] = r[i].name;
		paths[n++] = r[i].path;
	}
	return n;
}

void pl_translate_configure(struct pl_translate_configured *ret, const struct pl_config *c)
{
	ret->options = (struct pl_translate_options){
		.dta = c->dta,
		.to = ret->paths,
		.n_to = pl_list_regions(c, PL_WRITER_DTA, ret->names, ret->paths),
		.names = ret->names,
		.collectors = 1,
		.allow = ret->allow,
		.n_allow = read_prefixes(&c->dta.allow, ret->allow),
	};
	if (c->dta.to != NULL) {
		ret->paths[0] = c->dta.to;
		ret->options.n_to = 1;
		ret->options.names = NULL;
	}
}

/* Reads the switch. NULL: none. */
static const struct pl_collector_switch *read_switch(
	const struct pl_config *c, struct pl_collector_switch *ret)
{
	if (c->rdma.peer_switch.controller == NULL)
		return NULL;
	*ret = (struct pl_collector_switch){
		.controller = c->rdma.peer_switch.controller,
		.qpn = (uint32_t)c->rdma.peer_switch.queue_pair,
		.psn = (uint32_t)c->rdma.peer_switch.first,
		.v1 = c->rdma.peer_switch.version == 0,
	};
	(void)pl_parse_addr(c->rdma.peer_switch.gid, &ret->gid);
	return ret;
}

void pl_memory_configure(struct pl_memory_configured *ret, const struct pl_config *c)
{
	const struct pl_config_region *r = c->regions.items;
	const bool tagged = c->rdma.vlan != PL_CONFIG_ANY_VLAN;
	uint32_t n = 0;

	for (size_t i = 0; i < c->regions.n; i++) {
		if (r[i].writer == PL_WRITER_RDMA)
			ret->stores[n++] = (struct pl_collector_store){ r[i].name, r[i].path };
	}
	ret->options = (struct pl_memory_server_options){
		.collector = { .uri = c->rdma.interface,
			.listen = strcmp(c->rdma.listen, "none") == 0 ? NULL : c->rdma.listen,
			.cm_port = (uint16_t)c->rdma.cm_port,
			.stores = ret->stores,
			.n_stores = n,
			.allow = ret->allow,
			.n_allow = read_prefixes(&c->rdma.allow, ret->allow),
			.readers = ret->readers,
			.n_readers = read_prefixes(&c->rdma.allow_read, ret->readers),
			.proxies = ret->proxies,
			.n_proxies = read_prefixes(&c->rdma.proxies, ret->proxies),
			.max_peers = (uint32_t)c->rdma.peers,
			.max_each = (uint32_t)c->rdma.peers_each,
			.peer_switch = read_switch(c, &ret->peer_switch),
			.rules = { .check_mac = c->rdma.check_mac,
				.check_vlan = tagged,
				.vlan = tagged ? (uint16_t)c->rdma.vlan : 0,
				.min_ttl = (uint8_t)c->rdma.min_ttl,
				.max_jump = (uint32_t)c->rdma.max_jump },
			.any_mac = c->rdma.any_mac,
			.may_read = c->rdma.read,
			.silent_ns = c->rdma.silent_ns,
			.sync_ns = c->rdma.sync_ns },
		.epoch_ns = c->rdma.epoch_ns,
		.keep_epochs = c->rdma.keep_epochs,
		.save = c->rdma.save,
		.save_every_ns = c->rdma.save_every_ns,
	};
}
