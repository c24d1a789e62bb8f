/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the program of dropped packets into the kernel and reads its ring. */
#include "tap/drops.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "netio/caps.h"
#include "netio/program.h"
#include "netio/tai.h"
#include "tap/drops_names.h"
#include "tap/drops_uri.h"
#include "tap/kernel_maps.h"

#include "bpf/drops.skel.h" /* knows the types above only by name */

#define NS_PER_S UINT64_C(1000000000)

struct pl_tap_drops {
	char name[64];
	struct pl_tap_drops_settings set;
	struct pl_drops_names names;
	struct pl_bpf_drops *skel;
	struct bpf_link *link;
	struct ring_buffer *ring;
	struct pl_each work, by;
	struct pl_tap_hits hits;
	struct pl_drop168 *to; /* of the present call */
	uint32_t n;
	uint64_t tai_ns;  /* offset of CLOCK_TAI from the time of day */
	uint64_t look_ns; /* until then records come without a wake-up */
	uint64_t due_ns;
};

/* ---- loading ---- */

static int refused(const struct pl_tap_drops *d, int r, struct pl_diag *diag)
{
	r = pl_program_refused(r, d->name, PL_CAP_BPF | PL_CAP_PERFMON,
		"reading drops of the kernel", "its ring", diag);
	if (r == -ENOTSUP && diag != NULL)
		pl_diag_set(diag, "%s with BTF", diag->text);
	return r;
}

/* Finds the inode number of this network namespace. */
static int find_namespace(struct pl_tap_drops *d, uint32_t *ret, struct pl_diag *diag)
{
	struct stat st;

	if (stat("/proc/self/ns/net", &st) < 0) {
		pl_diag_set(diag, "%s: /proc/self/ns/net: %s", d->name, strerror(errno));
		return -ENOTSUP;
	}
	*ret = (uint32_t)st.st_ino;
	return 0;
}

static int set_up(struct pl_tap_drops *d, uint32_t netns)
{
	struct pl_drops_control *control =
		(struct pl_drops_control *)&d->skel->rodata->pl_drops_control;

	*control = (struct pl_drops_control){ .netns = netns,
		.consumed = d->names.consumed,
		.has_rx_sock = d->names.has_rx_sock,
		.wake_ns = PL_TAP_WAKE_NS,
		/* Rounded up: never more than `rate`. */
		.cost_ns = (NS_PER_S + d->set.rate - 1) / d->set.rate };
	memcpy(control->interface, d->set.interface, sizeof(control->interface));
	return bpf_map__set_max_entries(
		d->skel->maps.pl_drops_ring, pl_tap_ring_size(d->set.ring_bytes));
}

static int load(struct pl_tap_drops *d, uint32_t netns)
{
	pl_program_voice before = pl_program_hush();
	int r;

	d->skel = pl_bpf_drops__open();
	r = d->skel == NULL ? -errno : set_up(d, netns);
	if (r == 0)
		r = pl_bpf_drops__load(d->skel);
	pl_program_talk(before);
	return r;
}

static int on_event(void *arg, void *data, size_t size)
{
	const struct pl_drops_event *event = data;
	struct pl_tap_drops *d = arg;
	struct pl_drop168 *r = &d->to[d->n];

	if (size < sizeof(*event))
		return 0;
	*r = event->record;
	r->ts_ns -= d->tai_ns;
	r->record_seq = 0;
	r->reason = pl_drops_names_reason(&d->names, r->kernel_reason);
	pl_tap_drops_place(&r->place, event->at);
	/* With a negative value libbpf reads no further entry. */
	return ++d->n == PL_TAP_DROPS_BATCH ? -ENOBUFS : 0;
}

static int open_maps(struct pl_tap_drops *d)
{
	int r = pl_each_open(&d->work, bpf_map__fd(d->skel->maps.pl_drops_work),
		bpf_map__value_size(d->skel->maps.pl_drops_work));

	if (r == 0)
		r = pl_each_open(&d->by, bpf_map__fd(d->skel->maps.pl_drops_by),
			bpf_map__value_size(d->skel->maps.pl_drops_by));
	d->hits = (struct pl_tap_hits){ .each = &d->work,
		.at = offsetof(struct pl_drops_book, hits) / sizeof(uint64_t) };
	d->ring = ring_buffer__new(bpf_map__fd(d->skel->maps.pl_drops_ring), on_event, d, NULL);
	return r < 0 ? r : d->ring == NULL ? -ENOMEM : 0;
}

static int attach(struct pl_tap_drops *d)
{
	pl_program_voice before = pl_program_hush();

	d->link = bpf_program__attach(d->skel->progs.pl_drops_drop);
	pl_program_talk(before);
	return d->link == NULL ? -errno : 0;
}

/* Loads the program, and attaches it unless rules is NULL. */
static int begin(struct pl_tap_drops *d, const struct pl_tap_rules *rules, uint16_t point,
	struct pl_diag *diag)
{
	uint32_t netns;
	int r = find_namespace(d, &netns, diag);

	if (r == 0)
		r = pl_drops_names_read(&d->names, d->name, diag);
	if (r < 0)
		return r;
	r = load(d, netns);
	if (r == 0)
		r = open_maps(d);
	if (r == 0 && rules != NULL) {
		pl_tap_drops_rules(d, rules, point);
		r = attach(d);
	}
	return r < 0 ? refused(d, r, diag) : 0;
}

int pl_tap_drops_open(struct pl_tap_drops **ret, const char *text, const struct pl_tap_rules *rules,
	uint16_t point, struct pl_diag *diag)
{
	struct pl_uri *uri = malloc(sizeof(*uri));
	struct pl_tap_drops *d = calloc(1, sizeof(*d));
	int r;

	if (uri == NULL || d == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		free(uri);
		free(d);
		return -ENOMEM;
	}
	d->due_ns = UINT64_MAX;
	r = pl_tap_drops_settings(&d->set, text, uri, diag);
	free(uri);
	if (r == 0)
		snprintf(d->name, sizeof(d->name), "drops:%s", d->set.interface);
	if (r == 0 && d->set.interface[0] != '\0' && if_nametoindex(d->set.interface) == 0) {
		pl_diag_set(diag, "there is no interface '%s'", d->set.interface);
		r = -ENODEV;
	}
	if (r == 0)
		r = begin(d, rules, point, diag);
	if (r < 0) {
		pl_tap_drops_close(d);
		return r;
	}
	*ret = d;
	return 0;
}

int pl_tap_drops_try(struct pl_diag *diag)
{
	struct pl_tap_drops *d = NULL;
	const int r = pl_tap_drops_open(&d, "drops:", NULL, 0, diag);

	if (r == 0)
		pl_tap_drops_close(d);
	return r;
}

void pl_tap_drops_close(struct pl_tap_drops *d)
{
	if (d == NULL)
		return;
	pl_tap_drops_stop(d);
	ring_buffer__free(d->ring);
	pl_bpf_drops__destroy(d->skel);
	pl_each_close(&d->work);
	pl_each_close(&d->by);
	free(d);
}

/* ---- at work ---- */

const char *pl_tap_drops_name(const struct pl_tap_drops *d)
{
	return d->name;
}

int pl_tap_drops_fd(const struct pl_tap_drops *d)
{
	return ring_buffer__epoll_fd(d->ring);
}

uint64_t pl_tap_drops_due_ns(const struct pl_tap_drops *d)
{
	return d->due_ns;
}

int pl_tap_drops_recv(struct pl_tap_drops *d, struct pl_drop168 *ret, struct pl_diag *diag)
{
	uint64_t now_ns;
	int r;

	d->to = ret;
	d->n = 0;
	d->tai_ns = pl_tai_ahead_ns();
	r = ring_buffer__consume(d->ring);
	if (r < 0 && r != -ENOBUFS) {
		pl_diag_set(diag, "%s: reading its ring: %s", d->name, strerror(-r));
		return r;
	}
	now_ns = pl_clock_mono_ns();
	if (d->n > 0)
		d->look_ns = now_ns + PL_TAP_LOOK_NS;
	d->due_ns = now_ns < d->look_ns ? d->look_ns : UINT64_MAX;
	return (int)d->n;
}

void pl_tap_drops_rules(struct pl_tap_drops *d, const struct pl_tap_rules *rules, uint16_t point)
{
	pl_tap_sets_next(
		d->skel->bss->pl_tap_sets, &d->skel->bss->pl_tap_set, rules, point, &d->hits);
}

void pl_tap_drops_hits(struct pl_tap_drops *d, uint64_t ret[PL_TAP_RULES_MAX + 1])
{
	pl_tap_hits_add(&d->hits, d->skel->bss->pl_tap_set, ret);
}

void pl_tap_drops_stop(struct pl_tap_drops *d)
{
	bpf_link__destroy(d->link);
	d->link = NULL;
}

void pl_tap_drops_counts(struct pl_tap_drops *d, struct pl_drops_counts *ret)
{
	*ret = (struct pl_drops_counts){ 0 };
	(void)pl_each_add(&d->work, 0, 0, ret, sizeof(*ret) / sizeof(uint64_t));
}

uint64_t pl_tap_drops_missed(const struct pl_tap_drops *d)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(d->skel->progs.pl_drops_drop), &info, &size) < 0)
		return 0;
	return info.recursion_misses;
}

void pl_tap_drops_by_reason(struct pl_tap_drops *d, uint64_t into[PL_DROPS_REASONS])
{
	for (uint32_t slot = 0; slot < PL_DROPS_REASONS; slot++)
		(void)pl_each_add(&d->by, slot, 0, &into[slot], 1);
}

void pl_tap_drops_reason_name(
	const struct pl_tap_drops *d, uint32_t slot, char ret[PL_DROPS_NAME_MAX])
{
	const uint32_t behind = slot - PL_DROPS_CORE, subsystem = behind / PL_DROPS_EACH;

	if (slot < PL_DROPS_CORE && d->names.core[slot][0] != '\0')
		snprintf(ret, PL_DROPS_NAME_MAX, "%s", d->names.core[slot]);
	else if (slot < PL_DROPS_CORE)
		snprintf(ret, PL_DROPS_NAME_MAX, "core.%u", slot);
	else if (slot >= PL_DROPS_REASONS - 1)
		snprintf(ret, PL_DROPS_NAME_MAX, "other");
	else if (d->names.subsystem[subsystem][0] != '\0')
		snprintf(ret, PL_DROPS_NAME_MAX, "%s.%u", d->names.subsystem[subsystem],
			behind % PL_DROPS_EACH);
	else
		snprintf(ret, PL_DROPS_NAME_MAX, "subsystem%u.%u", subsystem + 1,
			behind % PL_DROPS_EACH);
}
