/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a NIC spreads received datagrams over its queues (receive side scaling). A queue has
 * its own account of each exporter's numbers, so datagrams of one sender must come by one queue: a
 * NIC that chooses by ports too breaks that for senders that change theirs. Linux: ETHTOOL_GRXFH
 * of linux/ethtool.h.
 */
#pragma once

#include <stdint.h>

enum pl_rss {
	PL_RSS_UNKNOWN,   /* the driver does not say, as of virtual interfaces */
	PL_RSS_ADDRESSES, /* a sender's datagrams stay together */
	PL_RSS_PORTS,     /* IPv4 or IPv6: they need not */
};

/* Of UDP, by the interface's name in the calling thread's network namespace. */
enum pl_rss pl_rss_of(const char *interface);

/* The spreading that the driver's answers for UDP, bits RXH_*, stand for; an answer of 0: none. */
enum pl_rss pl_rss_meaning(uint64_t udp4, uint64_t udp6);
