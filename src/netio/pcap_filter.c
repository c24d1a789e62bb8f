/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter expressions, compiled and run by libpcap. */
#include "netio/pcap_filter.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netio/capture.h"

/* The link types that libpcap knows, by enum pl_link; frames of others cannot be filtered. */
static const struct {
	const char *name;
	int dlt;
} links[] = {
	[PL_LINK_ETHERNET] = { "Ethernet", DLT_EN10MB },
	[PL_LINK_RAW_IP] = { "IP packets without a link's header (raw IP, BSD loopback)", DLT_RAW },
	[PL_LINK_SLL] = { "cooked Linux captures", DLT_LINUX_SLL },
	[PL_LINK_SLL2] = { "cooked Linux captures (v2)", DLT_LINUX_SLL2 },
};
#define N_LINKS     (sizeof(links) / sizeof(links[0]))

/* Loads from this offset on are ancillary data, which only the kernel can supply. */
#define ASKS_KERNEL 0xfffff000u

struct pl_pcap_filter {
	char *expression;
	bool compiled[N_LINKS];
	struct bpf_program programs[N_LINKS];
	char why[N_LINKS][PCAP_ERRBUF_SIZE]; /* not empty: the reason why there is no program */
};

static bool asks_kernel(const struct bpf_program *program)
{
	for (unsigned int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *in = &program->bf_insns[i];

		if (BPF_CLASS(in->code) == BPF_LD && BPF_MODE(in->code) == BPF_ABS &&
			in->k >= ASKS_KERNEL)
			return true;
	}
	return false;
}

/* Compiles the expression for a link type on first use. Returns -ENOMEM, or 0 with libpcap's error
 * in f->why. */
static int compile(struct pl_pcap_filter *f, size_t link)
{
	pcap_t *dead;

	if (f->compiled[link])
		return 0;
	dead = pcap_open_dead(links[link].dlt, (int)PL_CAPTURE_PACKET_MAX);
	if (dead == NULL)
		return -ENOMEM;
	f->compiled[link] = true;
	if (pcap_compile(dead, &f->programs[link], f->expression, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		snprintf(f->why[link], sizeof(f->why[link]), "%s", pcap_geterr(dead));
	} else if (asks_kernel(&f->programs[link])) {
		snprintf(f->why[link], sizeof(f->why[link]),
			"inbound, outbound and ifindex are asked of the kernel alone");
		pcap_freecode(&f->programs[link]);
	}
	pcap_close(dead);
	return 0;
}

static bool has_program(const struct pl_pcap_filter *f, size_t link)
{
	return f->compiled[link] && f->why[link][0] == '\0';
}

/* Accepts an expression that compiles for at least one link type. -EINVAL with diag, -ENOMEM. */
static int check(struct pl_pcap_filter *f, struct pl_diag *diag)
{
	if (strlen(f->expression) > PL_PCAP_FILTER_MAX) {
		pl_diag_set(diag,
			"the filter is longer than %d characters, which takes long to compile; many addresses are rules of a tap (--rules FILE)",
			PL_PCAP_FILTER_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < N_LINKS; i++) {
		const int r = compile(f, i);

		if (r < 0 || has_program(f, i))
			return r;
	}
	pl_diag_set(diag, "the filter '%s': %s (see man pcap-filter)", f->expression,
		f->why[PL_LINK_ETHERNET]);
	return -EINVAL;
}

int pl_pcap_filter_new(struct pl_pcap_filter **ret, const char *expression, struct pl_diag *diag)
{
	struct pl_pcap_filter *f = calloc(1, sizeof(*f));
	int r;

	if (f == NULL)
		return -ENOMEM;
	f->expression = strdup(expression);
	r = f->expression != NULL ? check(f, diag) : -ENOMEM;
	if (r < 0) {
		pl_pcap_filter_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void pl_pcap_filter_free(struct pl_pcap_filter *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < N_LINKS; i++) {
		if (has_program(f, i))
			pcap_freecode(&f->programs[i]);
	}
	free(f->expression);
	free(f);
}

int pl_pcap_filter_refuse(const char *uri, struct pl_diag *diag)
{
	pl_diag_set(diag,
		"'%s': a filter needs whole frames; packet:IFACE, afxdp:IFACE and capture files have them",
		uri);
	return -EINVAL;
}

static int cannot_ask(
	const struct pl_pcap_filter *f, const struct pl_packet *p, struct pl_diag *diag)
{
	if (p->link < N_LINKS)
		pl_diag_set(diag, "the filter cannot be asked of %s: %s", links[p->link].name,
			f->why[p->link]);
	else if (p->link == PL_LINK_UDP)
		pl_diag_set(diag,
			"a filter needs whole frames; these are the contents of datagrams, received by a socket");
	else
		pl_diag_set(diag, "the filter cannot be asked of frames of this kind of link%s",
			p->link == PL_LINK_UNKNOWN ? ", which is not read" : "");
	return -EINVAL;
}

int pl_pcap_filter_batch(
	struct pl_pcap_filter *f, struct pl_batch *batch, uint32_t n, struct pl_diag *diag)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_packet *p = &batch->pkts[i];

		if (p->link < N_LINKS && compile(f, p->link) < 0)
			return -ENOMEM;
		if (p->link >= N_LINKS || !has_program(f, p->link))
			return cannot_ask(f, p, diag);
		if (bpf_filter(f->programs[p->link].bf_insns, p->data, p->wire_len, p->len) == 0)
			continue;
		if (kept != i)
			batch->pkts[kept] = *p;
		kept++;
	}
	return (int)kept;
}
