/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Certificates and keys that a client of librdkafka was opened with, and whether their files are others
 * now: a client reads them once.
 */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define PL_KAFKA_RENEW_FILES   5
#define PL_KAFKA_RENEW_LOOK_NS UINT64_C(10000000000) /* between looks */
#define PL_KAFKA_RENEW_TRY_NS                                                                      \
	UINT64_C(30000000000) /* for a client with the new ones to get through */

struct pl_kafka_renew_file {
	char *path;
	/* As it was last looked at; zeros when it was not there. */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

struct pl_kafka_renew {
	struct pl_kafka_renew_file files[PL_KAFKA_RENEW_FILES];
	unsigned int n; /* 0: the client has none */
	uint64_t looked_ns;
	bool pending; /* they are others than those that the client was opened with */
};

/* Of a configuration, before the client is opened with it. -ENOMEM. */
int pl_kafka_renew_init(struct pl_kafka_renew *renew, const rd_kafka_conf_t *conf);
void pl_kafka_renew_done(struct pl_kafka_renew *renew);

/* Whether a client should be opened anew now: the files changed since the last one that was. At most
 * one look in ten seconds. */
bool pl_kafka_renew_due(struct pl_kafka_renew *renew, uint64_t now_ns);
