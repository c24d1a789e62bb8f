/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a consumer of what a URI says. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kafka/consumer.h"

#define OWN_GROUP 64

/* Writes a group name that no other reader has. */
static void own_group(char ret[OWN_GROUP])
{
	snprintf(ret, OWN_GROUP, "pathline-%d-%" PRIx64, getpid(), pl_clock_real_ns());
}

static int read_uri(const struct pl_kafka_reader *reader, struct pl_kafka_uri *uri,
	struct pl_kafka_consumer_config *config, struct pl_diag *diag)
{
	int r = reader->several ? pl_kafka_uri_parse_topics(uri, reader->uri, diag)
				: pl_kafka_uri_parse(uri, reader->uri, diag);

	if (r == 0)
		r = pl_kafka_uri_read_properties(uri, diag);
	if (r == 0 && reader->keys != NULL)
		r = reader->keys(reader->arg, uri, config, diag);
	if (r == 0 && reader->oldest)
		pl_kafka_uri_oldest(uri);
	return r;
}

int pl_kafka_reader_open(struct pl_kafka_consumer **ret, const struct pl_kafka_reader *reader,
	const struct pl_kafka_consumer_config *given, bool *ret_grouped, struct pl_diag *diag)
{
	struct pl_kafka_consumer_config config = *given;
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	char own[OWN_GROUP];
	bool grouped;
	int r;

	if (uri == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	r = read_uri(reader, uri, &config, diag);
	grouped = config.group != NULL ||
		  (!reader->alone && pl_kafka_uri_property(uri, "group.id") != NULL);
	if (!grouped) {
		own_group(own);
		config.group = own;
	}
	if (ret_grouped != NULL)
		*ret_grouped = grouped;
	config.uri = uri;
	if (r == 0)
		r = pl_kafka_consumer_open(ret, &config, diag);
	pl_kafka_uri_free(uri);
	return r;
}
