/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of link types by number: those of captures with packets that are not read (of loopback
 * interfaces those that are not IP). */
#include "wire/linktype.h"

#include <stddef.h>

static const struct {
	uint16_t number;
	const char *name;
} types[] = {
	{ 0, "BSD loopback" },
	{ 6, "Token Ring" },
	{ 7, "ARCNET" },
	{ 8, "SLIP" },
	{ 9, "PPP" },
	{ 10, "FDDI" },
	{ 50, "PPP in HDLC-like framing" },
	{ 51, "PPPoE" },
	{ 100, "ATM, RFC 1483" },
	{ 104, "Cisco HDLC" },
	{ 105, "IEEE 802.11" },
	{ 107, "Frame Relay" },
	{ 108, "OpenBSD loopback" },
	{ 117, "OpenBSD pflog" },
	{ 119, "IEEE 802.11 with Prism header" },
	{ 127, "IEEE 802.11 with radiotap header" },
	{ 163, "IEEE 802.11 with AVS header" },
	{ 189, "USB" },
	{ 192, "PPI" },
	{ 195, "IEEE 802.15.4" },
	{ 197, "ERF" },
	{ 220, "USB" },
	{ 227, "SocketCAN" },
	{ 239, "NFLOG" },
	{ 247, "InfiniBand" },
	{ 253, "netlink" },
};

const char *pl_linktype_name(uint16_t number)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].number == number)
			return types[i].name;
	}
	return NULL;
}
