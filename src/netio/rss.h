/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells how a NIC spreads received datagrams over its queues (receive side scaling). Each queue
 * keeps its own account of an exporter's sequence numbers, so all datagrams of a sender must use
 * one queue. A NIC that hashes ports too breaks that for a sender that changes its source port.
 * Linux: ETHTOOL_GRXFH of linux/ethtool.h.
 */
#pragma once

#include <stdint.h>

enum pl_rss {
	PL_RSS_UNKNOWN,   /* the driver does not say, as for virtual interfaces */
	PL_RSS_ADDRESSES, /* a sender's datagrams stay together */
	PL_RSS_PORTS,     /* of IPv4 or IPv6: they may be spread */
};

/* Reads the setting for UDP of an interface in the calling thread's network namespace. */
enum pl_rss pl_rss_of(const char *interface);

/* Interprets the driver's answers (bits RXH_*) for UDP over IPv4 and IPv6; 0: no answer. */
enum pl_rss pl_rss_meaning(uint64_t udp4, uint64_t udp6);
