/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes packets, as they arrived, into a topic of Kafka. */
#include "export/raw_out.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "export/spool.h"
#include "kafka/producer.h"
#include "raw/message.h"

#define SYNC_NS      UINT64_C(1000000000)
#define SPOOL_A_TURN 65536 /* most entries taken from the spool in a turn */
#define PAYLOAD_MAX                                                                                \
	(2 * PL_RAW_ENTRY_MAX > PL_KAFKA_ENTRIES_BYTES ? 2 * PL_RAW_ENTRY_MAX                      \
						       : PL_KAFKA_ENTRIES_BYTES)
/* The longest datagram as an entry. A frame may be longer. */
#define LEAST      ((uint32_t)(sizeof(struct pl_raw_head) + 65536))
#define EARLY_NS   UINT64_C(10000000000)
#define EARLY_MAX  ((size_t)8 << 20)
#define AGAIN_NS   UINT64_C(1000000000) /* pause when entries came back and none was delivered */
#define SPOOL_KIND 0x52415731           /* flags of this output's records */

struct raw_out {
	struct pl_export export;
	struct pl_kafka_producer *producer;  /* NULL once finished */
	struct pl_kafka_producer_stats seen; /* counts that are in the statistics */
	struct pl_spool *spool;              /* NULL: none */
	uint64_t spool_damaged;              /* damaged entries of the spool already counted */
	/* Entries that came before a broker described the topic; only without a spool. */
	struct pl_buf early;
	uint32_t n_early;
	uint64_t began_ns; /* time of the first call; 0: none yet */
	uint64_t now_ns;
	size_t given_bytes; /* bytes and entries given of the oldest record */
	uint32_t given;
	/* One mark of the producer has two uses: the driver's mark (waiting or set), and entries
	 * from the spool, which stay on disk until acknowledged. */
	bool marked, mark_waits, mark_stands;
	bool passed, passed_before; /* entries left the spool since the mark; before it */
	bool dirty;
	bool came_back;     /* entries came back since the last turn */
	uint64_t again_ns;  /* when to send entries of the spool again */
	uint64_t delivered; /* at the last turn */
	uint64_t synced_ns;
	char name[256];
	char trouble[PL_WORDS_MAX];
	pthread_mutex_t lock; /* guards `trouble` */
};

_Static_assert(offsetof(struct raw_out, export) == 0, "a driver begins with the common part");

static struct raw_out *self(struct pl_export *e)
{
	return (struct raw_out *)e;
}

/* ---- accounts ---- */

/* Causes for the producer's counters of dropped entries. */
static const struct {
	size_t at;
	enum pl_export_drop cause;
} causes[] = {
#define CAUSE(member, cause)                                                                       \
	{                                                                                          \
		offsetof(struct pl_kafka_producer_stats, member), PL_EXPORT_##cause                \
	}
	CAUSE(drop_no_partitions, IO),
	CAUSE(drop_no_buffer, MEMORY),
	CAUSE(drop_queue_full, MEMORY),
	CAUSE(drop_too_large, FORMAT),
	CAUSE(drop_timed_out, IO),
	CAUSE(drop_no_topic, REJECTED),
	CAUSE(drop_denied, REJECTED),
	CAUSE(drop_fatal, IO),
	CAUSE(drop_failed, IO),
	CAUSE(drop_purged, CLOSED),
#undef CAUSE
};

static uint64_t stat_at(const struct pl_kafka_producer_stats *s, size_t at)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)s + at, sizeof(value));
	return value;
}

static void say(struct raw_out *o, const char *trouble)
{
	if (strncmp(o->trouble, trouble, sizeof(o->trouble) - 1) == 0)
		return;
	pthread_mutex_lock(&o->lock);
	snprintf(o->trouble, sizeof(o->trouble), "%s", trouble);
	pthread_mutex_unlock(&o->lock);
}

static void count_spool(struct raw_out *o)
{
	struct pl_export_stats *s = &o->export.stats;
	struct pl_spool_counts c;

	if (o->spool == NULL)
		return;
	pl_spool_counts(o->spool, &c);
	pl_count(&s->dropped[PL_EXPORT_DAMAGED], c.damaged_entries - o->spool_damaged);
	o->spool_damaged = c.damaged_entries;
	atomic_store_explicit(&s->spooled, c.entries - o->given, memory_order_relaxed);
	atomic_store_explicit(&s->spooled_bytes, c.bytes, memory_order_relaxed);
}

static void count(struct raw_out *o, const struct pl_kafka_producer_stats *now)
{
	struct pl_export_stats *s = &o->export.stats;

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		pl_count(&s->dropped[causes[i].cause],
			stat_at(now, causes[i].at) - stat_at(&o->seen, causes[i].at));
	pl_count(&s->delivered, now->delivered - o->seen.delivered);
	pl_count(&s->bytes, now->bytes_delivered - o->seen.bytes_delivered);
	pl_count(&s->requests, now->messages - o->seen.messages);
	pl_count(&s->errors, now->errors - o->seen.errors);
	atomic_store_explicit(&s->queued, now->waiting + o->n_early, memory_order_relaxed);
	o->seen = *now;
	count_spool(o);
}

/* Counts changes, and sets the trouble while entries do not get through or were lost. */
static void settle(struct raw_out *o)
{
	const uint64_t lost = pl_kafka_producer_dropped(&o->seen) + o->seen.returned;
	const uint64_t delivered = o->seen.delivered;
	struct pl_kafka_producer_stats now;
	const char *trouble = pl_kafka_producer_trouble(o->producer);
	const char *misfit = pl_kafka_producer_misfit(o->producer);
	struct pl_diag why = { .text = "" };
	bool fails, works;

	pl_kafka_producer_stats(o->producer, &now);
	count(o, &now);
	fails = pl_kafka_producer_dropped(&now) + now.returned != lost;
	works = now.delivered != delivered;
	if (misfit[0] != '\0') {
		say(o, misfit);
		atomic_store_explicit(&o->export.stats.last_error, EMSGSIZE, memory_order_relaxed);
	} else if (pl_kafka_producer_failing(o->producer, &why) || fails) {
		say(o, why.text[0] != '\0'   ? why.text
			: trouble[0] != '\0' ? trouble
					     : "packets come faster than brokers take them");
		atomic_store_explicit(&o->export.stats.last_error, EIO, memory_order_relaxed);
	} else if (works) {
		say(o, "");
		atomic_store_explicit(&o->export.stats.last_error, 0, memory_order_relaxed);
	}
}

/* ---- the spool ---- */

/* back: the entries came back, and are stored also when the spool is full. */
static void spool(struct raw_out *o, const void *entries, size_t len, uint32_t n, bool back)
{
	struct pl_spool_record record = {
		.entries = n, .flags = SPOOL_KIND, .payload = entries, .len = (uint32_t)len
	};
	const int r = back ? pl_spool_put_back(o->spool, &record) : pl_spool_put(o->spool, &record);

	o->dirty |= r == 0;
	if (r < 0)
		pl_count(&o->export.stats.dropped[pl_export_drop_of(r)], n);
}

/* Takes over the entries of a message that was not acknowledged, into the spool. */
static bool take_back(void *arg, const void *entries, uint32_t n)
{
	struct pl_packet packet;
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (pl_raw_next(entries, PL_KAFKA_ENTRIES_BYTES, &len, &packet) != 1)
			return false; /* the producer drops and counts them */
	}
	spool(arg, entries, len, n, true);
	((struct raw_out *)arg)->came_back = true;
	return true;
}

static bool holds(const struct raw_out *o)
{
	return o->spool != NULL &&
	       atomic_load_explicit(&o->export.stats.spooled, memory_order_relaxed) > 0;
}

static bool has_room(const struct raw_out *o, size_t size, const struct pl_packet *p)
{
	return pl_kafka_producer_room_for(o->producer, pl_raw_hash(p), size);
}

/* Passes an entry to the producer, which drops and counts it without room. */
static void put(struct raw_out *o, const uint8_t *entry, size_t size, const struct pl_packet *p)
{
	const struct pl_kafka_entry e = {
		.head = entry, .head_len = size, .size = size, .ts_ns = p->ts_ns
	};

	pl_kafka_producer_clock(o->producer, (enum pl_clock_kind)p->clock);
	(void)pl_kafka_producer_put_entry(o->producer, pl_raw_hash(p), &e);
}

/* Gives the rest of the oldest record to the producer. False: it has no room for more. */
static bool give(struct raw_out *o, const struct pl_spool_record *record, uint32_t *left)
{
	struct pl_packet p;
	int r = record->flags == SPOOL_KIND ? 1 : -EBADMSG;

	while (r == 1 && o->given < record->entries) {
		const uint8_t *entry = (const uint8_t *)record->payload + o->given_bytes;
		size_t at = o->given_bytes;

		r = pl_raw_next(record->payload, record->len, &at, &p);
		if (r != 1)
			break;
		if (*left == 0 || !has_room(o, at - o->given_bytes, &p))
			return false;
		put(o, entry, at - o->given_bytes, &p);
		o->given_bytes = at;
		o->given++;
		(*left)--;
	}
	/* Records of another kind come from another output that used this folder. */
	pl_count(&o->export.stats.dropped[PL_EXPORT_DAMAGED], record->entries - o->given);
	return true;
}

static void empty_spool(struct raw_out *o)
{
	struct pl_spool_record record;
	uint32_t left = SPOOL_A_TURN;

	if (pl_kafka_producer_client(o->producer)->brokers_up == 0 || o->passed_before)
		return;
	pl_spool_hold(o->spool);
	while (left > 0 && pl_spool_peek(o->spool, &record) == 0 && give(o, &record, &left)) {
		pl_spool_next(o->spool);
		o->given = 0;
		o->given_bytes = 0;
		o->passed = true;
	}
	count_spool(o);
}

/* Ends the mark: all entries before it are delivered, dropped, or back in the spool. */
static void end_mark(struct raw_out *o)
{
	o->marked = o->mark_stands = o->passed_before = false;
	if (o->spool != NULL && !o->passed)
		pl_spool_release(o->spool);
}

static void turn_mark(struct raw_out *o)
{
	if (o->marked && pl_kafka_producer_settled(o->producer))
		end_mark(o);
	if (o->marked || (!o->mark_waits && !o->passed))
		return;
	pl_kafka_producer_mark(o->producer);
	o->marked = true;
	o->mark_stands = o->mark_waits;
	o->passed_before = o->passed;
	o->mark_waits = o->passed = false;
}

static void turn_spool(struct raw_out *o, uint64_t now_ns)
{
	/* A broker that refuses them would have them written to disk again and again. */
	if (o->came_back && o->seen.delivered == o->delivered)
		o->again_ns = now_ns + AGAIN_NS;
	o->came_back = false;
	o->delivered = o->seen.delivered;
	if (holds(o) && now_ns >= o->again_ns)
		empty_spool(o);
	if (!o->dirty || now_ns - o->synced_ns < SYNC_NS)
		return;
	if (pl_spool_sync(o->spool) < 0)
		pl_count(&o->export.stats.errors, 1);
	o->synced_ns = now_ns;
	o->dirty = false;
}

/* ---- before a broker described the topic ---- */

static void look_at_time(struct raw_out *o, uint64_t now_ns)
{
	o->now_ns = now_ns;
	if (o->began_ns == 0)
		o->began_ns = now_ns;
}

static bool keep_early(struct raw_out *o, const void *entries, size_t len, uint32_t n)
{
	if (o->spool != NULL || o->early.len + len > EARLY_MAX ||
		o->now_ns - o->began_ns > EARLY_NS ||
		(o->n_early == 0 && pl_kafka_producer_knows(o->producer)))
		return false;
	pl_buf_add(&o->early, entries, len);
	if (o->early.failed)
		return false;
	o->n_early += n;
	return true;
}

static void send_early(struct raw_out *o)
{
	size_t at = 0, from = 0;
	struct pl_packet p;

	for (; o->n_early > 0 && pl_raw_next(o->early.data, o->early.len, &at, &p) == 1;
		from = at) {
		put(o, (const uint8_t *)o->early.data + from, at - from, &p);
		o->n_early--;
	}
	pl_buf_done(&o->early);
	pl_buf_init(&o->early);
}

/* ---- operations ---- */

static void write_packets(
	struct pl_export *e, const void *entries, size_t len, uint32_t n, uint64_t now_ns)
{
	struct raw_out *o = self(e);
	const uint8_t *bytes = entries;
	size_t at = 0, from = 0;
	struct pl_packet p;

	look_at_time(o, now_ns);
	pl_count(&e->stats.accepted, n);
	if (keep_early(o, entries, len, n)) {
		settle(o);
		return;
	}
	for (; n > 0 && pl_raw_next(entries, len, &at, &p) == 1; n--, from = at) {
		if (o->spool != NULL && (holds(o) || !has_room(o, at - from, &p)))
			break;
		put(o, bytes + from, at - from, &p);
	}
	if (n > 0)
		spool(o, bytes + from, len - from, n, false);
	settle(o);
}

static void none(struct pl_export *e, uint32_t n)
{
	pl_count(&e->stats.accepted, n);
	pl_count(&e->stats.dropped[PL_EXPORT_EMPTY], n);
}

/* Never called for: this kind takes neither paths nor events. */
static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	(void)now_ns;
	none(e, batch->n_paths);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	(void)events;
	(void)now_ns;
	none(e, n);
}

static void flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct raw_out *o = self(e);

	(void)all;
	pl_kafka_producer_turn(o->producer, now_ns);
	look_at_time(o, now_ns);
	if (o->n_early > 0 &&
		(pl_kafka_producer_knows(o->producer) || now_ns - o->began_ns > EARLY_NS))
		send_early(o);
	if (o->spool != NULL)
		turn_spool(o, now_ns);
	turn_mark(o);
	settle(o);
}

static void mark(struct pl_export *e)
{
	self(e)->mark_waits = true;
	turn_mark(self(e));
}

static bool settled(struct pl_export *e)
{
	struct raw_out *o = self(e);

	turn_mark(o);
	return !o->mark_waits && !o->mark_stands && o->n_early == 0 && !o->dirty;
}

static void finish(struct pl_export *e)
{
	struct raw_out *o = self(e);
	struct pl_kafka_producer_stats last;

	send_early(o);
	/* The time to deliver is over. */
	pl_kafka_producer_close(o->producer, 0, &last);
	o->producer = NULL;
	o->mark_waits = o->passed = false;
	/* Entries given up without an answer of the client stay: their fate is unknown. */
	if (last.drop_purged == o->seen.drop_purged)
		end_mark(o);
	count(o, &last);
	if (o->spool != NULL && pl_spool_sync(o->spool) == 0)
		o->dirty = false;
}

static void words(struct pl_export *e, struct pl_export_words *ret)
{
	struct raw_out *o = self(e);

	ret->refusal[0] = '\0';
	pthread_mutex_lock(&o->lock);
	ret->trouble[0] = '\0';
	if (o->trouble[0] != '\0')
		snprintf(ret->trouble, sizeof(ret->trouble), "%.160s: %.150s", o->name, o->trouble);
	pthread_mutex_unlock(&o->lock);
}

static void close_out(struct pl_export *e)
{
	struct raw_out *o = self(e);

	pl_kafka_producer_close(o->producer, 0, NULL);
	if (o->spool != NULL)
		pl_spool_close(o->spool);
	pl_buf_done(&o->early);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static const struct pl_export_ops ops = {
	.name = "raw",
	.write_paths = write_paths,
	.write_events = write_events,
	.write_packets = write_packets,
	.flush = flush,
	.mark = mark,
	.settled = settled,
	.finish = finish,
	.words = words,
	.close = close_out,
};

/* ---- opening ---- */

static struct pl_kafka_producer_config config_of(const struct pl_kafka_uri *uri)
{
	return (struct pl_kafka_producer_config){
		.uri = uri, .mode = PL_KAFKA_ENTRIES, .format = PL_RAW_FORMAT, .least = LEAST
	};
}

int pl_raw_out_check(const char *text, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	const struct pl_kafka_producer_config config = config_of(uri);
	int r = uri == NULL ? -ENOMEM : pl_kafka_uri_parse(uri, text, diag);

	if (r == 0)
		r = pl_kafka_producer_check(&config, diag);
	pl_kafka_uri_free(uri);
	return r;
}

static int open_spool(
	struct raw_out *o, const struct pl_raw_out_options *options, struct pl_diag *diag)
{
	const struct pl_spool_options spool = { .path = options->spool_path,
		.bytes = options->spool_bytes,
		.payload_max = PAYLOAD_MAX,
		.drop_newest = true };
	struct pl_spool_counts counts;
	int r = pl_spool_open(&o->spool, &spool, diag);

	if (r < 0)
		return r;
	pl_spool_counts(o->spool, &counts);
	pl_count(&o->export.stats.recovered, counts.entries);
	/* Damage from before this run is not in its account. */
	o->spool_damaged = counts.damaged_entries;
	count_spool(o);
	return 0;
}

static int open_parts(
	struct raw_out *o, const struct pl_raw_out_options *options, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	struct pl_kafka_producer_config config = config_of(uri);
	int r = uri == NULL ? -ENOMEM : pl_kafka_uri_parse(uri, options->uri, diag);

	if (r == 0 && options->spool_path != NULL) {
		r = open_spool(o, options, diag);
		config.undelivered = take_back;
		config.arg = o;
	}
	if (r == 0)
		r = pl_kafka_uri_read_properties(uri, diag);
	if (r == 0)
		r = pl_kafka_producer_open(&o->producer, &config, diag);
	pl_kafka_uri_free(uri);
	return r;
}

int pl_raw_out_open(
	struct pl_export **ret, const struct pl_raw_out_options *options, struct pl_diag *diag)
{
	struct raw_out *o = calloc(1, sizeof(*o));
	int r;

	if (o == NULL)
		return -ENOMEM;
	o->export.ops = &ops;
	pl_buf_init(&o->early);
	pthread_mutex_init(&o->lock, NULL);
	snprintf(o->name, sizeof(o->name), "%.*s", (int)strcspn(options->uri, "?"), options->uri);
	r = open_parts(o, options, diag);
	if (r < 0) {
		close_out(&o->export);
		return r;
	}
	*ret = &o->export;
	return 0;
}

uint64_t pl_raw_out_memory(void)
{
	/* Only a broker knows the number of partitions of a topic, and thus the number of
	 * buffers. */
	return PL_KAFKA_POOL_MAX + EARLY_MAX;
}
