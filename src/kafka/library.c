/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether the build has librdkafka, and its version. */
#include "kafka/kafka.h"

#include <errno.h>

#if PL_HAVE_KAFKA
#include <librdkafka/rdkafka.h>

int pl_kafka_check(struct pl_diag *diag)
{
	(void)diag;
	return 0;
}

const char *pl_kafka_library(void)
{
	return rd_kafka_version_str();
}
#else
int pl_kafka_check(struct pl_diag *diag)
{
	return pl_diag_fail(diag, -ENOTSUP,
		"this pathline was built without Kafka: librdkafka was missing; install its headers "
		"(librdkafka-dev) and build again");
}

const char *pl_kafka_library(void)
{
	return "none: librdkafka was missing";
}
#endif
