/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter expressions, compiled and run by libpcap. */
#include "netio/pcap_filter.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "netio/capture.h"

/* The links that libpcap knows, by enum pl_link; of all others no filter is asked. */
static const struct {
	const char *name;
	int dlt;
} links[] = {
	[PL_LINK_ETHERNET] = { "Ethernet", DLT_EN10MB },
	[PL_LINK_RAW_IP] = { "IP packets without a link's header", DLT_RAW },
	[PL_LINK_SLL] = { "cooked Linux captures", DLT_LINUX_SLL },
	[PL_LINK_SLL2] = { "cooked Linux captures (v2)", DLT_LINUX_SLL2 },
};
#define N_LINKS (sizeof(links) / sizeof(links[0]))

struct pl_pcap_filter {
	struct bpf_program programs[N_LINKS];
	char why[N_LINKS][PCAP_ERRBUF_SIZE]; /* not empty: there is no program, and why */
};

/* 0, or -EINVAL with the words of libpcap in f->why. */
static int compile(struct pl_pcap_filter *f, size_t link, const char *expression)
{
	pcap_t *dead = pcap_open_dead(links[link].dlt, (int)PL_CAPTURE_PACKET_MAX);
	int r = 0;

	if (dead == NULL)
		return -ENOMEM;
	if (pcap_compile(dead, &f->programs[link], expression, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		strncpy(f->why[link], pcap_geterr(dead), sizeof(f->why[link]) - 1);
		r = -EINVAL;
	}
	pcap_close(dead);
	return r;
}

int pl_pcap_filter_new(struct pl_pcap_filter **ret, const char *expression, struct pl_diag *diag)
{
	struct pl_pcap_filter *f = calloc(1, sizeof(*f));
	size_t understood = 0;

	if (f == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < N_LINKS; i++) {
		const int r = compile(f, i, expression);

		if (r == -ENOMEM) {
			pl_pcap_filter_free(f);
			return r;
		}
		understood += r == 0;
	}
	if (understood == 0) {
		pl_diag_set(diag, "the filter '%s': %s (see man pcap-filter)", expression,
			f->why[PL_LINK_ETHERNET]);
		pl_pcap_filter_free(f);
		return -EINVAL;
	}
	*ret = f;
	return 0;
}

void pl_pcap_filter_free(struct pl_pcap_filter *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < N_LINKS; i++) {
		if (f->why[i][0] == '\0')
			pcap_freecode(&f->programs[i]);
	}
	free(f);
}

static int cannot_ask(
	const struct pl_pcap_filter *f, const struct pl_packet *p, struct pl_diag *diag)
{
	if (p->link < N_LINKS)
		pl_diag_set(diag, "the filter cannot be asked of %s: %s", links[p->link].name,
			f->why[p->link]);
	else if (p->link == PL_LINK_UDP)
		pl_diag_set(diag,
			"a filter needs whole frames: these are the contents of datagrams, received by a socket");
	else
		pl_diag_set(diag, "a filter cannot be asked of frames of this kind of link%s",
			p->link == PL_LINK_UNKNOWN ? ", which is not read" : "");
	return -EINVAL;
}

int pl_pcap_filter_batch(
	const struct pl_pcap_filter *f, struct pl_batch *batch, uint32_t n, struct pl_diag *diag)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_packet *p = &batch->pkts[i];

		if (p->link >= N_LINKS || f->why[p->link][0] != '\0')
			return cannot_ask(f, p, diag);
		if (bpf_filter(f->programs[p->link].bf_insns, p->data, p->wire_len, p->len) == 0)
			continue;
		if (kept != i)
			batch->pkts[kept] = *p;
		kept++;
	}
	return (int)kept;
}
