/* SPDX-License-Identifier: BSD-2-Clause */
/* What query_member.c, which reads and commits, query_member_partitions.c and query_member_open.c
 * share. */
#pragma once

#include "service/query_member.h"

#define PL_QUERY_MEMBER_WAIT_MS 60000 /* for acknowledgements and commits */

#define PL_QUERY_NONE_READ      (-1)

struct pl_query_input {
	struct pl_query_member *member;
	struct pl_query_run *run;
	uint32_t partition;
	uint64_t attempt;        /* of reading it, anew each time it is assigned */
	bool idle, at_end;       /* at_end: it was read to its end, and nothing came since */
	int64_t next, committed; /* offsets */
	int64_t first;           /* offset that it began with; PL_QUERY_NONE_READ */
	int64_t noted;           /* the watermark that was committed */
	int64_t read;            /* what was read when that was committed by another attempt */
	int64_t marked;
	uint64_t last_ns, mark_ns; /* of the last record, and of the last mark */
};

struct pl_query_output {
	struct pl_query_merge *merge;
	int64_t next, committed, noted, first, read; /* as of an input */
};

/* It ends, with the first of these causes. */
void pl_query_member_fail(struct pl_query_member *m, int r, const struct pl_diag *why);
/* What a run gives: rows to the member, and pieces to its input. */
void pl_query_member_row(void *member, const struct pl_query_row *row);
void pl_query_member_piece(
	void *input, int64_t start_ns, int64_t end_ns, const void *data, size_t len);
/* Rows and marks are told, and positions committed; member.failed. */
int pl_query_member_sync(struct pl_query_member *m, uint64_t now_ns);
/* The transaction is taken back; pl_query_member_go_back is to follow in the next turn. */
void pl_query_member_take_back(struct pl_query_member *m, const struct pl_diag *cause);
/* The partitions that are this member's are read from where the group stands. */
void pl_query_member_go_back(struct pl_query_member *m);

/* What is counted (query_member_account.c). */
void pl_query_member_json(void *service, struct pl_json *json);
void pl_query_member_page(void *service, struct pl_exposition *page);
void pl_query_member_describe(struct pl_exposition *page);
void pl_query_member_text(void *service, struct pl_buf *text);

/* Opens clients, and makes the topic of partial results. */
int pl_query_member_open(struct pl_query_member *m, struct pl_diag *diag);
/* Instead of a writer that cannot go on, one with the same name. */
int pl_query_member_rewrite(struct pl_query_member *m, struct pl_diag *diag);
/* What the group calls when partitions come and go. */
void pl_query_member_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n);
void pl_query_member_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost);
void pl_query_partials_assigned(void *arg, struct pl_kafka_position *positions, uint32_t n);
void pl_query_partials_revoked(void *arg, const uint32_t *partitions, uint32_t n, bool lost);
