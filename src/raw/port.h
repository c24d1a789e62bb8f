/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port that receives packets as they arrived (message.h) from a topic of Kafka:
 *
 *   kafka://HOST[:PORT],…/TOPIC[?until=end][&PROPERTY=VALUE]…
 *
 * Packets have their original times, addresses and link. Without the property group.id the port
 * reads all partitions, from the oldest message on unless auto.offset.reset says otherwise, and
 * commits nothing. With it the port shares the partitions with the other members of the group, and
 * commits, once a second, positions behind messages whose packets were all released and are settled
 * by options.reader: after a kill, packets may come again, but no packet is skipped. Packets of one
 * source stay in order.
 *
 * until=end, or options.to_end: -ENODATA when every partition was read to its end. Otherwise the
 * port waits for more. Messages of another format and damaged ones are counted
 * (stats.bad_messages).
 *
 * The first pl_port_recv opens the client, so that its threads start after the process gave up its
 * rights. Files named in the URI must be readable then.
 */
#pragma once

/* Registers this kind of port with pl_port_open, before any other thread runs. In a build without
 * Kafka opening such a port fails with that reason. */
void pl_raw_port_add(void);
