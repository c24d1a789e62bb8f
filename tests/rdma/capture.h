/* SPDX-License-Identifier: BSD-2-Clause */
/* A capture file whole in memory. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netio/port.h"

#define CAPTURE_MAX 512

static struct capture {
	uint32_t n;
	struct pl_packet pkts[CAPTURE_MAX]; /* link and bytes */
	uint8_t bytes[512 * 1024];
	size_t used;
} capture;

static void load(const char *folder, const char *name)
{
	static struct pl_batch batch;
	struct pl_port *port;
	char path[1024];

	capture.n = 0;
	capture.used = 0;
	snprintf(path, sizeof(path), "%s/%s.pcap", folder, name);
	if (pl_port_open(&port, path, PL_PORT_RECV, &(struct pl_port_options){ 0 }, NULL) < 0) {
		fprintf(stderr, "%s: cannot be opened\n", path);
		exit(EXIT_FAILURE);
	}
	while (pl_port_recv(port, &batch, -1, NULL) > 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			const struct pl_packet *p = &batch.pkts[i];

			if (capture.n == CAPTURE_MAX ||
				p->len > sizeof(capture.bytes) - capture.used) {
				fprintf(stderr, "%s: too large\n", path);
				exit(EXIT_FAILURE);
			}
			memcpy(capture.bytes + capture.used, p->data, p->len);
			capture.pkts[capture.n] = *p;
			capture.pkts[capture.n].data = capture.bytes + capture.used;
			capture.n++;
			capture.used += p->len;
		}
		pl_port_release(port, &batch);
	}
	pl_port_close(port);
}
