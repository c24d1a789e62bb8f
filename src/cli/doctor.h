/* SPDX-License-Identifier: BSD-2-Clause */
/* What the checks of pathline doctor share. Each looks at one thing and fills its finding. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum doctor_status { STATUS_OK, STATUS_WARN, STATUS_FAIL, STATUS_MAX };

struct finding {
	enum doctor_status status;
	char found[256]; /* what is there, in words */
	char fix[256];   /* a command, or what to do; empty when nothing is to be done */
};

void doctor_found(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doctor_fix(struct finding *f, enum doctor_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The first line of a small file of /proc or /sys, without its end. -errno. */
int doctor_first_line(const char *path, char *dst, size_t cap);
/* "Key:  value" of a file of /proc, the value as a number in the given base. -errno. */
int doctor_keyed_number(const char *path, const char *key, int base, uint64_t *ret);

/* doctor_fast.c: what ports on interfaces and the detector in the kernel need. */
void doctor_btf(struct finding *f);
void doctor_jit(struct finding *f);
void doctor_packet(struct finding *f);
void doctor_af_xdp(struct finding *f);
void doctor_xdp_program(struct finding *f);
void doctor_xdp_holders(struct finding *f);
void doctor_locked_memory(struct finding *f);
void doctor_rss(struct finding *f);
void doctor_capabilities(struct finding *f);

/* doctor_rdma.c: NICs that write memory. */
void doctor_rdma(struct finding *f);
