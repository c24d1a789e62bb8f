/* SPDX-License-Identifier: BSD-2-Clause */
/* Topics in a build without Kafka: the configuration refuses them. */
#include <errno.h>

#include "kafka/kafka.h"
#include "marks/topic.h"

int pl_marks_topic_files(const char *uri, struct pl_confine *confine)
{
	(void)uri;
	(void)confine;
	return 0;
}

int pl_marks_topic_open(struct pl_marks_topic *topic, const char *uri, struct pl_diag *diag)
{
	(void)topic;
	(void)uri;
	return pl_kafka_check(diag);
}

bool pl_marks_topic_turn(struct pl_marks_topic *topic, pl_marks_topic_sink *sink, void *arg)
{
	(void)topic;
	(void)sink;
	(void)arg;
	return false;
}

const char *pl_marks_topic_trouble(const struct pl_marks_topic *topic)
{
	(void)topic;
	return NULL;
}

void pl_marks_topic_close(struct pl_marks_topic *topic)
{
	(void)topic;
}
