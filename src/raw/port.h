/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topic of packets as they arrived (message.h) as a port that receives:
 *
 *   kafka://HOST[:PORT],…/TOPIC[?until=end][&PROPERTY=VALUE]…
 *
 * Packets come with the times, addresses and link that they had. Without the property group.id the port
 * reads all partitions, from the oldest message on unless auto.offset.reset says otherwise, and
 * commits nothing. With one it shares the partitions with the other members of the group, and what is
 * committed, once a second, are positions behind messages whose packets were all released, and are
 * settled as options.reader says: after a kill packets may come again, and what came of none is left
 * out. Packets of one source stay in their order.
 *
 * until=end, or options.to_end: -ENODATA when every partition was read to its end. Otherwise the
 * port waits for more. Messages of another format, and those that end within a packet, are counted
 * (stats.bad_messages).
 *
 * The client is opened by the first pl_port_recv: its threads begin when the process has given up
 * its rights. Files that the URI names must be readable then.
 */
#pragma once

/* Adds the kind of port to those that pl_port_open knows; before any other thread runs. In a build
 * without Kafka such a port says so. */
void pl_raw_port_add(void);
