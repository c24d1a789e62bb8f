/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An exporter to a server over HTTP: formatting is the kind's own, pure functions behind struct
 * pl_format_ops; everything else is here and the same for all kinds.
 *
 *   entry ──format──▶ chunk ──▶ batch ──▶ memory ──▶ spool ──▶ request ──▶ answer ──▶ ruling
 *         the output's thread            │        (sender's thread)
 *
 * A chunk is what one entry became; a batch is a run of chunks, ended by count, by bytes, or by age
 * when nothing waits before it. Batches wait in memory, which is taken when opened; when it is full
 * the oldest of them goes to the spool on disk, as it does when it becomes too old, so everything
 * in the spool is older than everything in memory. Without a spool, the oldest is dropped and
 * counted. A sender's thread of its own makes the requests, so a server that hangs holds up neither
 * the output's thread nor the spool.
 *
 * Order: in_order sends strictly the oldest first. Without it, while there is a spool to empty,
 * requests take turns: one from the spool (the oldest), one from memory (its oldest), so after an
 * outage the newest are not starved; for servers where a point carries its time and order means
 * nothing.
 *
 * At least once: a request whose answer did not come is made again, with the same bytes. What is in
 * the spool survives kill -9. What is not delivered within spool_within_ns is in the spool and on
 * the device, also what is being sent then (group commit); a stop puts all of it there. After a
 * crash what was being sent is sent again.
 *
 * Answers (enum pl_ruling_kind): a batch that is refused is halved until the refused entry stands
 * alone; that one goes to the dead-letter file with the server's words and the rest goes on. 413
 * halves too, and later batches are kept below that size. 401, 403 and 404 mean that an operator
 * has something to mend: everything is kept, retried slowly, and credentials are read anew before
 * each try. 429, other 5xx and failures of the network are retried for ever, with exponential
 * back-off and full jitter, or as Retry-After says (5 min at most). 500 is doubtful: some servers
 * answer it to one bad point for ever. A batch that got doubt_after of them steps aside for others;
 * its parts are tried when its turn comes again, or at once when there are no others. An entry that
 * is doubted alone lets the others of its batch go first, but not in_order. When the server has
 * taken anything since, it is treated as refused; while it takes nothing, as an outage.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "export/exporter.h"

/* Chunk i is text[ends[i - 1] … ends[i]); the first begins at 0. */
struct pl_chunks {
	const char *text;
	const uint32_t *ends;
	uint32_t n;
};

static inline uint32_t pl_chunk_begin(const struct pl_chunks *c, uint32_t i)
{
	return i == 0 ? 0 : c->ends[i - 1];
}

enum pl_ruling_kind {
	PL_RULING_DELIVERED,
	PL_RULING_RETRY,   /* not now; the same again later */
	PL_RULING_HOLD,    /* not before an operator mends something; the same again, slowly */
	PL_RULING_TOO_BIG, /* halve it */
	/* at least one entry is not acceptable; the others may be stored already */
	PL_RULING_REFUSED,
	PL_RULING_DOUBTFUL, /* refused or not now: 500 */
	PL_RULING_MAX,
};
const char *pl_ruling_name(enum pl_ruling_kind kind); /* "delivered", … */

#define PL_ANSWER_BODY_MAX 4096

/* What came back. status 0: no answer, and `error` says why (a negative errno). */
struct pl_http_answer {
	int status;
	int error;
	uint64_t retry_after_ns; /* 0: none given; already capped */
	uint32_t len;            /* of body: its beginning, terminated */
	char body[PL_ANSWER_BODY_MAX + 1];
};

struct pl_ruling {
	enum pl_ruling_kind kind;
	bool whole; /* with REFUSED: no entry of it is acceptable, halving is of no use */
	char words[PL_WORDS_MAX]; /* the server's, or the system's: printable UTF-8, terminated */
};

/* What a status means where a kind has nothing to add: 2xx delivered; 408, 425, 429, 502 and up,
 * and none at all retry; 401, 403, 404, 405, 407, 3xx and 501 hold; 413 too big; 500 doubtful;
 * other 4xx refused. The words are the body's first line, cleaned. */
void pl_ruling_by_status(const struct pl_http_answer *answer, struct pl_ruling *ret);

/*
 * A kind of server. `format` is the kind's own state. path, event, value, flat and point run in the
 * output's thread; body and answer in the sender's; none of them may block, log, or read a clock:
 * real_ns is the time now, since the Unix epoch. Each of these appends one chunk to `out` and
 * returns 0, or says why the entry is dropped: -ERANGE (its time), -ENODATA (nothing in it for this
 * kind), anything else (could not be written down; a failed `out` counts as that). What a failing
 * one appended is taken back. NULL: not taken.
 */
struct pl_format_ops {
	const char *name; /* of the kind: "influx" */
	int (*path)(void *format, const struct pl_path *path, const struct pl_hop *hops,
		uint64_t real_ns, struct pl_buf *out);
	int (*event)(
		void *format, const struct pl_event *event, uint64_t real_ns, struct pl_buf *out);
	int (*value)(
		void *format, const struct pl_value *value, uint64_t real_ns, struct pl_buf *out);
	int (*flat)(void *format, enum pl_flat_kind kind, const void *record, uint64_t real_ns,
		struct pl_buf *out);
	int (*point)(void *format, const struct pl_series_point *point, uint64_t real_ns,
		struct pl_buf *out);
	/* Appends a chunk that has become due by itself and returns 1, to be asked again; 0 when
	 * there is none. Asked in the output's thread whenever it flushes; counted with the points.
	 * NULL: never any. */
	int (*due)(void *format, uint64_t real_ns, struct pl_buf *out);
	/* The request's body out of n chunks from `first` on. NULL: one behind the other. -ENOMEM,
	 * else a negative errno, which counts as refused. gzip comes behind it. */
	int (*body)(void *format, const struct pl_chunks *chunks, uint32_t first, uint32_t n,
		struct pl_buf *out);
	/* What an answer to n entries means. NULL: pl_ruling_by_status. */
	void (*answer)(void *format, const struct pl_http_answer *answer, uint32_t n,
		struct pl_ruling *ret);
	/* Entries so far that were written under an overflow key. Any thread. NULL: none ever. */
	uint64_t (*folded)(const void *format);
	void (*free)(void *format);
};

/* How requests are made; called by the sender's thread but for abort. */
struct pl_transport {
	/* Returns when there is an answer, none within the timeout, or abort was called. */
	void (*post)(void *arg, const char *body, size_t len, struct pl_http_answer *ret);
	void (*abort)(void *arg); /* ends a post and all later ones, with -ECANCELED; any thread */
	int (*credentials)(void *arg, struct pl_diag *diag); /* reads them anew */
	void (*free)(void *arg);
};

/* All texts are copied. Zero means the default in brackets. */
struct pl_sender_options {
	const char *name;           /* of the output, for dead letters */
	const char *url;            /* http or https, whole, with its query; no credentials in it */
	const char *const *headers; /* "Name: value", NULL at the end; no secrets. NULL: none */
	bool gzip;

	/* Credentials are read from files when opened and again before each try after a 401 or 403;
	 * a last newline is not part of them. */
	const char *user, *password_file; /* basic authentication */
	const char *token_file;           /* "Authorization: SCHEME TOKEN" */
	const char *token_scheme;         /* "Token", "Bearer" [Bearer] */

	const char *ca_file;              /* instead of the system's */
	const char *cert_file, *key_file; /* of this client */
	bool insecure;                    /* do not verify the server's certificate */

	uint32_t batch_entries; /* [5000] */
	uint64_t batch_bytes;   /* [1 MiB] before compression; exceeded by one entry at most */
	uint64_t batch_age_ns;  /* [1 s] */
	uint64_t memory_bytes;  /* [16 MiB] of batches; at least four of them */
	uint64_t timeout_ns;    /* [10 s] for a whole request */

	const char *spool_path; /* a folder, made when it is not there. NULL: no spool */
	/* What its entries are, in a word. A spool with entries of another kind is not opened.
	 * [the name of the kind of server] */
	const char *spool_kind;
	uint64_t spool_bytes;   /* [1 GiB] */
	bool spool_drop_newest; /* when it is full; else the oldest give way */
	/* [1 s] what is accepted is delivered, or on disk; UINT64_MAX: when memory is full, or at a
	 * stop */
	uint64_t spool_within_ns;
	bool in_order;

	/* [dead-letter.jsonl in the spool's folder; without one, none] */
	const char *dead_letter_path;
	uint64_t dead_letter_bytes; /* [64 MiB]; beyond it, letters are counted only */

	uint64_t retry_min_ns, retry_max_ns; /* [0.5 s, 30 s] */
	uint64_t hold_ns;                    /* [30 s] between tries while held */
	uint32_t doubt_after;                /* [3] */

	const struct pl_transport *transport; /* instead of HTTP, for tests; NULL: HTTP */
	void *transport_arg;
};

/* Takes `format` over, also on failure. -errno with diag: a file that cannot be read, a spool that
 * another process writes, an address that is none. That the server is not there is no failure. */
int pl_sender_open(struct pl_export **ret, const struct pl_sender_options *options,
	const struct pl_format_ops *ops, void *format, uint64_t now_ns, struct pl_diag *diag);

/* Entries whose chunks are there already: n of `size` bytes, each the beginning of `stride` bytes.
 * The output's thread. */
void pl_sender_write(struct pl_export *e, const void *chunks, uint32_t n, uint32_t size,
	uint32_t stride, uint64_t now_ns);
/* The kind's own state, as it was given to pl_sender_open. */
void *pl_sender_format(struct pl_export *e);

/* What it holds at most, `format` aside. */
uint64_t pl_sender_memory(const struct pl_sender_options *options);
