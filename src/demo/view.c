/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the content of the demonstration's screen, and prints it as lines without a terminal. */
#include "demo/view_parts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define FOLD_NS                                                                                    \
	(UINT64_C(2) * 1000000000u) /* events of one kind and place within it are one line */

struct view_export {
	struct pl_export export;
	struct pl_demo_view *view;
};

/* ---- the exporter's side ---- */

static struct known_path *find_path(struct pl_demo_view *v, uint64_t id)
{
	for (unsigned int i = 0; i < PATHS_MAX; i++) {
		struct known_path *k = &v->paths[(id + i) % PATHS_MAX];

		if (k->path_id == id || k->path_id == 0)
			return k;
	}
	return NULL;
}

static void learn_path(
	struct pl_demo_view *v, const struct pl_path *path, const struct pl_hop *hops)
{
	struct known_path *k;
	size_t n = 0;

	if ((path->present & PL_PATH_HAS_path_id) == 0 || path->path_id == 0)
		return;
	k = find_path(v, path->path_id);
	/* A table kept half empty finds quickly; there are 512 places for a network of six
	 * nodes. */
	if (k == NULL || k->path_id != 0 || v->n_paths > PATHS_MAX / 2)
		return;
	k->path_id = path->path_id;
	v->n_paths++;
	for (unsigned int i = 0; i < path->hop_count && n < sizeof(k->nodes); i++)
		n += (size_t)snprintf(k->nodes + n, sizeof(k->nodes) - n,
			i == 0 ? "%" PRIu64 : ">%" PRIu64, hops[i].node);
}

static const char *path_text(struct pl_demo_view *v, uint64_t id)
{
	const struct known_path *k = find_path(v, id);

	return k != NULL && k->path_id == id ? k->nodes : "?";
}

static void count_drop(
	struct pl_demo_view *v, const struct pl_path *path, const struct pl_hop *hops)
{
	const struct pl_hop *last = path->hop_count > 0 ? &hops[path->hop_count - 1] : NULL;

	if ((path->flags & PL_FLAG_DROPPED) != 0 && last != NULL && last->node < DROP_NODES &&
		last->egress_port < DROP_NODES)
		v->drops[last->node][last->egress_port]++;
}

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	struct pl_demo_view *v = ((struct view_export *)e)->view;

	(void)now_ns;
	pthread_mutex_lock(&v->lock);
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		learn_path(v, &batch->paths[i], &batch->hops[batch->first_hop[i]]);
		count_drop(v, &batch->paths[i], &batch->hops[batch->first_hop[i]]);
	}
	pthread_mutex_unlock(&v->lock);
	pl_count(&e->stats.accepted, batch->n_paths);
	pl_count(&e->stats.delivered, batch->n_paths);
}

static void describe(struct pl_demo_view *v, const struct pl_event *e, struct pl_demo_line *l)
{
	char src[PL_ADDR_TEXT_MAX] = "", dst[PL_ADDR_TEXT_MAX] = "";

	switch (e->event) {
	case PL_EVENT_PATH_CHANGE:
		pl_format_addr(src, &e->src);
		pl_format_addr(dst, &e->dst);
		snprintf(l->what, sizeof(l->what), "%s was %s: %s to %s", path_text(v, e->path_id),
			path_text(v, e->old_path_id), src, dst);
		break;
	case PL_EVENT_QUEUE_DEPTH:
	case PL_EVENT_HOP_LATENCY:
		snprintf(l->what, sizeof(l->what), "node %" PRIu64 " port %u queue %u", e->node,
			e->port, e->queue);
		break;
	case PL_EVENT_REPORT_LOSS:
		snprintf(l->what, sizeof(l->what), "missing in the sequences");
		break;
	case PL_EVENT_PACKET_DROP:
		snprintf(l->what, sizeof(l->what), "packets dropped at node %" PRIu64, e->node);
		break;
	default: /* the others are off in the demonstration */
		snprintf(l->what, sizeof(l->what), "node %" PRIu64, e->node);
		break;
	}
}

static bool adds_up(uint8_t kind)
{
	return kind == PL_EVENT_REPORT_LOSS || kind == PL_EVENT_PACKET_DROP;
}

/* Finds a line of the kind and place in the last two seconds, or makes one. */
static struct pl_demo_line *line_of(
	struct pl_demo_view *v, uint8_t kind, uint8_t phase, uint64_t place, uint64_t now_ns)
{
	struct pl_demo_line *l;

	for (uint64_t i = v->n_lines; i-- > 0 && v->n_lines - i <= 8;) {
		l = &v->lines[i % LINES_MAX];
		if (l->kind == kind && l->phase == phase && l->place == place &&
			now_ns - l->last_ns <= FOLD_NS)
			return l;
	}
	l = &v->lines[v->n_lines++ % LINES_MAX];
	*l = (struct pl_demo_line){
		.at_ns = now_ns, .kind = kind, .phase = phase, .place = place, .what = ""
	};
	return l;
}

static void add_event(struct pl_demo_view *v, const struct pl_event *e, uint64_t now_ns)
{
	/* A failed link moves many flows, a burst of losses meets every node, a queue on a port
	 * comes in eight: that is one thing to a person. */
	uint64_t place = e->event == PL_EVENT_QUEUE_DEPTH || e->event == PL_EVENT_HOP_LATENCY
				 ? e->node << 32 | e->port
				 : 0;
	struct pl_demo_line *l = line_of(v, e->event, e->phase, place, now_ns);

	l->last_ns = now_ns;
	if (l->count++ == 0)
		describe(v, e, l);
	if (adds_up(e->event))
		l->value += e->value;
	else if (e->value > l->value)
		l->value = e->value;
}

void pl_demo_view_lost(void *arg, const struct pl_demo_link_loss *link)
{
	struct pl_demo_view *v = arg;
	struct pl_demo_line *l;

	pthread_mutex_lock(&v->lock);
	l = line_of(v, KIND_LINK_LOSS, 0, link->node << 32 | link->port, pl_clock_mono_ns());
	if (l->count++ == 0) {
		l->last_ns = l->at_ns;
		snprintf(l->what, sizeof(l->what), "%s to %s", link->from, link->to);
	}
	l->value += (uint64_t)link->lost;
	pthread_mutex_unlock(&v->lock);
}

uint64_t pl_demo_view_drops(struct pl_demo_view *v, uint64_t node, unsigned int port)
{
	uint64_t n = 0;

	pthread_mutex_lock(&v->lock);
	if (node < DROP_NODES && port < DROP_NODES)
		n = v->drops[node][port];
	pthread_mutex_unlock(&v->lock);
	return n;
}

static void write_events(
	struct pl_export *x, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	struct pl_demo_view *v = ((struct view_export *)x)->view;

	pthread_mutex_lock(&v->lock);
	for (uint32_t i = 0; i < n; i++)
		add_event(v, &events[i], now_ns);
	pthread_mutex_unlock(&v->lock);
	pl_count(&x->stats.accepted, n);
	pl_count(&x->stats.delivered, n);
}

static void close_export(struct pl_export *e)
{
	free(e);
}

int pl_demo_view_export(struct pl_demo_view *view, struct pl_export **ret)
{
	static const struct pl_export_ops ops = {
		.name = "view",
		.write_paths = write_paths,
		.write_events = write_events,
		.close = close_export,
	};
	struct view_export *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return -ENOMEM;
	x->export.ops = &ops;
	x->view = view;
	*ret = &x->export;
	return 0;
}

int pl_demo_view_new(struct pl_demo_view **ret)
{
	struct pl_demo_view *v = calloc(1, sizeof(*v));
	const char *no_colour = getenv("NO_COLOR");

	if (v == NULL)
		return -ENOMEM;
	pthread_mutex_init(&v->lock, NULL);
	v->began_ns = pl_clock_mono_ns();
	v->colour = isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0');
	*ret = v;
	return 0;
}

void pl_demo_view_free(struct pl_demo_view *v)
{
	if (v == NULL)
		return;
	pl_demo_view_terminal(v, false);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

/* ---- lines ---- */

static const char *kind_text(const struct pl_demo_line *l)
{
	static const char *const names[PL_EVENT_KIND_MAX] = { "path change", "queue build-up",
		"report loss", "packet drop", "slow hop" };

	if (l->kind == KIND_LINK_LOSS)
		return "link loss";
	assert(l->kind < PL_EVENT_KIND_MAX);
	return names[l->kind] != NULL ? names[l->kind] : pl_event_kind_name(l->kind);
}

int pl_demo_event_text(
	const struct pl_demo_view *v, const struct pl_demo_line *l, char *dst, size_t cap)
{
	unsigned int s = (unsigned int)((l->at_ns - v->began_ns) / 1000000000u);
	char more[64] = "", value[32];

	switch (l->kind) {
	case PL_EVENT_PATH_CHANGE:
		if (l->count > 1)
			snprintf(more, sizeof(more), " (and %u more)", l->count - 1);
		break;
	case PL_EVENT_QUEUE_DEPTH:
		snprintf(more, sizeof(more),
			l->phase == PL_PHASE_END ? " over; largest depth %" PRIu64
						 : ": depth %" PRIu64,
			l->value);
		break;
	case PL_EVENT_HOP_LATENCY:
		pl_format_duration(value, sizeof(value), l->value);
		snprintf(more, sizeof(more),
			l->phase == PL_PHASE_END ? " over; longest %s" : ": %s", value);
		break;
	case PL_EVENT_REPORT_LOSS:
		snprintf(more, sizeof(more),
			l->phase == PL_PHASE_END ? " over; %" PRIu64 " in all" : ": %" PRIu64,
			l->value);
		break;
	case PL_EVENT_PACKET_DROP:
		snprintf(more, sizeof(more), ": %" PRIu64, l->value);
		break;
	case KIND_LINK_LOSS:
		snprintf(more, sizeof(more), ": %" PRIu64 ", found by marking", l->value);
		break;
	default:
		break;
	}
	return snprintf(
		dst, cap, "%02u:%02u  %-14s %s%s", s / 60, s % 60, kind_text(l), l->what, more);
}

/* Returns true when no more events are folded into the line. */
static bool settled(const struct pl_demo_line *l, uint64_t now_ns)
{
	return now_ns - l->last_ns > FOLD_NS;
}

void pl_demo_status_text(const struct pl_demo_frame *f, char *dst, size_t cap)
{
	const struct pl_totals *t = &f->stats->totals;
	char rate[16], all[16], missing[16], undecoded[16];

	pl_format_count(rate, sizeof(rate), f->rate);
	pl_format_count(all, sizeof(all), (double)t->stored);
	pl_format_count(missing, sizeof(missing), (double)t->lost);
	pl_format_count(undecoded, sizeof(undecoded), (double)(t->packets - t->verdicts[PL_V_OK]));
	snprintf(dst, cap,
		"reports %s/s  in all %s  missing %s  not decoded %s  paths %u  links %u", rate,
		all, missing, undecoded, pl_aggregate_count(f->aggregate, PL_AGG_PATHS),
		pl_aggregate_count(f->aggregate, PL_AGG_LINKS));
}

void pl_demo_view_print(struct pl_demo_view *v, const struct pl_demo_frame *f, bool status)
{
	uint64_t now = pl_clock_mono_ns();
	char text[256];

	pthread_mutex_lock(&v->lock);
	while (v->printed < v->n_lines) {
		struct pl_demo_line *l = &v->lines[v->printed % LINES_MAX];

		if (v->n_lines - v->printed <= LINES_MAX) {
			if (!settled(l, now) && !f->last)
				break;
			pl_demo_event_text(v, l, text, sizeof(text));
			printf("%s\n", text);
		}
		v->printed++;
	}
	pthread_mutex_unlock(&v->lock);
	if (status) {
		pl_demo_status_text(f, text, sizeof(text));
		printf("%02u:%02u  %s\n", (unsigned int)f->seconds / 60,
			(unsigned int)f->seconds % 60, text);
	}
	fflush(stdout);
}
