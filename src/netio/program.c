/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for code that loads kernel programs. */
#include "netio/program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netio/caps.h"

static bool is_tunnel(unsigned int type)
{
	return type == ARPHRD_TUNNEL || type == ARPHRD_TUNNEL6 || type == ARPHRD_SIT ||
	       type == ARPHRD_PPP;
}

int pl_program_frames(const char *ifname, bool tunnels, uint32_t *ret_raw, struct pl_diag *diag)
{
	unsigned int type = ARPHRD_ETHER;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/type", ifname);
	f = fopen(path, "re");
	/* Assumes Ethernet where /sys is missing or of another network namespace. */
	if (f != NULL) {
		if (fscanf(f, "%u", &type) != 1)
			type = ARPHRD_ETHER;
		fclose(f);
	}
	*ret_raw = type == ARPHRD_NONE || type == ARPHRD_RAWIP || (tunnels && is_tunnel(type));
	if (*ret_raw || type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK)
		return 0;
	pl_diag_set(diag, "%s is neither Ethernet nor a tunnel of %sIP (its type is %u)", ifname,
		tunnels ? "" : "plain ", type);
	return -EINVAL;
}

int pl_program_refused(int r, const char *name, uint64_t caps, const char *what, const char *memory,
	struct pl_diag *diag)
{
	const uint64_t missing = pl_caps_missing(caps);
	char text[128];

	if ((r == -EPERM || r == -EACCES) && missing != 0) {
		pl_diag_set(diag, "%s: %s needs %s", name, what,
			pl_caps_text(missing, text, sizeof(text)));
		return -EPERM;
	}
	if (r == -ENOMEM) {
		pl_diag_set(diag, "%s: no memory for %s", name, memory);
		return r;
	}
	pl_diag_set(diag, "%s: this kernel rejects the program (%s); it needs Linux 6.1", name,
		strerror(-r));
	return -ENOTSUP;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

pl_program_voice pl_program_hush(void)
{
	return (pl_program_voice)libbpf_set_print(quiet);
}

void pl_program_talk(pl_program_voice before)
{
	libbpf_set_print((libbpf_print_fn_t)before);
}

int pl_each_open(struct pl_each *each, int fd, uint32_t value_size)
{
	*each = (struct pl_each){ .fd = fd };
	each->processors = libbpf_num_possible_cpus();
	each->bytes = (value_size + 7u) / 8u * 8u;
	if (each->processors < 0)
		return -ENOMEM;
	each->values = calloc((size_t)each->processors, each->bytes);
	return each->values == NULL ? -ENOMEM : 0;
}

void pl_each_close(struct pl_each *each)
{
	free(each->values);
	each->values = NULL;
}

int pl_each_add(struct pl_each *each, uint32_t key, size_t first, void *into, size_t n)
{
	uint64_t *sums = into;

	if (bpf_map_lookup_elem(each->fd, &key, each->values) < 0)
		return -errno;
	for (int cpu = 0; cpu < each->processors; cpu++) {
		for (size_t i = 0; i < n; i++) {
			uint64_t one;

			memcpy(&one, each->values + (size_t)cpu * each->bytes + 8 * (first + i),
				sizeof(one));
			sums[i] += one;
		}
	}
	return 0;
}
