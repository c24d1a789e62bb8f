/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the services that a configuration asks for. */
#include "service/one_process.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "memory/region.h"

/* Has the collector read regions at once after a service of this process has written them. */
static void wake(void *arg)
{
	struct pl_one_process *p = arg;

	if (p->collector.began)
		pl_pipeline_wake_regions(p->collector.daemon.pipeline);
}

static uint32_t put_events(void *arg, const struct pl_event *events, uint32_t n)
{
	const struct pl_one_process *p = arg;

	return pl_pipeline_put_events(p->collector.daemon.pipeline, events, n);
}

/* Lists the regions that another process or an output writes; this process only shows them. */
static unsigned int list_shown(const struct pl_config *c, const char **names, const char **paths)
{
	unsigned int n = pl_list_regions(c, PL_WRITER_OTHER, names, paths);

	return n + pl_list_regions(c, PL_WRITER_OUTPUT, names + n, paths + n);
}

/* Makes the tables in which the translator notes keys of key-write regions, which do not store
 * them. A region that cannot be opened is reported by the translator. */
static int make_keys(struct pl_one_process *p)
{
	const struct pl_config_region *r = p->config.regions.items;
	struct pl_region *region;
	unsigned int n = 0;
	int e = 0;

	for (size_t i = 0; e == 0 && i < p->config.regions.n; i++) {
		if (r[i].writer != PL_WRITER_DTA)
			continue;
		if (pl_config_reads_region(&r[i]) &&
			pl_region_open(&region, r[i].path, PL_REGION_READ, NULL, NULL) == 0) {
			if (pl_region_params(region)->primitive == PL_KEY_WRITE)
				e = pl_key_names_new(&p->keys[n], pl_region_params(region));
			(void)pl_region_close(region);
		}
		n++;
	}
	return e;
}

static void read_dta(struct pl_one_process *p)
{
	struct pl_translate_options *o = &p->dta.options;

	pl_translate_configure(&p->dta, &p->config);
	o->written = wake;
	o->written_arg = p;
	o->keys = p->config.dta.to == NULL ? p->keys : NULL;
	p->translate.o = o;
}

static void read_rdma(struct pl_one_process *p)
{
	pl_memory_configure(&p->rdma, &p->config);
	p->rdma.options.written = wake;
	p->rdma.options.written_arg = p;
	p->memory.o = &p->rdma.options;
}

/* ---- reload ---- */

/* Applies rules and points, the only keys of taps that a reload changes. */
static void change_taps(struct pl_one_process *p, const struct pl_config *config)
{
	if (!pl_config_same_taps(&p->config, config))
		pl_warn("reload",
			"taps: only rules and point are changed by a reload; the other keys, and "
			"taps that come or go, stay as they were until a restart");
	pl_taps_change(&p->taps, config);
}

/* Changes the services beside the collector: regions of other writers, queries, taps and marks. */
static int change(void *arg, const struct pl_config *config, struct pl_diag *diag)
{
	struct pl_one_process *p = arg;
	const char *names[PL_CONFIG_REGIONS_MAX], *paths[PL_CONFIG_REGIONS_MAX];
	const unsigned int n = list_shown(config, names, paths);
	int r = pl_region_readers_change(&p->readers, names, paths, n, diag);

	if (r == 0 && !pl_config_same_services(&p->config, config))
		pl_warn("reload",
			"dta, rdma and the regions that they write stay as they were: a restart "
			"changes them");
	if (r == 0 && !pl_config_same_marks(&p->config, config))
		pl_warn("reload",
			"marks: only allow, clock_error and the bounds of events are changed by a "
			"reload; the other keys, and domains that come or go, stay as they were until "
			"a restart");
	if (r == 0)
		r = pl_standing_change(&p->queries, config, diag);
	if (r < 0)
		return r;
	change_taps(p, config);
	pl_marks_change(&p->marks, config);
	pl_standing_push_again(&p->queries);
	return 0;
}

/* ---- all of it ---- */

static void add(struct pl_one_process *p, const struct pl_service_ops *ops, void *s)
{
	p->services[p->n++] = (struct pl_service){ ops, s };
}

static int attach(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag)
{
	struct pl_one_process *p = arg;

	for (unsigned int i = 0; i < p->dta.options.n_to; i++) {
		if (p->keys[i] != NULL)
			pl_pipeline_name_keys(pipeline, p->dta.names[i], p->keys[i]);
	}
	return p->has_queries ? pl_standing_attach(&p->queries, pipeline, diag) : 0;
}

static void give_segments(void *arg, const struct pl_seg192 *records, uint32_t n)
{
	struct pl_taps_one *tap = arg;

	pl_tap_service_give(&tap->service, PL_FLAT_SEG192, records, n);
}

static void give_blocks(void *arg, const struct pl_mark128 *records, uint32_t n)
{
	pl_taps_give(arg, PL_FLAT_MARK128, records, n);
}

/* Adds a tap for each marking domain, for its sockets and outputs. */
static int add_marks(struct pl_one_process *p, struct pl_diag *diag)
{
	int r;

	p->marks.put = put_events;
	p->marks.arg = p;
	r = pl_marks_init(&p->marks, &p->config, diag);
	for (unsigned int i = 0; r == 0 && i < p->marks.n; i++) {
		struct pl_marks_one *one = p->marks.items[i];
		struct pl_taps_one *tap;

		p->marks_taps[i] = (struct pl_taps_added){ .name = one->name,
			.sources = one->ports,
			.n_sources = one->n_ports,
			.to = one->to,
			.n_to = one->n_to,
			.in = PL_FLAT_MARK128,
			.out = PL_FLAT_SEG192,
			.prove = p->config.decode.admit == PL_ADMIT_PROVEN,
			.max_exporters = (uint32_t)p->config.metrics.max_exporters,
			.sink = pl_marks_take,
			.draining = pl_marks_finish,
			.arg = one };
		r = pl_taps_add(&p->taps, &p->marks_taps[i], &tap, diag);
		if (r < 0)
			break;
		one->receiver = &tap->service.receiver;
		one->give = give_segments;
		one->give_blocks = give_blocks;
		one->give_arg = tap;
	}
	return r;
}

/* Makes the configured taps, the taps of marks, and the queries. */
static int add_queries(struct pl_one_process *p, struct pl_diag *diag)
{
	int r = pl_taps_init(&p->taps, &p->config);

	if (r < 0)
		return r;
	r = add_marks(p, diag);
	if (r < 0)
		return r;
	if (p->marks.n > 0)
		p->collector_options.marks = &p->marks;
	if (p->taps.n > 0)
		p->collector_options.taps = &p->taps;
	p->queries.put = put_events;
	p->queries.arg = p;
	r = pl_standing_init(&p->queries, &p->taps, &p->config, diag);
	/* A reload may add queries where there are taps. */
	if (r < 0 || p->taps.n + p->queries.n == 0)
		return r;
	/* The collector is drained after the taps, whose last records it gets, and after the
	 * writers of regions, whose records it reads. */
	add(p, &pl_standing_service, &p->queries);
	p->has_queries = true;
	return 0;
}

int pl_one_process_init(struct pl_one_process *p, struct pl_config *config,
	const struct pl_report_collector_options *collector, struct pl_diag *diag)
{
	const char *names[PL_CONFIG_REGIONS_MAX], *paths[PL_CONFIG_REGIONS_MAX];
	unsigned int n;
	int r;

	/* The collector's configuration changes with reloads; other services point into this
	 * copy. */
	p->collector.config = *config;
	*config = (struct pl_config){ .sources = { .n = 0 } };
	r = pl_config_copy(&p->config, &p->collector.config);
	if (r < 0) {
		pl_diag_set(diag, "%s", strerror(-r));
		return r;
	}
	n = list_shown(&p->config, names, paths);
	r = pl_region_readers_init(&p->readers, names, paths, n);
	if (r < 0)
		return r;
	p->collector_options = *collector;
	p->collector_options.changed = change;
	p->collector_options.changed_arg = p;
	p->collector_options.ready = attach;
	p->collector_options.ready_arg = p;
	p->collector.o = &p->collector_options;
	add(p, &pl_report_collector_service, &p->collector);
	r = add_queries(p, diag);
	if (r < 0)
		return r;
	if (p->marks.n > 0)
		add(p, &pl_marks_service, &p->marks);
	/* Drained after the writers of regions, because marks read these. */
	if (p->taps.n > 0)
		add(p, &pl_taps_service, &p->taps);
	if (p->config.dta.listen != NULL) {
		r = p->config.dta.to == NULL ? make_keys(p) : 0;
		if (r < 0)
			return r;
		read_dta(p);
		add(p, &pl_translate_service, &p->translate);
	}
	if (p->config.rdma.interface != NULL) {
		read_rdma(p);
		add(p, &pl_memory_service, &p->memory);
	}
	add(p, &pl_region_reader_service, &p->readers);
	p->collector_options.alone = p->n == 2 && p->readers.n == 0;
	return 0;
}

bool pl_one_process_lost(struct pl_one_process *p)
{
	return p->collector.left > 0 || pl_translate_lost(&p->translate) ||
	       pl_region_watch_lost(&p->memory.watch) || pl_taps_lost(&p->taps) ||
	       pl_standing_lost(&p->queries) || pl_marks_lost(&p->marks);
}

int pl_one_process_done(struct pl_one_process *p)
{
	int r, e;

	pl_report_collector_close(&p->collector);
	r = pl_translate_close(&p->translate);
	e = pl_memory_server_close(&p->memory);
	pl_standing_close(&p->queries);
	pl_taps_close(&p->taps);
	pl_marks_close(&p->marks);
	pl_region_readers_done(&p->readers);
	for (unsigned int i = 0; i < PL_CONFIG_REGIONS_MAX; i++)
		pl_key_names_free(p->keys[i]);
	pl_config_done(&p->config);
	return r < 0 ? r : e;
}
