/* SPDX-License-Identifier: BSD-2-Clause */
/* Capture files, pcap and pcapng: read to their end or damage; packets are bounded by the file. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "netio/port.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_batch batch;
	static int fd = -1;
	struct pl_port *port = NULL;
	struct pl_diag diag = { 0 };
	char path[64];
	size_t bytes = 0, packets = 0;
	uint32_t touched = 0;
	int r;

	if (fd < 0)
		fd = memfd_create("capture", MFD_CLOEXEC);
	must(fd >= 0);
	must(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = pl_port_open(&port, path, PL_PORT_RECV, NULL, &diag);
	if (r < 0) {
		must(diag.text[0] != '\0');
		return 0;
	}
	while ((r = pl_port_recv(port, &batch, 0, &diag)) > 0) {
		must((uint32_t)r == batch.n && batch.n <= PL_BATCH_MAX);
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_packet *p = &batch.pkts[i];

			must(p->link < PL_LINK_MAX);
			for (uint32_t b = 0; b < p->len; b++)
				touched += p->data[b];
			bytes += p->len;
			packets++;
		}
		pl_port_release(port, &batch);
	}
	/* A file ends or is damaged; it never stays without either. A gzip file may hold more than its size. */
	must(r == -ENODATA || (r < 0 && diag.text[0] != '\0'));
	if (size < 2 || data[0] != 0x1f)
		must(bytes <= size && packets <= size);
	pl_port_close(port);
	__asm__ volatile("" : : "r"(touched));
	return 0;
}
