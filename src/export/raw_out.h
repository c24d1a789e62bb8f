/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as they arrived into a topic of Kafka (raw/message.h, kafka/producer.h), where they wait to be
 * decoded, or decoded again. Those of one source go into one partition, in their order.
 *
 * An entry is a packet. It is delivered when the brokers acknowledged its message. Dropped entries
 * have the causes
 *
 *   memory_full  every buffer waits for its acknowledgement, or the client's queue is full
 *   format       larger than a message may be
 *   rejected     the brokers have no such topic, or do not let us write to it
 *   io           not acknowledged in time, or another error of the client; or the topic's partitions
 *                are not known, as while there was never a broker
 *   closed       not acknowledged when the time to shut down was over
 *   no_space, spool_full   the spool could not take them
 *
 * With a spool only format, no_space, spool_full and damaged are left: all others wait on disk and
 * are sent in their order once a broker is there, also by the next process. A message whose acknowledgement
 * is lost may then be stored twice.
 */
#pragma once

#include "export/exporter.h"

struct pl_raw_out_options {
	const char *uri;        /* kafka://HOST[:PORT],…/TOPIC[?PROPERTY=VALUE…] */
	const char *spool_path; /* NULL: none */
	uint64_t spool_bytes;
};

/* -EINVAL with diag; -ENOTSUP: this build has no Kafka, and so does open. Touches no network. */
int pl_raw_out_check(const char *uri, struct pl_diag *diag);
/* As it, or what the file of properties or the spool gives. Waits for no broker. */
int pl_raw_out_open(
	struct pl_export **ret, const struct pl_raw_out_options *options, struct pl_diag *diag);
/* What it holds at most. */
uint64_t pl_raw_out_memory(void);
