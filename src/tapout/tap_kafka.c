/* SPDX-License-Identifier: BSD-2-Clause */
/* Output to a topic of Kafka: messages of many records, whose bytes are the records; or JSON
 * objects, or flows of goflow2, a message each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/num.h"
#include "kafka/producer.h"
#include "kafka/skew.h"
#include "netio/uri.h"
#include "record/community_id.h"
#include "record/flow_hash.h"
#include "record/goflow2.h"
#include "record/json.h"
#include "record/protobuf.h"
#include "runtime/kafka_files.h"
#include "runtime/say.h"
#include "tapout/tap_out.h"
#include "tapout/tap_spool.h"

#define BROKER_WAIT_MS   10000 /* for the topic, when the tap begins */
#define CLOSE_WAIT_MS    10000 /* for acknowledgements, when it ends */
#define TURN_NS          UINT64_C(10000000)
#define SPOOL_BYTES      (UINT64_C(1) << 30)
#define SPOOL_BYTES_MIN  (UINT64_C(1) << 20)
#define SPOOL_BYTES_MOST (UINT64_C(1) << 44)
#define SPOOL_A_TURN     65536                /* records from the spool in a turn */
#define AGAIN_NS         UINT64_C(1000000000) /* pause after records that came back */
#define CLOCK_BYTES      32                   /* at least those of "clock":"capture" */
#define SPOOL_CHUNK      256                  /* records in an entry of the spool, at most */

struct kafka_out {
	struct pl_tap_out out; /* first */
	struct pl_kafka_producer *producer;
	enum pl_flat_kind given; /* kind of the records that are put */
	enum pl_flat_kind kind;  /* of the records in the topic */
	bool json, goflow2;      /* a message is one object, or one direction of a flow */
	bool community_id;       /* objects have it */
	bool protobuf;           /* records are rows in a message */
	struct pl_goflow2_source source;
	struct pl_buf text; /* a JSON object */
	struct pl_tap_spool spool;
	bool marked;              /* records before the spool's mark have not all ended */
	bool came_back;           /* records came back since the last check */
	uint64_t again_ns;        /* when to send records of the spool again */
	uint32_t size;            /* bytes of a record that is put */
	enum pl_clock_kind clock; /* of the records that are put now */
	struct pl_kafka_producer_stats stats;
	struct pl_kafka_client client; /* librdkafka's last statistics */
	struct pl_diag why;            /* why records do not get through; empty: they do */
	char trouble[256];             /* time of the last log line; the same for the spool */
	char spool_trouble[256];
	bool spread, skewed; /* partition=spread; the partitions are uneven, which was logged */
	uint32_t busiest, partitions;
};

/* Makes the whole URI from the part behind "kafka:". */
static int whole(char text[PL_KAFKA_URI_MAX], const char *target)
{
	return snprintf(text, PL_KAFKA_URI_MAX, "kafka:%s", target) < PL_KAFKA_URI_MAX ? 0
										       : -EINVAL;
}

/* Makes the spool's folder, which must exist before privileges are given up, and notes it. */
static int allow_spool(const char *text, struct pl_confine *confine)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	const char *path = NULL;
	int r = 0;

	if (uri == NULL)
		return -ENOMEM;
	if (pl_kafka_uri_parse_output(uri, text, NULL) == 0)
		path = pl_kafka_uri_take(uri, "spool");
	if (path != NULL) {
		(void)mkdir(path, 0700); /* opening it reports the error */
		r = pl_confine_path(confine, path, true);
	}
	pl_kafka_uri_free(uri);
	return r;
}

static int kafka_files(const struct pl_uri *uri, struct pl_confine *confine)
{
	char text[PL_KAFKA_URI_MAX];
	int r;

	if (whole(text, uri->target) < 0)
		return 0;
	r = pl_kafka_files(text, confine);
	return r < 0 ? r : allow_spool(text, confine);
}

/* The spool has records, whatever the messages are made of them, and counts those that find no room
 * on the disk. */
static bool take_back(void *arg, const void *records, uint32_t n)
{
	struct kafka_out *self = arg;
	const uint32_t size = pl_flat(self->kind)->size, row = pl_protobuf_row_size(self->kind);
	const uint8_t *rows = records;
	uint8_t chunk[SPOOL_CHUNK * PL_FLAT_BYTES_MAX];

	self->came_back = true;
	if (!self->protobuf) {
		(void)pl_tap_spool_put_back(&self->spool, records, n);
		return true;
	}
	while (n > 0) {
		const uint32_t some = n < SPOOL_CHUNK ? n : SPOOL_CHUNK;

		for (uint32_t i = 0; i < some; i++, rows += row)
			pl_protobuf_get(self->kind, rows, chunk + (size_t)i * size);
		(void)pl_tap_spool_put_back(&self->spool, chunk, some);
		n -= some;
	}
	return true;
}

/* The note of a message is its record. */
static bool take_back_note(void *arg, const void *record)
{
	struct kafka_out *self = arg;

	(void)pl_tap_spool_put_back(&self->spool, record, 1);
	self->came_back = true;
	return true;
}

/* Reads the keys spool=FOLDER and spool_bytes=SIZE. *ret_path becomes NULL without a spool. */
static int read_spool(
	struct pl_kafka_uri *uri, const char **ret_path, uint64_t *ret_bytes, struct pl_diag *diag)
{
	const char *path = pl_kafka_uri_take(uri, "spool"),
		   *size = pl_kafka_uri_take(uri, "spool_bytes");

	*ret_path = path;
	*ret_bytes = SPOOL_BYTES;
	if (path == NULL && size == NULL)
		return 0;
	if (path == NULL)
		return pl_diag_fail(diag, -EINVAL, "kafka: spool_bytes= without spool=FOLDER");
	return size == NULL ? 0
			    : pl_uri_read_size("spool_bytes", size, SPOOL_BYTES_MIN,
				      SPOOL_BYTES_MOST, ret_bytes, diag);
}

static int open_spool(struct kafka_out *self, struct pl_kafka_producer_config *config,
	const char *path, uint64_t bytes, struct pl_diag *diag)
{
	int r;

	if (path == NULL)
		return 0;
	r = pl_tap_spool_open(&self->spool, path, bytes, config->kind, diag);
	config->undelivered = take_back;
	config->undelivered_note = take_back_note;
	config->arg = self;
	config->wait_ms = 0; /* the spool serves while brokers are away */
	return r;
}

/* Keys of the URI that are the output's own. */
struct keys {
	const char *path; /* of the spool; NULL: none */
	uint64_t bytes;
	bool community_id;
	struct pl_goflow2_source source;
};

/* Reads the key community_id=yes of format=json. */
static int read_community_id(struct pl_kafka_uri *uri, const struct pl_tap_out_settings *settings,
	bool *ret, struct pl_diag *diag)
{
	const char *value = pl_kafka_uri_take(uri, "community_id");

	if (value != NULL && uri->format != PL_KAFKA_FORMAT_JSON)
		return pl_diag_fail(
			diag, -EINVAL, "kafka: community_id= goes with format=json only");
	return pl_tap_out_community_id(value, settings, ret, diag);
}

/* Reads the key sampler=ADDRESS. */
static int read_sampler(
	struct pl_kafka_uri *uri, struct pl_goflow2_source *ret, struct pl_diag *diag)
{
	const char *text = pl_kafka_uri_take(uri, "sampler");

	if (text == NULL)
		return 0;
	ret->has_sampler = true;
	if (uri->format == PL_KAFKA_FORMAT_GOFLOW2 && pl_parse_addr(text, &ret->sampler) == 0)
		return 0;
	return pl_diag_fail(
		diag, -EINVAL, "kafka: sampler=%s: an address, with format=goflow2", text);
}

/* Sets up messages of goflow2, which need flows. They are made of all that a record has. */
static int take_goflow2(struct pl_kafka_producer_config *config,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	if (pl_flat_short(config->kind) != PL_FLAT_FLOW128)
		return pl_diag_fail(
			diag, -EINVAL, "kafka: format=goflow2 is of flows: add --flows");
	config->kind = settings->kind;
	config->mode = PL_KAFKA_MESSAGES;
	config->least = PL_GOFLOW2_MAX;
	return 0;
}

static int configure(struct pl_kafka_producer_config *config, struct pl_kafka_uri *uri,
	struct keys *ret, const char *target, const struct pl_tap_out_settings *settings,
	struct pl_diag *diag)
{
	char text[PL_KAFKA_URI_MAX];
	int r;

	if (whole(text, target) < 0)
		return pl_diag_fail(diag, -EINVAL, "kafka: the URI is too long");
	r = pl_kafka_uri_parse_output(uri, text, diag);
	if (r == 0)
		r = pl_tap_out_kind(pl_kafka_uri_take(uri, "kind"), settings, &config->kind, diag);
	if (r == 0)
		r = pl_kafka_uri_name(uri, pl_flat(config->kind)->name, PL_FLAT_VERSION, diag);
	if (r == 0 && uri->format == PL_KAFKA_FORMAT_GOFLOW2)
		r = take_goflow2(config, settings, diag);
	if (r == 0 && uri->format == PL_KAFKA_FORMAT_JSON) {
		config->mode = PL_KAFKA_MESSAGES;
		config->least = (uint32_t)pl_flat_json_max(config->kind) + CLOCK_BYTES;
	}
	config->uri = uri;
	config->exporter = settings->exporter;
	config->wait_ms = BROKER_WAIT_MS;
	if (r == 0)
		r = read_community_id(uri, settings, &ret->community_id, diag);
	if (r == 0)
		r = read_spool(uri, &ret->path, &ret->bytes, diag);
	ret->source.exporter = settings->exporter;
	if (r == 0)
		r = read_sampler(uri, &ret->source, diag);
	return r;
}

static int kafka_check(const struct pl_uri *given, const struct pl_tap_out_settings *settings,
	struct pl_diag *diag)
{
	struct pl_kafka_producer_config config = { .mode = PL_KAFKA_RECORDS };
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	struct keys keys = { .path = NULL };
	int r = uri == NULL ? -ENOMEM
			    : configure(&config, uri, &keys, given->target, settings, diag);

	if (r == 0)
		r = pl_kafka_producer_check(&config, diag);
	pl_kafka_uri_free(uri);
	return r;
}

static int kafka_open(struct pl_tap_out *out, const struct pl_uri *given,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct kafka_out *self = (struct kafka_out *)out;
	struct pl_kafka_producer_config config = { .mode = PL_KAFKA_RECORDS };
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	struct keys keys = { .path = NULL };
	int r = uri == NULL ? -ENOMEM
			    : configure(&config, uri, &keys, given->target, settings, diag);

	self->given = settings->kind;
	self->size = pl_flat(settings->kind)->size;
	self->kind = config.kind;
	self->protobuf = uri != NULL && uri->format == PL_KAFKA_FORMAT_PROTOBUF;
	self->goflow2 = uri != NULL && uri->format == PL_KAFKA_FORMAT_GOFLOW2;
	self->json = uri != NULL && uri->format == PL_KAFKA_FORMAT_JSON;
	self->community_id = keys.community_id;
	self->source = keys.source;
	if (r == 0)
		r = open_spool(self, &config, keys.path, keys.bytes, diag);
	if (r == 0 && pl_kafka_uri_read_properties(uri, diag) < 0)
		r = -EINVAL;
	if (r == 0)
		r = pl_kafka_producer_open(&self->producer, &config, diag);
	self->spread = uri != NULL && uri->spread;
	pl_buf_init(&self->text);
	if (r == 0 && self->json &&
		pl_buf_reserve(&self->text, pl_flat_json_max(self->kind) + CLOCK_BYTES) == NULL)
		r = -ENOMEM;
	pl_kafka_uri_free(uri);
	return r;
}

/* Sends a message that is made of a record of this kind; `note` is what comes back when it is not
 * delivered: the record, in the topic's kind. */
static void send(struct kafka_out *self, uint64_t hash, enum pl_flat_kind kind, const uint8_t *note,
	const void *message, size_t len)
{
	const struct pl_kafka_note of = { note, pl_flat(self->kind)->size };

	(void)pl_kafka_producer_send_hashed(self->producer, hash, pl_flat_time(kind, note), message,
		len, pl_tap_spool_is_open(&self->spool) ? &of : NULL);
}

/* Sends a record as a JSON object. The clock, for which records have no room, is its last
 * member. */
static void put_json(struct kafka_out *self, uint64_t hash, enum pl_flat_kind kind,
	enum pl_clock_kind clock, const uint8_t *record)
{
	pl_buf_reset(&self->text); /* opening the output made room for the longest */
	pl_flat_json(&self->text, self->kind, record);
	if (self->community_id)
		pl_community_id_json(&self->text, self->kind, record);
	if (clock != PL_STAMP_NONE && !self->text.failed) {
		self->text.len--; /* the brace */
		pl_buf_printf(&self->text, ",\"clock\":\"%s\"}", pl_clock_name(clock));
	}
	send(self, hash, kind, record, self->text.data, self->text.len);
}

static void put_goflow2(struct kafka_out *self, uint64_t hash, const uint8_t *record)
{
	uint8_t message[PL_GOFLOW2_MAX], one[PL_FLAT_BYTES_MAX];

	for (int reverse = 0; reverse < 2; reverse++) {
		const size_t len =
			pl_goflow2_put(message, self->given, record, reverse == 1, &self->source);

		if (len == 0)
			continue;
		/* Each message comes back alone. */
		memcpy(one, record, self->size);
		pl_goflow2_keep(one, reverse == 1);
		send(self, hash, self->given, one, message, len);
	}
}

/* Sends a record of this kind. */
static void put_record(struct kafka_out *self, uint64_t hash, enum pl_flat_kind kind,
	enum pl_clock_kind clock, const uint8_t *record)
{
	if (self->json)
		put_json(self, hash, kind, clock, record);
	else if (self->goflow2)
		put_goflow2(self, hash, record);
	else
		(void)pl_kafka_producer_put(self->producer, hash, record);
}

/* Puts records that the producer has no room for into the spool, in the topic's kind. */
static void spool(struct kafka_out *self, const uint8_t *records, uint32_t n)
{
	const uint32_t size = pl_flat(self->kind)->size;
	uint8_t chunk[SPOOL_CHUNK * PL_FLAT_BYTES_MAX];

	while (n > 0) {
		const uint32_t some = n < SPOOL_CHUNK ? n : SPOOL_CHUNK;

		for (uint32_t i = 0; i < some; i++, records += self->size)
			memcpy(chunk + (size_t)i * size, records, size);
		(void)pl_tap_spool_put(&self->spool, chunk, some);
		n -= some;
	}
}

/* Returns true when the record, and therefore all behind it, go to the spool. */
static bool must_wait(const struct kafka_out *self, uint64_t hash)
{
	return pl_tap_spool_is_open(&self->spool) &&
	       (self->spool.stats.held > 0 || !pl_kafka_producer_room(self->producer, hash));
}

static void kafka_clock(struct pl_tap_out *out, enum pl_clock_kind clock)
{
	struct kafka_out *self = (struct kafka_out *)out;

	self->clock = clock;
	pl_kafka_producer_clock(self->producer, clock);
}

/* Sends records. pkt64/1 is the beginning of pkt96/1, and flow128/1 of flow288/1. */
static void kafka_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct kafka_out *self = (struct kafka_out *)out;
	const uint8_t *p = records;

	for (uint32_t i = 0; i < n; i++, p += self->size) {
		const uint64_t hash = pl_flow_hash_record(self->given, p);

		if (must_wait(self, hash)) {
			spool(self, p, n - i);
			break;
		}
		put_record(self, hash, self->given, self->clock, p);
	}
}

static bool give(void *arg, const void *record)
{
	struct kafka_out *self = arg;
	const uint64_t hash = pl_flow_hash_record(self->kind, record);

	if (self->came_back || !pl_kafka_producer_room(self->producer, hash))
		return false;
	put_record(self, hash, self->kind, PL_STAMP_NONE, record);
	return true;
}

/* Sends records of the spool while a broker is up: else they would only come back. Those that a
 * broker refuses come back at once, and are sent again a second later. Their clock is not known:
 * another tap may have written them. They stay on disk until all that were sent before the next mark
 * have ended, so that none is lost with the process. */
static void empty_spool(struct kafka_out *self, uint64_t now_ns)
{
	if (self->marked && pl_kafka_producer_settled(self->producer)) {
		pl_tap_spool_release(&self->spool);
		self->marked = false;
	}
	if (self->came_back)
		self->again_ns = now_ns + AGAIN_NS;
	self->came_back = false;
	if (self->spool.stats.held > 0 && self->client.brokers_up > 0 && now_ns >= self->again_ns) {
		pl_kafka_producer_clock(self->producer, PL_STAMP_NONE);
		pl_tap_spool_give(&self->spool, SPOOL_A_TURN, give, self);
		pl_kafka_producer_clock(self->producer, self->clock);
	}
	if (!self->marked && pl_tap_spool_mark(&self->spool)) {
		pl_kafka_producer_mark(self->producer);
		self->marked = true;
	}
	pl_tap_spool_turn(&self->spool, now_ns);
}

/* Logs each new text once. */
static void tell(const struct kafka_out *self, const char *trouble, char told[256])
{
	if (trouble[0] == '\0' || strncmp(trouble, told, 255) == 0)
		return;
	snprintf(told, 256, "%s", trouble);
	pl_say("%s: %s", self->out.name, told);
}

/* Logs uneven partitions once, until they are even again. */
static void look_skew(struct kafka_out *self)
{
	const struct pl_kafka_skew *skew = pl_kafka_producer_skew(self->producer);
	const bool skewed = skew->percent >= PL_KAFKA_SKEW_HIGH;

	self->busiest = skew->busiest;
	self->partitions = skew->partitions;
	if (skewed && !self->skewed)
		pl_say("%s: partition %u gets %.1f times the mean of %u partitions: few flows have "
		       "most of the records%s",
			self->out.name, skew->busiest, (double)skew->percent / 100.0,
			skew->partitions,
			self->spread ? ""
				     : "; partition=spread shares them evenly, for readers that "
				       "need no flow in one partition");
	self->skewed = skewed;
}

static uint64_t kafka_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct kafka_out *self = (struct kafka_out *)out;

	pl_kafka_producer_turn(self->producer, now_ns);
	self->client = *pl_kafka_producer_client(self->producer);
	if (pl_tap_spool_is_open(&self->spool))
		empty_spool(self, now_ns);
	pl_kafka_producer_stats(self->producer, &self->stats);
	look_skew(self);
	self->why.text[0] = '\0';
	(void)pl_kafka_producer_failing(self->producer, &self->why);
	tell(self, pl_kafka_producer_trouble(self->producer), self->trouble);
	tell(self, self->spool.trouble.text, self->spool_trouble);
	return self->stats.waiting > 0 || self->spool.stats.held > 0 ? now_ns + TURN_NS
								     : UINT64_MAX;
}

static void kafka_finish(struct pl_tap_out *out)
{
	struct kafka_out *self = (struct kafka_out *)out;

	pl_kafka_producer_close(self->producer, CLOSE_WAIT_MS, &self->stats);
	/* Records given up without an answer stay: they may be missing. */
	if (pl_tap_spool_is_open(&self->spool) && self->stats.drop_purged == 0) {
		(void)pl_tap_spool_mark(&self->spool);
		pl_tap_spool_release(&self->spool);
	}
	tell(self, self->spool.trouble.text, self->spool_trouble);
	self->producer = NULL;
}

static uint64_t kafka_lost(const struct pl_tap_out *out)
{
	const struct kafka_out *self = (const struct kafka_out *)out;

	return pl_kafka_producer_dropped(&self->stats) + self->spool.stats.dropped +
	       self->spool.stats.damaged;
}

static void kafka_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret)
{
	const struct kafka_out *self = (const struct kafka_out *)out;

	if (self->why.text[0] != '\0')
		pl_condition_add(ret, PL_CONDITION_FAULT, "output_failing", "tap %s: %s: %s", tap,
			self->out.name, self->why.text);
	if (self->skewed)
		pl_condition_add(ret, PL_CONDITION_WARNING, "partitions_uneven",
			"tap %s: %s: partition %u gets %.1f times the mean of %u partitions", tap,
			self->out.name, self->busiest, (double)self->stats.skew_percent / 100.0,
			self->partitions);
}

static const void *kafka_counters(const struct pl_tap_out *out)
{
	return &((const struct kafka_out *)out)->stats;
}

static const void *kafka_spool(const struct pl_tap_out *out)
{
	const struct kafka_out *self = (const struct kafka_out *)out;

	return pl_tap_spool_is_open(&self->spool) ? &self->spool.stats : NULL;
}

static const void *kafka_client(const struct pl_tap_out *out)
{
	return &((const struct kafka_out *)out)->client;
}

static void kafka_close(struct pl_tap_out *out)
{
	struct kafka_out *self = (struct kafka_out *)out;

	pl_kafka_producer_close(self->producer, 0, NULL);
	pl_tap_spool_close(&self->spool);
	pl_buf_done(&self->text);
}

const struct pl_tap_out_driver pl_tap_out_kafka = {
	.scheme = "kafka",
	.size = sizeof(struct kafka_out),
	.files = kafka_files,
	.check = kafka_check,
	.open = kafka_open,
	.clock = kafka_clock,
	.put = kafka_put,
	.turn = kafka_turn,
	.finish = kafka_finish,
	.lost = kafka_lost,
	.conditions = kafka_conditions,
	.numbers = { { &pl_kafka_producer_list, kafka_counters },
		{ &pl_kafka_client_list, kafka_client }, { &pl_tap_spool_list, kafka_spool } },
	.close = kafka_close,
};
