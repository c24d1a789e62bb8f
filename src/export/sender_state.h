/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of a sender; for sender_open.c, sender.c (threads, requests), sender_batches.c (memory
 * and spool) and sender_rules.c (choice of batches, rulings). The lock guards everything except
 * members marked as a thread's own.
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

/* Flags of spool records. */
#define FLAG_SUSPECT  1u
#define FLAG_KIND(id) ((uint32_t)(id) << 16)

/* A batch in memory; its buffers are allocated once. */
struct held {
	struct pl_buf text;
	uint32_t *ends;
	uint32_t n;
	bool suspect;
	uint64_t begun_ns; /* monotonic time of its first entry */
	uint64_t first;    /* number of entries before it, ever */
};

/* The batch being sent: entries lo … n, of which those before hi are in the next request. Entries
 * before lo are settled. Refused halves are sent again with a smaller hi. */
struct work {
	struct pl_chunks chunks;
	uint32_t lo, hi, step;
	uint32_t doubts;   /* consecutive answers 500 */
	struct held *held; /* its buffer; NULL: the text is lent by the spool */
	bool spooled;      /* it is also the spool's oldest record */
	bool copied;       /* the spool has a copy, in case the process ends */
	struct pl_spool_copy copy;
	bool suspect, active, in_flight;
};

struct sender {
	struct pl_export export;
	struct pl_sender_options options; /* with defaults; texts valid while opening */
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
	struct held **ring; /* waiting batches, the oldest at ring[head] */
	uint32_t head, n_ring;
	struct held *open; /* batch for new entries; NULL: none yet */
	uint64_t queued;
	uint64_t entered; /* entries so far, including those dropped at once */
	uint64_t marked;  /* `entered` at the last mark */

	struct pl_spool *spool;
	struct pl_spool_counts seen; /* counts of the spool that are in the statistics */
	uint8_t *record;             /* buffer in which a batch becomes a record */
	uint32_t record_cap;
	uint64_t synced_ns;
	bool unsynced; /* the spool has records that are not synced */
	int spool_error;

	struct work work;
	bool memory_turn;
	uint64_t not_before_ns;
	uint32_t failures;    /* consecutive */
	bool ok_since_letter; /* the server took something since the last doubtful refusal */
	bool renew_credentials;
	uint64_t body_limit; /* in bytes, learnt from 413; 0: none */
	int send_error;
	struct pl_rng rng;
	struct pl_export_words words;
	struct pl_dead_letters *letters;

	/* Of the sender's thread alone. */
	struct pl_buf body;
	char *zipped;
	size_t zipped_cap;
	z_stream gzip;
	bool gzip_made;
	struct pl_http_answer answer;
};

/* ---- sender_batches.c ---- */

/* Updates the statistics; called after every change. */
void pl_sender_account(struct sender *s);
void pl_sender_drop(struct sender *s, enum pl_export_drop cause, uint64_t n);

struct held *pl_sender_ring_pop(struct sender *s);
void pl_sender_ring_push(struct sender *s, struct held *h);
void pl_sender_release(struct sender *s, struct held *h);

/* Returns the batch for new entries; when memory is full, moves the oldest out of it. */
struct held *pl_sender_room(struct sender *s, uint64_t now_ns);
bool pl_sender_full(const struct sender *s, const struct held *h);

/* Stores a doubted batch likewise; turned: its first entry is moved to the end. */
int pl_sender_spool_doubted(
	struct sender *s, const struct pl_chunks *c, uint32_t first, bool turned);
uint64_t pl_sender_spool_records(const struct sender *s);
/* Stores batches begun at or before begun_ns in the spool, including the one in flight. */
void pl_sender_commit(struct sender *s, uint64_t begun_ns);
/* Settles the copy of the batch being sent, which is not needed any more. */
void pl_sender_drop_copy(struct sender *s);
/* Moves all batches from memory to the spool, the oldest first. None may be in flight. */
void pl_sender_put_away(struct sender *s);
/* Drops the batch being sent when the spool, which lent it, removed it from the disk. */
void pl_sender_drop_lent(struct sender *s);

/* ---- sender_rules.c ---- */

/* Takes the next batch into s->work; returns false when there is none. */
bool pl_sender_choose(struct sender *s);
/* Sets how many entries the next request carries, by `step` and the server's known size limit. */
void pl_sender_aim(struct sender *s);
/* Applies the ruling on s->answer to the entries of the request. */
void pl_sender_rule(struct sender *s, uint64_t now_ns);

/* ---- sender.c ---- */

int pl_sender_start(struct sender *s);
void pl_sender_close(struct pl_export *e);
extern const struct pl_export_ops pl_sender_ops;
