/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of packets to Kafka in a build without Kafka. */
#include "export/raw_out.h"
#include "kafka/kafka.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int pl_raw_out_check(const char *uri, struct pl_diag *diag)
{
	return pl_kafka_check(diag);
}

int pl_raw_out_open(
	struct pl_export **ret, const struct pl_raw_out_options *options, struct pl_diag *diag)
{
	return pl_kafka_check(diag);
}

uint64_t pl_raw_out_memory(void)
{
	return 0;
}
