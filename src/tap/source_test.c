/* SPDX-License-Identifier: BSD-2-Clause */
#include "tap/source.h"

#include <errno.h>

#include "base/test.h"

static const struct {
	const char *uri;
	int wanted;
	const char *port; /* or what the error says */
} rows[] = {
	{ "packet:eth0", 0, "packet:eth0" },
	{ "packet:eth0?ring=64", 0, "packet:eth0?ring=64" },
	{ "udp://:40050?sockets=2", 0, "udp://:40050?sockets=2" },
	{ "trace.pcap?carries=tmpkt", 0, "trace.pcap?carries=tmpkt" },
	{ "afxdp:eth0?carries=tmpkt", 1, "afxdp:eth0?port=40050" },
	{ "afxdp:eth0?carries=tmpkt&port=7", 1, "afxdp:eth0?port=7" },
	{ "afxdp:eth0?port=7&carries=tmpkt", 1, "afxdp:eth0?port=7" },
	{ "afxdp:eth0?ring=64&carries=tmpkt&queues=0", 1,
		"afxdp:eth0?ring=64&port=40050&queues=0" },
	{ "packet:eth0?ring=64&carries=tmpkt&port=7&vlan=3", 1,
		"packet:eth0?ring=64&port=7&vlan=3" },
	{ "packet:eth0?carries=", -EINVAL, "write carries=tmpkt" },
	{ "packet:eth0?carries=tmpkt2", -EINVAL, "carries=tmpkt2" },
	{ "packet:eth0?carries=reports&port=1", -EINVAL, "'carries=reports' in the URI" },
	{ "packet:0123456789012345678901234567890123456789", -EINVAL, "too long" },
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_diag diag = { .text = "" };
		char port[46] = "";
		const int r = pl_tap_source_tmpkt(rows[i].uri, port, sizeof(port), &diag);

		eq(r, rows[i].wanted, "%s", rows[i].uri);
		if (r >= 0)
			streq(port, rows[i].port, "the port's URI");
		else
			ok(strstr(diag.text, rows[i].port) != NULL, "says %s: %s", rows[i].port,
				diag.text);
	}
	return pl_test_done();
}
