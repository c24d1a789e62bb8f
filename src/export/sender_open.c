/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a sender: its options with defaults, its memory, its spool and its dead letters. */
#include "export/sender_state.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/hash.h"
#include "base/thread.h"
#include "export/curl.h"

enum {
	ENTRY_BYTES = 256 << 10, /* longest chunk */
	BATCHES_MIN = 4,
	BATCHES_MAX = 4096,
	GZIP_LEVEL = 1,
};

static uint64_t or_else(uint64_t value, uint64_t instead)
{
	return value != 0 ? value : instead;
}

static struct pl_sender_options with_defaults(const struct pl_sender_options *given)
{
	struct pl_sender_options o = *given;

	o.batch_entries = (uint32_t)or_else(o.batch_entries, 5000);
	o.batch_bytes = or_else(o.batch_bytes, 1 << 20);
	o.batch_age_ns = or_else(o.batch_age_ns, SECOND_NS);
	o.memory_bytes = or_else(o.memory_bytes, 16 << 20);
	o.timeout_ns = or_else(o.timeout_ns, 10 * SECOND_NS);
	o.spool_bytes = or_else(o.spool_bytes, UINT64_C(1) << 30);
	o.spool_within_ns = or_else(o.spool_within_ns, SECOND_NS);
	o.dead_letter_bytes = or_else(o.dead_letter_bytes, 64 << 20);
	o.retry_min_ns = or_else(o.retry_min_ns, SECOND_NS / 2);
	o.retry_max_ns = or_else(o.retry_max_ns, 30 * SECOND_NS);
	if (o.retry_max_ns < o.retry_min_ns)
		o.retry_max_ns = o.retry_min_ns;
	o.hold_ns = or_else(o.hold_ns, 30 * SECOND_NS);
	o.doubt_after = (uint32_t)or_else(o.doubt_after, 3);
	return o;
}

static uint32_t batch_count(const struct pl_sender_options *o)
{
	uint64_t n = o->memory_bytes / o->batch_bytes;

	return n < BATCHES_MIN ? BATCHES_MIN : n > BATCHES_MAX ? BATCHES_MAX : (uint32_t)n;
}

static uint64_t record_bytes(const struct pl_sender_options *o)
{
	return sizeof(uint32_t) * ((uint64_t)o->batch_entries + 1) + o->batch_bytes + ENTRY_BYTES;
}

uint64_t pl_sender_memory(const struct pl_sender_options *options)
{
	struct pl_sender_options o = with_defaults(options);
	uint64_t batch = o.batch_bytes + ENTRY_BYTES + sizeof(uint32_t) * (uint64_t)o.batch_entries;
	uint64_t sum = sizeof(struct sender) + batch_count(&o) * batch;

	sum += 2 * (o.batch_bytes + ENTRY_BYTES); /* the body, plain and compressed */
	if (o.spool_path != NULL)
		sum += 2 * record_bytes(&o) + (256 << 10);
	return sum;
}

static int take_memory(struct sender *s)
{
	const struct pl_sender_options *o = &s->options;

	s->n_all = batch_count(o);
	s->all = calloc(s->n_all, sizeof(*s->all));
	s->free_list = calloc(s->n_all, sizeof(struct held *));
	s->ring = calloc(s->n_all, sizeof(struct held *));
	if (s->all == NULL || s->free_list == NULL || s->ring == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_all; i++) {
		struct held *h = &s->all[i];

		pl_buf_init(&h->text);
		h->text.limit = o->batch_bytes + ENTRY_BYTES;
		h->ends = malloc(o->batch_entries * sizeof(*h->ends));
		if (h->ends == NULL ||
			pl_buf_reserve(&h->text, o->batch_bytes + ENTRY_BYTES) == NULL)
			return -ENOMEM;
		pl_sender_release(s, h);
	}
	if (o->gzip) {
		if (deflateInit2(&s->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8,
			    Z_DEFAULT_STRATEGY) != Z_OK)
			return -ENOMEM;
		s->gzip_made = true;
	}
	return 0;
}

/* Refuses a spool with entries of another kind, for which this server or table is not made. */
static int check_spool_kind(struct sender *s, struct pl_diag *diag)
{
	struct pl_spool_record r;

	if (pl_spool_peek(s->spool, &r) < 0 || r.flags >> 16 == s->kind_id)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"the spool in %s holds entries of another kind than %s: deliver them with the "
		"configuration that they were made with, or name another folder",
		s->options.spool_path, s->options.spool_kind);
}

static int open_spool(struct sender *s, struct pl_diag *diag)
{
	const struct pl_sender_options *o = &s->options;
	struct pl_spool_options so = {
		.path = o->spool_path,
		.bytes = o->spool_bytes,
		.drop_newest = o->spool_drop_newest,
	};
	int r;

	s->record_cap = (uint32_t)record_bytes(o);
	so.payload_max = s->record_cap;
	s->record = malloc(s->record_cap);
	if (s->record == NULL)
		return -ENOMEM;
	r = pl_spool_open(&s->spool, &so, diag);
	if (r < 0)
		return r;
	pl_spool_counts(s->spool, &s->seen);
	pl_count(&s->export.stats.recovered, s->seen.recovered);
	pl_count(&s->export.stats.damaged, s->seen.damaged_records);
	return check_spool_kind(s, diag);
}

static int open_letters(struct sender *s, struct pl_diag *diag)
{
	const struct pl_sender_options *o = &s->options;
	char *path = NULL;
	int r;

	if (o->dead_letter_path == NULL && o->spool_path == NULL)
		return 0;
	if (o->dead_letter_path == NULL &&
		asprintf(&path, "%s/dead-letter.jsonl", o->spool_path) < 0)
		return -ENOMEM;
	r = pl_dead_letters_open(
		&s->letters, path != NULL ? path : o->dead_letter_path, o->dead_letter_bytes, diag);
	free(path);
	return r;
}

static int check_options(const struct pl_sender_options *o, struct pl_diag *diag)
{
	if (o->batch_entries > 1000000 || o->batch_bytes > 64 << 20 ||
		o->memory_bytes > UINT64_C(1) << 36)
		return pl_diag_fail(diag, -EINVAL,
			"batches are of at most a million entries and 64 MiB, and 64 GiB "
			"of them are the most");
	return 0;
}

int pl_sender_open(struct pl_export **ret, const struct pl_sender_options *options,
	const struct pl_format_ops *ops, void *format, uint64_t now_ns, struct pl_diag *diag)
{
	struct sender *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL) {
		if (ops->free != NULL)
			ops->free(format);
		return -ENOMEM;
	}
	s->export.ops = &pl_sender_ops;
	s->ops = ops;
	s->format = format;
	s->options = with_defaults(options);
	if (s->options.spool_kind == NULL)
		s->options.spool_kind = ops->name;
	s->synced_ns = now_ns;
	s->kind_id = (uint16_t)pl_hash(s->options.spool_kind, strlen(s->options.spool_kind), 0);
	pl_rng_seed(&s->rng, pl_hash_seed() ^ now_ns);
	pl_buf_init(&s->body);
	pthread_mutex_init(&s->lock, NULL);
	pl_cond_init(&s->wake);
	s->name = strdup(options->name);
	r = s->name != NULL ? check_options(&s->options, diag) : -ENOMEM;
	if (r == 0)
		r = take_memory(s);
	if (r == 0 && options->transport != NULL) {
		s->transport = options->transport;
		s->transport_arg = options->transport_arg;
	} else if (r == 0) {
		r = pl_curl_new(&s->transport_arg, &s->options, diag);
		if (r == 0)
			s->transport = &pl_curl_transport;
	}
	if (r == 0 && s->options.spool_path != NULL)
		r = open_spool(s, diag);
	if (r == 0)
		r = open_letters(s, diag);
	pl_sender_account(s);
	if (r == 0)
		r = pl_sender_start(s);
	if (r < 0) {
		pl_sender_close(&s->export);
		return r;
	}
	*ret = &s->export;
	return 0;
}
