/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes packets on an interface by an XDP program that the kernel runs. */
#include "tests/bench/live.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "netio/xdp.h"
#include "tests/bench/cpu.h"

#include "bpf/live.skel.h" /* knows the types above only by name */

#define BATCH 256
#define RUN_FRAMES                                                                                 \
	(1u << 18) /* of one call: setting up costs little against it, and it ends soon */
#define PACED_MOST  4096u
#define PACED_LEAST 32u

struct pl_live {
	struct pl_bpf_live *skel;
	uint8_t frame[PL_LIVE_FRAME_MAX];
	uint32_t frame_bytes;
	pthread_t thread;
	bool running;
	unsigned int cpu;
	double rate;
	atomic_bool stop;
	int error;
};

static int check(const struct pl_live_cfg *cfg)
{
	if (cfg->frame_bytes < 64 || cfg->frame_bytes > PL_LIVE_FRAME_MAX ||
		cfg->nfields > PL_LIVE_FIELDS_MAX || (cfg->nrows & (cfg->nrows - 1)) != 0 ||
		(cfg->restore_bytes + 7) / 8 * 8 > cfg->frame_bytes)
		return -EINVAL;
	for (uint32_t i = 0; i < cfg->nfields; i++) {
		const struct pl_live_field *f = &cfg->fields[i];

		if (f->len == 0 || f->len > 8 || (f->len & (f->len - 1)) != 0 ||
			f->offset + f->len > cfg->frame_bytes || f->at % f->len != 0 ||
			f->at > PL_LIVE_ROW_BYTES - 8)
			return -EINVAL;
	}
	return 0;
}

static int fill(struct pl_live *live, const struct pl_live_cfg *cfg)
{
	int rows = bpf_map__fd(live->skel->maps.pl_live_rows),
	    out = bpf_map__fd(live->skel->maps.pl_live_out), r = 0;
	uint32_t zero = 0;

	for (uint32_t i = 0; r == 0 && i < cfg->nrows; i++)
		r = bpf_map_update_elem(rows, &i, cfg->rows[i], BPF_ANY);
	if (r == 0)
		r = bpf_map_update_elem(out, &zero, &cfg->ifindex, BPF_ANY);
	memcpy(live->skel->bss->pl_live_words, cfg->frame, cfg->frame_bytes);
	return r;
}

int pl_live_new(struct pl_live **ret, const struct pl_live_cfg *cfg, struct pl_diag *diag)
{
	struct pl_live *live = calloc(1, sizeof(*live));
	struct pl_live_plan *plan;
	int r = live == NULL ? -ENOMEM : check(cfg);

	if (r < 0)
		goto fail;
	live->frame_bytes = cfg->frame_bytes;
	memcpy(live->frame, cfg->frame, cfg->frame_bytes);
	live->skel = pl_bpf_live__open();
	if (live->skel == NULL) {
		r = errno != 0 ? -errno : -EINVAL;
		goto fail;
	}
	plan = (struct pl_live_plan *)&live->skel->rodata->pl_live_plan;
	plan->restore_words = (cfg->restore_bytes + 7) / 8;
	plan->row_mask = cfg->nrows > 0 ? cfg->nrows - 1 : 0;
	plan->nfields = cfg->nfields;
	plan->in_order = cfg->in_order;
	plan->window = cfg->window;
	if (cfg->nfields > 0)
		memcpy(plan->fields, cfg->fields, cfg->nfields * sizeof(cfg->fields[0]));
	r = bpf_map__set_max_entries(
		live->skel->maps.pl_live_rows, cfg->nrows > 0 ? cfg->nrows : 1);
	if (r == 0)
		r = pl_bpf_live__load(live->skel);
	if (r == 0)
		r = fill(live, cfg);
	if (r < 0)
		goto fail;
	*ret = live;
	return 0;
fail:
	pl_diag_set(diag, "the generator of live frames: %s", strerror(-r));
	pl_live_free(live);
	return r;
}

void pl_live_free(struct pl_live *live)
{
	if (live == NULL)
		return;
	(void)pl_live_stop(live);
	pl_bpf_live__destroy(live->skel);
	free(live);
}

static int run(struct pl_live *live, uint32_t frames)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = live->frame, .data_size_in = live->frame_bytes,
		.repeat = (int)frames, .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		.batch_size = frames < BATCH ? frames : BATCH);
	int r = bpf_prog_test_run_opts(bpf_program__fd(live->skel->progs.pl_live), &o);

	return r == -EINTR ? 0 : r;
}

int pl_live_send(struct pl_live *live, uint64_t frames)
{
	int r = 0;

	while (frames > 0 && r == 0) {
		uint64_t before = pl_live_sent(live);
		uint32_t n = frames < RUN_FRAMES ? (uint32_t)frames : RUN_FRAMES;

		r = run(live, n);
		if (r == 0 && pl_live_sent(live) == before)
			r = -EAGAIN;
		frames -= r == 0 ? pl_live_sent(live) - before : 0;
	}
	return r;
}

static void *run_on(void *arg)
{
	struct pl_live *live = arg;
	uint64_t start, sent = 0;

	(void)pl_cpu_pin(live->cpu);
	start = pl_clock_mono_ns();
	while (!atomic_load_explicit(&live->stop, memory_order_relaxed) && live->error == 0) {
		double due = live->rate * (double)(pl_clock_mono_ns() - start) / 1e9 - (double)sent;
		uint32_t n = RUN_FRAMES;

		if (live->rate > 0) {
			if (due < PACED_LEAST)
				continue;
			n = due > PACED_MOST ? PACED_MOST : (uint32_t)due;
		}
		live->error = run(live, n);
		sent += n;
	}
	return NULL;
}

int pl_live_start(struct pl_live *live, unsigned int cpu, double rate)
{
	int r;

	live->cpu = cpu;
	live->rate = rate;
	live->error = 0;
	atomic_store(&live->stop, false);
	r = -pthread_create(&live->thread, NULL, run_on, live);
	live->running = r == 0;
	return r;
}

int pl_live_stop(struct pl_live *live)
{
	if (!live->running)
		return 0;
	atomic_store(&live->stop, true);
	pthread_join(live->thread, NULL);
	live->running = false;
	return live->error;
}

void pl_live_took(struct pl_live *live, uint64_t frames)
{
	__atomic_store_n(&live->skel->bss->pl_live_taken, frames, __ATOMIC_RELAXED);
}

uint64_t pl_live_sent(const struct pl_live *live)
{
	return __atomic_load_n(&live->skel->bss->pl_live_frames, __ATOMIC_RELAXED);
}
