/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks a capture file by libpcap. */
#include "tests/bench/walk_pcap.h"

#include <errno.h>
#include <pcap/pcap.h>

#include "tests/bench/cpu.h"

int pl_bench_walk_pcap(const char *path, int precision, uint64_t packets, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	const uint64_t start = pl_cpu_thread_ns();
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;

	do {
		pcap_t *pcap =
			pcap_open_offline_with_tstamp_precision(path, (u_int)precision, error);
		uint64_t n = 0;

		if (pcap == NULL)
			return -EIO;
		while (pcap_next_ex(pcap, &h, &data) == 1)
			n++;
		pcap_close(pcap);
		if (n != packets)
			return -EIO;
		ret->items += n;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}
