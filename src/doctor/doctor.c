/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of checks, and their tools. */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"

const struct pl_doctor_check pl_doctor_checks[] = {
	{ "kernel", pl_doctor_kernel },
	{ "receive buffer", pl_doctor_rcvbuf },
	{ "udp port 32766", pl_doctor_port_32766 },
	{ "udp port 54321", pl_doctor_port_54321 },
	{ "tcp port 8400", pl_doctor_port_8400 },
	{ "clock", pl_doctor_clock },
	{ "clock source", pl_doctor_clock_source },
	{ "files", pl_doctor_files },
	{ "disk", pl_doctor_disk },
	{ "huge pages", pl_doctor_huge_pages },
	{ "ioam", pl_doctor_ioam },
	{ "packet", pl_doctor_packet },
	{ "afxdp", pl_doctor_af_xdp },
	{ "xdp program", pl_doctor_xdp_program },
	{ "kernel tap", pl_doctor_kernel_tap },
	{ "drops", pl_doctor_drops },
	{ "xdp in use", pl_doctor_xdp_holders },
	{ "queues", pl_doctor_rss },
	{ "locked memory", pl_doctor_locked_memory },
	{ "btf", pl_doctor_btf },
	{ "bpf jit", pl_doctor_jit },
	{ "rdma", pl_doctor_rdma },
	{ "capabilities", pl_doctor_capabilities },
};

const unsigned int pl_doctor_n_checks = sizeof(pl_doctor_checks) / sizeof(pl_doctor_checks[0]);

const char *const pl_doctor_status_names[PL_DOCTOR_MAX] = { "ok", "warn", "fail" };

void pl_doctor_found(struct pl_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->found, sizeof(f->found), fmt, ap);
	va_end(ap);
}

void pl_doctor_fix(struct pl_finding *f, enum pl_doctor_status status, const char *fmt, ...)
{
	va_list ap;

	f->status = status;
	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

int pl_doctor_first_line(const char *path, char *dst, size_t cap)
{
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return -errno;
	if (fgets(dst, (int)cap, f) == NULL)
		dst[0] = '\0';
	fclose(f);
	dst[strcspn(dst, "\n")] = '\0';
	return 0;
}

int pl_doctor_keyed_number(const char *path, const char *key, int base, uint64_t *ret)
{
	FILE *f = fopen(path, "re");
	char line[256];
	size_t len = strlen(key);
	int r = -ENOENT;

	if (f == NULL)
		return -errno;
	while (r != 0 && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			*ret = strtoull(line + len + 1, NULL, base);
			r = 0;
		}
	}
	fclose(f);
	return r;
}
