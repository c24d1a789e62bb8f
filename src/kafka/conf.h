/* SPDX-License-Identifier: BSD-2-Clause */
/* librdkafka's configuration out of ours and a URI's properties. */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stddef.h>

#include "base/diag.h"
#include "kafka/uri.h"

struct pl_kafka_setting {
	const char *name, *value;
};

/* What the callers' accounts rest on: properties that a URI may not set, and why not. */
struct pl_kafka_reserved {
	const char *name, *why;
};

/* Both lists end with a name that is NULL. Settings come first, the URI's properties replace them.
 * Properties that this librdkafka does not know are left out and named in *warning. NULL with diag:
 * a value that is refused (with the property's name), a reserved property. To be freed with
 * rd_kafka_conf_destroy, or given to rd_kafka_new. */
rd_kafka_conf_t *pl_kafka_conf_new(const struct pl_kafka_uri *uri,
	const struct pl_kafka_setting *settings, const struct pl_kafka_reserved *reserved,
	struct pl_diag *warning, struct pl_diag *diag);

/* Reads what the brokers say of the topic, for at most wait_ms. -ENOENT (no such topic), -EACCES,
 * -ETIMEDOUT with diag; `trouble` is the client's last error, for the text. */
int pl_kafka_conf_partitions(rd_kafka_t *rk, rd_kafka_topic_t *topic, const char *brokers,
	unsigned int wait_ms, const struct pl_diag *trouble, unsigned int *ret,
	struct pl_diag *diag);
