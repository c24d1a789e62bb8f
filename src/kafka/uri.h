/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topic of Kafka as users write it:
 *
 *   kafka://HOST[:PORT][,HOST[:PORT]...]/TOPIC[,TOPIC...][?KEY=VALUE[&KEY=VALUE]...]
 *
 * Only a reader takes several topics; they are sorted by name. Pathline's own keys are `records`,
 * `format`, `partition` and `properties`, a file of more properties, where passwords are safer than
 * on a command line. Any other key is a property of librdkafka by its own name, which the client
 * checks when it is opened. Values are percent-decoded ("%26" is an ampersand), and "+" is itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

#define PL_KAFKA_SCHEME          "kafka://"
#define PL_KAFKA_URI_MAX         4096
#define PL_KAFKA_PROPERTIES_MAX  64
#define PL_KAFKA_FILE_MAX        16384
#define PL_KAFKA_TOPIC_MAX       249 /* bytes of a topic's name: Kafka's own limit */

#define PL_KAFKA_TOPICS_MAX      16

#define PL_KAFKA_RECORDS_DEFAULT 1024
#define PL_KAFKA_RECORDS_MAX     4096 /* records in a message */

enum pl_kafka_format {
	PL_KAFKA_FORMAT_ANY,       /* the URI has no format= */
	PL_KAFKA_FORMAT_ROWBINARY, /* records of fixed size, one behind the other */
	PL_KAFKA_FORMAT_JSON,      /* one object per message */
	PL_KAFKA_FORMAT_PROTOBUF,  /* rows of Protocol Buffers (record/protobuf.h) */
	PL_KAFKA_FORMAT_GOFLOW2,   /* one direction of a flow per message (record/goflow2.h) */
};

/* Name of a format in a URI, such as "json". */
const char *pl_kafka_format_name(enum pl_kafka_format format);

struct pl_kafka_uri {
	char text[PL_KAFKA_URI_MAX]; /* cut into the strings below: the structure is not copied */
	char brokers[PL_KAFKA_URI_MAX]; /* "HOST:PORT,HOST", librdkafka's bootstrap.servers */
	const char *topic;              /* the first topic, or the only one */
	char made[32];                  /* its name, when the URI has none */
	unsigned int n_topics;
	const char *topics[PL_KAFKA_TOPICS_MAX];
	uint32_t records; /* per message, 1 to 4096 */
	enum pl_kafka_format format;
	/* partition=spread: records go to the partitions in turn, so that all get as many. Else,
	 * and with partition=flow, the hash of the flow chooses the partition. */
	bool spread;
	const char *properties_file; /* NULL: none */
	char file_text[PL_KAFKA_FILE_MAX];
	unsigned int n_properties;
	struct {
		const char *name, *value;
	} properties[PL_KAFKA_PROPERTIES_MAX];
};

/* Clears a URI, which may have passwords, and frees it; NULL is allowed. */
void pl_kafka_uri_free(struct pl_kafka_uri *uri);
/* Parses the URI of one topic. Returns -EINVAL with diag, which names the part that is wrong. */
int pl_kafka_uri_parse(struct pl_kafka_uri *ret, const char *text, struct pl_diag *diag);
/* As pl_kafka_uri_parse, but accepts several topics. */
int pl_kafka_uri_parse_topics(struct pl_kafka_uri *ret, const char *text, struct pl_diag *diag);

/* Parses the URI of an output of records, whose topic may be missing; its name is empty then.
 * pl_kafka_uri_name gives it one, after the kind of its records and the version of their layout, such
 * as "tm.pkt64.v1". Returns -EINVAL with diag for a format= that is no such records. */
int pl_kafka_uri_parse_output(struct pl_kafka_uri *ret, const char *text, struct pl_diag *diag);
int pl_kafka_uri_name(
	struct pl_kafka_uri *uri, const char *kind, unsigned int version, struct pl_diag *diag);

/* Adds the properties of the file that the URI names, if it names one. A line is NAME=VALUE, with
 * blanks around both that do not count; empty lines and those that begin with '#' are skipped. A
 * property that the URI has too keeps the URI's value. Returns -EINVAL, -EKEYREJECTED (everybody
 * may write the file) or the error of reading it, with diag, which has file and line and no
 * value. */
int pl_kafka_uri_read_properties(struct pl_kafka_uri *uri, struct pl_diag *diag);

/* Removes a key of the caller's from the properties, which are librdkafka's. Returns its value, or
 * NULL when it is not there. */
const char *pl_kafka_uri_take(struct pl_kafka_uri *uri, const char *key);

/* Has a reader that has no position begin with the oldest message, unless auto.offset.reset is
 * given. */
void pl_kafka_uri_oldest(struct pl_kafka_uri *uri);

/* Returns the value of a property of librdkafka, or NULL. */
const char *pl_kafka_uri_property(const struct pl_kafka_uri *uri, const char *name);
