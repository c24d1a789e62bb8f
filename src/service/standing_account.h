/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounts of standing queries; for standing.c. */
#pragma once

#include "runtime/account.h"
#include "service/standing_query.h"

/* Returns how many rows the topics of its outputs dropped. */
uint64_t pl_standing_topics_lost(const struct pl_standing_query *q);

/* Members of the table of operations; `standing` is a struct pl_standing. */
void pl_standing_put(void *standing, const struct pl_account *a);
void pl_standing_put_text(void *standing, struct pl_buf *text);
