/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of marking domains. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "kafka/kafka.h"
#include "kafka/uri.h"
#include "lang/lang.h"
#include "mark/domain.h"
#include "mark/guard.h"
#include "netio/uri.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "pipeline/tap_to.h"
#include "tap/source.h"

#define REGION     "region:"
#define NAME_BYTES 16
#define CLOCK_NS   UINT64_C(1000000) /* for the guard band, without clock_error */

static int check_name(const char *value, struct pl_diag *diag)
{
	const size_t n =
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (n > 0 && n <= NAME_BYTES && value[n] == '\0' &&
		pl_config_query_stream(value) == PL_QUERY_STREAMS)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"the name of a marking domain has 1 to %d letters, digits, '_', '-' and '.', and is none of paths, hops, events and values",
		NAME_BYTES);
}

bool pl_config_marks_is_region(const char *source)
{
	return strncmp(source, REGION, strlen(REGION)) == 0;
}

bool pl_config_marks_is_topic(const char *source)
{
	return strncmp(source, PL_KAFKA_SCHEME, strlen(PL_KAFKA_SCHEME)) == 0;
}

static int check_topic(const char *value, struct pl_diag *diag)
{
	struct pl_kafka_uri *uri = calloc(1, sizeof(*uri));
	int r = uri == NULL ? -ENOMEM : pl_kafka_check(diag);

	if (r == 0)
		r = pl_kafka_uri_parse(uri, value, diag);
	if (r == 0 && uri->format > PL_KAFKA_FORMAT_ROWBINARY)
		r = pl_diag_fail(diag, -EINVAL, "kafka: block records have format=rowbinary");
	if (r == 0 && pl_kafka_uri_property(uri, "group.id") != NULL)
		r = pl_diag_fail(diag, -EINVAL,
			"kafka: group.id does not apply: a domain needs the records of all its points, and so all partitions");
	pl_kafka_uri_free(uri);
	return r < 0 ? -EINVAL : 0;
}

static int check_source(const char *value, struct pl_diag *diag)
{
	char port[PL_URI_TEXT_MAX];

	if (pl_config_marks_is_region(value) && value[strlen(REGION)] != '\0')
		return 0;
	if (pl_config_marks_is_topic(value))
		return check_topic(value, diag);
	if (strncmp(value, "udp:", 4) == 0)
		return pl_tap_source_tmpkt(value, port, sizeof(port), diag) < 0 ? -EINVAL : 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is no source of block records: udp://HOST:PORT (where 'pathline mark' and "
		"'pathline meter' send with --to), kafka://HOST/TOPIC (likewise) or region:PATH (a "
		"region of lists of mark128)",
		value);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_config_marks, member)
const struct pl_conf_row pl_config_marks_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "backbone", .check = check_name,
	  .help = "Name of the marking domain, in metrics and events." },
	{ .key = "sources", .type = PL_CONF_STRINGS, AT(sources), .required = true, .def = "[\"udp://:32768\"]", .min = 1, .max = 16, .check = check_source,
	  .help = "Where block records of the points come from: udp://HOST:PORT (tmpkt/1, as pathline mark and meter send with --to), kafka://HOST/TOPIC (all partitions of a topic of mark128) or region:PATH (a region of lists of mark128, with any writer)." },
	{ .key = "allow", .type = PL_CONF_STRINGS, AT(allow), .max = PL_CONFIG_PREFIXES_MAX, .check = pl_config_check_prefix,
	  .help = "Take records that come by UDP from these addresses only. Changed by a reload." },
	{ .key = "points", .type = PL_CONF_STRINGS, AT(points), .required = true, .def = "[sender=1, receiver=2]", .min = 2, .max = PL_MARK_POINTS_MAX,
	  .help = "Measurement points, NAME=NUMBER with the number of --point, in the order in which packets pass them." },
	{ .key = "links", .type = PL_CONF_STRINGS, AT(links), .max = PL_MARK_ARCS_MAX,
	  .help = "For a network with several paths: FROM>TO, the names of two points with no third one between them; loss is computed for clusters (RFC 9342). By default packets pass the points in their order." },
	{ .key = "zoom", .type = PL_CONF_STRINGS, AT(zoom), .max = PL_MARK_ZOOMS_MAX,
	  .help = "FROM>TO, names of points, several with '+' (a+b>c): the links or clusters between them are also reported together, besides each of them and the whole network." },
	{ .key = "method", .type = PL_CONF_CHOICE, AT(method), .def = "step", .choices = pl_mark_methods,
	  .help = "Method of marking at all points; records of other methods are left out." },
	{ .key = "period", .type = PL_CONF_DURATION, AT(period_ns), .def = "1s", .min = PL_MARK_PERIOD_MIN_NS, .max = PL_MARK_PERIOD_MAX_NS,
	  .help = "Duration of a block at all points; records of other periods are left out." },
	{ .key = "clock_error", .type = PL_CONF_DURATION, AT(clock_error_ns), .def = "0s",
	  .help = "Largest difference between the clocks of two points: a delay below zero by more than this is a clock fault; 0s: the estimates of the points themselves, and 1ms for the guard band. Changed by a reload." },
	{ .key = "delay", .type = PL_CONF_DURATION, AT(delay_ns), .def = "0s",
	  .help = "Mean delay from the first point to the last, for the guard band (clock error + delay + 3 deviations), which must be below half of the period, a quarter with pulse and multiplexed." },
	{ .key = "deviation", .type = PL_CONF_DURATION, AT(deviation_ns), .def = "0s",
	  .help = "Standard deviation of the delay, for the guard band." },
	{ .key = "wait", .type = PL_CONF_DURATION, AT(wait_ns), .def = "500ms",
	  .help = "How long to wait for records after 1.5 periods, when meters send them; points that have not reported by then are missing. At most 15 periods." },
	{ .key = "loss_above", .type = PL_CONF_DOUBLE, AT(loss_above), .def = "0.1", .max = 100,
	  .help = "Event segment_loss when more of the packets of a block are lost, in per cent; 100: never. Changed by a reload." },
	{ .key = "delay_above", .type = PL_CONF_DURATION, AT(delay_above_ns), .def = "0s",
	  .help = "Event segment_delay when the delay of a flow is above this; 0s: never. Changed by a reload." },
	{ .key = "end_after", .type = PL_CONF_U64, AT(end_after), .def = "3", .min = 1, .max = 1000000,
	  .help = "An event ends after this many consecutive blocks without a reason for it. Changed by a reload." },
	{ .key = "to", .type = PL_CONF_STRINGS, AT(to), .max = 8, .check = pl_tap_to_check,
	  .help = "Outputs of results as records (seg192): udp://HOST:PORT (tmpkt/1), kafka://HOST/TOPIC, clickhouse://HOST/TABLE, ipfix://HOST?pen=N, region:PATH, file:PATH. Queries read them by from: with the name of the domain." },
	{ .key = "blocks", .type = PL_CONF_U64, AT(blocks), .def = "16384", .min = 16, .max = 1 << 24,
	  .help = "Largest number of blocks of flows that are kept at a time, three for each flow; further ones are left out, first those of the sender with the most blocks." },
	{ 0 },
};
#undef AT
/* clang-format on */

unsigned int pl_config_marks_method(const struct pl_config_marks *marks)
{
	return marks->method + 1;
}

int pl_config_marks_network(
	const struct pl_config_marks *m, struct pl_mark_network *ret, struct pl_diag *diag)
{
	int r = pl_mark_network_make(
		ret, m->points.items, m->points.n, m->links.items, m->links.n, diag);

	if (r < 0)
		return r;
	r = pl_mark_network_add_zooms(ret, m->zoom.items, m->zoom.n, diag);
	if (r < 0)
		pl_mark_network_done(ret);
	return r;
}

static int check_one(const struct pl_config_marks *m, struct pl_diag *diag)
{
	const struct pl_mark_spread spread = {
		.clock_ns = m->clock_error_ns != 0 ? m->clock_error_ns : CLOCK_NS,
		.delay_ns = m->delay_ns,
		.deviation_ns = m->deviation_ns
	};
	struct pl_mark_network network;
	struct pl_diag why = { .text = "" };
	uint64_t guard_ns;
	int r = pl_config_marks_network(m, &network, &why);

	if (r == 0)
		pl_mark_network_done(&network);
	if (r == 0)
		r = pl_mark_guard_check(
			&guard_ns, pl_config_marks_method(m), m->period_ns, &spread, &why);
	if (r == 0 && m->wait_ns / m->period_ns >= PL_MARK_WAIT_MOST)
		r = pl_diag_fail(&why, -EINVAL,
			"the key wait is %" PRIu64
			" ns (500 ms by default), at most %u periods of %" PRIu64 " ns",
			m->wait_ns, PL_MARK_WAIT_MOST - 1, m->period_ns);
	if (r < 0 && why.text[0] != '\0')
		pl_diag_set(diag, "marks %s: %s", m->name, why.text);
	return r;
}

int pl_config_check_marks(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_marks *m = c->marks.items;

	for (size_t i = 0; i < c->marks.n; i++) {
		const int r = check_one(&m[i], diag);

		if (r < 0)
			return r;
		/* Pages show its sockets and outputs like those of a tap with this name. */
		if (pl_config_tap_named(c, m[i].name) < (int)c->taps.n)
			return pl_diag_fail(
				diag, -EINVAL, "marks %s: a tap has this name", m[i].name);
		for (size_t k = 0; k < i; k++) {
			if (strcmp(m[i].name, m[k].name) != 0)
				continue;
			return pl_diag_fail(diag, -EINVAL, "marks %zu and %zu have the same name",
				k + 1, i + 1);
		}
	}
	if (c->taps.n + c->marks.n <= PL_CONFIG_TAPS_MAX)
		return 0;
	return pl_diag_fail(
		diag, -EINVAL, "at most %d taps and marks together", PL_CONFIG_TAPS_MAX);
}

/* Writes the keys that a reload cannot change. */
static void dump(const struct pl_config *c, struct pl_buf *out)
{
	const struct pl_config_marks *m = c->marks.items;

	for (size_t i = 0; i < c->marks.n; i++) {
		struct pl_config_marks fixed = m[i];

		fixed.allow = (struct pl_conf_list){ .items = NULL };
		fixed.clock_error_ns = fixed.delay_ns = fixed.deviation_ns = 0;
		fixed.delay_above_ns = fixed.end_after = 0;
		fixed.loss_above = 0;
		pl_conf_dump(pl_config_marks_rows, &fixed, out);
	}
}

bool pl_config_same_marks(const struct pl_config *a, const struct pl_config *b)
{
	return pl_config_same(a, b, dump);
}
