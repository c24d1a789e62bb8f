/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches the files of certificates and keys, which a client of librdkafka reads only when it is
 * opened. */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define PL_KAFKA_RENEW_FILES   5
#define PL_KAFKA_RENEW_LOOK_NS UINT64_C(10000000000) /* between looks */
#define PL_KAFKA_RENEW_TRY_NS                                                                      \
	UINT64_C(30000000000) /* for a client with the new files to reach a broker */

struct pl_kafka_renew_file {
	char *path;
	/* State of the file at the last check; zeros when it did not exist. */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

struct pl_kafka_renew {
	struct pl_kafka_renew_file files[PL_KAFKA_RENEW_FILES];
	unsigned int n; /* 0: the client uses no such files */
	uint64_t looked_ns;
	bool pending; /* files changed since the client was opened */
};

/* Stores the files of a configuration and their state, before a client is opened with it.
 * -ENOMEM. */
int pl_kafka_renew_init(struct pl_kafka_renew *renew, const rd_kafka_conf_t *conf);
void pl_kafka_renew_done(struct pl_kafka_renew *renew);

/* Returns true when a client should be opened again now: files changed since the last client was
 * opened. Checks at most once in ten seconds. */
bool pl_kafka_renew_due(struct pl_kafka_renew *renew, uint64_t now_ns);
