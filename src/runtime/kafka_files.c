/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the files that a Kafka client opens. */
#include "runtime/kafka_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/uri.h"

static bool names_file(const char *property)
{
	static const char location[] = ".location";
	const size_t n = strlen(property), tail = sizeof(location) - 1;

	return (n > tail && strcmp(property + n - tail, location) == 0) ||
	       strcmp(property, "sasl.kerberos.keytab") == 0;
}

static int allow(const struct pl_kafka_uri *uri, struct pl_confine *confine)
{
	int r = pl_confine_path(confine, uri->properties_file, false);

	for (unsigned int i = 0; r == 0 && i < uri->n_properties; i++) {
		if (names_file(uri->properties[i].name))
			r = pl_confine_path(confine, uri->properties[i].value, false);
	}
	return r;
}

int pl_kafka_files(const char *text, struct pl_confine *confine)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	int r = 0;

	if (uri == NULL)
		return -ENOMEM;
	if (pl_kafka_uri_parse_topics(uri, text, NULL) == 0 ||
		pl_kafka_uri_parse_output(uri, text, NULL) == 0) {
		(void)pl_kafka_uri_read_properties(uri, NULL);
		r = allow(uri, confine);
	}
	pl_kafka_uri_free(uri);
	return r;
}
