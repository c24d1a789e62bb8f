/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a sender is made of; for sender_open.c, sender.c (threads, requests), sender_batches.c
 * (memory and spool) and sender_rules.c (what to send, and what an answer does). Everything is
 * under the lock but what is said to be a thread's own.
 */
#pragma once

#include <pthread.h>
#include <zlib.h>

#include "base/rng.h"
#include "export/dead_letter.h"
#include "export/ruling.h"
#include "export/sender.h"
#include "export/spool.h"

#define SECOND_NS     UINT64_C(1000000000)

/* Spool record flags. */
#define FLAG_SUSPECT  1u
#define FLAG_KIND(id) ((uint32_t)(id) << 16)

/* A batch in memory. Its buffers are taken once. */
struct held {
	struct pl_buf text;
	uint32_t *ends;
	uint32_t n;
	bool suspect;
	uint64_t begun_ns; /* monotonic: when its first entry came */
	uint64_t first;    /* entries that came before it */
};

/* What is being sent: entries lo … n of a batch, of them those before hi in the next request. What
 * is before lo is settled. Refused halves come back to the same place with a smaller hi. */
struct work {
	struct pl_chunks chunks;
	uint32_t lo, hi, step;
	uint32_t doubts;   /* 500s in a row */
	struct held *held; /* its memory; NULL: lent by the spool */
	bool spooled;      /* it is the spool's oldest record, too */
	bool copied;       /* it has a copy in the spool, for the case that the process ends */
	struct pl_spool_copy copy;
	bool suspect, active, in_flight;
};

struct sender {
	struct pl_export export;
	struct pl_sender_options options; /* with defaults; its texts only while opening */
	char *name;
	const struct pl_format_ops *ops;
	void *format;
	const struct pl_transport *transport;
	void *transport_arg;
	uint16_t kind_id;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, quit;

	struct held *all;
	uint32_t n_all;
	struct held **free_list;
	uint32_t n_free;
	struct held **ring; /* batches waiting, the oldest at ring[head] */
	uint32_t head, n_ring;
	struct held *open; /* being filled; NULL: none yet */
	uint64_t queued;
	uint64_t entered; /* entries that came so far, also those that were dropped at once */
	uint64_t marked;  /* of them, those before the last mark */

	struct pl_spool *spool;
	struct pl_spool_counts seen; /* spool's counts that are in the statistics already */
	uint8_t *record;             /* where a batch becomes a record */
	uint32_t record_cap;
	uint64_t synced_ns;
	bool unsynced; /* something was put into it since */
	int spool_error;

	struct work work;
	bool memory_turn;
	uint64_t not_before_ns;
	uint32_t failures;    /* in a row */
	bool ok_since_letter; /* the server took something since the last doubtful refusal */
	bool renew_credentials;
	uint64_t body_limit; /* learnt from 413; 0: none */
	int send_error;
	struct pl_rng rng;
	struct pl_export_words words;
	struct pl_dead_letters *letters;

	/* The sender's thread's own. */
	struct pl_buf body;
	char *zipped;
	size_t zipped_cap;
	z_stream gzip;
	bool gzip_made;
	struct pl_http_answer answer;
};

/* ---- sender_batches.c ---- */

/* The statistics as things are now; after every change. */
void pl_sender_account(struct sender *s);
void pl_sender_drop(struct sender *s, enum pl_export_drop cause, uint64_t n);

struct held *pl_sender_ring_pop(struct sender *s);
void pl_sender_ring_push(struct sender *s, struct held *h);
void pl_sender_release(struct sender *s, struct held *h);

/* The batch that new entries go into; makes room by moving the oldest out of memory. */
struct held *pl_sender_room(struct sender *s, uint64_t now_ns);
bool pl_sender_full(const struct sender *s, const struct held *h);

/* Entries from `first` on as a record of the spool. */
int pl_sender_spool(struct sender *s, const struct pl_chunks *c, uint32_t first, bool suspect);
/* The same of a batch that is doubted; turned: the first of them comes last. */
int pl_sender_spool_doubted(
	struct sender *s, const struct pl_chunks *c, uint32_t first, bool turned);
uint64_t pl_sender_spool_records(const struct sender *s);
/* What has been in memory since then, or before, is on disk behind this, also what is in flight. */
void pl_sender_commit(struct sender *s, uint64_t begun_ns);
/* What is being sent has come to its end here: its copy is not needed any more. */
void pl_sender_drop_copy(struct sender *s);
/* Everything in memory into the spool, the oldest first. Nothing must be in flight. */
void pl_sender_put_away(struct sender *s);

/* ---- sender_rules.c ---- */

/* The next batch into s->work; false when there is none. */
bool pl_sender_choose(struct sender *s);
/* How far the next request goes: as `step` and the server's known limit have it. */
void pl_sender_aim(struct sender *s);
/* Does what s->answer, to the entries aimed at, makes necessary. */
void pl_sender_rule(struct sender *s, uint64_t now_ns);

/* ---- sender.c ---- */

int pl_sender_start(struct sender *s);
void pl_sender_close(struct pl_export *e);
extern const struct pl_export_ops pl_sender_ops;
