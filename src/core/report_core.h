/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A telemetry report straight from its bytes to the input of the steps of detection
 * (core/detect_types.h), without records between: one source for the kernel program and for user
 * space.
 *
 *   pl_core_parse(s, datagram, …)   headers: the report, its flow, where the stack is
 *   pl_core_hops_begin(s, …)        what is known of the path before its hops
 *   pl_core_hop_next(s, i)            hop i, 0 = source side, into s->hops[i], in order
 *   pl_core_hops_end(s)             the path's identity
 *
 * A report that it *settles* it has understood completely, and its values are those that decode/
 * gives; a test and a fuzz target compare both. For any other packet it returns the cause for which
 * the packet is escalated (core/escalations.def): then nothing was counted, and decode/, which is
 * the reference, decides. Settled are: report v0.5 (Ethernet, drop, local, Host-INT), v1.0, v2.0
 * (one report in the datagram); inner Ethernet with up to two tags, IPv4 with options, IPv6, TCP
 * with options, UDP, ICMP and other protocols that carry no telemetry; INT v0.5, v1.0, v2.x MD in
 * every dialect whose layout is in the table, MX, reports without INT.
 *
 * The places of a hop's values are looked up in a table of layouts that user space fills by
 * wire/int_layout.c: no dialect is guessed here.
 *
 * Every position is checked by the cursor of core/report_cursor.h, the twin of wire/cursor.h: same
 * names, same order of checks. In the kernel it also compares with the end of the frame, for the
 * verifier, although the length has made sure of that.
 */
#pragma once

#include "core/report_hops.h"
