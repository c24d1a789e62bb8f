/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a producer's batch buffers. */
#pragma once

#include "kafka/producer_state.h"

/* Adds buffers until there are config.buffers of them, or with 0 as many as the known partitions
 * need. Called again when partitions become known, or when there are more; existing buffers stay in
 * place. Returns -EINVAL (more memory than PL_KAFKA_POOL_MAX; nothing is added) or -ENOMEM, with
 * diag. */
int pl_kafka_producer_pool(struct pl_kafka_producer *p, struct pl_diag *diag);
/* Frees the buffers, which no client may read any more. */
void pl_kafka_producer_pool_done(struct pl_kafka_producer *p);
