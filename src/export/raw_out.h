/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes packets as they arrived into a topic of Kafka (raw/message.h, kafka/producer.h), from
 * which they are decoded, or decoded again. Packets of one source go into one partition, in order.
 *
 * An entry is a packet. It is delivered when the brokers acknowledged its message. Causes of
 * dropped entries:
 *
 *   memory_full  every buffer waits for its acknowledgement, or the client's queue is full
 *   format       larger than a message may be
 *   rejected     the brokers have no such topic, or refuse writes to it
 *   io           not acknowledged in time, or another error of the client; or the topic's
 *                partitions are unknown, as before the first contact with a broker
 *   closed       not acknowledged when the time for the shutdown was over
 *   no_space, spool_full   the spool could not store it
 *
 * With a spool only format, no_space, spool_full and damaged remain: all other entries wait on disk
 * and are sent in order once a broker is reachable, also by the next process. A message whose
 * acknowledgement is lost may be stored twice.
 */
#pragma once

#include "export/exporter.h"

struct pl_raw_out_options {
	const char *uri;        /* kafka://HOST[:PORT],…/TOPIC[?PROPERTY=VALUE…] */
	const char *spool_path; /* NULL: no spool */
	uint64_t spool_bytes;
};

/* -EINVAL with diag; -ENOTSUP, also of opening: this build has no Kafka. Uses no network. */
int pl_raw_out_check(const char *uri, struct pl_diag *diag);
/* Returns what the check does, or an error of the properties file or the spool. Waits for no
 * broker. */
int pl_raw_out_open(
	struct pl_export **ret, const struct pl_raw_out_options *options, struct pl_diag *diag);
/* Upper bound of memory, in bytes, without the spool. */
uint64_t pl_raw_out_memory(void);
