/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers to servers over HTTP: each kind only formats, with pure functions behind struct
 * pl_format_ops; everything else is here and the same for all kinds.
 *
 *   entry ──format──▶ chunk ──▶ batch ──▶ memory ──▶ spool ──▶ request ──▶ answer ──▶ ruling
 *         the output's thread            │        (sender's thread)
 *
 * A chunk is the formatted entry; a batch is a run of chunks, ended by count, by bytes, or by age
 * when nothing waits before it. Batches wait in memory, which is allocated at opening; when it is
 * full, or when a batch becomes too old, the oldest batch goes to the spool on disk, so that
 * everything in the spool is older than everything in memory. Without a spool, the oldest is
 * dropped and counted. The sender's own thread makes the requests, so that a server that hangs
 * delays neither the output's thread nor the spool.
 *
 * Order: with in_order the oldest is always sent first. Without it, while the spool holds batches,
 * requests alternate between the oldest of the spool and the oldest of memory, so that new entries
 * are not delayed after an outage; for servers where a point carries its time and order does not
 * matter.
 *
 * At least once: a request without an answer is made again, with the same bytes. Batches in the
 * spool survive kill -9. An entry not delivered within spool_within_ns is in the spool and synced,
 * even if it is being sent (group commit); a stop stores all entries there. After a crash, requests
 * without an answer are sent again.
 *
 * Answers (enum pl_ruling_kind): a refused batch is halved until the refused entry is alone; that
 * entry goes to the dead-letter file with the server's words, and the rest is sent. 413 halves too,
 * and later batches are kept below that size. 401, 403 and 404 need an operator: everything is kept
 * and retried slowly, and credentials are read again before each try. 429, 5xx other than 500 and
 * 501, and network errors are retried for ever, with exponential back-off and full jitter, or as
 * Retry-After says (5 min at most). 500 is doubtful: some servers answer it to one bad point for
 * ever. After doubt_after of them a batch steps aside for others; its parts are tried at its next
 * turn, or at once when there are no others. A doubted entry alone lets the others of its batch go
 * first, but not with in_order. If the server has taken anything since, the entry is treated as
 * refused; if not, it is an outage.
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
	PL_RULING_RETRY,   /* not now; the same request again later */
	PL_RULING_HOLD,    /* not before an operator acts; the same request again, slowly */
	PL_RULING_TOO_BIG, /* the batch is halved */
	/* at least one entry is refused; others may be stored already */
	PL_RULING_REFUSED,
	PL_RULING_DOUBTFUL, /* 500: refused, or not now */
	PL_RULING_MAX,
};

#define PL_ANSWER_BODY_MAX 4096

/* A server's answer. status 0: there is none, and `error` is the reason (negative errno). */
struct pl_http_answer {
	int status;
	int error;
	uint64_t retry_after_ns; /* 0: none given; already capped */
	uint32_t len;            /* of `body`, which is the answer's beginning, terminated */
	char body[PL_ANSWER_BODY_MAX + 1];
};

struct pl_ruling {
	enum pl_ruling_kind kind;
	bool whole;               /* with REFUSED: no entry is acceptable, so halving is useless */
	char words[PL_WORDS_MAX]; /* the server's or the system's: printable UTF-8, terminated */
};

/* Rules by the status alone: 2xx delivered; 408, 425, 429, 502 and up, and no answer retry; 401,
 * 403, 404, 405, 407, 3xx and 501 hold; 413 too big; 500 doubtful; other 4xx refused. The words are
 * the body's first line, cleaned. */
void pl_ruling_by_status(const struct pl_http_answer *answer, struct pl_ruling *ret);

/*
 * A kind of server, with `format` as its own state. path, event, value, flat and point run in the
 * output's thread; body and answer in the sender's; none of them may block, log, or read a clock:
 * real_ns is the present time since the Unix epoch. Each of the first five appends one chunk to
 * `out` and returns 0, or a cause to drop the entry: -ERANGE (its time), -ENODATA (nothing in it
 * for this kind), any other (cannot be formatted; a failed `out` counts as that). On an error the
 * appended bytes are removed. NULL: entries of that type are not taken.
 */
struct pl_format_ops {
	const char *name; /* name of the kind: "influx" */
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
	/* Appends a chunk that is due without an entry and returns 1, to be called again; 0: none
	 * is due. Called in the output's thread at each flush; such chunks are counted with the
	 * points. NULL: there are none. */
	int (*due)(void *format, uint64_t real_ns, struct pl_buf *out);
	/* Makes the request's body of n chunks from `first` on, before gzip. NULL: the chunks as
	 * they are, in order. -ENOMEM; other errors count as refused. */
	int (*body)(void *format, const struct pl_chunks *chunks, uint32_t first, uint32_t n,
		struct pl_buf *out);
	/* Rules on an answer to n entries. NULL: pl_ruling_by_status. */
	void (*answer)(void *format, const struct pl_http_answer *answer, uint32_t n,
		struct pl_ruling *ret);
	/* Returns the entries written so far under an overflow key. Any thread. NULL: none. */
	uint64_t (*folded)(const void *format);
	void (*free)(void *format);
};

/* Makes requests. The sender's thread calls all of it but `abort`. */
struct pl_transport {
	/* Returns after an answer, the timeout, or a call of `abort`. */
	void (*post)(void *arg, const char *body, size_t len, struct pl_http_answer *ret);
	void (*abort)(void *arg); /* ends this and all later posts with -ECANCELED; any thread */
	int (*credentials)(void *arg, struct pl_diag *diag); /* reads the files again */
	void (*free)(void *arg);
};

/* All texts are copied. Zero means the default in brackets. */
struct pl_sender_options {
	const char *name;           /* name of the output, for dead letters */
	const char *url;            /* http or https, complete with query, without credentials */
	const char *const *headers; /* "Name: value", NULL at the end; no secrets. NULL: none */
	bool gzip;

	/* Credentials are read from files at opening and again before each try after a 401 or 403;
	 * a final newline is ignored. */
	const char *user, *password_file; /* for basic authentication */
	const char *token_file;           /* "Authorization: SCHEME TOKEN" */
	const char *token_scheme;         /* "Token", "Bearer" [Bearer] */

	const char *ca_file;              /* replaces the system's */
	const char *cert_file, *key_file; /* of this client */
	bool insecure;                    /* the server's certificate is not verified */

	uint32_t batch_entries; /* [5000] */
	uint64_t batch_bytes;   /* [1 MiB] before compression; may be exceeded by one entry */
	uint64_t batch_age_ns;  /* [1 s] */
	uint64_t memory_bytes;  /* [16 MiB] of batches; room for at least four */
	uint64_t timeout_ns;    /* [10 s] of a request as a whole */

	const char *spool_path; /* folder, created if missing. NULL: no spool */
	/* Name of the kind of entries in the spool. A spool with entries of another kind is not
	 * opened. [the name of the kind of server] */
	const char *spool_kind;
	uint64_t spool_bytes;   /* [1 GiB] */
	bool spool_drop_newest; /* drops new batches; false: the oldest */
	/* [1 s] until accepted entries are delivered or on disk; UINT64_MAX: they are stored only
	 * when memory is full, or at a stop */
	uint64_t spool_within_ns;
	bool in_order;

	/* [dead-letter.jsonl in the spool's folder; without a spool, no dead letters] */
	const char *dead_letter_path;
	uint64_t dead_letter_bytes; /* [64 MiB]; beyond it, letters are only counted */

	uint64_t retry_min_ns, retry_max_ns; /* [0.5 s, 30 s] */
	uint64_t hold_ns;                    /* [30 s] between tries during a hold */
	uint32_t doubt_after;                /* [3] */

	const struct pl_transport *transport; /* replaces HTTP in tests; NULL: HTTP */
	void *transport_arg;
};

/* Opens a sender; takes ownership of `format`, also on failure. -errno with diag: unreadable file,
 * spool in use, invalid address. A server that is away is no error. */
int pl_sender_open(struct pl_export **ret, const struct pl_sender_options *options,
	const struct pl_format_ops *ops, void *format, uint64_t now_ns, struct pl_diag *diag);

/* Writes n entries that are chunks already: the first `size` bytes of each `stride`. The output's
 * thread. */
void pl_sender_write(struct pl_export *e, const void *chunks, uint32_t n, uint32_t size,
	uint32_t stride, uint64_t now_ns);
/* Returns the kind's own state, as given to pl_sender_open. */
void *pl_sender_format(struct pl_export *e);

/* Upper bound of memory, in bytes, without `format`. */
uint64_t pl_sender_memory(const struct pl_sender_options *options);
