/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One region that is read, step by step with a time of the test's own: what is told of each
 * primitive, the account, values as the configuration types them, records that are none, and files
 * that go and come.
 */
#include "pipeline/region_input.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "memory/counters.h"
#include "memory/key_write.h"

#define SECOND UINT64_C(1000000000)

static char path[256];
static struct pl_value values[4096], room_values[64];
static unsigned int n_values, n_events, n_paths, n_hops;
static struct pl_path last_path;
static struct pl_record_batch batch;
static struct pl_event_batch events;
static struct pl_value_batch value_batch;
static struct pl_region_room room;

static void take_values(struct pl_value_batch *b, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < b->n && n_values < 4096; i++)
		values[n_values++] = b->values[i];
	b->n = 0;
}

static void take_events(struct pl_event_batch *b, void *arg)
{
	(void)arg;
	n_events += b->n;
	b->n = 0;
}

static void take_paths(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	n_paths += b->n_paths;
	n_hops += b->n_hops;
	if (b->n_paths > 0)
		last_path = b->paths[b->n_paths - 1];
	pl_record_batch_clear(b);
}

static void begin(void)
{
	value_batch =
		(struct pl_value_batch){ .values = room_values, .cap = 64, .flush = take_values };
	events.flush = take_events;
	batch.flush = take_paths;
	room = (struct pl_region_room){ .paths = &batch,
		.events = &events,
		.values = &value_batch,
		.now_ns = SECOND,
		.ts_ns = 5 };
	n_values = n_events = n_paths = n_hops = 0;
}

/* Steps until no more is due, a second later in each call, and then for slots that must settle. */
static void look(struct pl_region_input *in)
{
	room.now_ns += SECOND;
	while (pl_region_input_step(in, &room))
		;
	room.now_ns += SECOND / 10;
	while (pl_region_input_step(in, &room))
		;
	take_values(&value_batch, NULL);
	take_events(&events, NULL);
	take_paths(&batch, NULL);
}

static bool closes(const struct pl_region_input *in)
{
	const struct pl_region_input_stats *s = pl_region_input_stats(in);
	uint64_t sum = s->told + s->counted;

	for (unsigned int c = 0; c < PL_REGION_DROP_MAX; c++)
		sum += s->dropped[c];
	return s->found == sum;
}

static struct pl_config_region config_of(enum pl_value_format format)
{
	return (struct pl_config_region){ .name = (char *)"r",
		.path = path,
		.writer = PL_WRITER_OTHER,
		.read = { .every_ns = SECOND / 2, .tell = true },
		.value = { .format = format } };
}

static struct pl_region *make(const struct pl_store_params *p)
{
	struct pl_region *g = NULL;

	(void)unlink(path);
	if (!ok(pl_region_create(&g, path, p, NULL, NULL) == 0, "a region"))
		exit(1);
	return g;
}

static struct pl_store_params lists_of(uint32_t lists, uint32_t bytes, uint32_t content)
{
	return (struct pl_store_params){ .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 3,
		.content = content,
		.append = { 64, lists, bytes, 8, 1 } };
}

static struct pl_region_input *open_input(const struct pl_config_region *c, bool first)
{
	struct pl_region_input *in;

	if (pl_region_input_new(&in, c) < 0)
		exit(1);
	pl_region_input_open(in, first);
	return in;
}

static void put(struct pl_region *g, uint32_t list, const void *entries, size_t n)
{
	struct pl_append a;

	(void)pl_append_init(&a, pl_region_params(g), pl_region_store(g, pl_region_epoch(g)));
	(void)pl_append_put(&a, list, entries, n);
}

static void lists(void)
{
	const struct pl_store_params p = lists_of(3, 4, PL_CONTENT_BYTES);
	struct pl_config_region c = config_of(PL_VALUE_U32LE);
	struct pl_region *g = make(&p);
	const struct pl_region_input_stats *s;
	struct pl_region_input *in;
	uint32_t numbers[200];

	begin();
	for (uint32_t i = 0; i < 200; i++)
		numbers[i] = 100 + i;
	put(g, 1, numbers, 10);
	in = open_input(&c, true);
	s = pl_region_input_stats(in);
	look(in);
	eq(n_values, 0, "what was there is not new");
	eq(s->skipped, 10, "and is counted");
	put(g, 1, numbers, 20);
	put(g, 2, numbers, 1);
	look(in);
	eq(n_values, 21, "what comes is");
	ok(values[0].number == 10 && values[0].value == 100 && values[0].list == 1 &&
			values[0].ts_ns == 5 && values[0].primitive == PL_APPEND,
		"with number, list and value");
	streq(values[0].region.c, "r");
	look(in);
	eq(n_values, 21, "once");
	/* 64 entries a list, of which one batch of 8 may be written at any time. */
	put(g, 0, numbers, 200);
	look(in);
	eq(s->dropped[PL_REGION_OVERRUN], 200 - 56, "what is overwritten is counted");
	eq(s->found, 221, "among what was found");
	eq(n_values, 77, "the rest is told");
	eq(s->max, 299, "the largest");
	ok(closes(in), "the account closes");
	pl_region_input_free(in);
	c.read.tell = false;
	c.read.from = 1;
	in = open_input(&c, true);
	look(in);
	s = pl_region_input_stats(in);
	ok(s->told == 0 && s->counted == 30 + 1 + 56 && n_values == 77,
		"all that is there, only counted");
	eq(s->skipped, 200 - 56, "what was overwritten before it began is not");
	ok(closes(in), "the account closes");
	pl_region_input_free(in);
	(void)pl_region_close(g);
}

static void typing(void)
{
	static const uint8_t bytes[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	static const struct {
		enum pl_value_format format;
		uint64_t at, want;
	} cases[] = {
		{ PL_VALUE_U8, 11, 12 },
		{ PL_VALUE_U16BE, 1, 0x0203 },
		{ PL_VALUE_U16LE, 1, 0x0302 },
		{ PL_VALUE_U32BE, 8, 0x090a0b0c },
		{ PL_VALUE_U32LE, 0, 0x04030201 },
		{ PL_VALUE_U64BE, 4, 0x05060708090a0b0c },
		{ PL_VALUE_U64LE, 0, 0x0807060504030201 },
	};
	const struct pl_store_params p = lists_of(1, 12, PL_CONTENT_BYTES),
				     sums = { .primitive = PL_COUNTERS };
	struct pl_config_region c = config_of(PL_VALUE_HEX);
	struct pl_diag diag = { .text = "" };
	struct pl_value v;
	uint64_t n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c.value.format = cases[i].format;
		c.value.at = cases[i].at;
		ok(pl_region_check_value(&c, &p, &diag) == 0 && pl_region_number(&c, bytes, &n) &&
				n == cases[i].want,
			"number %zu", i);
		c.value.at++;
		if (c.value.at + (cases[i].format == PL_VALUE_U8 ? 1 : 4) > 12)
			eq(pl_region_check_value(&c, &p, &diag), -EINVAL, "beyond the end");
	}
	eq(pl_region_check_value(&c, &sums, &diag), -EINVAL, "counters are numbers already");
	c.value.format = PL_VALUE_RECORD;
	eq(pl_region_check_value(&c, &p, &diag), -EINVAL, "a region that has no records");
	c.value.format = PL_VALUE_HEX;
	pl_region_value(&v, &c, bytes, 12);
	ok(v.length == 12 && v.bytes.n == 12 && (v.present & PL_VALUE_HAS_value) == 0 &&
			memcmp(v.bytes.b, bytes, 12) == 0,
		"bytes as they are");
}

static void slots_and_cells(void)
{
	struct pl_store_params p = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 3,
		.key_write = { 4096, 28, 2 } };
	struct pl_config_region c = config_of(PL_VALUE_HEX);
	struct pl_region *g = make(&p);
	struct pl_region_input *in = open_input(&c, true);
	struct pl_key_write kw;
	struct pl_counters sums;
	uint8_t value[28] = { 7 };
	uint64_t increase = 0;

	begin();
	(void)pl_key_write_init(&kw, &p, pl_region_store(g, 0));
	for (uint32_t k = 0; k < 10; k++) {
		value[1] = (uint8_t)k;
		pl_key_write_put(&kw, pl_key_write_key(&kw, &k, 4), value, 2);
	}
	look(in);
	look(in);
	eq(n_values, 10, "a value of each key");
	eq(pl_region_input_stats(in)->dropped[PL_REGION_REPEATED], 10, "copies are counted");
	ok(closes(in), "the account closes");
	pl_region_input_free(in);
	(void)pl_region_close(g);

	p = (struct pl_store_params){ .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 3,
		.counters = { 512, 3, 0 } };
	g = make(&p);
	in = open_input(&c, true);
	begin();
	(void)pl_counters_init(&sums, &p, pl_region_store(g, 0));
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t k = 0; k < 100; k++)
			(void)pl_counters_add(&sums, pl_counters_key(&sums, &k, 4), 5);
		look(in);
	}
	for (unsigned int i = 0; i < n_values; i++)
		increase += values[i].increase;
	eq(increase, 1500, "increases add up to what was added");
	eq(pl_region_input_stats(in)->increase, 1500);
	ok(closes(in), "the account closes");
	pl_region_input_free(in);
	(void)pl_region_close(g);
}

/* A scraper sees a spike in its own slot and the next one, however often anybody reads. */
static void maxima(void)
{
	static const struct {
		uint64_t at_ns; /* time at which `value` is read; 0: only looked at */
		uint32_t value;
		bool has;
		uint32_t max;
		const char *what;
	} cases[] = {
		{ 31, 5, true, 5, "the first" },
		{ 32, 900000, true, 900000, "a spike" },
		{ 33, 7, true, 900000, "five seconds and many readings after it" },
		{ 37, 7, true, 900000, "once more" },
		{ 45, 8, true, 900000, "in the next slot" },
		{ 59, 9, true, 900000, "to its end" },
		{ 60, 0, true, 9, "in the one after that the spike is over" },
		{ 75, 0, false, 0, "and nothing is left after another" },
		{ 200, 3, true, 3, "after a pause" },
	};
	const struct pl_store_params p = lists_of(1, 4, PL_CONTENT_BYTES);
	const struct pl_config_region c = config_of(PL_VALUE_U32LE);
	struct pl_region *g = make(&p);
	struct pl_region_input *in = open_input(&c, true);
	const struct pl_region_input_stats *s = pl_region_input_stats(in);

	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].value != 0)
			put(g, 0, &cases[i].value, 1);
		room.now_ns = cases[i].at_ns * SECOND;
		while (pl_region_input_step(in, &room))
			;
		take_values(&value_batch, NULL);
		ok(s->has_max == cases[i].has && (!s->has_max || s->max == cases[i].max), "%s",
			cases[i].what);
	}
	eq(s->max_number, 6, "with the number of its entry");
	pl_region_input_set_slot(in, SECOND);
	room.now_ns += SECOND;
	(void)pl_region_input_step(in, &room);
	ok(!s->has_max, "slots of another length begin anew");
	pl_region_input_free(in);
	(void)pl_region_close(g);
}

static void records(void)
{
	const struct pl_store_params p = lists_of(1, 128, PL_CONTENT_EVENT),
				     q = lists_of(1, 128, PL_CONTENT_PATH),
				     h = lists_of(1, 128, PL_CONTENT_HOP);
	const struct pl_config_region c = config_of(PL_VALUE_RECORD);
	struct pl_event event = { .record_version = PL_RECORD_VERSION, .event = 3 };
	struct pl_path report = { .record_version = PL_RECORD_VERSION, .hop_count = 7 };
	struct pl_hop hop = { .record_version = PL_RECORD_VERSION, .report_id = 77 };
	struct pl_region *g = make(&p);
	struct pl_region_input *in = open_input(&c, true);

	begin();
	put(g, 0, &event, 1);
	event.event = PL_EVENT_KIND_MAX;
	put(g, 0, &event, 1);
	event.record_version = 9;
	put(g, 0, &event, 1);
	look(in);
	eq(n_events, 1, "an event");
	eq(pl_region_input_stats(in)->dropped[PL_REGION_INVALID], 2, "and two that are none");
	ok(closes(in), "the account closes");
	pl_region_input_free(in);
	(void)pl_region_close(g);

	g = make(&q);
	in = open_input(&c, true);
	begin();
	put(g, 0, &report, 1);
	report.mode = PL_MODE_MAX;
	put(g, 0, &report, 1);
	look(in);
	ok(n_paths == 1 && n_hops == 0 && last_path.hop_count == 0 &&
			(last_path.flags & PL_FLAG_PARTIAL) != 0,
		"a path without its hops is a part of one");
	eq(pl_region_input_stats(in)->dropped[PL_REGION_INVALID], 1);
	pl_region_input_free(in);
	(void)pl_region_close(g);

	g = make(&h);
	in = open_input(&c, true);
	begin();
	put(g, 0, &hop, 1);
	look(in);
	ok(n_paths == 1 && n_hops == 1 && last_path.report_id == 77, "a hop is a path of one");
	pl_region_input_free(in);
	(void)pl_region_close(g);
}

static void gone_and_back(void)
{
	const struct pl_store_params p = lists_of(1, 4, PL_CONTENT_BYTES),
				     other = lists_of(5, 8, PL_CONTENT_BYTES);
	struct pl_config_region c = config_of(PL_VALUE_U32LE);
	const uint64_t numbers[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct pl_region *g = make(&p);
	struct pl_region_input *in = open_input(&c, true);
	const struct pl_region_input_stats *s = pl_region_input_stats(in);
	char aside[sizeof(path) + 8];

	begin();
	put(g, 0, numbers, 4);
	look(in);
	eq(n_values, 4);
	snprintf(aside, sizeof(aside), "%s.aside", path);
	ok(rename(path, aside) == 0, "its name goes");
	look(in);
	ok(!s->readable && s->lost == 1 && s->trouble[0] != '\0', "that is told: %s", s->trouble);
	put(g, 0, numbers, 4);
	ok(rename(aside, path) == 0, "and comes back");
	look(in);
	look(in);
	ok(s->readable && s->opened == 2, "it is read again");
	eq(n_values, 8, "from where it was");
	(void)pl_region_close(g);
	g = make(&other);
	look(in);
	look(in);
	put(g, 4, numbers, 3);
	look(in);
	ok(s->readable && s->lost == 2, "another one in its place");
	eq(n_values, 11, "is read from its beginning");
	eq(values[10].list, 4, "with its own lists");
	ok(truncate(path, 4096) == 0, "it is cut");
	look(in);
	ok(!s->readable && s->lost == 3, "that is told: %s", s->trouble);
	ok(closes(in), "the account closes");
	pl_region_input_free(in);
	(void)pl_region_close(g);
	/* The file does not exist at first. */
	(void)unlink(path);
	in = open_input(&c, true);
	s = pl_region_input_stats(in);
	ok(!s->readable && s->lost == 0, "none yet: %s", s->trouble);
	g = make(&p);
	put(g, 0, numbers, 4);
	look(in);
	eq(s->told, 4, "all of a file that is made later is new");
	pl_region_input_free(in);
	(void)pl_region_close(g);
}

static void epochs(void)
{
	const struct pl_store_params p = { .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 3,
		.counters = { 64, 1, 0 } };
	const struct pl_region_options two = { .halves = 2 };
	struct pl_config_region c = config_of(PL_VALUE_HEX);
	struct pl_region_input *in;
	struct pl_counters sums;
	struct pl_region *g;
	uint32_t k = 1;

	(void)unlink(path);
	eq(pl_region_create(&g, path, &p, &two, NULL), 0);
	in = open_input(&c, true);
	begin();
	(void)pl_counters_init(&sums, &p, pl_region_store(g, 0));
	(void)pl_counters_add(&sums, pl_counters_key(&sums, &k, 4), 10);
	look(in);
	(void)pl_counters_add(&sums, pl_counters_key(&sums, &k, 4), 10);
	eq(pl_region_next_epoch(g, NULL), 0);
	(void)pl_counters_init(&sums, &p, pl_region_store(g, 1));
	(void)pl_counters_add(&sums, pl_counters_key(&sums, &k, 4), 3);
	look(in);
	look(in);
	eq(pl_region_input_stats(in)->increase, 23,
		"the end of an epoch and the next one's beginning");
	pl_region_input_free(in);
	(void)pl_region_close(g);
}

int main(void)
{
	char folder[] = "/tmp/pathline-input-XXXXXX";

	if (mkdtemp(folder) == NULL || pl_record_batch_init(&batch, 16, 256) < 0 ||
		pl_event_batch_init(&events, 16) < 0)
		return 1;
	snprintf(path, sizeof(path), "%s/r.plr", folder);
	lists();
	typing();
	slots_and_cells();
	maxima();
	records();
	gone_and_back();
	epochs();
	(void)unlink(path);
	(void)rmdir(folder);
	pl_record_batch_done(&batch);
	pl_event_batch_done(&events);
	return pl_test_done();
}
