/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares captures of marked packets, and prints loss and delay. */
#include "ask/mark_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/mark_apart.h"
#include "ask/mark_capture.h"
#include "ask/mark_file.h"
#include "ask/mark_hash.h"
#include "ask/mark_out.h"
#include "ask/mark_rows.h"
#include "ask/query_file.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "mark/clusters.h"
#include "mark/correlate.h"
#include "show/flat_out.h"

struct comparing {
	const struct pl_mark_read_options *o;
	struct pl_mark_capture *captures; /* point n is captures[n - 1]; room for the most */
	size_t n;
	struct pl_mark_correlator *correlator;
	struct pl_mark_segment segments[PL_MARK_SEGMENTS_MAX];
	uint32_t points[PL_MARK_READ_MAX];
	uint32_t n_segments;
	struct pl_mark_clusters clusters; /* of a network */
	uint32_t *room;
	struct pl_mark128 *records; /* of all captures, in the order of block, flow and point */
	size_t n_records;
	struct pl_mark_rows rows;
	struct pl_mark_out out;
};

/* ---- records of all captures ---- */

static bool gather(struct comparing *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++)
		n += q->captures[i].n_records;
	q->records = calloc(n + 1, sizeof(*q->records));
	if (q->records == NULL)
		return pl_fail(false, "out of memory for %zu blocks", n);
	for (size_t i = 0; i < q->n; i++) {
		const struct pl_mark_capture *c = &q->captures[i];

		if (c->n_records > 0)
			memcpy(&q->records[q->n_records], c->records,
				c->n_records * sizeof(*c->records));
		q->n_records += c->n_records;
	}
	qsort(q->records, q->n_records, sizeof(*q->records), pl_mark_compare);
	return true;
}

/* Returns true when packets from this address are marked at the point, the first of their path. In
 * a network with several paths only the first capture is known to be one. */
static bool marks_at(const struct comparing *q, const struct pl_addr *src, uint32_t point)
{
	if (pl_mark_rows_is_back(&q->rows, src))
		return q->o->n_links == 0 && point == q->n;
	return point == 1;
}

/* Correlates a point's record, or its absence, which means no packet if the point captured then. `some` are
 * the records of the block and flow, n of them. */
static void put_point(struct comparing *q, const struct pl_mark128 *some, size_t n, uint32_t point,
	const struct pl_mark128 *record)
{
	struct pl_mark_capture *c = &q->captures[point - 1];
	const bool marks = marks_at(q, &some->src, point),
		   joined = record != NULL && pl_mark_capture_joins(q->captures, record, some, n);
	struct pl_mark128 r = *some;

	c->joined += joined;
	if (record != NULL) {
		r = *record;
	} else {
		if (!pl_mark_capture_touches(c, some->block))
			return;
		r.point = point;
		r.packets = r.bytes = 0;
		r.sum_ns = r.first_ns = r.pulse_ns = 0;
		r.late = r.early = 0;
		r.pulses = 0;
		r.mark_flags &= PL_MARK_HAS_FLOW_ID;
		/* Or the meter had no room for the flow. */
		r.mark_flags |= c->absent_flags;
		pl_mark_capture_share(c, &r);
	}
	if (joined || !pl_mark_capture_covers(c, r.block, marks) ||
		(r.block >= c->late_from && r.block <= c->late_to))
		r.mark_flags |= PL_MARK_IS_PARTIAL;
	/* Packets are not delayed before the first point, so another block's colour there is not
	 * from this domain. */
	if (marks && !c->of_file && (r.mark_flags & PL_MARK_IS_BEYOND) != 0)
		r.mark_flags |= PL_MARK_IN_USE;
	pl_mark_correlate(q->correlator, &r);
}

static void compare_captures(struct comparing *q)
{
	size_t i = 0;

	/* Goes on even if the reader of printed rows is gone, because records go elsewhere. */
	while (i < q->n_records && (q->rows.quiet || q->out.n_outs > 0 || q->out.write != NULL ||
					   !pl_row_out_full(&q->rows.out))) {
		const struct pl_mark128 *first = &q->records[i];
		const size_t begin = i;
		size_t end = i;

		while (end < q->n_records && q->records[end].block == first->block &&
			pl_mark_compare_flow(&q->records[end], first) == 0)
			end++;
		/* Earlier blocks get no more records. */
		pl_mark_correlate_until(q->correlator,
			pl_mark_read_at(first->method, first->block, first->period_ns));
		for (uint32_t point = 1; point <= q->n; point++) {
			const bool is = i < end && q->records[i].point == point;

			put_point(q, first, end - begin, point, is ? &q->records[i] : NULL);
			i += is;
		}
	}
	pl_mark_correlate_until(q->correlator, UINT64_MAX);
}

/* ---- messages at the end ---- */

static void tell_capture(const struct pl_mark_capture *c, bool all)
{
	if (all) {
		fprintf(stderr, "%s: %" PRIu64 " packets:", c->name, c->packets);
#define COUNT(id, help)                                                                            \
	if (c->id > 0)                                                                             \
		fprintf(stderr, " %" PRIu64 " " help ";", c->id);
		PL_MARK_CAPTURE_COUNTS(COUNT)
#undef COUNT
		fprintf(stderr, " %" PRIu64 " counted in blocks, %" PRIu64 " records\n",
			c->stats.counted, c->stats.records);
	}
	if (c->packets > 0 && c->metered == 0)
		pl_complain(
			"%s: no packet can have the mark, so every block is partial; --stats says why",
			c->name);
	if (c->cut > 0)
		pl_complain(
			"%s: %" PRIu64
			" packets are cut too short to say which flow they are of, or their hash: every block is partial; capture more bytes of each (tcpdump -s)",
			c->name, c->cut);
	if (c->stats.too_late > 0)
		pl_complain(
			"%s: %" PRIu64
			" packets not counted: their block was over by more than half a period, by the capture's own times",
			c->name, c->stats.too_late);
	if (c->stats.bad_time > 0)
		pl_complain("%s: %" PRIu64 " packets not counted: their times cannot be", c->name,
			c->stats.bad_time);
	if (c->stats.without_room > 0)
		pl_complain("%s: %" PRIu64 " packets not counted: more flows than --flows", c->name,
			c->stats.without_room);
	if (!c->options->unmarked && c->unsampled > 0)
		pl_complain(
			"%s: %" PRIu64
			" packets were not chosen from: there is no room for more blocks of flows",
			c->name, c->unsampled);
	if (c->options->unmarked && pl_mark_capture_is_long(c))
		pl_complain("%s: packets above 9216 bytes: the capture is of a host whose offloads "
			    "(TSO, GRO) make one of several, which is another one to the hash; "
			    "ethtool -K turns that off",
			c->name);
}

/* ---- the points ---- */

/* Returns the path, behind the name if there is one. */
static const char *path_of(const char *text)
{
	const char *equals = strchr(text, '=');

	return equals != NULL && memchr(text, '/', (size_t)(equals - text)) == NULL ? equals + 1
										    : text;
}

size_t pl_mark_read_files(const char *const *captures, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += pl_mark_file_is(path_of(captures[i]));
	return found;
}

/* Sets name and path from "NAME=FILE", or "FILE", whose name is that of the file. */
static void name_capture(struct pl_mark_capture *c, const char *text)
{
	const char *slash;
	size_t n;

	c->path = path_of(text);
	slash = strrchr(c->path, '/');
	n = c->path != text ? (size_t)(c->path - 1 - text)
			    : strlen(slash != NULL ? slash + 1 : c->path);
	if (n >= sizeof(c->name))
		n = sizeof(c->name) - 1;
	memcpy(c->name, c->path != text ? text : slash != NULL ? slash + 1 : c->path, n);
	c->name[n] = '\0';
}

/* Checks that all points have one period: else no blocks match. */
static bool agree(const struct comparing *q)
{
	const struct pl_mark128 *first = NULL;

	for (size_t i = 0; i < q->n_records; i++) {
		const struct pl_mark128 *r = &q->records[i];

		first = first == NULL ? r : first;
		if (r->period_ns == first->period_ns)
			continue;
		return pl_fail(false,
			"periods differ: %.9g s at %s, %.9g s at %s: they cannot be compared",
			(double)first->period_ns / 1e9, q->captures[first->point - 1].name,
			(double)r->period_ns / 1e9, q->captures[r->point - 1].name);
	}
	return true;
}

/* Reads all captures. After an error, prints it and returns false; what was read is kept. */
static bool read_points(struct comparing *q)
{
	const struct pl_mark_read_options *o = q->o;
	bool good = true;

	for (size_t i = 0; i < o->n; i++) {
		struct pl_mark_capture like = { .options = o }, *c = &q->captures[q->n];

		name_capture(&like, o->captures[i]);
		if (o->of_files) {
			good &= pl_mark_file_read(q->captures, &q->n, &like);
			continue;
		}
		*c = like;
		c->point = c->number = (uint32_t)++q->n;
		good &= pl_mark_capture_read(c);
		tell_capture(c, o->stats);
	}
	return good;
}

/* Makes a segment of each link of the path, and one of the whole path when it has several links. */
static void make_path(struct comparing *q)
{
	const uint32_t n = (uint32_t)q->n;

	for (uint32_t i = 0; i < n; i++)
		q->points[i] = i + 1;
	for (uint32_t i = 0; i + 1 < n; i++)
		q->segments[q->n_segments++] =
			(struct pl_mark_segment){ &q->points[i], &q->points[i + 1], 1, 1 };
	if (n > 2)
		q->segments[q->n_segments++] =
			(struct pl_mark_segment){ &q->points[0], &q->points[n - 1], 1, 1 };
}

/* Returns the point with a name of n characters; 0: there is none. */
static uint32_t point_of(const struct comparing *q, const char *name, size_t n)
{
	for (uint32_t i = 0; i < q->n; i++) {
		if (strlen(q->captures[i].name) == n && memcmp(q->captures[i].name, name, n) == 0)
			return i + 1;
	}
	return 0;
}

static bool read_links(const struct comparing *q, struct pl_mark_arc *arcs)
{
	for (size_t i = 0; i < q->o->n_links; i++) {
		const char *text = q->o->links[i], *middle = strchr(text, '>');

		if (middle != NULL) {
			arcs[i].from = point_of(q, text, (size_t)(middle - text));
			arcs[i].to = point_of(q, middle + 1, strlen(middle + 1));
		}
		if (middle != NULL && arcs[i].from != 0 && arcs[i].to != 0)
			continue;
		return pl_fail(false, "--link %s: FROM>TO, both names of captures", text);
	}
	return true;
}

/* Makes the clusters of arcs, with room for their union and for each part in the options. */
static bool make_clusters(struct comparing *q, const struct pl_mark_arc *arcs, uint32_t n)
{
	struct pl_diag diag = { 0 };

	if (pl_mark_clusters_make(&q->clusters, arcs, n, &diag) < 0)
		return pl_fail(false, "%s", diag.text[0] != '\0' ? diag.text : "out of memory");
	q->room =
		calloc(pl_mark_clusters_room(&q->clusters) * (1 + q->o->n_zooms), sizeof(*q->room));
	if (q->room == NULL)
		return pl_fail(false, "out of memory");
	return true;
}

/* Makes a segment of each cluster of the network, and one of their union when there are several. */
static bool make_network(struct comparing *q)
{
	struct pl_mark_arc arcs[PL_MARK_LINKS_MAX];
	bool chosen[PL_MARK_LINKS_MAX];

	if (!read_links(q, arcs) || !make_clusters(q, arcs, (uint32_t)q->o->n_links))
		return false;
	for (uint32_t i = 0; i < q->clusters.n; i++) {
		q->segments[q->n_segments++] = q->clusters.segments[i];
		chosen[i] = true;
	}
	if (q->clusters.n > 1 &&
		pl_mark_clusters_union(&q->segments[q->n_segments], &q->clusters, chosen, q->room))
		q->n_segments++;
	return true;
}

/* Adds the parts that the options ask for; of a path they are made of its links. */
static bool add_zooms(struct comparing *q)
{
	struct pl_mark_arc arcs[PL_MARK_READ_MAX];
	struct pl_mark_named points[PL_MARK_READ_MAX];
	struct pl_diag diag = { .text = "" };

	for (uint32_t i = 0; i + 1 < q->n; i++)
		arcs[i] = (struct pl_mark_arc){ i + 1, i + 2 };
	for (uint32_t i = 0; i < q->n; i++)
		points[i] = (struct pl_mark_named){ q->captures[i].name, i + 1 };
	if (q->o->n_zooms > 0 && q->o->n_links == 0 && !make_clusters(q, arcs, (uint32_t)q->n - 1))
		return false;
	for (size_t i = 0; i < q->o->n_zooms; i++) {
		uint32_t *room = q->room + (1 + i) * pl_mark_clusters_room(&q->clusters);
		struct pl_mark_segment *s = &q->segments[q->n_segments];

		if (pl_mark_zoom(s, &q->clusters, points, q->n, q->o->zooms[i], room, &diag) < 0)
			return pl_fail(false, "%s", diag.text);
		q->n_segments += !pl_mark_zoom_is_known(q->segments, q->n_segments, s);
	}
	return true;
}

/* ---- all of it ---- */

/* Opens the outputs for records of the kind. Returns 0, or prints the error and returns an exit
 * code. */
static int open_out(struct comparing *q, enum pl_flat_kind kind, const char *write)
{
	q->out.kind = kind;
	q->out.to = q->o->to;
	q->out.n_to = q->o->n_to;
	q->out.write = write;
	return pl_mark_out_open(&q->out);
}

static int print_records(struct comparing *q)
{
	const int code = open_out(q, PL_FLAT_MARK128, NULL);
	struct pl_flat_out out;
	bool good;

	if (code != 0)
		return code;
	for (size_t i = 0; i < q->n_records; i++)
		pl_mark_out_put(&q->out, &q->records[i]);
	good = pl_mark_out_end(&q->out);
	if (q->o->quiet)
		return good ? PL_EXIT_OK : PL_EXIT_FAILED;
	pl_flat_out_init(&out, PL_FLAT_MARK128, q->o->form, 0);
	for (size_t i = 0; i < q->n_records && !pl_flat_out_full(&out); i++) {
		pl_flat_out_add(&out, &q->records[i], 1);
		pl_flat_out_write(&out);
	}
	return pl_flat_out_end(&out) && good ? PL_EXIT_OK : PL_EXIT_FAILED;
}

/* Writes records one behind the other, as "pathline query" reads them. */
static bool write_records(const struct comparing *q)
{
	int r;

	if (q->o->write == NULL || pl_mark_read_is_of_results(q->o->write))
		return true;
	r = pl_file_replace(q->o->write, q->records, q->n_records * sizeof(*q->records), 0644);
	if (r < 0)
		pl_complain("%s: %s", q->o->write, strerrordesc_np(-r));
	return r == 0;
}

bool pl_mark_read_is_of_results(const char *file)
{
	return pl_query_file_kind(file) == PL_FLAT_SEG192;
}

/* Numbers points by their order when two meters have the same number. */
static void number_points(struct comparing *q)
{
	bool same = false;

	for (size_t i = 0; i < q->n; i++) {
		for (size_t k = 0; k < i; k++)
			same |= q->captures[i].number == q->captures[k].number;
	}
	for (size_t i = 0; same && i < q->n; i++)
		q->captures[i].number = q->captures[i].point;
}

/* Adds the same segments in the opposite direction, behind the others. */
static void make_back(struct comparing *q)
{
	const uint32_t n = q->n_segments;

	q->rows.there = n;
	for (uint32_t i = 0; i < n && q->o->n_back > 0; i++) {
		const struct pl_mark_segment *s = &q->segments[i];

		q->segments[q->n_segments++] = (struct pl_mark_segment){
			.from = s->to, .to = s->from, .n_from = s->n_to, .n_to = s->n_from
		};
	}
}

static int make_segments(struct comparing *q)
{
	if (q->o->n_links == 0)
		make_path(q);
	else if (!make_network(q))
		return PL_EXIT_USAGE;
	if (!add_zooms(q))
		return PL_EXIT_USAGE;
	make_back(q);
	return 0;
}

static int print_chosen(struct comparing *q)
{
	const int code = make_segments(q);
	const struct pl_mark_hash_question question = { .captures = q->captures,
		.segments = q->segments,
		.n_segments = q->n_segments,
		.period_ns = q->o->period_ns,
		.tai_offset = q->o->tai_offset,
		.form = q->o->form };

	return code != 0 ? code : pl_mark_hash_print(&question);
}

/* Captures are read by the default method, which is not that of marks between two hosts. */
static void tell_method(const struct comparing *q)
{
	const uint64_t in_use = q->rows.alarms[__builtin_ctz(PL_MARK_ALARM_IN_USE)];

	if (!q->o->of_files && q->o->method == PL_MARK_STEP && 2 * in_use > q->rows.results)
		pl_complain("most blocks have marks that --method step does not make: those of "
			    "'pathline mark --to' are read with --method multiplexed");
}

static void tell_joined(const struct comparing *q)
{
	for (size_t i = 0; i < q->n; i++) {
		const struct pl_mark_capture *c = &q->captures[i];

		if (c->joined > 0)
			pl_complain(
				"%s: %" PRIu64
				" blocks of flows are partial: the host's offloads (TSO, GRO) made "
				"one packet of several; ethtool -K turns that off",
				c->name, c->joined);
	}
}

static int print_results(struct comparing *q)
{
	struct pl_mark_correlator_config config = { .segments = q->segments,
		.clock_ns = q->o->clock_ns,
		.result = pl_mark_rows_add,
		.arg = &q->rows };
	struct pl_diag diag = { 0 };
	bool good;
	int code;

	if (q->n < 2)
		return pl_fail(PL_EXIT_USAGE,
			"loss and delay are between two points: there are records of %s",
			q->n == 0 ? "none" : "one");
	if (!agree(q))
		return PL_EXIT_FAILED;
	code = make_segments(q);
	if (code != 0)
		return code;
	config.n_segments = q->n_segments;
	if (!pl_mark_find_apart(q->rows.apart, q->captures, q->segments, q->n_segments, q->records,
		    q->n_records))
		return pl_fail(PL_EXIT_FAILED, "out of memory for %zu blocks", q->n_records);
	if (pl_mark_correlator_new(&q->correlator, &config, &diag) < 0)
		return pl_fail(
			PL_EXIT_FAILED, "%s", diag.text[0] != '\0' ? diag.text : "out of memory");
	code = open_out(q, PL_FLAT_SEG192,
		q->o->write != NULL && pl_mark_read_is_of_results(q->o->write) ? q->o->write
									       : NULL);
	if (code != 0) {
		pl_mark_correlator_free(q->correlator);
		return code;
	}
	number_points(q);
	q->rows.give = &q->out;
	q->rows.quiet = q->o->quiet;
	q->rows.back = q->o->back;
	q->rows.n_back = q->o->n_back;
	q->rows.sampled = q->o->samples != 0;
	q->rows.captures = q->captures;
	q->rows.segments = q->segments;
	q->rows.n_segments = q->n_segments;
	q->rows.guard_ns = q->o->guard_ns;
	q->rows.tai_offset = q->n_records > 0 ? q->records[0].tai_offset : 0;
	/* A capture does not tell whether its host's clock is synchronised. */
	q->rows.unsaid = q->o->of_files ? 0 : PL_MARK_ALARM_UNSYNCED;
	if (!pl_mark_rows_init(&q->rows, q->o->form)) {
		pl_complain("out of memory");
		pl_mark_correlator_free(q->correlator);
		return PL_EXIT_FAILED;
	}
	compare_captures(q);
	good = pl_mark_out_end(&q->out) && !q->rows.no_memory;
	if (q->rows.quiet)
		pl_buf_done(&q->rows.out.buf);
	else
		good = pl_row_out_end(&q->rows.out) && good;
	pl_mark_correlator_free(q->correlator);
	pl_mark_rows_tell(&q->rows);
	tell_method(q);
	tell_joined(q);
	pl_mark_rows_done(&q->rows);
	return good ? PL_EXIT_OK : PL_EXIT_FAILED;
}

int pl_mark_read_captures(struct pl_mark_read_options *options)
{
	struct comparing *q = calloc(1, sizeof(*q));
	bool good;
	int code = PL_EXIT_FAILED;

	if (q != NULL)
		q->captures = calloc(PL_MARK_READ_MAX, sizeof(*q->captures));
	if (q == NULL || q->captures == NULL) {
		pl_complain("out of memory");
		free(q);
		return PL_EXIT_FAILED;
	}
	q->o = options;
	good = read_points(q);
	if (options->unmarked)
		code = print_chosen(q);
	else if (gather(q) && write_records(q))
		code = options->records ? print_records(q) : print_results(q);
	if (code == PL_EXIT_OK && !good)
		code = PL_EXIT_FAILED;
	if (code == PL_EXIT_OK && !options->unmarked && q->n_records == 0)
		code = PL_EXIT_NOTHING;
	pl_mark_out_close(&q->out);
	for (size_t i = 0; i < q->n; i++)
		pl_mark_capture_done(&q->captures[i]);
	pl_mark_clusters_done(&q->clusters);
	free(q->room);
	free(q->records);
	free(q->captures);
	free(q);
	return code;
}
