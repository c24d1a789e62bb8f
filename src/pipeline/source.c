/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: makes workers for the sockets and queues of a configured source, and chooses their
 * processors. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "netio/port.h"
#include "netio/rss.h"
#include "pipeline/event_feed.h"
#include "pipeline/kernel_source.h"
#include "pipeline/region_source.h"
#include "pipeline/state.h"

/* Returns the worker that drives the detector in the kernel, or NULL after logging why there is
 * none. */
static struct pl_worker *open_detector(struct pl_pipeline *p, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *s, unsigned int queues)
{
	bool both = pl_config_where(config, s) == PL_DETECT_BOTH;
	struct pl_diag why = { .text = "" };
	struct pl_kernel_source *kernel;
	struct pl_worker *driver;
	int r = pl_kernel_source_new(&kernel, config, profiles, s, queues, both, &why);

	if (r == 0)
		r = pl_kernel_source_worker(&driver, kernel, queues, p->next_id++, &why);
	if (r == 0) {
		pl_notice("source", "%s: the kernel detects%s", s->uri,
			both ? ", and copies every report to user space" : "");
		return driver;
	}
	pl_warn("source", "%s: detects in user space, because the kernel cannot: %s", s->uri,
		why.text[0] != '\0' ? why.text : strerror(-r));
	return NULL;
}

/* Copies the interface of "afxdp:eth0?queues=0"; returns false for other URIs. */
static bool interface_of(const char *uri, char *dst, size_t cap)
{
	const char *colon = strchr(uri, ':');
	size_t n;

	if (colon == NULL || (pl_port_uri_can(uri) & PL_PORT_CAN_INTERFACE) == 0)
		return false;
	n = strcspn(colon + 1, "?");
	if (n == 0 || n >= cap)
		return false;
	memcpy(dst, colon + 1, n);
	dst[n] = '\0';
	return true;
}

/* Each queue has its own account of an exporter's sequence numbers. */
static void warn_of_ports(const char *uri)
{
	char interface[64];

	if (!interface_of(uri, interface, sizeof(interface)) ||
		pl_rss_of(interface) != PL_RSS_PORTS)
		return;
	pl_warn("source",
		"%s: the NIC chooses receive queues by UDP ports too: reports of an exporter that changes its source port will look lost; 'ethtool -N %s rx-flow-hash udp4 sd' (and udp6) keeps each exporter on one queue",
		uri, interface);
}

/* Opens the address exclusively first: another process of this user could share it, and would then
 * get a part of the reports. */
static int is_ours_alone(const char *uri, bool v6only, struct pl_diag *diag)
{
	const struct pl_port_options options = { .v6only = v6only };
	struct pl_port *alone;
	int r = pl_port_open(&alone, uri, PL_PORT_RECV, &options, diag);

	if (r == 0)
		pl_port_close(alone);
	return r;
}

/* Returns whether another source receives the packets that come by IPv4. */
static bool is_v6only(const struct pl_config *config, const struct pl_config_source *s)
{
	const struct pl_config_source *all = config->sources.items;

	for (size_t i = 0; i < config->sources.n; i++) {
		if (pl_port_uri_v6only(s->uri, all[i].uri))
			return true;
	}
	return false;
}

int pl_pipeline_open_source(struct pl_pipeline *p, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *s,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag)
{
	unsigned int of = pl_config_sockets(s), first = *n;
	const bool v6only = is_v6only(config, s);
	struct pl_worker *driver = NULL;
	char uri[512];
	int r = 0;

	if (!pl_config_source_uri(s, uri, sizeof(uri)))
		return -EINVAL;
	if (of > 1 && (pl_port_uri_can(uri) & PL_PORT_CAN_SHARE) != 0)
		r = is_ours_alone(uri, v6only, diag);
	if (r == 0 && of > 1)
		warn_of_ports(uri);
	if (r == 0 && pl_config_where(config, s) != PL_DETECT_USER)
		driver = open_detector(p, config, profiles, s, of);
	else if (r == 0 && (config->detect_where == PL_DETECT_KERNEL ||
				   config->detect_where == PL_DETECT_BOTH))
		pl_notice("source",
			"%s: detects in user space; detection in the kernel needs an afxdp: source",
			s->uri);
	for (unsigned int i = 0; r == 0 && i < of; i++) {
		struct pl_worker_source source = { .name = s->uri,
			.uri = uri,
			.index = i,
			.of = of,
			.with = i > 0 ? workers[first]->port : NULL,
			.v6only = v6only,
			.rights = p->rights,
			.program = driver != NULL
					   ? pl_kernel_source_program(pl_kernel_source_of(driver))
					   : NULL,
			.partial = driver != NULL,
			.detected_elsewhere = driver != NULL };

		r = pl_worker_new(&workers[*n], &source, p->next_id++,
			(uint32_t)config->decode.max_exporters, diag);
		*n += r == 0;
	}
	/* The driver owns what the queues use: it comes last, so it is freed last. */
	if (r == 0 && driver != NULL)
		workers[(*n)++] = driver;
	if (r < 0) {
		while (*n > first)
			pl_worker_free(workers[--*n]);
		pl_worker_free(driver);
	}
	return r;
}

int pl_pipeline_open_regions(struct pl_pipeline *p, const struct pl_config *config,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag)
{
	struct pl_worker_source source = {
		.name = PL_REGION_SOURCE_NAME, .uri = PL_REGION_SOURCE_NAME, .of = 1
	};
	int r;

	if (!pl_config_reads(config))
		return 0;
	assert(*n < PL_WORKERS_MAX);
	r = pl_region_source_new(&p->regions, config, &p->keys);
	if (r < 0)
		return r;
	source.feed = pl_region_source_feed(p->regions);
	r = pl_worker_new(
		&workers[*n], &source, p->next_id++, (uint32_t)config->decode.max_exporters, diag);
	*n += r == 0;
	if (r < 0) {
		pl_region_source_free(p->regions);
		p->regions = NULL;
	}
	return r;
}

int pl_pipeline_open_events(struct pl_pipeline *p, const struct pl_config *config,
	struct pl_worker **workers, unsigned int *n, struct pl_diag *diag)
{
	struct pl_worker_source source = {
		.name = PL_EVENT_FEED_NAME, .uri = PL_EVENT_FEED_NAME, .of = 1
	};
	int r;

	if (config->queries.n + config->marks.n == 0)
		return 0;
	assert(*n < PL_WORKERS_MAX);
	r = pl_event_feed_new(&p->events);
	if (r < 0)
		return r;
	source.feed = pl_event_feed_feed(p->events);
	r = pl_worker_new(&workers[*n], &source, p->next_id++, 1, diag);
	*n += r == 0;
	if (r < 0) {
		pl_event_feed_free(p->events);
		p->events = NULL;
	}
	return r;
}

uint32_t pl_pipeline_put_events(struct pl_pipeline *p, const struct pl_event *events, uint32_t n)
{
	return p->events != NULL ? pl_event_feed_put(p->events, events, n) : 0;
}

void pl_pipeline_name_keys(
	struct pl_pipeline *p, const char *region, const struct pl_key_names *names)
{
	assert(p->keys.n < PL_CONFIG_REGIONS_MAX);
	p->keys.items[p->keys.n].region = region;
	p->keys.items[p->keys.n++].names = names;
	if (p->regions != NULL)
		pl_region_source_take_keys(p->regions);
}

void pl_pipeline_wake_regions(struct pl_pipeline *p)
{
	if (p->regions != NULL)
		pl_region_source_wake(p->regions);
}

/* ---- processors ---- */

int pl_source_parse_cpus(const char *text, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	while (*text != '\0' && *text != '\n') {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to = from;

		if (end == text)
			return -EINVAL;
		if (*end == '-') {
			text = end + 1;
			to = strtoul(text, &end, 10);
			if (end == text)
				return -EINVAL;
		}
		if (to < from || to >= CPU_SETSIZE)
			return -EINVAL;
		for (; from <= to; from++)
			CPU_SET(from, ret);
		if (*end != ',' && *end != '\0' && *end != '\n')
			return -EINVAL;
		text = *end == ',' ? end + 1 : end;
	}
	return 0;
}

int pl_source_choose_cpu(const cpu_set_t *allowed, const cpu_set_t *near, unsigned int i)
{
	cpu_set_t set = *allowed;
	unsigned int n;

	if (near != NULL)
		CPU_AND(&set, allowed, near);
	if (CPU_COUNT(&set) == 0)
		set = *allowed;
	if (CPU_COUNT(&set) == 0)
		return -1;
	n = i % (unsigned int)CPU_COUNT(&set);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && n-- == 0)
			return (int)cpu;
	}
	return -1;
}

static bool read_text(const char *path, char *dst, size_t cap)
{
	FILE *f = fopen(path, "re");
	bool good;

	if (f == NULL)
		return false;
	good = fgets(dst, (int)cap, f) != NULL;
	fclose(f);
	return good;
}

/* Finds the processors on the memory node of a NIC; returns false for a virtual interface, which
 * has none. */
static bool cpus_near(const char *interface, cpu_set_t *ret)
{
	char path[128], text[1024];
	int node;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", interface);
	if (!read_text(path, text, sizeof(text)))
		return false;
	node = (int)strtol(text, NULL, 10);
	if (node < 0)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	return read_text(path, text, sizeof(text)) && pl_source_parse_cpus(text, ret) == 0;
}

int pl_source_cpu(const struct pl_worker *w, enum pl_config_pin pin)
{
	cpu_set_t allowed, near;
	char interface[64];
	bool is_interface = interface_of(w->uri, interface, sizeof(interface));

	if (pin == PL_PIN_FALSE || (pin == PL_PIN_AUTO && !is_interface))
		return -1;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -1;
	if (pin == PL_PIN_AUTO && w->of >= (unsigned int)CPU_COUNT(&allowed))
		return -1;
	return pl_source_choose_cpu(
		&allowed, is_interface && cpus_near(interface, &near) ? &near : NULL, w->id);
}
