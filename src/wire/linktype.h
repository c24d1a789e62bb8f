/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the link types of captures, for those who are told that one is not read. */
#pragma once

#include <stdint.h>

/* "PPP" for 9, by the list that pcap and pcapng share (LINKTYPE_); NULL where it is not known
 * here. */
const char *pl_linktype_name(uint16_t number);
