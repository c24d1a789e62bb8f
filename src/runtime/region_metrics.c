/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the families of regions. */
#include "runtime/region_metrics.h"

#include "memory/append.h"
#include "memory/sketch.h"

#define SAMPLES UINT64_C(65536)

void pl_region_list_add(
	struct pl_region_list *list, const struct pl_region *region, const char *name)
{
	if (list->n == PL_REGIONS_SHOWN_MAX) {
		list->hidden++;
		return;
	}
	list->regions[list->n] = region;
	list->names[list->n++] = name;
}

static struct pl_label text_label(const char *name, const char *text)
{
	return (struct pl_label){ .name = name, .form = PL_LABEL_TEXT, .text = text };
}

/* ---- how full ---- */

/* Returns true when any byte of a slot is set: racing writers set them one by one. */
static bool in_use(const uint8_t *slot, uint64_t bytes)
{
	uint8_t any = 0;

	for (uint64_t i = 0; i < bytes; i++)
		any |= __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
	return any != 0;
}

/* Ratio of slots that hold something, of n slots at this stride: of all, or of SAMPLES at even
 * distances. */
static double share_in_use(const uint8_t *base, uint64_t n, uint64_t stride)
{
	const uint64_t looked = n < SAMPLES ? n : SAMPLES;
	uint64_t used = 0;

	for (uint64_t i = 0; i < looked; i++)
		used += in_use(base + (n < SAMPLES ? i : i * (n / SAMPLES)) * stride, stride);
	return looked > 0 ? (double)used / (double)looked : 0;
}

/* Returns false when the fill has no meaning, as for lists, which are rings. */
static bool fill_of(const struct pl_region *region, double *ret)
{
	const struct pl_store_params *p = pl_region_params(region);
	uint8_t *base = pl_region_store(region, pl_region_epoch(region));
	struct pl_sketch s;

	switch (p->primitive) {
	case PL_KEY_WRITE:
		*ret = share_in_use(base, p->key_write.slots,
			pl_key_write_slot_bytes(p->key_write.value_bytes));
		return true;
	case PL_COUNTERS:
		/* On average all rows have as many cells in use as the first one. */
		*ret = share_in_use(base, p->counters.width, 8);
		return true;
	case PL_POSTCARDS:
		*ret = share_in_use(base, p->postcards.chunks,
			pl_postcards_chunk_bytes(p->hash, p->postcards.hops));
		return true;
	case PL_SKETCH:
		(void)pl_sketch_init(&s, p, base);
		*ret = (double)pl_sketch_completed(&s) / (double)p->sketch.columns;
		return true;
	default:
		return false;
	}
}

/* ---- lists ---- */

static bool lists_of(const struct pl_region *region, struct pl_append *ret)
{
	return pl_append_init(ret, pl_region_params(region),
		       pl_region_store(region, pl_region_epoch(region))) == 0;
}

static void write_entries(struct pl_exposition *page, const struct pl_region_list *list)
{
	struct pl_append a;

	pl_exposition_family(page, "pathline_region_entries", PL_METRIC_COUNTER, NULL,
		"Entries that were ever published in all lists of a region.");
	for (unsigned int i = 0; i < list->n; i++) {
		const struct pl_label l = text_label("region", list->names[i]);
		uint64_t sum = 0;

		if (!lists_of(list->regions[i], &a))
			continue;
		for (uint32_t k = 0; k < a.lists; k++)
			sum += pl_append_head(&a, k);
		pl_exposition_u64(page, &l, 1, sum);
	}
}

static void write_heads(struct pl_exposition *page, const struct pl_region_list *list)
{
	struct pl_append a;

	pl_exposition_family(page, "pathline_region_head", PL_METRIC_COUNTER, NULL,
		"Entries that were ever published in a list, of the first 64 lists of each region.");
	for (unsigned int i = 0; i < list->n; i++) {
		struct pl_label l[] = { text_label("region", list->names[i]),
			{ .name = "list", .form = PL_LABEL_U64 } };

		if (!lists_of(list->regions[i], &a))
			continue;
		for (uint32_t k = 0; k < a.lists && k < PL_REGION_LISTS_SHOWN_MAX; k++) {
			l[1].number = k;
			pl_exposition_u64(page, l, 2, pl_append_head(&a, k));
		}
	}
}

/* ---- all regions ---- */

static void write_sizes(struct pl_exposition *page, const struct pl_region_list *list)
{
	pl_exposition_family(page, "pathline_region_bytes", PL_METRIC_GAUGE, "bytes",
		"Size of the store of a region, for one epoch.");
	for (unsigned int i = 0; i < list->n; i++) {
		const struct pl_label l[] = { text_label("region", list->names[i]),
			text_label("primitive",
				pl_primitive_name(pl_region_params(list->regions[i])->primitive)) };
		struct pl_region_info info;

		pl_region_get_info(list->regions[i], &info);
		pl_exposition_u64(page, l, 2, info.store_bytes);
	}
}

static void write_epochs(struct pl_exposition *page, const struct pl_region_list *list)
{
	pl_exposition_family(page, "pathline_region_epoch", PL_METRIC_GAUGE, NULL,
		"Number of the present epoch of a region.");
	for (unsigned int i = 0; i < list->n; i++) {
		const struct pl_label l = text_label("region", list->names[i]);

		pl_exposition_u64(page, &l, 1, pl_region_epoch(list->regions[i]));
	}
}

static void write_fill(struct pl_exposition *page, const struct pl_region_list *list)
{
	pl_exposition_family(page, "pathline_region_fill_ratio", PL_METRIC_GAUGE, "ratio",
		"Share of the slots of a region that are in use in its present epoch; above 65536 slots an estimate from a sample. For a sketch, the share of complete columns.");
	for (unsigned int i = 0; i < list->n; i++) {
		const struct pl_label l = text_label("region", list->names[i]);
		double fill;

		if (fill_of(list->regions[i], &fill))
			pl_exposition_double(page, &l, 1, fill);
	}
}

void pl_regions_metrics(struct pl_exposition *page, const struct pl_region_list *list)
{
	pl_exposition_family(page, "pathline_regions", PL_METRIC_GAUGE, NULL,
		"Regions of telemetry memory that this process has, whoever writes them; the first 256 have their own series.");
	pl_exposition_u64(page, NULL, 0, list->n + list->hidden);
	write_sizes(page, list);
	write_epochs(page, list);
	write_fill(page, list);
	write_entries(page, list);
	write_heads(page, list);
}
