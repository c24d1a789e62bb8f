/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the taps of a configuration. */
#include "service/taps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/say.h"
#include "service/tap_counts.h"
#include "service/tap_drops.h"
#include "service/tap_places.h"
#include "service/tap_rules.h"
#include "service/tap_source.h"

#define CONDITIONS_NS UINT64_C(100000000) /* time between two checks of conditions */

/* ---- options of the configuration ---- */

static const enum pl_flat_kind kinds[] = { PL_FLAT_PKT96, PL_FLAT_FLOW288, PL_FLAT_DNS64,
	PL_FLAT_DROP168 };

/* Returns the kinds that the tap makes for its outputs. Sources of drops have no other kind. */
static uint32_t kinds_made(const struct pl_config_tap *t)
{
	return t->to.n > 0 || t->records == PL_TAP_RECORDS_DROPS ? 1u << kinds[t->records] : 0;
}

void pl_taps_give(
	const struct pl_taps_one *one, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	if (one->all->watch != NULL)
		pl_watch_tapped(one->all->watch, kind, records, n);
	if ((one->kinds & 1u << kind) != 0 && one->all->take != NULL)
		one->all->take(one->all->arg, one->index, kind, records, n);
}

static void take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	const struct pl_taps_one *one = arg;

	/* The other service gives those that it accepts. */
	if (one->added != NULL && kind == one->added->in)
		one->added->sink(one->added->arg, kind, records, n);
	else
		pl_taps_give(one, kind, records, n);
}

bool pl_taps_may_push(const struct pl_taps_one *one)
{
	return one->added == NULL && one->options.n_to == 0 && one->configured.n == 0;
}

static void note_kinds(struct pl_taps_one *one)
{
	const bool counts =
		one->options.plan != NULL && (one->service.counting || !one->all->began);
	const bool some = pl_taps_may_push(one) && (one->options.rules.n > 0 || counts);

	atomic_store(&one->makes, one->options.kinds | (some ? PL_TAPS_PARTIAL : 0));
}

static void turned(void *arg)
{
	const struct pl_taps_one *one = arg;

	if (one->all->watch != NULL)
		pl_watch_turned(one->all->watch);
	if (one->all->turned != NULL)
		one->all->turned(one->all->arg);
}

static void passed(void *arg, uint64_t ts_ns)
{
	const struct pl_taps_one *one = arg;

	if (one->all->passed != NULL)
		one->all->passed(one->all->arg, one->index, ts_ns);
}

static void counts(void *arg, const struct pl_tap_count *some, uint32_t n)
{
	const struct pl_taps_one *one = arg;

	if (one->all->counts != NULL)
		one->all->counts(one->all->arg, one->index, some, n);
}

static void counting(void *arg, bool on)
{
	struct pl_taps_one *one = arg;

	note_kinds(one);
	if (one->all->counting != NULL)
		one->all->counting(one->all->arg, one->index, on);
}

static bool full(void *arg)
{
	(void)arg;
	return false;
}

static void read_tap(struct pl_taps_one *one, const struct pl_config_tap *t)
{
	one->name = t->name;
	one->options = (struct pl_tap_options){ .sources = t->sources.items,
		.n_sources = t->sources.n,
		.to = t->to.items,
		.n_to = t->to.n,
		.print = { take, turned, full, one, passed, counts, counting },
		.point = (uint16_t)t->point,
		.inner = t->inner,
		.vxlan_ports = pl_config_vxlan_ports(&t->vxlan_ports),
		.exporter = (uint32_t)t->exporter,
		.kinds = kinds_made(t),
		.out = kinds[t->records],
		.flow = PL_FLOW_CONFIG,
		.shared = true };
	one->options.flow.max_flows = (uint32_t)t->flows.table;
	one->options.flow.idle_ns = t->flows.idle_ns;
	one->options.flow.active_ns = t->flows.active_ns;
	one->options.flow_state = t->flows.state;
	pl_config_tap_rules(t, &one->configured);
	one->options.rules = one->configured;
	one->service.o = &one->options;
	note_kinds(one);
}

int pl_taps_init(struct pl_taps *ret, const struct pl_config *config)
{
	const struct pl_config_tap *t = config->taps.items;

	*ret = (struct pl_taps){ .n = 0 };
	for (size_t i = 0; i < config->taps.n; i++) {
		struct pl_taps_one *one = calloc(1, sizeof(*one));

		if (one == NULL)
			return -ENOMEM;
		one->all = ret;
		one->index = ret->n;
		read_tap(one, &t[i]);
		one->options.prove = config->decode.admit == PL_ADMIT_PROVEN;
		one->options.max_exporters = (uint32_t)config->metrics.max_exporters;
		ret->taps[ret->n++] = one;
	}
	return 0;
}

int pl_taps_add(struct pl_taps *taps, const struct pl_taps_added *added, struct pl_taps_one **ret,
	struct pl_diag *diag)
{
	struct pl_taps_one *one;

	if (taps->n == PL_CONFIG_TAPS_MAX) {
		pl_diag_set(diag, "at most %d taps and marking domains", PL_CONFIG_TAPS_MAX);
		return -EINVAL;
	}
	one = calloc(1, sizeof(*one));
	if (one == NULL)
		return -ENOMEM;
	one->name = added->name;
	one->all = taps;
	one->index = taps->n;
	one->added = added;
	one->options = (struct pl_tap_options){ .sources = added->sources,
		.n_sources = added->n_sources,
		.to = added->to,
		.n_to = added->n_to,
		.print = { take, turned, full, one, passed, counts, counting },
		.kinds = 1u << added->in | 1u << added->out,
		.out = added->out,
		.prove = added->prove,
		.max_exporters = added->max_exporters,
		.flow = PL_FLOW_CONFIG,
		.shared = true,
		.draining = added->draining,
		.draining_arg = added->arg };
	one->service.o = &one->options;
	note_kinds(one);
	taps->taps[taps->n++] = one;
	*ret = one;
	return 0;
}

/* Refuses a mixture of captures, which have an end, and live sources. */
static int check_live(const struct pl_config_tap *t, struct pl_diag *diag)
{
	char *const *sources = t->sources.items;

	for (size_t i = 0; i < t->sources.n; i++) {
		const bool live = pl_tap_source_is_live(sources[i]);

		if (live != pl_tap_source_is_live(sources[0])) {
			pl_diag_set(diag, "captures and live sources cannot be read by one tap");
			return -EINVAL;
		}
		if (!live && t->flows.state != NULL) {
			pl_diag_set(diag, "flows.state is of live sources, not of captures");
			return -EINVAL;
		}
	}
	return 0;
}

static int check_one(const struct pl_config_tap *t, struct pl_diag *diag)
{
	const struct pl_tap_out_settings settings = { .kind = kinds[t->records] };
	char *const *sources = t->sources.items, *const *to = t->to.items;
	struct pl_tap_rules rules = { .n = 0 };
	int r = check_live(t, diag);

	pl_config_tap_rules(t, &rules);
	for (size_t i = 0; r == 0 && i < t->sources.n; i++)
		r = pl_tap_rules_fit(&rules, sources[i], diag);
	for (size_t i = 0; r == 0 && i < t->sources.n; i++)
		r = pl_tap_source_check(sources[i], t->inner,
			t->to.n > 0 && settings.kind == PL_FLAT_DNS64, false, diag);
	for (size_t i = 0; r == 0 && i < t->sources.n; i++)
		r = pl_tap_source_makes(sources[i], kinds_made(t), diag);
	for (size_t i = 0; r == 0 && i < t->to.n; i++)
		r = pl_tap_out_check(to[i], &settings, diag);
	return r;
}

int pl_taps_check(const struct pl_config *config, struct pl_diag *diag)
{
	const struct pl_config_tap *t = config->taps.items;
	struct pl_diag why = { .text = "" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < config->taps.n; i++) {
		r = check_one(&t[i], &why);
		if (r < 0)
			pl_diag_set(diag, "tap %s: %s", t[i].name, why.text);
		for (size_t k = 0; r == 0 && k < i && t[i].flows.state != NULL; k++) {
			if (t[k].flows.state == NULL ||
				strcmp(t[i].flows.state, t[k].flows.state) != 0)
				continue;
			pl_diag_set(
				diag, "taps %zu and %zu have the same flows.state", k + 1, i + 1);
			r = -EINVAL;
		}
	}
	return r;
}

int pl_taps_want(struct pl_taps *taps, unsigned int tap, uint32_t wanted, struct pl_diag *diag)
{
	struct pl_taps_one *one = taps->taps[tap];
	struct pl_diag why = { .text = "" };
	int r = 0;

	/* The socket's snap length was set when it was opened. */
	if (taps->began && (wanted & ~one->options.kinds & 1u << PL_FLAT_DNS64) != 0) {
		pl_diag_set(diag,
			"tap %s was opened without DNS messages: a query of dns needs a restart",
			one->name);
		return -EINVAL;
	}
	for (size_t i = 0; r == 0 && i < one->options.n_sources; i++)
		r = pl_tap_source_makes(one->options.sources[i], one->options.kinds | wanted, &why);
	if (r < 0)
		pl_diag_set(diag, "tap %s: %s", one->name, why.text);
	if (r == 0 && taps->began)
		r = pl_tap_service_want(&one->service, wanted, diag);
	if (r < 0)
		return r;
	one->kinds = wanted;
	one->options.kinds |= wanted;
	note_kinds(one);
	return 0;
}

/* ---- rules of queries ---- */

void pl_taps_push(struct pl_taps_one *one, const struct pl_tap_rules *rules)
{
	if (!pl_taps_may_push(one))
		return;
	one->options.rules = *rules;
	if (one->all->began)
		pl_tap_service_rules(&one->service, rules, one->options.point);
	note_kinds(one);
}

void pl_taps_stop_counts(struct pl_taps_one *one)
{
	struct pl_diag diag = { .text = "" };

	if (!one->service.counting || pl_tap_counts_stop(&one->service, &diag) == 0)
		return;
	one->service.counts_lost = true;
	pl_say_diag(&diag);
}

/* ---- reload ---- */

struct change {
	struct pl_taps *taps;
	const struct pl_config *config;
};

static void change(void *arg)
{
	const struct change *c = arg;
	const struct pl_config_tap *t = c->config->taps.items;
	struct pl_diag diag = { .text = "" };
	struct pl_tap_rules rules;

	for (size_t i = 0; i < c->config->taps.n; i++) {
		for (unsigned int k = 0; k < c->taps->n; k++) {
			struct pl_taps_one *one = c->taps->taps[k];

			if (strcmp(one->name, t[i].name) != 0)
				continue;
			if (pl_tap_places_fit(&one->service, (uint16_t)t[i].point, &diag) == 0)
				one->options.point = (uint16_t)t[i].point;
			else
				pl_warn("reload", "tap %s keeps observation point %u: %s",
					one->name, one->options.point, diag.text);
			pl_config_tap_rules(&t[i], &rules);
			if (pl_tap_service_rules_fit(&one->service, &rules, &diag) == 0)
				one->configured = rules;
			else
				pl_warn("reload", "tap %s keeps its rules: %s", one->name,
					diag.text);
			if (!pl_taps_may_push(one)) {
				pl_taps_stop_counts(one);
				one->options.rules = one->configured;
			}
			pl_tap_service_rules(
				&one->service, &one->options.rules, one->options.point);
			note_kinds(one);
		}
	}
}

void pl_taps_change(struct pl_taps *taps, const struct pl_config *config)
{
	struct change c = { taps, config };

	pl_runtime_visit(change, &c);
}

bool pl_taps_lost(const struct pl_taps *taps)
{
	for (unsigned int i = 0; i < taps->n; i++) {
		if (!pl_tap_complete(&taps->taps[i]->service))
			return true;
	}
	return false;
}

void pl_taps_close(struct pl_taps *taps)
{
	for (unsigned int i = 0; i < taps->n; i++) {
		pl_tap_service_close(&taps->taps[i]->service);
		pl_tapped_done(&taps->taps[i]->tapped);
		free(taps->taps[i]);
	}
	taps->n = 0;
}

/* ---- as a service ---- */

static void interfaces(void *s, struct pl_confine *confine)
{
	const struct pl_taps *t = s;

	for (unsigned int i = 0; i < t->n; i++)
		pl_tap_service_ops.interfaces(&t->taps[i]->service, confine);
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_taps *t = s;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < t->n; i++)
		r = pl_tap_service_ops.files(&t->taps[i]->service, confine);
	return r;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	const struct pl_taps *t = s;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < t->n; i++)
		r = pl_tap_service_ops.acquire(&t->taps[i]->service, rights, diag);
	return r;
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_taps *t = s;
	unsigned int n = 0;
	int r = 0;

	for (unsigned int i = t->n; r == 0 && i-- > 0;)
		r = pl_tap_service_ops.open(&t->taps[i]->service, diag);
	for (unsigned int i = 0; r == 0 && i < t->n; i++)
		n += t->taps[i]->service.n_ports + t->taps[i]->service.n_kernels +
		     t->taps[i]->service.n_drops;
	if (n > PL_TAPS_SOCKETS_MAX) {
		pl_diag_set(diag, "taps have %u sockets; %d is the limit", n, PL_TAPS_SOCKETS_MAX);
		r = -EINVAL;
	}
	t->began = r == 0;
	return r;
}

static unsigned int fds(void *s, struct pollfd *ret, unsigned int max)
{
	struct pl_taps *t = s;
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->n; i++) {
		struct pl_taps_one *one = t->taps[i];

		one->first = n;
		one->n_fds = pl_tap_service_ops.fds(&one->service, ret + n, max - n);
		n += one->n_fds;
	}
	return n;
}

static void look_at_conditions(struct pl_taps *t, uint64_t now_ns)
{
	struct pl_conditions list;

	if (now_ns < t->conditions_ns)
		return;
	pl_conditions_clear(&list);
	for (unsigned int i = 0; i < t->n; i++)
		pl_tap_service_conditions(&t->taps[i]->service, t->taps[i]->name, now_ns, &list);
	pl_condition_board_put(&t->conditions, &list);
	t->conditions_ns = now_ns + CONDITIONS_NS;
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_taps *t = s;
	int ret = PL_TURN_IDLE;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct pl_taps_one *one = t->taps[i];
		const int r = pl_tap_service_ops.turn(
			&t->taps[i]->service, polled + one->first, now_ns, diag);

		if (r < 0)
			return r;
		ret = r == PL_TURN_BUSY ? r : ret;
	}
	look_at_conditions(t, now_ns);
	return ret;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_taps *t = s;
	uint64_t due = UINT64_MAX;

	for (unsigned int i = 0; i < t->n; i++) {
		const uint64_t d = pl_tap_service_ops.due_ns(&t->taps[i]->service, now_ns);

		due = d < due ? d : due;
	}
	return due;
}

static void conditions(void *s, struct pl_conditions *ret)
{
	struct pl_taps *t = s;

	pl_condition_board_get(&t->conditions, ret);
}

static void drain(void *s)
{
	const struct pl_taps *t = s;

	for (unsigned int i = 0; i < t->n; i++)
		pl_tap_service_ops.drain(&t->taps[i]->service);
}

const struct pl_service_ops pl_taps_service = {
	.name = "taps",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.conditions = conditions,
	.drain = drain,
	.account = pl_taps_put_text,
	.counters = pl_taps_put,
};
