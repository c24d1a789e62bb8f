/* SPDX-License-Identifier: BSD-2-Clause */
/* Topics in a build without Kafka: the configuration refuses them. */
#include "kafka/kafka.h"
#include "marks/topic.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int pl_marks_topic_files(const char *uri, struct pl_confine *confine)
{
	return 0;
}

int pl_marks_topic_open(struct pl_marks_topic *topic, const char *uri, struct pl_diag *diag)
{
	return pl_kafka_check(diag);
}

bool pl_marks_topic_turn(struct pl_marks_topic *topic, pl_marks_topic_sink *sink, void *arg)
{
	return false;
}

const char *pl_marks_topic_trouble(const struct pl_marks_topic *topic)
{
	return NULL;
}

void pl_marks_topic_close(struct pl_marks_topic *topic)
{
}
