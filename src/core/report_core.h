/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses the bytes of a telemetry report into the input of the detection steps
 * (core/detect_types.h), without making records. The kernel program and user space compile this
 * source.
 *
 *   pl_core_parse(s, datagram, …)   headers: the report, its flow, where the stack is
 *   pl_core_hops_begin(s, …)        what is known of the path before its hops
 *   pl_core_hop_next(s, i)            hop i, 0 = source side, into s->hops[i], in order
 *   pl_core_hops_end(s)             the path's identity
 *
 * It *settles* a report only if it has understood the report completely; its values then equal
 * those of decode/, which a test and a fuzz target check. For any other packet it returns the cause
 * for which the packet is escalated (core/escalations.def): then nothing was counted, and decode/,
 * which is the reference, decides. Settled are: report v0.5 (Ethernet, drop, local, Host-INT),
 * v1.0, v2.0 (one report in the datagram); inner Ethernet with up to two tags, IPv4 with options,
 * IPv6, TCP with options, UDP, ICMP and other protocols that carry no telemetry; INT v0.5, v1.0,
 * v2.x MD in every dialect whose layout is in the table, MX, reports without INT.
 *
 * The places of a hop's values are looked up in a table of layouts that user space fills by
 * wire/int_layout.c: this code guesses no dialect.
 *
 * Every position is checked by the cursor of core/report_cursor.h, the twin of wire/cursor.h: same
 * names, same order of checks. In the kernel it also compares with the end of the frame, for the
 * verifier, although the length has made sure of that.
 */
#pragma once

#include "core/report_hops.h"
