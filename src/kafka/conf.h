/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes librdkafka's configuration from our settings and a URI's properties. */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stddef.h>

#include "base/diag.h"
#include "kafka/uri.h"

struct pl_kafka_setting {
	const char *name, *value;
};

/* A property that a URI may not set because the caller depends on its value, and the reason for the
 * message. */
struct pl_kafka_reserved {
	const char *name, *why;
};

/* Both lists end with a name that is NULL. Settings come first, the URI's properties replace them.
 * Returns NULL with diag, which names it, for a property that is reserved or that this librdkafka does
 * not know, and for a value that it refuses. The caller frees
 * the result with rd_kafka_conf_destroy, or gives it to rd_kafka_new. */
rd_kafka_conf_t *pl_kafka_conf_new(const struct pl_kafka_uri *uri,
	const struct pl_kafka_setting *settings, const struct pl_kafka_reserved *reserved,
	struct pl_diag *diag);

/* Asks the brokers for the topic's number of partitions, for at most wait_ms. Returns -ENOENT (no
 * such topic), -EACCES or -ETIMEDOUT with diag; `trouble` is the client's last error, for its
 * text. */
int pl_kafka_conf_partitions(rd_kafka_t *rk, rd_kafka_topic_t *topic, const char *brokers,
	unsigned int wait_ms, const struct pl_diag *trouble, unsigned int *ret,
	struct pl_diag *diag);
