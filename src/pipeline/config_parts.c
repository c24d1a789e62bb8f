/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the parts, made from the configuration. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lang/lang.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "pipeline/kind.h"
#include "pipeline/pipeline.h"

int pl_config_profiles(
	const struct pl_config *config, struct pl_profile **ret, struct pl_diag *diag)
{
	const struct pl_config_profile *from = config->profiles.items;
	struct pl_profile *to = calloc(config->profiles.n + 1, sizeof(*to));

	if (to == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < config->profiles.n; i++, from++) {
		struct pl_profile *p = &to[i];

		/* The texts were checked when the file was read. */
		if (pl_parse_prefix(from->match, &p->prefix, &p->prefix_bits) < 0)
			goto fail;
		p->report_version = (int)from->report_version;
		p->hints.dialect = (uint8_t)from->dialect;
		p->hints.dialect_pinned = from->dialect_pinned;
		p->hints.queue_word = (uint8_t)from->queue_word;
		p->hints.trailing_words = (uint8_t)from->trailing_words;
		p->hints.source_words = (uint8_t)from->source_words;
		p->tcp_placement = (uint8_t)from->tcp_placement;
		p->timestamp_unit = (uint8_t)from->timestamp_unit;
		p->latency_unit = (uint8_t)from->latency_unit;
		p->embedded = (uint8_t)from->embedded;
		p->int_port = (uint16_t)from->int_port;
		p->dscp_set = from->dscp != NULL;
		if (p->dscp_set &&
			pl_config_parse_dscp(from->dscp, &p->dscp_value, &p->dscp_mask) < 0)
			goto fail;
		p->marker_set = from->marker != NULL;
		if (p->marker_set && pl_parse_u64(from->marker, &p->marker) < 0)
			goto fail;
		for (size_t j = 0; j < i; j++) {
			if (to[j].prefix_bits != p->prefix_bits ||
				!pl_addr_equal(&to[j].prefix, &p->prefix))
				continue;
			pl_diag_set(diag, "profiles %zu and %zu are for the same exporters", j + 1,
				i + 1);
			free(to);
			return -EINVAL;
		}
	}
	*ret = to;
	return 0;
fail:
	pl_diag_set(diag, "profile %zu cannot be used",
		(size_t)(from - (const struct pl_config_profile *)config->profiles.items) + 1);
	free(to);
	return -EINVAL;
}

uint64_t pl_config_vxlan_ports(const struct pl_conf_list *ports)
{
	uint64_t word = 0;
	const char *bad;

	/* The texts were checked when the file was read. */
	(void)pl_vxlan_ports_parse(&word, ports->items, ports->n, &bad);
	return word;
}

void pl_config_decode(const struct pl_config *config, struct pl_decode_options *ret)
{
	*ret = (struct pl_decode_options){
		.n_profiles = (unsigned int)config->profiles.n,
		.max_exporters = (uint32_t)config->decode.max_exporters,
		.exporter_idle_ns = config->detect.forget_ns,
		.prove_exporters = config->decode.admit == PL_ADMIT_PROVEN,
		.max_paths = (uint32_t)config->decode.max_paths,
		.sequence_gap_max = (uint32_t)config->decode.sequence_gap_max,
		.latency_max_ns = config->decode.latency_max_ns,
		.gre_int_ethertype = (uint16_t)config->decode.gre_int_ethertype,
		.geneve_int_class = (uint16_t)config->decode.geneve_int_class,
		.vxlan_ports = pl_config_vxlan_ports(&config->decode.vxlan_ports),
		.any_port = true,
	};
	for (size_t i = 0; i < config->decode.ioam_time.n; i++) {
		const char *const *items = config->decode.ioam_time.items;

		/* The texts were checked when the file was read. */
		(void)pl_ioam_namespace_parse(&ret->ioam_namespaces[i], items[i]);
		ret->n_ioam_namespaces++;
	}
}

void pl_config_aggregate(const struct pl_config *config, struct pl_aggregate_options *ret)
{
	*ret = (struct pl_aggregate_options){
		.max_queues = (uint32_t)config->aggregate.max_queues,
		.max_ports = (uint32_t)config->aggregate.max_ports,
		.max_links = (uint32_t)config->aggregate.max_links,
		.max_paths = (uint32_t)config->aggregate.max_paths,
		.idle_ns = config->aggregate.idle_ns,
		.slot_ns = config->aggregate.slot_ns,
	};
}

static struct pl_detect_level level(const struct pl_config_level *l)
{
	return (struct pl_detect_level){
		.on = l->on,
		.threshold = l->threshold,
		.low = l->low,
		.begin_hold_ns = l->begin_hold_ns,
		.end_hold_ns = l->end_hold_ns,
		.relative = (uint32_t)l->relative,
		.relative_min = (uint32_t)l->relative_min,
		.step = (uint32_t)l->step,
		.step_relative = (uint32_t)l->step_relative,
		.step_bits = (uint32_t)l->step_bits,
		.step_first = l->step_first,
		.anomaly = l->anomaly,
		.anomaly_min = (uint32_t)l->anomaly_min,
		.limit_interval_ns = l->limit_interval_ns,
		.limit_burst = (uint32_t)l->limit_burst,
	};
}

void pl_config_detect(const struct pl_config *config, struct pl_detect_options *ret)
{
	pl_detect_defaults(ret);
	/* Checked when the file was read. */
	(void)pl_config_units(config, &ret->units, NULL);
	ret->path_change = config->detect.path_change;
	ret->report_loss = config->detect.report_loss;
	ret->packet_drop = config->detect.packet_drop;
	ret->packet_loss = config->detect.packet_loss;
	ret->reordering = config->detect.reordering;
	ret->loss_hold_ns = config->detect.loss_hold_ns;
	ret->queue_depth = level(&config->detect.queue_depth);
	ret->hop_latency = level(&config->detect.hop_latency);
	ret->link_latency = level(&config->detect.link_latency);
	ret->flow_latency = level(&config->detect.flow_latency);
	ret->tx_util = level(&config->detect.tx_util);
	ret->buffer_depth = level(&config->detect.buffer_depth);
	ret->loop = config->detect.loop;
	ret->flow_start = config->detect.flow_start;
	ret->flow_end = config->detect.flow_end;
	ret->microburst.on = config->detect.microburst.on;
	ret->microburst.threshold = (uint32_t)config->detect.microburst.threshold;
	ret->microburst.max_ns = config->detect.microburst.max_ns;
	ret->microburst.flows = (uint32_t)config->detect.microburst.flows;
	ret->learn.window_ns = config->detect.learn.window_ns;
	ret->learn.windows = (uint32_t)config->detect.learn.windows;
	ret->learn.shift = (uint32_t)config->detect.learn.shift;
	ret->learn.deviations = (uint32_t)config->detect.learn.deviations;
	ret->learn.begin_hold_ns = config->detect.learn.begin_hold_ns;
	ret->learn.end_hold_ns = config->detect.learn.end_hold_ns;
	ret->node_silent_ns = config->detect.node_silent_ns;
	ret->keepalive_ns = config->detect.keepalive_ns;
	ret->max_links = (uint32_t)config->detect.max_links;
	ret->forget_ns = config->detect.forget_ns;
	ret->sequence_gap_max = (uint32_t)config->decode.sequence_gap_max;
	ret->max_flows = (uint32_t)config->detect.max_flows;
	ret->max_queues = (uint32_t)config->detect.max_queues;
	ret->max_exporters = (uint32_t)config->decode.max_exporters;
	ret->prove = config->decode.admit == PL_ADMIT_PROVEN;
	ret->flow_idle_ns = config->detect.flow_idle_ns;
	ret->idle_ns = config->detect.idle_ns;
	ret->limit_interval_ns = config->detect.limit_interval_ns;
	ret->limit_burst = (uint32_t)config->detect.limit_burst;
}

void pl_config_copies(const struct pl_config *config, struct pl_kernel_wanted *ret)
{
	const char *const *flags = config->copy.flags.items;

	*ret = (struct pl_kernel_wanted){ .sample = (uint32_t)config->copy.sample };
	/* The texts were checked when the file was read. */
	if (config->copy.address != NULL)
		(void)pl_parse_addr(config->copy.address, &ret->addr);
	ret->node_set =
		config->copy.node != NULL && pl_parse_u64(config->copy.node, &ret->node) == 0;
	for (size_t i = 0; i < config->copy.flags.n; i++)
		ret->flags |= 1u << pl_config_flag_bit(flags[i]);
	ret->match = config->copy.address != NULL || ret->node_set || ret->flags != 0;
}

bool pl_config_source_uri(const struct pl_config_source *source, char *dst, size_t cap)
{
	int n = snprintf(dst, cap, "%s", source->uri);

	if (source->rcvbuf_bytes > 0 && n >= 0 && (size_t)n < cap)
		n += snprintf(dst + n, cap - (size_t)n, "%srcvbuf=%llu",
			strchr(source->uri, '?') != NULL ? "&" : "?",
			(unsigned long long)source->rcvbuf_bytes);
	return n >= 0 && (size_t)n < cap;
}

unsigned int pl_config_sockets(const struct pl_config_source *source)
{
	int in_uri = pl_port_uri_sockets(source->uri, NULL);

	/* "?sockets=4" in the URI means the same as the key; the larger value counts. */
	return in_uri > (int)source->sockets ? (unsigned int)in_uri : (unsigned int)source->sockets;
}

static bool reads_reports(const struct pl_config_query *query)
{
	char *const *from = query->from.items;

	for (size_t i = 0; i < query->from.n; i++) {
		const unsigned int stream = pl_config_query_stream(from[i]);

		if (stream == PL_QUERY_PATHS || stream == PL_QUERY_HOPS)
			return true;
	}
	return false;
}

enum pl_config_where pl_config_where(
	const struct pl_config *config, const struct pl_config_source *source)
{
	const struct pl_config_query *q = config->queries.items;
	const struct pl_config_output *o = config->outputs.items;
	struct pl_kernel_wanted copies;

	if ((pl_port_uri_can(source->uri) & PL_PORT_CAN_DETECT) == 0)
		return PL_DETECT_USER;
	if (config->detect_where != PL_DETECT_AUTO)
		return (enum pl_config_where)config->detect_where;
	for (size_t i = 0; i < config->outputs.n; i++) {
		if (pl_output_kinds[o[i].type]->packets)
			return PL_DETECT_USER;
	}
	pl_config_copies(config, &copies);
	if (copies.sample != 0 || copies.match)
		return PL_DETECT_KERNEL;
	for (size_t i = 0; i < config->outputs.n; i++) {
		if (o[i].paths)
			return PL_DETECT_BOTH;
	}
	for (size_t i = 0; i < config->queries.n; i++) {
		if (reads_reports(&q[i]))
			return PL_DETECT_BOTH;
	}
	return PL_DETECT_KERNEL;
}

bool pl_config_harvests(const struct pl_config *config)
{
	const struct pl_config_source *s = config->sources.items;

	for (size_t i = 0; i < config->sources.n; i++) {
		if (config->detect_aggregates && pl_config_where(config, &s[i]) == PL_DETECT_KERNEL)
			return true;
	}
	return false;
}

unsigned int pl_config_source_workers(
	const struct pl_config *config, const struct pl_config_source *source)
{
	return pl_config_sockets(source) + (pl_config_where(config, source) != PL_DETECT_USER);
}

unsigned int pl_config_workers(const struct pl_config *config)
{
	const struct pl_config_source *s = config->sources.items;
	unsigned int n = pl_config_reads(config) + (config->queries.n + config->marks.n > 0);

	for (size_t i = 0; i < config->sources.n; i++)
		n += pl_config_source_workers(config, &s[i]);
	return n;
}
