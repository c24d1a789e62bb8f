/* SPDX-License-Identifier: BSD-2-Clause */
/* The XDP program that the AF_XDP ports of one interface share, and properties of the interface:
 * queues, frame size, NUMA node. */
#include "netio/afxdp_program.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "netio/caps.h"
#include "netio/link.h"
#include "netio/program.h"

#include "bpf/collect.skel.h" /* knows the types above only by name */

#define XDP_ROOM  256u /* headroom that the kernel keeps in front of each frame */
#define VLAN_ROOM 8u

uint32_t pl_afxdp_queues(const char *name, enum pl_port_mode mode)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq req;
	uint32_t n = 0;

	if (pl_link_ask(name, SIOCETHTOOL, &channels, &req) == 0)
		n = channels.combined_count +
		    (mode == PL_PORT_RECV ? channels.rx_count : channels.tx_count);
	return n == 0 ? 1 : n > QUEUES_MAX ? QUEUES_MAX : n;
}

uint32_t pl_afxdp_frame_bytes(const char *name)
{
	struct ifreq req;

	if (pl_link_ask(name, SIOCGIFMTU, NULL, &req) < 0 || req.ifr_mtu < 0)
		return 2048;
	return (uint32_t)req.ifr_mtu + ETH_HLEN + VLAN_ROOM + XDP_ROOM <= 2048 ? 2048 : 4096;
}

int pl_afxdp_memory_node(const char *name)
{
	char path[96];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", name);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

/* ---- the program ---- */

/* Loads the program with or without stamps into s->own. */
static int load_one(struct pl_afxdp_shared *s, uint32_t queues, bool stamps)
{
	int r;

	s->own = pl_bpf_collect__open();
	if (s->own == NULL)
		return -errno;
	(void)bpf_program__set_autoload(s->own->progs.pl_collect, !stamps);
	(void)bpf_program__set_autoload(s->own->progs.pl_collect_stamped, stamps);
	r = bpf_map__set_max_entries(s->own->maps.pl_xsks, queues);
	if (r == 0)
		r = pl_bpf_collect__load(s->own);
	if (r < 0) {
		pl_bpf_collect__destroy(s->own);
		s->own = NULL;
	}
	s->stamps = stamps && r == 0;
	return r;
}

/* With `stamps` a kernel that cannot stamp gets the plain program instead. */
static int load(struct pl_afxdp_shared *s, uint32_t queues, bool stamps, const char *name,
	struct pl_diag *diag)
{
	pl_program_voice before;
	char caps[96];
	int r;

	/* libbpf must not print to the terminal; errors go into diag. */
	before = pl_program_hush();
	r = load_one(s, queues, stamps);
	if (r < 0 && r != -EPERM && stamps)
		r = load_one(s, queues, false);
	pl_program_talk(before);
	if (r == 0) {
		s->program = (struct pl_xdp_program){
			.prog_fd = bpf_program__fd(s->stamps ? s->own->progs.pl_collect_stamped
							     : s->own->progs.pl_collect),
			.xsks_fd = bpf_map__fd(s->own->maps.pl_xsks),
			.counts_fd = bpf_map__fd(s->own->maps.pl_filter_counts),
			.filter = &s->own->bss->pl_filter,
		};
		return 0;
	}
	if (r == -EPERM || r == -EACCES) {
		pl_caps_text(pl_caps_missing(PL_CAP_BPF | PL_CAP_NET_ADMIN | PL_CAP_NET_RAW), caps,
			sizeof(caps));
		pl_diag_set(diag, "%s: loading the XDP program needs %s", name,
			caps[0] != '\0' ? caps : "privileges that this process lacks (EPERM)");
		return -EPERM;
	}
	pl_diag_set(diag, "%s: the kernel rejects the XDP program: %s", name, strerror(-r));
	return r;
}

void pl_afxdp_shared_put(struct pl_afxdp_shared *s)
{
	unsigned int left;

	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	left = --s->refs;
	pthread_mutex_unlock(&s->lock);
	if (left > 0)
		return;
	pl_xdp_detach(s->xdp);
	pl_bpf_collect__destroy(s->own);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int attach(struct pl_afxdp_shared *s, const char *name, struct pl_diag *diag)
{
	int r = pl_xdp_attach(&s->xdp, name, s->program.prog_fd, s->mode, s->rights, diag);

	if (r == -EBUSY && diag != NULL)
		pl_diag_set(diag, "%s, or use packet:%s", diag->text, name);
	return r;
}

int pl_afxdp_shared_new(struct pl_afxdp_shared **ret, const char *name,
	const struct pl_afxdp_settings *set, const struct pl_port_options *options,
	struct pl_diag *diag)
{
	struct pl_afxdp_shared *s = calloc(1, sizeof(*s));
	uint32_t queues = pl_afxdp_queues(name, PL_PORT_RECV);
	int r = 0;

	if (s == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->refs = 1;
	s->mode = set->mode;
	s->rights = options->rights;
	for (int i = 0; i < set->nqueues; i++)
		queues = set->queues[i] >= queues ? set->queues[i] + 1 : queues;
	if (options->program != NULL)
		s->program = *options->program;
	else
		r = load(s, queues, set->rules.all != 0, name, diag);
	if (r == 0) {
		pl_filter_set(s->program.filter, &set->rules);
		r = attach(s, name, diag);
	}
	if (r < 0) {
		pl_afxdp_shared_put(s);
		return r;
	}
	*ret = s;
	return 0;
}

int pl_afxdp_attach(struct pl_afxdp_shared *s, const char *name, int ifindex, struct pl_diag *diag)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->xdp != NULL && pl_xdp_ifindex(s->xdp) != ifindex) {
		pl_xdp_detach(s->xdp);
		s->xdp = NULL;
	}
	if (s->xdp == NULL && ifindex != 0)
		r = attach(s, name, diag);
	pthread_mutex_unlock(&s->lock);
	return r;
}
