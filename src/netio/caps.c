/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the capabilities that this process lacks, and names them. */
#include "netio/caps.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
	uint64_t bit;
	const char *name;
} names[] = {
	{ PL_CAP_NET_ADMIN, "CAP_NET_ADMIN" },
	{ PL_CAP_NET_RAW, "CAP_NET_RAW" },
	{ PL_CAP_PERFMON, "CAP_PERFMON" },
	{ PL_CAP_BPF, "CAP_BPF" },
};

uint64_t pl_caps_missing(uint64_t wanted)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t have = wanted;
	char line[256];

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "CapEff: %" SCNx64, &have) == 1)
			break;
	}
	fclose(f);
	return wanted & ~have;
}

const char *pl_caps_text(uint64_t caps, char *dst, size_t cap)
{
	size_t len = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((caps & names[i].bit) != 0 && len < cap)
			len += (size_t)snprintf(
				dst + len, cap - len, "%s%s", len > 0 ? ", " : "", names[i].name);
	}
	return dst;
}
