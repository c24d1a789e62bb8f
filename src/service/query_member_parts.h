/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts shared by query_member.c, which reads and commits, query_member_partitions.c and
 * query_member_open.c. */
#pragma once

#include "service/query_member.h"

#define PL_QUERY_MEMBER_WAIT_MS 60000 /* for acknowledgements and commits */

#define PL_QUERY_NONE_READ      (-1)

struct pl_query_input {
	struct pl_query_member *member;
	struct pl_query_run *run;
	uint32_t partition;
	uint64_t attempt;        /* id of this assignment of the partition, in its pieces */
	bool idle, at_end;       /* at_end: it was read to its end, and nothing came since */
	int64_t next, committed; /* offsets: of the next record; last committed */
	int64_t first;           /* offset of the first message read, or PL_QUERY_NONE_READ */
	int64_t noted;           /* the watermark committed last */
	int64_t read;            /* offset read so far by an earlier member, when that committed */
	int64_t marked;
	uint64_t last_ns, mark_ns; /* time of the last record; time of the last mark */
};

struct pl_query_output {
	struct pl_query_merge *merge;
	int64_t next, committed, noted, first, read; /* as of an input */
};

/* Ends the member with this error; the first one is kept. */
void pl_query_member_fail(struct pl_query_member *m, int r, const struct pl_diag *why);
/* Sinks of a run: rows go to the member, partial results to its input. */
void pl_query_member_row(void *member, const struct pl_query_row *row);
void pl_query_member_piece(
	void *input, int64_t start_ns, int64_t end_ns, const void *data, size_t len);
/* Sends rows and marks, then commits positions. Returns member.failed. */
int pl_query_member_sync(struct pl_query_member *m, uint64_t now_ns);
/* Aborts the transaction; pl_query_member_go_back must follow in the next turn. */
void pl_query_member_take_back(struct pl_query_member *m, const struct pl_diag *cause);
/* Reads the member's partitions again from the position that the group committed. */
void pl_query_member_go_back(struct pl_query_member *m);

/* Accounts of the member (query_member_account.c). */
void pl_query_member_put(void *service, const struct pl_account *a);
void pl_query_member_text(void *service, struct pl_buf *text);

/* Opens the clients, and creates the topic of partial results. Returns negative errno with diag. */
int pl_query_member_open(struct pl_query_member *m, struct pl_diag *diag);
/* Replaces a failed writer by a new one with the same name. Returns negative errno with diag. */
int pl_query_member_rewrite(struct pl_query_member *m, struct pl_diag *diag);
/* Callbacks for partitions that are assigned and revoked. */
void pl_query_member_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n);
void pl_query_member_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost);
void pl_query_partials_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n);
void pl_query_partials_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost);
