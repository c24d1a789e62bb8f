/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the marking domains of the configuration. */
#include "marks/marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "kafka/consumer.h"
#include "kafka/uri.h"

#define REGIONS_NS   UINT64_C(100000000)
#define TOPICS_NS    UINT64_C(20000000)
/* So that an endless writer does not keep the process from its end: a million records of a list. */
#define FINISH_TURNS 256u

/* ---- records and events ---- */

static void take_event(void *arg, const struct pl_event *event)
{
	struct pl_marks_one *one = arg;

	one->events_dropped += one->all->put(one->all->arg, event, 1) == 0;
}

static void take_result(void *arg, const struct pl_mark_result *result)
{
	const struct pl_marks_one *one = arg;
	struct pl_seg192 record;

	pl_mark_segment_record(&record, result, &one->network.segments[result->segment]);
	one->give(one->give_arg, &record, 1);
}

static void take_blocks(struct pl_marks_one *one, const struct pl_addr *sender,
	const struct pl_mark128 *records, uint32_t n, bool torn)
{
	const struct pl_mark_domain_stats *stats = pl_mark_domain_stats(one->domain);
	const uint64_t refused = stats->not_allowed;

	pl_mark_domain_take(one->domain, sender, records, n, torn, pl_clock_real_ns());
	if (stats->not_allowed == refused)
		one->give_blocks(one->give_arg, records, n);
}

void pl_marks_take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_marks_one *one = arg;
	const struct pl_tmpkt_receiver *from = *one->receiver;

	if (kind == PL_FLAT_MARK128)
		take_blocks(one, pl_tmpkt_receiver_from(from), records, n,
			pl_tmpkt_receiver_torn(from));
}

static void take_entries(void *arg, const struct pl_mark128 *records, uint32_t n, bool torn)
{
	static const struct pl_addr nobody;

	/* Regions and topics control who may append or produce. */
	take_blocks(arg, &nobody, records, n, torn);
}

/* ---- configuration ---- */

static void read_config(struct pl_mark_domain_config *ret, struct pl_marks_one *one,
	const struct pl_config_marks *m, struct pl_prefix *allow)
{
	char *const *texts = m->allow.items;
	unsigned int bits;

	*ret = (struct pl_mark_domain_config){ .name = one->name,
		.network = &one->network,
		.method = (uint8_t)pl_config_marks_method(m),
		.period_ns = m->period_ns,
		.clock_ns = m->clock_error_ns,
		.wait_ns = m->wait_ns,
		.blocks_max = (uint32_t)m->blocks,
		.loss_above = m->loss_above,
		.delay_above_ns = m->delay_above_ns,
		.end_after = (uint32_t)m->end_after,
		.allow = allow,
		.n_allow = (uint32_t)m->allow.n,
		.event = take_event,
		.result = take_result,
		.arg = one };
	/* Parses without checks: the configuration has made them. */
	for (size_t i = 0; i < m->allow.n; i++) {
		(void)pl_parse_prefix(texts[i], &allow[i].addr, &bits);
		allow[i].bits = (uint8_t)bits;
	}
}

static int add_sources(struct pl_marks_one *one, const struct pl_config_marks *m)
{
	char *const *sources = m->sources.items;

	one->topics = calloc(PL_MARKS_SOURCES_MAX, sizeof(*one->topics));
	if (one->topics == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->sources.n; i++) {
		if (pl_config_marks_is_region(sources[i]))
			one->regions[one->n_regions++].path = strchr(sources[i], ':') + 1;
		else if (pl_config_marks_is_topic(sources[i]))
			one->topics[one->n_topics++].uri = sources[i];
		else
			one->ports[one->n_ports++] = sources[i];
	}
	return 0;
}

static int add_domain(struct pl_marks *marks, const struct pl_config_marks *m, struct pl_diag *diag)
{
	struct pl_marks_one *one = calloc(1, sizeof(*one));
	struct pl_mark_domain_config config;
	int r;

	if (one == NULL)
		return -ENOMEM;
	marks->items[marks->n++] = one;
	one->all = marks;
	one->name = m->name;
	one->period_ns = m->period_ns;
	r = add_sources(one, m);
	if (r < 0)
		return r;
	one->to = m->to.items;
	one->n_to = m->to.n;
	r = pl_config_marks_network(m, &one->network, diag);
	if (r < 0)
		return r;
	read_config(&config, one, m, one->allow);
	return pl_mark_domain_new(&one->domain, &config, diag);
}

int pl_marks_init(struct pl_marks *marks, const struct pl_config *config, struct pl_diag *diag)
{
	const struct pl_config_marks *m = config->marks.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < config->marks.n; i++)
		r = add_domain(marks, &m[i], diag);
	return r;
}

void pl_marks_close(struct pl_marks *marks)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		struct pl_marks_one *one = marks->items[i];

		for (unsigned int k = 0; k < one->n_regions; k++)
			pl_marks_region_close(&one->regions[k]);
		for (unsigned int k = 0; k < one->n_topics; k++)
			pl_marks_topic_close(&one->topics[k]);
		free(one->topics);
		pl_mark_domain_free(one->domain);
		pl_mark_network_done(&one->network);
		free(one);
	}
	marks->n = 0;
}

bool pl_marks_lost(const struct pl_marks *marks)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		if (marks->items[i]->events_dropped > 0)
			return true;
	}
	return false;
}

/* Most bytes that the client of a topic keeps of messages that were not read yet. */
static uint64_t topic_memory(const char *text)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	uint64_t kbytes = PL_KAFKA_QUEUE_KBYTES;
	const char *own = NULL;

	if (uri != NULL && pl_kafka_uri_parse(uri, text, NULL) == 0)
		own = pl_kafka_uri_property(uri, "queued.max.messages.kbytes");
	if (own != NULL)
		(void)pl_parse_u64(own, &kbytes);
	pl_kafka_uri_free(uri);
	return kbytes << 10;
}

static uint64_t topics_memory(const struct pl_config_marks *m)
{
	char *const *sources = m->sources.items;
	uint64_t sum = PL_MARKS_SOURCES_MAX * sizeof(struct pl_marks_topic);

	for (size_t i = 0; i < m->sources.n; i++)
		sum += pl_config_marks_is_topic(sources[i]) ? topic_memory(sources[i]) : 0;
	return sum;
}

uint64_t pl_marks_memory(const struct pl_config *config)
{
	const struct pl_config_marks *m = config->marks.items;
	uint64_t sum = 0;

	for (size_t i = 0; i < config->marks.n; i++) {
		struct pl_mark_domain_config of = { .blocks_max = (uint32_t)m[i].blocks };
		struct pl_mark_network network;

		if (pl_config_marks_network(&m[i], &network, NULL) < 0)
			continue;
		of.network = &network;
		sum += sizeof(struct pl_marks_one) + pl_mark_domain_memory(&of) +
		       topics_memory(&m[i]);
		pl_mark_network_done(&network);
	}
	return sum;
}

/* ---- reload ---- */

struct change {
	struct pl_marks *marks;
	const struct pl_config *config;
};

static void change(void *arg)
{
	const struct change *c = arg;
	const struct pl_config_marks *m = c->config->marks.items;

	for (size_t i = 0; i < c->config->marks.n; i++) {
		for (unsigned int k = 0; k < c->marks->n; k++) {
			struct pl_marks_one *one = c->marks->items[k];
			struct pl_mark_domain_config config;

			if (strcmp(one->name, m[i].name) != 0)
				continue;
			read_config(&config, one, &m[i], one->allow);
			pl_mark_domain_change(one->domain, &config);
		}
	}
}

void pl_marks_change(struct pl_marks *marks, const struct pl_config *config)
{
	struct change c = { marks, config };

	pl_runtime_visit(change, &c);
}

/* ---- as a service ---- */

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_marks *marks = s;
	int r = 0;

	for (unsigned int i = 0; i < marks->n; i++) {
		const struct pl_marks_one *one = marks->items[i];

		for (unsigned int k = 0; r == 0 && k < one->n_regions; k++)
			r = pl_confine_path(confine, one->regions[k].path, false);
		for (unsigned int k = 0; r == 0 && k < one->n_topics; k++)
			r = pl_marks_topic_files(one->topics[k].uri, confine);
	}
	return r;
}

/* Reads a piece of all regions; returns true when one has more at once. */
static bool read_regions_of(struct pl_marks_one *one, uint64_t now_ns, bool first)
{
	bool more = false;

	one->region_stats.unreadable = 0;
	for (unsigned int k = 0; k < one->n_regions; k++)
		more |= pl_marks_region_turn(
			&one->regions[k], now_ns, first, &one->region_stats, take_entries, one);
	return more;
}

static bool read_regions(struct pl_marks *marks, uint64_t now_ns, bool first)
{
	bool more = false;

	for (unsigned int i = 0; i < marks->n; i++)
		more |= read_regions_of(marks->items[i], now_ns, first);
	return more;
}

/* Logs the begin and the end of trouble with a topic. */
static void tell_topic(struct pl_marks_topic *t)
{
	const char *trouble = pl_marks_topic_trouble(t);

	if ((trouble != NULL) == t->away)
		return;
	t->away = trouble != NULL;
	if (t->away)
		pl_warn("marks", "%s: cannot be read, and is waited for: %s", t->name, trouble);
	else
		pl_notice("marks", "%s: is read again", t->name);
}

static bool read_topics_of(struct pl_marks_one *one)
{
	bool more = false;

	for (unsigned int k = 0; k < one->n_topics; k++) {
		more |= pl_marks_topic_turn(&one->topics[k], take_entries, one);
		tell_topic(&one->topics[k]);
	}
	return more;
}

static bool read_topics(struct pl_marks *marks)
{
	bool more = false;

	for (unsigned int i = 0; i < marks->n; i++)
		more |= read_topics_of(marks->items[i]);
	return more;
}

static int open_topics(struct pl_marks *marks, struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	int r = 0;

	for (unsigned int i = 0; i < marks->n; i++) {
		struct pl_marks_one *one = marks->items[i];

		for (unsigned int k = 0; r == 0 && k < one->n_topics; k++)
			r = pl_marks_topic_open(&one->topics[k], one->topics[k].uri, &why);
		if (r < 0)
			return pl_diag_fail(diag, r, "marks %s: %s", one->name, why.text);
	}
	return 0;
}

static void add_points_behind(struct pl_conditions *list, const struct pl_marks_one *one)
{
	uint32_t n;
	const struct pl_mark_point_state *p = pl_mark_domain_points(one->domain, &n);

	for (uint32_t k = 0; k < n; k++) {
		if (pl_mark_is_behind(&p[k], one->period_ns) && !p[k].missing.raised)
			pl_condition_add(list, PL_CONDITION_WARNING, "point_behind",
				"marks %s: records of point %s come %.1f s after their blocks are read: where its clock is that far behind, its numbers are of other blocks; look at its clock, or at what holds its records up",
				one->name, p[k].name, (double)p[k].lag_ns / 1e9);
	}
}

static void look_at_conditions(struct pl_marks *marks)
{
	struct pl_conditions list;

	pl_conditions_clear(&list);
	for (unsigned int i = 0; i < marks->n; i++) {
		const struct pl_marks_one *one = marks->items[i];

		for (unsigned int k = 0; k < one->n_regions; k++) {
			if (one->regions[k].region == NULL)
				pl_condition_add(&list, PL_CONDITION_FAULT, "region_unreadable",
					"marks %s: %s cannot be read, and is looked for", one->name,
					one->regions[k].path);
		}
		for (unsigned int k = 0; k < one->n_topics; k++) {
			const char *trouble = pl_marks_topic_trouble(&one->topics[k]);

			if (trouble != NULL)
				pl_condition_add(&list, PL_CONDITION_FAULT, "topic_unreadable",
					"marks %s: %s cannot be read, and is waited for: %s",
					one->name, one->topics[k].name, trouble);
		}
		add_points_behind(&list, one);
	}
	pl_condition_board_put(&marks->conditions, &list);
}

static bool has_regions(const struct pl_marks *marks)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		if (marks->items[i]->n_regions > 0)
			return true;
	}
	return false;
}

static bool has_topics(const struct pl_marks *marks)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		if (marks->items[i]->n_topics > 0)
			return true;
	}
	return false;
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_marks *marks = s;
	const int r = open_topics(marks, diag);

	if (r < 0)
		return r;
	/* Skips records from before the start: their blocks are over. */
	(void)read_regions(marks, pl_clock_mono_ns(), true);
	look_at_conditions(marks);
	return 0;
}

static void conditions(void *s, struct pl_conditions *ret)
{
	struct pl_marks *marks = s;

	pl_condition_board_get(&marks->conditions, ret);
}

static int turn(void *s, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_marks *marks = s;
	bool more = false;

	(void)polled;
	(void)diag;
	if (has_regions(marks) && now_ns >= marks->regions_ns) {
		more = read_regions(marks, now_ns, false);
		marks->regions_ns = more ? now_ns : now_ns + REGIONS_NS;
	}
	if (has_topics(marks) && now_ns >= marks->topics_ns) {
		const bool some = read_topics(marks);

		marks->topics_ns = some ? now_ns : now_ns + TOPICS_NS;
		more |= some;
	}
	if (now_ns >= marks->conditions_ns) {
		look_at_conditions(marks);
		marks->conditions_ns = now_ns + REGIONS_NS;
	}
	for (unsigned int i = 0; i < marks->n; i++)
		pl_mark_domain_turn(marks->items[i]->domain, pl_clock_real_ns());
	return more ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_marks *marks = s;
	const uint64_t real_ns = pl_clock_real_ns();
	uint64_t due = has_regions(marks) ? marks->regions_ns : UINT64_MAX;

	if (has_topics(marks) && marks->topics_ns < due)
		due = marks->topics_ns;

	for (unsigned int i = 0; i < marks->n; i++) {
		const uint64_t at = pl_mark_domain_due_ns(marks->items[i]->domain);

		if (at == UINT64_MAX)
			continue;
		if (at <= real_ns)
			return now_ns;
		if (now_ns + (at - real_ns) < due)
			due = now_ns + (at - real_ns);
	}
	return due;
}

void pl_marks_finish(void *arg)
{
	struct pl_marks_one *one = arg;

	for (unsigned int i = 0; i < FINISH_TURNS; i++) {
		const bool regions = read_regions_of(one, pl_clock_mono_ns(), false);

		if (!read_topics_of(one) && !regions)
			break;
	}
	pl_mark_domain_turn(one->domain, pl_clock_real_ns());
	pl_mark_domain_finish(one->domain);
}

const struct pl_service_ops pl_marks_service = {
	.name = "marks",
	.files = files,
	.open = open_service,
	.turn = turn,
	.due_ns = due_ns,
	.conditions = conditions,
	.account = pl_marks_put_text,
	.counters = pl_marks_put,
};
