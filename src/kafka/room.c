/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the brokers for the largest message of a topic. */
#include "kafka/room.h"

#include <string.h>

#include "base/num.h"

static uint64_t number_of(const rd_kafka_conf_t *conf, const char *name, uint64_t otherwise)
{
	uint64_t value = otherwise;
	char text[32];
	size_t len = sizeof(text);

	if (rd_kafka_conf_get(conf, name, text, &len) == RD_KAFKA_CONF_OK)
		(void)pl_parse_u64(text, &value);
	return value;
}

uint64_t pl_kafka_room_batch(const rd_kafka_conf_t *conf)
{
	return number_of(conf, "batch.size", UINT64_MAX);
}

struct pl_kafka_room pl_kafka_room_client(const rd_kafka_t *rk)
{
	const uint64_t bytes = number_of(
		rd_kafka_conf((rd_kafka_t *)(uintptr_t)rk), "message.max.bytes", UINT32_MAX);

	return (struct pl_kafka_room){ bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
		"message.max.bytes of the URI", UINT32_MAX };
}

rd_kafka_queue_t *pl_kafka_room_ask(rd_kafka_t *rk, const char *topic, uint32_t limit_ms)
{
	rd_kafka_AdminOptions_t *options =
		rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	rd_kafka_ConfigResource_t *of = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	char text[256];

	(void)rd_kafka_AdminOptions_set_request_timeout(options, (int)limit_ms, text, sizeof(text));
	rd_kafka_DescribeConfigs(rk, &of, 1, options, queue);
	rd_kafka_ConfigResource_destroy(of);
	rd_kafka_AdminOptions_destroy(options);
	return queue;
}

/* For a topic without a limit of its own the brokers report their own limit as the topic's. */
static void take_entry(const rd_kafka_ConfigEntry_t *entry, struct pl_kafka_room *room)
{
	const char *value = rd_kafka_ConfigEntry_value(entry);
	uint64_t bytes;

	if (strcmp(rd_kafka_ConfigEntry_name(entry), "max.message.bytes") != 0 || value == NULL ||
		pl_parse_u64(value, &bytes) < 0 || bytes >= UINT32_MAX)
		return;
	room->batch = (uint32_t)bytes;
	if (bytes >= room->bytes)
		return;
	room->bytes = (uint32_t)bytes;
	room->setting =
		rd_kafka_ConfigEntry_source(entry) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG
			? "max.message.bytes of the topic"
			: "message.max.bytes of the brokers";
}

static void take_answer(rd_kafka_event_t *event, struct pl_kafka_room *room)
{
	const rd_kafka_ConfigResource_t **topics;
	const rd_kafka_ConfigEntry_t **entries;
	size_t n = 0;

	if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	topics = rd_kafka_DescribeConfigs_result_resources(
		rd_kafka_event_DescribeConfigs_result(event), &n);
	if (n != 1 || rd_kafka_ConfigResource_error(topics[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	entries = rd_kafka_ConfigResource_configs(topics[0], &n);
	for (size_t i = 0; i < n; i++)
		take_entry(entries[i], room);
}

bool pl_kafka_room_answer(rd_kafka_queue_t *queue, uint32_t wait_ms, struct pl_kafka_room *room)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, (int)wait_ms);

	if (event == NULL)
		return false;
	take_answer(event, room);
	rd_kafka_event_destroy(event);
	return true;
}

/* Returns true when the controller, which answers the question, is one of the brokers; librdkafka's
 * mock cluster names a controller that does not exist. */
static bool has_controller(rd_kafka_t *rk, int wait_ms)
{
	const struct rd_kafka_metadata *cluster;
	const int32_t id = rd_kafka_controllerid(rk, wait_ms);
	bool has = false;

	if (rd_kafka_metadata(rk, 0, NULL, &cluster, wait_ms) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return false;
	for (int i = 0; i < cluster->broker_cnt; i++)
		has |= cluster->brokers[i].id == id;
	rd_kafka_metadata_destroy(cluster);
	return has;
}

struct pl_kafka_room pl_kafka_room_of(rd_kafka_t *rk, const char *topic, uint32_t wait_ms)
{
	struct pl_kafka_room room = pl_kafka_room_client(rk);
	rd_kafka_queue_t *queue;

	if (!has_controller(rk, (int)wait_ms))
		return room;
	queue = pl_kafka_room_ask(rk, topic, wait_ms);
	(void)pl_kafka_room_answer(queue, wait_ms, &room);
	rd_kafka_queue_destroy(queue);
	return room;
}
