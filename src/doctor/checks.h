/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of pathline doctor and their tools. Each examines one thing and fills its finding. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "doctor/doctor.h"

void pl_doctor_found(struct pl_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pl_doctor_fix(struct pl_finding *f, enum pl_doctor_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The first line of a small file of /proc or /sys, without its end. -errno. */
int pl_doctor_first_line(const char *path, char *dst, size_t cap);
/* "Key:  value" of a file of /proc, the value as a number in the given base. -errno. */
int pl_doctor_keyed_number(const char *path, const char *key, int base, uint64_t *ret);

/* machine.c: every command needs these. */
void pl_doctor_kernel(struct pl_finding *f);
void pl_doctor_rcvbuf(struct pl_finding *f);
void pl_doctor_port_32766(struct pl_finding *f);
void pl_doctor_port_54321(struct pl_finding *f);
void pl_doctor_port_8400(struct pl_finding *f);
void pl_doctor_clock(struct pl_finding *f);
void pl_doctor_clock_source(struct pl_finding *f);
void pl_doctor_files(struct pl_finding *f);
void pl_doctor_disk(struct pl_finding *f);
void pl_doctor_huge_pages(struct pl_finding *f);
void pl_doctor_ioam(struct pl_finding *f);

/* fast.c: ports on interfaces and the detector in the kernel need these. */
void pl_doctor_btf(struct pl_finding *f);
void pl_doctor_jit(struct pl_finding *f);
void pl_doctor_packet(struct pl_finding *f);
void pl_doctor_af_xdp(struct pl_finding *f);
void pl_doctor_xdp_program(struct pl_finding *f);
void pl_doctor_kernel_tap(struct pl_finding *f);
void pl_doctor_drops(struct pl_finding *f);
void pl_doctor_xdp_holders(struct pl_finding *f);
void pl_doctor_locked_memory(struct pl_finding *f);
void pl_doctor_rss(struct pl_finding *f);
void pl_doctor_capabilities(struct pl_finding *f);

/* rdma.c: NICs that write memory. */
void pl_doctor_rdma(struct pl_finding *f);
