/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdkafka says of itself: JSON, once in statistics.interval.ms (its STATISTICS.md). Knows
 * nothing of librdkafka.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/stats.h"

struct pl_kafka_client {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/client_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_client_list;

/* -EINVAL: no JSON object; *ret is as it was. Members that are missing or of another type count as
 * 0. `partitions` are those of this topic, or with NULL of all that are told of, that a broker has
 * told of, and stay as they are when it has told of none. */
int pl_kafka_client_read(
	struct pl_kafka_client *ret, const char *topic, const char *json, size_t len);
