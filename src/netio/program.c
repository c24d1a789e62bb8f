/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for code that attaches kernel programs to an interface. */
#include "netio/program.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

#include "netio/caps.h"

int pl_program_frames(const char *ifname, uint32_t *ret_raw, struct pl_diag *diag)
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
	*ret_raw = type == ARPHRD_NONE || type == ARPHRD_RAWIP;
	if (*ret_raw || type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK)
		return 0;
	pl_diag_set(diag, "%s is neither Ethernet nor a tunnel of plain IP (its type is %u)",
		ifname, type);
	return -EINVAL;
}

int pl_program_refused(
	int r, const char *ifname, const char *what, const char *memory, struct pl_diag *diag)
{
	const uint64_t missing = pl_caps_missing(PL_CAP_BPF | PL_CAP_NET_ADMIN);
	char caps[128];

	if ((r == -EPERM || r == -EACCES) && missing != 0) {
		pl_diag_set(diag, "%s: %s needs %s", ifname, what,
			pl_caps_text(missing, caps, sizeof(caps)));
		return -EPERM;
	}
	if (r == -ENOMEM) {
		pl_diag_set(diag, "%s: no memory for %s", ifname, memory);
		return r;
	}
	pl_diag_set(diag, "%s: this kernel rejects the program (%s); it needs Linux 6.1", ifname,
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
