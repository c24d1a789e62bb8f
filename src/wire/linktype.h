/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of link types of captures, for messages about one that is not read. */
#pragma once

#include <stdint.h>

/* Returns "PPP" for 9, by the list that pcap and pcapng share (LINKTYPE_); NULL for an unknown
 * number. */
const char *pl_linktype_name(uint16_t number);
