/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds a pipeline from a switch's file, and locates errors in the file. */
#include "dataplane/program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_tree.h"
#include "base/file.h"
#include "base/num.h"
#include "dataplane/field.h"

/* ---- reading ---- */

int pl_dp_program_parse(struct pl_dp_program *ret, const char *name, const char *text, size_t len,
	struct pl_diag *diag)
{
	int r;

	*ret = (struct pl_dp_program){ .len = len };
	r = pl_conf_parse(pl_dp_conf_rows, name, text, len, &ret->conf, diag);
	if (r < 0)
		return r;
	snprintf(ret->file, sizeof(ret->file), "%s", name);
	ret->text = malloc(len + 1);
	if (ret->text == NULL) {
		pl_dp_program_done(ret);
		return -ENOMEM;
	}
	memcpy(ret->text, text, len);
	ret->text[len] = '\0';
	return 0;
}

int pl_dp_program_load(struct pl_dp_program *ret, const char *path, struct pl_diag *diag)
{
	char *text;
	size_t len;
	int r = pl_file_read(path, PL_CONF_TEXT_MAX, &text, &len);

	if (r < 0) {
		pl_diag_set(diag, "%s: %s", path, strerror(-r));
		return r;
	}
	r = pl_dp_program_parse(ret, path, text, len, diag);
	free(text);
	return r;
}

void pl_dp_program_done(struct pl_dp_program *program)
{
	pl_conf_done(pl_dp_conf_rows, &program->conf);
	free(program->text);
	program->text = NULL;
}

/* ---- building ---- */

struct builder {
	const struct pl_dp_program *program;
	const uint64_t *macs;
	struct pl_dp_pipeline *p;
	struct pl_diag *diag;
};

/* Adds the place in the file of the value at a path to an error. Returns r, -ENOMEM or -EINVAL. */
__attribute__((format(printf, 3, 4))) static int at(
	const struct builder *b, int r, const char *fmt, ...)
{
	char path[128];
	va_list ap;

	if (r >= 0 || b->diag == NULL)
		return r;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	snprintf(b->diag->file, sizeof(b->diag->file), "%s", b->program->file);
	if (r == -ENOMEM)
		pl_diag_set(b->diag, "out of memory");
	else
		pl_conf_where(b->program->text, b->program->len, path, b->diag);
	return r == -ENOMEM ? r : -EINVAL;
}

static uint64_t mac_of(const struct builder *b, const struct pl_dp_conf_port *port)
{
	uint64_t mac = 0;

	if (port->mac != NULL && pl_dp_mac_parse(port->mac, &mac) == 0)
		return mac;
	if (b->macs != NULL && b->macs[port->number] != 0)
		return b->macs[port->number];
	/* Locally administered. */
	return UINT64_C(0x020000000000) | (b->program->conf.id & 0xffffff) << 16 | port->number;
}

static int check_queues(const struct builder *b, size_t i)
{
	struct pl_dp_port_cfg cfg;
	struct pl_dp_port *port;
	int r;

	pl_dp_program_queues(b->program, i, &cfg);
	r = pl_dp_port_new(&port, &cfg, b->diag);
	if (r == 0)
		pl_dp_port_free(port);
	return r;
}

static int build_addresses(const struct builder *b, const struct pl_dp_conf_port *port, size_t i)
{
	char *const *addresses = port->addresses.items;
	int r = 0;

	for (size_t k = 0; r == 0 && k < port->addresses.n; k++)
		r = at(b,
			pl_dp_pipeline_address(
				b->p, (unsigned int)port->number, addresses[k], b->diag),
			"ports[%zu].addresses[%zu]", i, k);
	return r;
}

static int build_ports(const struct builder *b)
{
	const struct pl_dp_conf_port *ports = b->program->conf.ports.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->program->conf.ports.n; i++) {
		r = at(b,
			pl_dp_pipeline_port(b->p, (unsigned int)ports[i].number,
				mac_of(b, &ports[i]), (uint32_t)ports[i].mtu, b->diag),
			"ports[%zu].number", i);
		if (r == 0)
			r = at(b, check_queues(b, i), "ports[%zu]", i);
		if (r == 0)
			r = build_addresses(b, &ports[i], i);
	}
	/* After the addresses, because ports without one use another port's. */
	for (size_t i = 0; r == 0 && i < b->program->conf.ports.n; i++)
		pl_dp_pipeline_icmp(b->p, (unsigned int)ports[i].number, (uint32_t)ports[i].icmp);
	return r;
}

static int build_cells(const struct builder *b)
{
	const struct pl_dp_conf *c = &b->program->conf;
	const struct pl_dp_conf_cells *counters = c->counters.items,
				      *registers = c->registers.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->counters.n; i++)
		r = at(b,
			pl_dp_pipeline_counter(
				b->p, counters[i].name, (uint32_t)counters[i].size, b->diag),
			"counters[%zu].name", i);
	for (size_t i = 0; r == 0 && i < c->registers.n; i++)
		r = at(b,
			pl_dp_pipeline_register(
				b->p, registers[i].name, (uint32_t)registers[i].size, b->diag),
			"registers[%zu].name", i);
	return r;
}

static int build_meters(const struct builder *b)
{
	const struct pl_dp_conf_meter *meters = b->program->conf.meters.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->program->conf.meters.n; i++) {
		const struct pl_dp_conf_meter *m = &meters[i];
		double rate = 0, peak = 0;

		/* Both were checked when the file was read. */
		(void)pl_parse_rate(m->rate, &rate);
		if (m->peak_rate != NULL)
			(void)pl_parse_rate(m->peak_rate, &peak);
		r = at(b,
			pl_dp_pipeline_meter(b->p, m->name, (uint32_t)m->size,
				&(struct pl_dp_meter_cfg){
					(uint64_t)rate, m->burst, (uint64_t)peak, m->peak_burst },
				b->diag),
			"meters[%zu]", i);
	}
	return r;
}

static int build_groups(const struct builder *b)
{
	const struct pl_dp_conf_group *groups = b->program->conf.groups.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->program->conf.groups.n; i++) {
		char *const *members = groups[i].members.items;

		r = at(b, pl_dp_pipeline_group(b->p, groups[i].name, b->diag), "groups[%zu].name",
			i);
		for (size_t k = 0; r == 0 && k < groups[i].members.n; k++)
			r = at(b, pl_dp_pipeline_member(b->p, groups[i].name, members[k], b->diag),
				"groups[%zu].members[%zu]", i, k);
	}
	return r;
}

static int build_table(const struct builder *b, const struct pl_dp_conf_table *t, size_t i)
{
	size_t bad;
	int r = pl_dp_pipeline_table(b->p, t->name, (enum pl_dp_stage)t->stage, (uint32_t)t->size,
		(const char *const *)t->key.items, t->key.n, &bad, b->diag);

	if (bad < t->key.n)
		return at(b, r, "tables[%zu].key[%zu]", i, bad);
	return at(b, r, "tables[%zu].name", i);
}

static int build_entries(const struct builder *b, const struct pl_dp_conf_table *t, size_t i)
{
	const size_t n = t->entries.n;
	char *const *entries = t->entries.items;
	struct pl_dp_change *changes;
	size_t bad;
	int r = 0;

	if (t->miss != NULL)
		r = at(b, pl_dp_pipeline_miss(b->p, t->name, t->miss, b->diag), "tables[%zu].miss",
			i);
	if (r < 0 || n == 0)
		return r;
	changes = calloc(n, sizeof(*changes));
	if (changes == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++)
		changes[k] = (struct pl_dp_change){ PL_DP_ADD, t->name, entries[k] };
	r = pl_dp_pipeline_change(b->p, changes, n, &bad, b->diag);
	free(changes);
	return at(b, r, "tables[%zu].entries[%zu]", i, bad);
}

/* Makes all tables before their entries, because an entry may name a later table. */
static int build_tables(const struct builder *b)
{
	const struct pl_dp_conf_table *tables = b->program->conf.tables.items;
	const size_t n = b->program->conf.tables.n;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = build_table(b, &tables[i], i);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = build_entries(b, &tables[i], i);
	return r;
}

/* ---- alternate marking ---- */

static int build_settings(const struct builder *b)
{
	const struct pl_dp_conf_marking *c = &b->program->conf.marking;
	struct pl_dp_marking_cfg cfg = { .method = (uint8_t)(c->method + 1),
		.period_ns = c->period,
		.spread = { c->clock_error, c->delay, c->deviation },
		.send = c->send };
	int r = at(b,
		pl_mark_where_parse(&cfg.where, cfg.method, (const char *const *)c->bits.items,
			c->bits.n, b->diag),
		"marking.bits");

	return r == 0 ? at(b, pl_dp_pipeline_marking(b->p, &cfg, b->diag), "marking") : r;
}

static int build_marking(const struct builder *b)
{
	const struct pl_dp_conf_marking *c = &b->program->conf.marking;
	const struct pl_dp_conf_point *points = c->points.items;
	int r = c->points.n > 0 ? build_settings(b) : 0;

	for (size_t i = 0; r == 0 && i < c->points.n; i++) {
		const struct pl_dp_point_cfg cfg = { .number = (uint32_t)points[i].number,
			.port = (uint16_t)points[i].port,
			.out = points[i].direction == 1,
			.role = (uint8_t)points[i].role,
			.by = (uint8_t)points[i].by,
			.flows_max = (uint32_t)points[i].flows,
			.cells = points[i].cells,
			.table = points[i].table };

		if ((points[i].cells != NULL) != (points[i].table != NULL) ||
			(points[i].cells != NULL) == (points[i].port != 0)) {
			pl_diag_set(b->diag,
				"a point needs a port, or cells and the table of their flows");
			return at(b, -EINVAL, "marking.points[%zu]", i);
		}
		r = at(b, pl_dp_marking_point(pl_dp_pipeline_points(b->p), &cfg, b->diag),
			"marking.points[%zu]", i);
	}
	return r;
}

int pl_dp_program_build(const struct pl_dp_program *program,
	const struct pl_dp_pipeline_options *options, const uint64_t *macs,
	struct pl_dp_pipeline **ret, struct pl_diag *diag)
{
	struct pl_dp_pipeline_options o = *options;
	struct builder b = { .program = program, .macs = macs, .diag = diag };
	int r;

	o.name = program->conf.name;
	o.node_id = (uint32_t)program->conf.id;
	r = pl_dp_pipeline_new(&b.p, &o);
	if (r == 0)
		r = build_ports(&b);
	if (r == 0)
		r = build_cells(&b);
	if (r == 0)
		r = build_meters(&b);
	if (r == 0)
		r = build_groups(&b);
	if (r == 0)
		r = build_tables(&b);
	if (r == 0)
		r = build_marking(&b);
	if (r < 0) {
		pl_dp_pipeline_free(b.p);
		return r;
	}
	*ret = b.p;
	return 0;
}

static uint64_t rate_of(const char *text)
{
	double rate = 0;

	/* The text was checked when the file was read. */
	if (text != NULL)
		(void)pl_parse_rate(text, &rate);
	return (uint64_t)rate;
}

void pl_dp_program_queues(const struct pl_dp_program *program, size_t i, struct pl_dp_port_cfg *ret)
{
	const struct pl_dp_conf_port *port =
		(const struct pl_dp_conf_port *)program->conf.ports.items + i;
	const struct pl_dp_conf_queue *queues = port->queues.items;

	*ret = (struct pl_dp_port_cfg){ .rate_bps = rate_of(port->rate),
		.overhead_bytes = (uint32_t)port->overhead,
		.limit_bytes = (uint32_t)port->limit,
		.n_classes = port->queues.n > 0 ? (uint32_t)port->queues.n : 1,
		.classes = { { .limit_bytes = 1u << 20 } } };
	for (size_t k = 0; k < port->queues.n; k++)
		ret->classes[k] =
			(struct pl_dp_class_cfg){ .limit_bytes = (uint32_t)queues[k].limit,
				.weight = (uint32_t)queues[k].weight,
				.rate_bps = rate_of(queues[k].rate),
				.burst_bytes = (uint32_t)queues[k].burst,
				.ecn_bytes = (uint32_t)queues[k].ecn };
}

void pl_dp_program_clock(
	const struct pl_dp_program *program, uint64_t true_ns, struct pl_dp_clock *ret)
{
	int64_t offset_ns = 0, drift_ppb = 0;

	/* The texts were checked when the file was read. */
	if (program->conf.clock_offset != NULL)
		(void)pl_dp_clock_parse_offset(program->conf.clock_offset, &offset_ns, NULL);
	if (program->conf.clock_drift != NULL)
		(void)pl_dp_clock_parse_drift(program->conf.clock_drift, &drift_ppb, NULL);
	(void)pl_dp_clock_set(ret, true_ns, offset_ns, drift_ppb);
}

static void swallow(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	(void)arg;
	(void)stage;
	pl_dp_packet_free(pkt);
}

int pl_dp_program_check(const struct pl_dp_program *program, struct pl_diag *diag)
{
	const struct pl_dp_pipeline_options options = { .ops = { .out = swallow } };
	struct pl_dp_pipeline_options o = options;
	struct pl_dp_pipeline *p;
	int r = pl_dp_pool_new(&o.pool, PL_DP_HEADROOM + 64, 1);

	if (r < 0)
		return r;
	r = pl_dp_program_build(program, &o, NULL, &p, diag);
	if (r == 0)
		pl_dp_pipeline_free(p);
	pl_dp_pool_free(o.pool);
	return r;
}
