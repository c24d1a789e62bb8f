/* SPDX-License-Identifier: BSD-2-Clause */
/* Built without kernel programs: there is no detector in the kernel. */
#include <errno.h>
#include <stddef.h>

#include "detect/kernel.h"

/* A stub has the parameters of the function that it stands for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int pl_kernel_open(
	struct pl_kernel **ret, const struct pl_kernel_options *options, struct pl_diag *diag)
{
	pl_diag_set(
		diag, "this pathline was built without kernel programs (clang, bpftool, libbpf)");
	return -ENOTSUP;
}

void pl_kernel_close(struct pl_kernel *k)
{
}

uint64_t pl_kernel_memory(const struct pl_kernel_options *options)
{
	return 0;
}

const struct pl_xdp_program *pl_kernel_program(const struct pl_kernel *k)
{
	return NULL;
}

void pl_kernel_time(struct pl_kernel *k, uint64_t now_ns, uint64_t ts_ns)
{
}

uint64_t pl_kernel_ts_ns(const struct pl_kernel *k)
{
	return 0;
}

void pl_kernel_rules(struct pl_kernel *k, const struct pl_core_rules *rules)
{
}

const struct pl_core_rules *pl_kernel_rules_now(const struct pl_kernel *k)
{
	return NULL;
}

void pl_kernel_want(struct pl_kernel *k, const struct pl_kernel_wanted *wanted)
{
}

void pl_kernel_general(struct pl_kernel *k, bool on)
{
}

bool pl_kernel_learn(
	struct pl_kernel *k, const struct pl_packet *pkt, const struct pl_addr *exporter)
{
	return false;
}

unsigned int pl_kernel_events(struct pl_kernel *k, struct pl_event_batch *out)
{
	return 0;
}

unsigned int pl_kernel_frames(
	struct pl_kernel *k, struct pl_batch *ret, struct pl_kernel_frame_of *ret_of)
{
	ret->n = 0;
	return 0;
}

int pl_kernel_counters(struct pl_kernel *k, struct pl_kernel_counters *ret)
{
	return -ENOTSUP;
}

const struct pl_kernel_table *pl_kernel_tables(const struct pl_kernel *k)
{
	return NULL;
}

unsigned int pl_kernel_queues(const struct pl_kernel *k)
{
	return 0;
}

struct pl_core_turn *pl_kernel_turn(struct pl_kernel *k, unsigned int queue)
{
	return NULL;
}
